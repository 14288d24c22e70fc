"""Ctrl-C in the middle of a fit: it reaches the caller, and leaves a usable ranker or the one that was there before."""

import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import rankwise
import rankwise as rw
from rankwise.errors import Interrupted
from rankwise.rankers.auto import auto_ranker
from rankwise.rankers.online import learner
from rankwise.rankers.smooth import annealing
from rankwise.solvers.batch.risk import BundleRisk
from tests.rankers.test_every_ranker import learned, lists, over_every_kind_of_ranker
from tests.strategies import THOROUGH

FOLDERS = tuple(str(Path(rankwise.__file__).parent / folder) for folder in ("rankers", "solvers"))
SHARED = str(Path(rankwise.__file__).parent / "rankers" / "_base.py")


class AtLine:
    """Ctrl-C at the n-th line of rankers and solvers that is run; counts them all where n is never reached."""

    def __init__(self, line=None):
        self.line, self.count = line, 0

    def __enter__(self):
        sys.settrace(self._enter)
        return self

    def _enter(self, frame, event, argument):
        name = frame.f_code.co_filename
        return self._line if name.startswith(FOLDERS) and name != SHARED else None

    def _line(self, frame, event, argument):
        self.count += event == "line"
        if self.count == self.line:
            sys.settrace(None)
            raise KeyboardInterrupt
        return self._line

    def __exit__(self, *error):
        sys.settrace(None)


@over_every_kind_of_ranker
def test_ctrl_c_at_any_line_leaves_a_usable_ranker_or_the_one_before(ranker, tmp_path):
    queries, ranker = lists(8), clone(ranker).set_params(n_jobs=1)
    fitted = clone(ranker).fit(lists(6, seed=3))
    before, model = learned(fitted), deepcopy(fitted)
    with AtLine() as whole:
        model.fit(queries)
    assert whole.count > 5
    rounds, usable = len(getattr(model, "history_", ())), 0
    for line in np.unique(np.linspace(1, whole.count, 17 if THOROUGH else 9).astype(int)):
        model = deepcopy(fitted)
        with pytest.raises(KeyboardInterrupt) as stopped, AtLine(line):
            model.fit(queries)
        if not isinstance(stopped.value, Interrupted):
            assert learned(model) == before, "stopped before a first round: nothing has changed"
            continue
        usable += 1
        model.save(tmp_path / "model.rankwise")
        assert learned(rw.load(tmp_path / "model.rankwise")) == learned(model)
        assert np.isfinite(model.predict(queries)).all()
    assert usable or rounds < 3, "a ranker with rounds holds those that were finished"


class Count:
    """Ctrl-C at the n-th call."""

    def __init__(self, function, calls):
        self.function, self.left = function, calls

    def __call__(self, *arguments, **options):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self.function(*arguments, **options)


@pytest.mark.parametrize("parts", [1, 3])
def test_a_stopped_perceptron_holds_the_rounds_that_were_played(monkeypatch, parts):
    queries = lists(40)
    monkeypatch.setattr(learner, "_PRESENTED", int(queries.start[8]))
    played = rw.SLAMPerceptron().fit(queries)
    monkeypatch.setattr(learner, "run_rounds", Count(learner.run_rounds, parts + 1))
    model = rw.SLAMPerceptron()
    with pytest.raises(KeyboardInterrupt, match="was stopped, and holds what it had learned by then"):
        model.fit(queries)
    done = model.ledger_.rounds
    assert 0 < done < played.ledger_.rounds
    monkeypatch.undo()
    assert learned(model) == learned(rw.SLAMPerceptron().fit(queries[:done]))


def test_a_stopped_annealing_holds_the_stage_that_was_worth_most(monkeypatch):
    train, held = lists(30), lists(30, seed=1)
    whole = rw.SmoothRank("nDCG@5", protocol="paper", alpha=1.0, sigmas=(4.0, 1.0, 0.25), n_jobs=1).fit(
        train, validation=held
    )
    model = rw.SmoothRank("nDCG@5", protocol="paper", alpha=1.0, sigmas=(4.0, 1.0, 0.25), n_jobs=1)
    monkeypatch.setattr(
        annealing, "measure_of_weights", Count(annealing.measure_of_weights, 5)
    )  # two a stage: in the third one
    with pytest.raises(Interrupted):
        model.fit(train, validation=held)
    np.testing.assert_array_equal(model.history_["sigma"], [4.0, 1.0])
    np.testing.assert_array_equal(model.history_["validation"], whole.history_["validation"][:2])
    np.testing.assert_array_equal(model.coef_, whole.history_.coefs[1])
    assert model.alpha_ == 1.0


def test_folds_that_are_stopped_leave_the_best_weights_that_they_had_found(monkeypatch):
    train = lists(30)
    monkeypatch.setattr(annealing, "measure_of_weights", Count(annealing.measure_of_weights, 20))
    model = rw.SmoothRank("nDCG@5", protocol="paper", alpha=(0.1, 1.0), sigmas=(4.0, 0.25), folds=5, n_jobs=1)
    with pytest.raises(Interrupted):
        model.fit(train)
    assert model.alpha_ in (0.1, 1.0)
    assert len(model.history_) in (1, 2)
    assert np.isnan(model.path_["nDCG@5"]).all(), "nothing was chosen"


def test_a_start_that_is_stopped_leaves_the_ranker_around_it_as_it_was(monkeypatch):
    calls = Count(BundleRisk.solve, 2)
    monkeypatch.setattr(BundleRisk, "solve", lambda *arguments: calls(*arguments))
    model = rw.SmoothRank("nDCG@5", protocol="paper", start="ranksvm", alpha=1.0, sigmas=(1.0,))
    with pytest.raises(KeyboardInterrupt) as stopped:
        model.fit(lists(20), validation=lists(20, seed=1))
    assert not isinstance(stopped.value, Interrupted), "RankSVM held an alpha, SmoothRank holds nothing"
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "n_features_in_")


def auto_ranker_stopped(monkeypatch, call, queries):
    """An AutoRanker after Ctrl-C at the fit of a member, and the ranker of its first fit."""
    model = rw.AutoRanker(max_trees=20, folds=3, n_jobs=1).fit(lists(6, seed=3))
    before = learned(model)
    calls = Count(auto_ranker._MemberFits.fit, call)
    monkeypatch.setattr(auto_ranker._MemberFits, "fit", lambda *arguments: calls(*arguments))
    with pytest.raises(KeyboardInterrupt) as stopped:
        model.fit(queries)
    monkeypatch.undo()
    return model, stopped.value, before


@pytest.mark.parametrize("finished", [1, 2, 3])
def test_a_stopped_auto_ranker_is_the_stack_of_the_members_that_were_finished(monkeypatch, tmp_path, finished):
    queries = lists(80)
    model, error, _ = auto_ranker_stopped(monkeypatch, finished + 1, queries)
    assert isinstance(error, Interrupted)
    assert str(error) == "AutoRanker was stopped, and holds what it had learned by then"
    names = ("ridge", "normal", "trees", "started")[:finished]
    assert tuple(model.weights_) == names
    whole = rw.AutoRanker(max_trees=20, folds=3, n_jobs=1, members=names).fit(queries)
    np.testing.assert_array_equal(model.predict(queries), whole.predict(queries))
    assert model.certificate(queries, lists(50, seed=9)).headline is not None
    model.save(tmp_path / "model.rankwise")
    assert learned(rw.load(tmp_path / "model.rankwise")) == learned(model)


def test_an_auto_ranker_that_is_stopped_in_its_first_member_is_as_before(monkeypatch):
    model, error, before = auto_ranker_stopped(monkeypatch, 1, lists(40))
    assert not isinstance(error, Interrupted)
    assert learned(model) == before


def test_an_annealing_starts_from_ranksvm_by_name():
    train, held = lists(30), lists(30, seed=1)
    svm = rw.RankSVM("nDCG@5").fit(train, validation=held)
    by_name, by_weights = (
        rw.SmoothRank("nDCG@5", protocol="paper", start=start, alpha=1.0, sigmas=(1.0, 0.5)).fit(train, validation=held)
        for start in ("ranksvm", svm)
    )
    np.testing.assert_array_equal(by_name.start_, svm.coef_)
    np.testing.assert_array_equal(by_name.coef_, by_weights.coef_)
