"""Values worked out once by hand and by enumeration; last digits depend on the platform."""

import pytest

from rankwise.measures import AP, NDCG

SCORES, LABELS = [0.3, 0.1, 0.9, 0.3, -0.2], [2, 0, 1, 0, 3]

GOLDEN = {
    "stable": (0.596282824611163, 0.3079797896471021, 0.8666666666666667),
    "pessimistic": (0.55446465433056, 0.2661616193664992, 0.7555555555555555),
    "optimistic": (0.596282824611163, 0.3079797896471021, 0.8666666666666667),
}


@pytest.mark.parametrize("ties", GOLDEN)
def test_ndcg_and_ap_of_the_worked_list(ties):
    ndcg, ndcg_at_3, ap = GOLDEN[ties]
    assert NDCG()(SCORES, LABELS, ties=ties) == pytest.approx(ndcg, rel=1e-12)
    assert (NDCG() @ 3)(SCORES, LABELS, ties=ties) == pytest.approx(ndcg_at_3, rel=1e-12)
    assert AP()(SCORES, LABELS, ties=ties) == pytest.approx(ap, rel=1e-12)


def test_expected_over_both_orders_of_the_tie():
    assert NDCG()(SCORES, LABELS) == pytest.approx(0.5753737394708616, rel=1e-12)
    assert AP()(SCORES, LABELS) == pytest.approx(0.811111111111111, rel=1e-12)


def test_ndcg_at_k_truncates_positions_not_documents():
    # a definition in print sums over the k most relevant documents with an untruncated discount and gives 0.9639
    assert (NDCG() @ 2)([3, 1, 2], [2, 1, 1]) == 1.0


@pytest.mark.parametrize(
    ("gain", "ties", "value"),
    [
        ("exp2", "stable", 0.9639),
        ("linear", "pessimistic", 0.6199),
        ("exp2", "pessimistic", 0.5869),
        ("linear", "expected", 0.8100),
        ("exp2", "expected", 0.7825),
    ],
)
def test_the_worked_tie_example_under_each_convention(gain, ties, value):
    assert NDCG(gain=gain)([1, 1, 1], [2, 0, 1], ties=ties) == pytest.approx(value, abs=5e-5)
