"""The type two bound by all sequences of labels, which ``test_permutation.py`` holds against all permutations."""

import numpy as np

from rankwise.losses import TypeTwo, TypeTwoBound


def type_two_bound(loss: TypeTwoBound, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray | None]:
    """The gradient is None: several orders may be the worst."""
    plain = TypeTwo(loss.measure, map=loss.map, by="patterns")
    value = plain.measure.row_values(labels)
    if value.min() == value.max():
        return 0.0, np.zeros(len(s))
    missed, margin = plain._all_patterns(s - (0.5 * s.min() + 0.5 * s.max()), labels)
    if loss.form == "logistic":
        return float((missed * np.logaddexp(0.0, -margin)).max(initial=0.0) / np.log(2.0)), None
    reach = np.minimum(-margin, 16.0)
    return float((missed * np.exp(reach) * (1.0 - margin - reach)).max(initial=0.0)), None


DEFINITIONS = {"TypeTwoBound": type_two_bound}
