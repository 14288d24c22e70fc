"""NeuralRanker: what it learns that no linear ranker can, how it stops, and that its file needs no PyTorch."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

import rankwise as rw
from rankwise._extras import install_command
from rankwise.errors import Interrupted, RankwiseError
from rankwise.losses import ListNet, PairLogistic, SmoothAP, SmoothNDCG
from rankwise.rankers.neural.network import Network, Training

SMALL = {"hidden": (8, 8), "epochs": 12, "batch": 4}


def products(count, seed, documents=10):
    """Queries whose labels depend on products of features alone."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count * documents, 4))
    worth = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    return rw.Queries.from_arrays(X, np.digitize(worth, [0.0, 0.7, 1.5]), group=np.full(count, documents))


def test_products_of_features_are_learned_which_no_linear_ranker_can_use():
    train, test = products(120, 0), products(100, 1)
    chance = np.mean(
        [rw.evaluate(test, np.random.default_rng(s).normal(size=1000), "nDCG@10").mean["nDCG@10"] for s in range(5)]
    )
    assert rw.RidgeRanker(n_jobs=1).fit(train).score(test) < chance + 0.1
    assert rw.NeuralRanker(hidden=(32,), epochs=40).fit(train).score(test) > chance + 0.25


def test_the_epoch_that_is_kept_is_the_best_on_the_validation_set():
    train, held = products(30, 0), products(30, 1)
    model = rw.NeuralRanker(**SMALL, patience=None).fit(train, validation=held)
    curve = model.history_["validation"]
    assert len(curve) == 12
    assert model.epoch_ == 1 + int(np.argmax(curve))
    assert model.score(held) == curve.max()
    np.testing.assert_array_equal(model.history_["epoch"], np.arange(1, 13))


def test_patience_ends_the_epochs():
    train, held = products(30, 0), products(30, 1)
    whole = rw.NeuralRanker(**SMALL | {"epochs": 40}, patience=None).fit(train, validation=held)
    model = rw.NeuralRanker(**SMALL | {"epochs": 40}, patience=2).fit(train, validation=held)
    assert len(model.history_) == model.epoch_ + 2 < 40
    np.testing.assert_array_equal(model.history_["loss"], whole.history_["loss"][: len(model.history_)])


def test_without_a_validation_set_a_fifth_of_the_queries_selects_the_epoch(monkeypatch):
    queries, seen = products(30, 0), []
    original = Network.predict
    monkeypatch.setattr(Network, "predict", lambda self, X, n_jobs=None: (seen.append(len(X)), original(self, X))[1])
    rw.NeuralRanker(**SMALL).fit(queries)
    assert set(seen) == {queries.n_documents // 5}


def test_a_query_of_weight_0_is_as_good_as_none_and_weights_count():
    queries, held = products(20, 0), products(10, 1)
    weight = np.ones(20)
    weight[[3, 7]] = 0
    ranker = rw.NeuralRanker(**SMALL)
    dropped = clone(ranker).fit(queries[weight > 0], validation=held)
    weighted = clone(ranker).fit(queries.with_weight(weight), validation=held)
    np.testing.assert_array_equal(weighted.predict(held), dropped.predict(held))
    doubled = clone(ranker).fit(queries[weight > 0].with_weight(np.full(18, 2.0)), validation=held)
    np.testing.assert_array_equal(doubled.predict(held), dropped.predict(held))
    weight[0] = 9.0
    other = clone(ranker).fit(queries.with_weight(weight), validation=held)
    assert not np.array_equal(other.predict(held), dropped.predict(held))


def test_seeds_differ_and_one_seed_gives_the_same_bits():
    queries = products(20, 0)
    one, again, other = (
        rw.NeuralRanker(**SMALL, random_state=seed).fit(queries).predict(queries) for seed in (1, 1, 2)
    )
    assert one.tobytes() == again.tobytes()
    assert one.tobytes() != other.tobytes()


@pytest.mark.parametrize(
    ("measure", "loss"), [("nDCG@5", SmoothNDCG(k=5)), ("AP", SmoothAP()), ("ERR@10", SmoothNDCG(k=10))]
)
def test_the_loss_is_the_smoothed_measure_unless_one_is_given(measure, loss):
    queries = products(20, 0)
    by_measure, by_loss = (rw.NeuralRanker(measure, loss=given, **SMALL).fit(queries) for given in (None, loss))
    np.testing.assert_array_equal(by_measure.predict(queries), by_loss.predict(queries))
    listnet = rw.NeuralRanker(measure, loss=ListNet(), **SMALL).fit(queries)
    assert not np.array_equal(listnet.predict(queries), by_loss.predict(queries))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"hidden": ()}, r"'hidden' parameter of NeuralRanker must be .* Got \(\) instead \(it is empty\)"),
        ({"hidden": 64}, "'hidden' parameter of NeuralRanker must be a sequence of ints .* Got 64 instead"),
        ({"hidden": [[8], [8, 8]]}, "'hidden' parameter of NeuralRanker must be a sequence of ints"),
        ({"hidden": (8, 0)}, "'hidden' parameter of"),
        ({"loss": "listnet"}, "'loss' parameter of"),
        ({"epochs": 0}, "'epochs' parameter of"),
        ({"batch": 2.5}, "'batch' parameter of"),
        ({"patience": 0}, "'patience' parameter of"),
        ({"learning_rate": 0.0}, "'learning_rate' parameter of"),
        ({"weight_decay": -1}, "'weight_decay' parameter of"),
        ({"dropout": 1.0}, "'dropout' parameter of"),
        ({"measure": "ndgc"}, "ndgc"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters, message):
    with pytest.raises(RankwiseError, match=message):
        rw.NeuralRanker(**parameters).fit(products(5, 0))


def test_steps_that_are_too_long_are_refused_in_a_sentence():
    with pytest.raises(RankwiseError, match="pass a smaller learning_rate"):
        rw.NeuralRanker(learning_rate=1e30, loss=PairLogistic(), epochs=20, patience=None).fit(products(20, 0))


def test_ctrl_c_keeps_the_best_epoch_so_far(monkeypatch):
    train, held = products(30, 0), products(30, 1)
    whole = rw.NeuralRanker(**SMALL).fit(train, validation=held)
    calls, original = [], Training.epoch

    def epoch(self):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return original(self)

    monkeypatch.setattr(Training, "epoch", epoch)
    model = rw.NeuralRanker(**SMALL)
    with pytest.raises(Interrupted):
        model.fit(train, validation=held)
    np.testing.assert_array_equal(model.history_["validation"], whole.history_["validation"][:4])
    assert model.epoch_ == 1 + int(np.argmax(model.history_["validation"]))


# ------------------------------------------------------------------------------------------- without PyTorch

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("PyTorch is blocked here")

sys.meta_path.insert(0, Blocked())
import numpy as np
import rankwise as rw
"""


def run_without_torch(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_saved_network_scores_and_is_fitted_where_there_is_no_pytorch(tmp_path):
    queries = products(12, 0)
    model = rw.NeuralRanker(**SMALL, n_jobs=1).fit(queries)
    model.save(tmp_path / "model.rankwise")
    queries.save(tmp_path / "queries.rankwise")
    code = """
queries = rw.load(sys.argv[1] + "/queries.rankwise")
model = rw.load(sys.argv[1] + "/model.rankwise")
again = rw.NeuralRanker(**model.get_params()).fit(queries)
print(model.predict(queries).tobytes().hex(), again.predict(queries).tobytes().hex(), "torch" in sys.modules)
"""
    loaded, fitted, imported = run_without_torch(code, str(tmp_path)).split()
    assert loaded == fitted == model.predict(queries).tobytes().hex()
    assert imported == "False"
    assert b"pickle" not in (tmp_path / "model.rankwise").read_bytes()


def test_what_needs_pytorch_says_so_in_a_sentence():
    code = """
for ask in (
    lambda: rw.torch.ranking_loss(rw.losses.ListNet()),
    lambda: rw.torch.metric("nDCG@10"),
    lambda: rw.torch.loader(rw.make_lists(3)),
):
    try:
        ask()
    except rw.errors.MissingExtraError as error:
        print(error)
"""
    sentence = f"torch is not installed; run {install_command('torch')}"
    assert run_without_torch(code).splitlines() == [sentence] * 3
