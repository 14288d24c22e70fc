"""The width of a smoothed measure has the units that the loss declares."""

import numpy as np
import pytest

from rankwise.losses import SmoothedMeasure, registered
from tests.losses.lists import on_lists
from tests.losses.test_every_fact import spread_lists

LOSSES = [loss for kind in registered().values() for loss in kind.examples() if isinstance(loss, SmoothedMeasure)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_width_has_the_units_that_are_declared(loss):
    """Scores times c with sigma times c, or c^2, give the same value."""
    scores, labels = spread_lists(6, 40, np.random.default_rng(0))
    wider = loss.at_sigma(loss.sigma * (9.0 if loss.squared_width else 3.0))
    np.testing.assert_allclose(on_lists(wider, 3.0 * scores, labels)[0], on_lists(loss, scores, labels)[0], atol=1e-9)
