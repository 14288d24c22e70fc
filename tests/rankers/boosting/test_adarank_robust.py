"""AdaRank on any number of threads, in float32, interrupted, saved, drawn, asked the impossible, and on real lists."""

import io
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

import rankwise as rw
from rankwise.errors import Interrupted, MeasureError, RankwiseError
from rankwise.measures._base import parse
from rankwise.queries.queries import Queries
from rankwise.rankers.boosting.adarank import AdaRank
from rankwise.rankers.boosting.candidates import RankedLists
from rankwise.rankers.boosting.rounds import Boosting
from tests.rankers.boosting.test_adarank import lists, same

# ------------------------------------------------------------------------------------------- same bits, or nothing


@pytest.mark.parametrize("options", [{}, {"negated": True, "repeats": False, "ties": "expected", "measure": "AP"}])
def test_the_number_of_threads_changes_no_bit(options, monkeypatch):
    monkeypatch.setattr("rankwise._kernels.parallel.query_chunks.__defaults__", (16,))
    monkeypatch.setattr("rankwise._kernels.parallel.CHUNK", 64)
    monkeypatch.setattr("rankwise.rankers.boosting.candidates._VALUES", 20)
    train, other = lists(22, count=50, features=40), lists(23, features=40)
    one, two = (AdaRank(**options, n_jobs=jobs).fit(train, validation=other) for jobs in (1, 2))
    assert same(one, two)
    monkeypatch.undo()
    assert same(AdaRank(**options).fit(train, validation=other), one)


def test_float32_is_read_where_it_stands_and_no_second_x_is_made(tmp_path):
    rng = np.random.default_rng(24)
    X = rng.uniform(size=(20_000, 200)).astype(np.float32)
    y = np.clip(np.rint(3 * X[:, 0] + rng.normal(size=len(X)) - 1), 0, 2)
    np.save(tmp_path / "X.npy", X)
    mapped = Queries.from_arrays(np.load(tmp_path / "X.npy", mmap_mode="r"), y, group=[100] * 200)
    model = AdaRank(rounds=5, repeats=False, scale="none", n_jobs=1)
    clone(model).fit(lists(dtype=np.float32))  # compiles
    tracemalloc.start()
    model.fit(mapped)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 3
    wide = Queries.from_arrays(X.astype(np.float64), y, group=[100] * 200)
    assert same(clone(model).fit(wide), model)


@pytest.mark.parametrize("rounds", [1, 2, 4])
@pytest.mark.parametrize("with_validation", [False, True])
def test_ctrl_c_leaves_what_the_finished_rounds_have_learned(rounds, with_validation, monkeypatch):
    """In the middle of a round, or between its measure and its end: the state is that of the rounds before it."""
    train, other = lists(25), lists(26) if with_validation else None
    model = AdaRank("nDCG@3", repeats=False)
    expected = clone(model).set_params(rounds=rounds).fit(train, validation=other)
    original, calls = RankedLists.measured, []

    def interrupted(self, scores):
        calls.append(1)
        if len(calls) == (2 if with_validation else 1) * rounds + 1:
            raise KeyboardInterrupt
        return original(self, scores)

    monkeypatch.setattr(RankedLists, "measured", interrupted)
    with pytest.raises(Interrupted, match="holds what it had learned by then"):
        model.fit(train, validation=other)
    assert same(model, expected)


def test_ctrl_c_half_way_through_writing_a_round_down_forgets_that_round(monkeypatch):
    train = lists(27)
    expected = AdaRank("nDCG@3", rounds=2, repeats=False).fit(train)
    original = Boosting.__setattr__

    def interrupted(self, name, value):
        if name == "finished" and value is not None and value.rounds == 3:
            raise KeyboardInterrupt
        original(self, name, value)

    monkeypatch.setattr(Boosting, "__setattr__", interrupted)
    model = AdaRank("nDCG@3", repeats=False)
    with pytest.raises(Interrupted):
        model.fit(train)
    assert same(model, expected)


def test_ctrl_c_before_the_first_round_leaves_the_model_as_it_was(monkeypatch):
    train = lists(28)
    model = AdaRank("nDCG@3").fit(train)
    before = clone(model).fit(train)

    def stop(*_):
        raise KeyboardInterrupt

    for name in ("by_features", "measured"):
        with monkeypatch.context() as patch:
            patch.setattr(RankedLists, name, stop)
            with pytest.raises(KeyboardInterrupt) as error:
                model.fit(lists(29))
            assert not isinstance(error.value, Interrupted)
        assert same(model, before)


@pytest.mark.parametrize("with_validation", [False, True])
def test_a_saved_model_has_the_same_bits_history_and_certificate(with_validation, tmp_path):
    train, other = lists(30), lists(31) if with_validation else None
    model = AdaRank("AP", repeats=False, negated=True).fit(train, validation=other)
    model.save(tmp_path / "ada.rankwise")
    copy = rw.load(tmp_path / "ada.rankwise")
    assert same(copy, model)
    assert copy.training_certificate_ == model.training_certificate_
    assert copy.history_.drawn == model.history_.drawn
    np.testing.assert_array_equal(copy.predict(train), model.predict(train))
    nothing = AdaRank().fit(train.with_labels(np.zeros(len(train.X))))
    nothing.save(tmp_path / "nothing.rankwise")
    assert same(rw.load(tmp_path / "nothing.rankwise"), nothing)


def test_the_history_draws_itself():
    pytest.importorskip("matplotlib")
    model = AdaRank("nDCG@3", repeats=False).fit(lists(32), validation=lists(33))
    drawn = {line.get_label(): line.get_ydata() for line in model.history_.plot().axes[0].lines}
    assert set(drawn) == {"train", "validation"}
    np.testing.assert_array_equal(drawn["train"], model.history_["train"])
    out = io.BytesIO()
    model.history_.plot().savefig(out)
    assert out.getvalue()


# ------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"measure": "DCG@10"}, "'measure' parameter of"),
        ({"ties": "stable"}, "'ties' parameter of"),
        ({"rounds": 0}, "'rounds' parameter of"),
        ({"rounds": 2.5}, "'rounds' parameter of"),
        ({"rounds": True}, "'rounds' parameter of"),
        ({"patience": 0}, "'patience' parameter of"),
        ({"patience": "long"}, "'patience' parameter of"),
        ({"scale": "log"}, "'scale' parameter of"),
        ({"measure": "P"}, "P needs a cut-off"),
    ],
)
def test_what_it_cannot_mean_is_refused_in_a_sentence_before_any_work(wrong, sentence, monkeypatch):
    monkeypatch.setattr(RankedLists, "by_features", None)
    with pytest.raises(RankwiseError, match=sentence) as error:
        AdaRank(**wrong).fit(lists())
    assert "\n" not in str(error.value)


def test_a_measure_that_turns_out_to_leave_0_and_1_is_refused(monkeypatch):
    """A measure of somebody else's is known by its values only."""
    measure = parse("nDCG@3")
    monkeypatch.setattr(type(measure), "kernel", type(parse("DCG@3")).kernel)
    with pytest.raises(MeasureError, match="values between 0 and 1, but nDCG@3 is"):
        AdaRank(measure).fit(lists())


def test_features_too_large_for_their_weight_are_refused():
    huge = lists().map_features(lambda block: 1.7e308 * block)
    with pytest.raises(RankwiseError, match="exceeds the largest float: scale the features"):
        AdaRank(rounds=50, repeats=False, scale="none").fit(huge)


# ------------------------------------------------------------------------------------------- real lists


def test_ohsumed_comes_within_a_hundredth_of_the_published_means(data_folder):
    """LETOR 3.0 publishes .4496 (NDCG@10) for AdaRank on NDCG and .4487 (MAP) for AdaRank on MAP."""
    folds = list(rw.io.read_folds(data_folder / "ohsumed"))
    for measure, title, published in (("nDCG@10", "nDCG@10", 0.4496), ("AP", "AP", 0.4487)):
        found = []
        for fold in folds:
            model = AdaRank(measure, repeats=False, ties="expected").fit(fold.train, validation=fold.validation)
            found.append(rw.evaluate(fold.test, model.predict(fold.test), [title], like="letor").mean[title])
        assert np.mean(found) == pytest.approx(published, abs=0.01)
