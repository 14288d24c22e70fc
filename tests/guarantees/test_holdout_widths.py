"""How wide hold-out intervals are: the stored widths are those of the code, and betting is the narrowest, or nearly."""

import json
import math

import numpy as np
import pytest

from experiments import holdout_widths
from rankwise.guarantees.holdout.intervals import mean_interval

STORED = json.loads(holdout_widths.RESULTS.read_text(encoding="utf-8"))


def test_on_ohsumed_betting_is_half_as_wide_as_hoeffding():
    """The 106 values are stored, so every interval can be made again, and what the order does to it."""
    values = np.array(STORED["ohsumed"]["values"])
    assert len(values) == 106
    found = {method: mean_interval(values, STORED["delta"], method=method) for method in holdout_widths.METHODS}
    for method, stored in STORED["ohsumed"]["intervals"].items():
        assert (found[method].low, found[method].high) == pytest.approx((stored["low"], stored["high"]), abs=1e-8)
    assert found["betting"].width < 0.56 * found["hoeffding"].width
    orders = [np.random.default_rng(seed).permutation(values) for seed in range(holdout_widths.ORDERS)]
    widths = [mean_interval(order, STORED["delta"]).width for order in orders]
    stored = STORED["ohsumed"]["betting, orders of the input"]
    assert (min(widths), max(widths)) == pytest.approx((stored["narrowest"], stored["widest"]), abs=1e-8)
    assert max(widths) < 1.05 * min(widths)


@pytest.mark.parametrize("chance", STORED["coins"])
@pytest.mark.parametrize("n", [5, 20, 100, 500])
def test_on_coins_betting_is_narrower_on_average_unless_they_are_even_and_many(chance, n):
    """Other samples than those that were stored, of 5 to 500 coins, give the same means up to chance."""
    x = (np.random.default_rng(n).random((40, n)) < float(chance)).astype(float)
    width = np.array([mean_interval(row, STORED["delta"]).width for row in x])
    stored = STORED["coins"][chance][str(n)]["mean width"]
    means, reach = x.mean(axis=1), math.sqrt(math.log(40) / (2 * n))
    hoeffding = np.minimum(1, means + reach) - np.maximum(0, means - reach)
    assert width.mean() == pytest.approx(stored["betting"], rel=0.12)
    assert hoeffding.mean() == pytest.approx(stored["hoeffding"], rel=0.07)
    assert width.mean() < hoeffding.mean() * (1.08 if chance == "0.5" and n >= 50 else 1.0)
