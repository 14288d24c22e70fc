"""The stored experiment on the first labels agrees with its bounds, and its parts can be run again."""

import json

import numpy as np
import pytest

from experiments import top_k_feedback
from experiments.pages import DOCS
from rankwise.losses import GivenSoftmax

STORED = json.loads((DOCS / "top_k_feedback.json").read_text())


def test_every_case_is_stored_and_below_its_bounds():
    found = [(one["loss"], one["k"], one["n"]) for one in STORED["regrets"]]
    assert found == [(repr(loss), k, n) for n in top_k_feedback.ROUNDS for loss, k in top_k_feedback.CASES]
    for one in STORED["regrets"]:
        assert one["regret"] + 3 * one["error"] <= one["bound"]
        assert one["charged"] <= one["charged_bound"]


def test_the_regret_per_round_falls():
    for loss, k in top_k_feedback.CASES:
        rows = [one for one in STORED["regrets"] if (one["loss"], one["k"]) == (repr(loss), k)]
        for name in ("regret", "charged", "charged_bound"):
            per_round = [one[name] / one["n"] for one in rows]
            assert per_round == sorted(per_round, reverse=True)


def test_the_regrets_of_two_streams_add_up_to_more_than_any_algorithm_avoids():
    for one in (STORED["one_label"], top_k_feedback.one_label(150)):
        assert sum(one["regret"].values()) >= one["least_sum"] > 0
        assert max(one["regret"].values()) >= one["least_sum"] / 2


def test_the_best_weights_are_in_the_ball_and_better_than_none():
    queries, loss = top_k_feedback.stream(50), GivenSoftmax()
    best = top_k_feedback.best_weights(loss, queries)
    assert np.linalg.norm(best) <= top_k_feedback.W * (1 + 1e-9)
    total = top_k_feedback.losses_of(loss, queries, best).sum()
    assert total < top_k_feedback.losses_of(loss, queries, np.zeros(top_k_feedback.FEATURES)).sum()
    each = top_k_feedback.losses_of(loss, queries, np.tile(best, (50, 1)))
    assert each.sum() == pytest.approx(total)
    assert all(0 < query.y.sum() < top_k_feedback.DOCUMENTS for query in queries)
