"""What the experiment on annealed boosted trees stores, and what it makes of it."""

import json

import numpy as np
import pytest

import rankwise as rw
from experiments import boosted_annealing
from rankwise import losses
from rankwise.rankers.boosting.annealed import AnnealedDerivatives
from rankwise.rankers.boosting.growing import joined
from rankwise.rankers.boosting.objectives import Derivatives


def test_without_data_it_says_what_it_needs_and_writes_nothing(monkeypatch, capsys):
    monkeypatch.delenv("RANKWISE_DATA", raising=False)
    before = boosted_annealing.NUMBERS.read_bytes()
    assert boosted_annealing.main() == 2
    assert "RANKWISE_DATA" in capsys.readouterr().err
    assert boosted_annealing.NUMBERS.read_bytes() == before


def test_all_rankers_are_measured_on_the_same_queries():
    for fits in json.loads(boosted_annealing.NUMBERS.read_text(encoding="utf-8")).values():
        assert list(fits) == list(boosted_annealing.RANKERS)
        assert len({len(one["values"]) for one in fits.values()}) == 1
        assert all(0 <= value <= 1 for one in fits.values() for value in one["values"])


@pytest.mark.parametrize("trees", [3, 10, 200])
def test_the_width_that_was_reached_is_that_of_the_last_tree(trees):
    lists = rw.make_lists(5, documents=5, features=2)
    model = rw.BoostedRanker(loss=losses.SmoothNDCG(), sigmas=boosted_annealing.SIGMAS, trees=trees)
    made = AnnealedDerivatives.over(Derivatives.of(model.loss, joined([lists])), model.sigmas, trees)
    scores = np.random.default_rng(0).normal(size=lists.n_documents)
    variance = made.before_tree(scores, 0).lists.loss.sigma / model.sigmas[trees < 4]
    for chosen in range(1, trees + 1):
        made, model.trees_ = made.before_tree(scores, chosen - 1), chosen
        assert boosted_annealing.reached(model) == pytest.approx(made.lists.loss.sigma / variance)
