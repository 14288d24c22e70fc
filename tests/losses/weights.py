"""The weights of SLAM, from the table of rules and as the loss itself shows them."""

import numpy as np

from rankwise.losses import SLAM
from tests.losses.lists import on_lists
from tests.oracles.losses import slam_v


def classes(loss: SLAM, labels) -> np.ndarray:
    """The labels whose order counts: for AP, relevant or not."""
    labels = np.asarray(labels, dtype=float)
    return loss.row_values(labels) if loss.is_ap else labels


def tabled(loss: SLAM, labels) -> np.ndarray:
    """v by document, from the table of rules."""
    return slam_v(loss, classes(loss, labels))


def read_off(loss: SLAM, labels) -> np.ndarray:
    """v by document, from the loss itself: with all others far apart and i at the next lower class, the loss is v_i.

    What a document of the lowest class weighs cannot be seen: nothing is ranked below it.
    """
    _, level = np.unique(classes(loss, labels), return_inverse=True)
    scores = np.tile(10.0 * level, (len(level), 1))
    scores -= 10 * np.eye(len(level))
    return on_lists(loss, scores, np.asarray(labels, dtype=float))[0]
