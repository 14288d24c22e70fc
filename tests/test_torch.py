"""Losses, measures and batches for PyTorch: the numbers are those of the package, and mistakes get one sentence."""

import math
import re
import warnings
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from numba import njit

import rankwise as rw
from experiments.pages import DOCS
from rankwise.errors import DataError, DataWarning, RankwiseError
from rankwise.losses import Loss, StochasticNDCG, registered
from rankwise.losses.compute import PreparedLists, loss_lists
from rankwise.rankers.neural.network import AdamW, Layers
from rankwise.torch import QueryBatch, QueryDataset, _on_cpu, loader, metric, ranking_loss

torch = pytest.importorskip("torch", reason="needs PyTorch, which is the extra torch and not among the locked packages")

LOSSES = [loss for kind in registered().values() for loss in kind.examples()]
SMOOTH = [loss for loss in LOSSES if loss.smooth]
over_all_losses = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def queries(count=9, seed=0, **fields):
    """Judged queries of 0 to 6 documents, some of whose labels are all equal."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 7, count)
    X, y = rng.normal(size=(sizes.sum(), 3)), rng.integers(0, 4, sizes.sum()).astype(float)
    return rw.Queries(X, y, np.append(0, np.cumsum(sizes)), **fields)


def scores_of(lists, seed=1, dtype=None):
    drawn = np.random.default_rng(seed).normal(size=lists.n_documents)
    return torch.tensor(drawn, dtype=dtype or torch.float64, requires_grad=True)


def one_by_one(loss, scores, lists):
    """(values, gradient) by calls of the loss itself, query after query."""
    own, gradient, values = scores.detach().numpy().astype(np.float64), np.zeros(lists.n_documents), []
    if isinstance(loss, StochasticNDCG):  # its noise depends on the places of documents in the set
        return loss_lists(PreparedLists.of(loss, lists.y, lists.start), own)
    for first, last in pairwise(lists.start):
        value, slope = loss(own[first:last], lists.y[first:last]) if first < last else (0.0, [])
        values.append(value)
        gradient[first:last] = slope
    return np.array(values), gradient


# -------------------------------------------------------------------------------------------------------------- losses


@over_all_losses
def test_values_and_gradients_are_those_of_the_loss(loss):
    lists = queries()
    scores = scores_of(lists)
    values, gradient = one_by_one(loss, scores, lists)
    found = ranking_loss(loss, reduction="none")(scores, lists.y, lists.start)
    np.testing.assert_array_equal(found.detach().numpy(), values)
    outer = torch.linspace(0.5, 2.0, len(lists), dtype=torch.float64)
    (found * outer).sum().backward()
    np.testing.assert_array_equal(scores.grad.numpy(), gradient * np.repeat(outer.numpy(), lists.sizes))
    for reduction, share in (("mean", 1 / len(lists)), ("sum", 1.0)):
        scores.grad = None
        total = ranking_loss(loss, reduction=reduction)(scores, torch.from_numpy(lists.y.copy()), lists.start)
        total.backward()
        assert total.item() == pytest.approx(values.sum() * share, rel=1e-14, abs=1e-15)
        np.testing.assert_allclose(scores.grad.numpy(), gradient * share, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_pytorch_checks_the_gradients_of_smooth_losses_by_differences(loss):
    lists = queries(6)
    scores = scores_of(lists)
    function = ranking_loss(loss)
    assert torch.autograd.gradcheck(lambda s: function(s, lists.y, lists.start), [scores], eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_narrow_scores_are_computed_in_float64_and_come_back_narrow(dtype):
    lists, loss = queries(), rw.losses.SmoothNDCG()
    scores = scores_of(lists, dtype=dtype)
    wide = scores.detach().double().requires_grad_()
    found, exact = (ranking_loss(loss)(one, lists.y, lists.start) for one in (scores, wide))
    found.backward()
    exact.backward()
    assert found.dtype == scores.grad.dtype == dtype
    assert found.item() == exact.detach().to(dtype).item()
    assert torch.equal(scores.grad, wide.grad.to(dtype))


def test_query_weights_are_those_of_a_weighted_mean():
    lists, loss = queries(), rw.losses.PairLogistic()
    scores = scores_of(lists)
    weight = np.random.default_rng(3).uniform(0.5, 2.0, len(lists))
    values, gradient = one_by_one(loss, scores, lists)
    found = ranking_loss(loss)(scores, lists.y, lists.start, weight)
    found.backward()
    assert found.item() == pytest.approx((values * weight).sum() / weight.sum(), rel=1e-14)
    share = np.repeat(weight / weight.sum(), lists.sizes)
    np.testing.assert_allclose(scores.grad.numpy(), gradient * share, rtol=1e-12, atol=1e-15)
    by_query = ranking_loss(loss, reduction="none")(scores, lists.y, lists.start, weight)
    np.testing.assert_allclose(by_query.detach().numpy(), values * weight, rtol=1e-15)
    assert ranking_loss(loss)(scores, lists.y, lists.start, 0 * weight).item() == 0.0


def test_batches_without_anything_to_learn_have_loss_0_and_no_gradient():
    function = ranking_loss(rw.losses.ListNet())
    for labels, offsets in (([], [0]), ([], [0, 0]), ([1.0], [0, 1]), ([2.0, 2.0], [0, 0, 2])):
        scores = torch.zeros(len(labels), dtype=torch.float64, requires_grad=True)
        found = function(scores, labels, offsets)
        found.backward()
        assert found.item() == 0.0
        assert not scores.grad.numpy().any()


@njit
def _squares(score, label, value, grad, table, params):
    total = 0.0
    for i in range(len(score)):
        total += (score[i] - label[i]) ** 2
        grad[i] += 2 * (score[i] - label[i])
    return total


@dataclass(frozen=True, kw_only=True, repr=False)
class MySquares(Loss):
    """A loss of a user's own, which nothing has registered."""

    name = "MySquares"
    convex = True
    kernel = _squares


def test_a_loss_of_ones_own_needs_no_registration():
    lists = queries()
    scores = scores_of(lists)
    found = ranking_loss(MySquares(), reduction="sum")(scores, lists.y, lists.start)
    found.backward()
    away = scores.detach().numpy() - lists.y
    assert found.item() == pytest.approx((away**2).sum())
    np.testing.assert_allclose(scores.grad.numpy(), 2 * away)


def test_labels_are_prepared_once_for_a_batch_that_comes_again(monkeypatch):
    calls, original = [], PreparedLists.of.__func__
    monkeypatch.setattr(PreparedLists, "of", classmethod(lambda *given: (calls.append(1), original(*given))[1]))
    lists, function = queries(), ranking_loss(rw.losses.SLAM())
    scores, labels = scores_of(lists), torch.tensor(lists.y)
    first = [function(scores, labels, lists.start).item() for _ in range(3)]
    assert len(calls) == 1
    assert len(set(first)) == 1
    labels[:] = 3 - labels  # the same tensor with other labels
    changed = function(scores, labels, lists.start).item()
    assert len(calls) == 2
    assert changed == ranking_loss(rw.losses.SLAM())(scores, 3 - lists.y, lists.start).item() != first[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [0.0, 1.0, 2.0]}, "scores must be a floating-point tensor"),
        ({"scores": torch.zeros(3, 1)}, r"one number per document: found Tensor of torch.float32 and shape \(3, 1\)"),
        ({"scores": torch.zeros(3, dtype=torch.int64)}, "scores must be a floating-point tensor"),
        ({"scores": torch.tensor([0.0, math.nan, 1.0])}, "scores must be finite, got nan at row 1"),
        ({"labels": [0.0, 1.0]}, "one number per row"),
        ({"labels": [0.0, -1.0, 1.0]}, "labels must be 0 or more"),
        ({"offsets": [0, 2]}, "ends with the number of documents, 3: found 0 to 2"),
        ({"offsets": [1, 3]}, "begins with 0"),
        ({"offsets": [0, 3, 1, 3]}, "with a fall"),
        ({"offsets": [0.0, 3.0]}, "offsets must hold integers"),
        ({"offsets": []}, "offsets must hold integers"),
        ({"offsets": [[0, 3]]}, "offsets must hold integers"),
        ({"weight": [1.0, 2.0]}, "weight must hold one number per query"),
        ({"weight": [-1.0]}, "weight is -1.0 at query 0"),
    ],
)
def test_what_is_no_batch_is_refused_in_a_sentence(change, message):
    given = {"scores": torch.zeros(3), "labels": [0.0, 1.0, 2.0], "offsets": [0, 3]} | change
    with pytest.raises(DataError, match=message) as error:
        ranking_loss(rw.losses.ListNet())(**given)
    assert "\n" not in str(error.value)


def test_what_is_no_loss_and_no_reduction_is_refused():
    with pytest.raises(RankwiseError, match="ranking_loss takes a loss such as"):
        ranking_loss("listnet")
    with pytest.raises(RankwiseError, match="reduction must be 'mean', 'sum' or 'none', got 'average'"):
        ranking_loss(rw.losses.ListNet(), reduction="average")
    with pytest.raises(RankwiseError, match="dtype is 'float32' or 'float64'"):
        loader(queries(), dtype="float16")
    assert "ListNet" in repr(ranking_loss(rw.losses.ListNet()))


class Elsewhere:
    """What a tensor on another device shows of itself."""

    class device:  # noqa: N801
        type = "cuda"

    def cpu(self):
        return "copied"


def test_a_copy_from_another_device_is_announced():
    with pytest.warns(DataWarning, match="scores is copied from cuda: losses and measures are computed on the CPU"):
        assert _on_cpu(Elsewhere(), "scores") == "copied"
    with warnings.catch_warnings():  # once for each line of the caller, as Python has it
        warnings.simplefilter("error")
        here = torch.zeros(2)
        assert _on_cpu(here, "scores") is here


# ------------------------------------------------------------------------------------------------------------ measures


@pytest.mark.parametrize("measure", ["nDCG@3", "AP", "RR", "P@2"])
def test_measures_are_those_of_evaluate(measure):
    lists = queries(30, weight=np.random.default_rng(5).uniform(0.5, 2.0, 30))
    scores = torch.round(scores_of(lists).detach(), decimals=1)
    found = rw.evaluate(lists, scores.numpy(), measure)
    assert metric(measure)(scores, lists.y, lists.start, lists.weight).item() == pytest.approx(found.mean[measure])
    by_query = metric(measure, reduction="none")(scores, lists.y, lists.start)
    np.testing.assert_array_equal(by_query.numpy(), found.per_query[measure])
    assert metric(measure)(torch.zeros(0), [], [0]).isnan()


# ------------------------------------------------------------------------------------------------------------- batches


def test_batches_hold_whole_queries_and_every_query_once():
    lists = queries(20)
    rows = lists._replace(X=np.column_stack([lists.X, np.arange(lists.n_documents)]))
    seen = []
    for batch in loader(rows, 6, dtype="float64"):
        assert isinstance(batch, QueryBatch)
        assert len(batch.offsets) - 1 == len(batch.weight) in (6, 2)
        for first, last in pairwise(batch.offsets.tolist()):
            own = batch.X[first:last, -1].numpy().astype(int)
            np.testing.assert_array_equal(np.diff(own), 1)
            np.testing.assert_array_equal(batch.labels[first:last].numpy(), lists.y[own])
            assert len(own) == 0 or own[0] in lists.start
            seen += own.tolist()
    assert sorted(seen) == list(range(lists.n_documents))


def test_the_orders_are_those_of_the_seed():
    def orders(seed, **options):
        batches = loader(queries(20), 3, random_state=seed, **options)
        return [[batch.X.numpy().tobytes() for batch in batches] for _ in range(2)]

    assert orders(1) == orders(1) != orders(2)
    assert orders(1)[0] != orders(1)[1]
    plain = orders(1, shuffle=False)
    assert plain[0] == plain[1]
    assert torch.cat([batch.X for batch in loader(queries(20), 7, shuffle=False)]).numpy().tobytes() == (
        queries(20).X.astype(np.float32).tobytes()
    )


def test_a_mapped_x_stays_in_its_file_and_rows_may_be_scattered(tmp_path):
    lists = queries(20)
    lists.save(tmp_path / "lists.rankwise")
    stored = rw.load(tmp_path / "lists.rankwise")
    dataset = QueryDataset(stored)
    assert isinstance(dataset.queries.X, np.memmap)
    assert np.shares_memory(dataset.queries.X, stored.X)
    order = np.random.default_rng(0).permutation(lists.n_documents)
    scattered = rw.Queries.from_arrays(lists.X[order], lists.y[order], qid=lists.query_of_row[order])
    number = {qid: place for place, qid in enumerate(scattered.names())}
    for query in range(len(lists)):
        own = dataset[query]
        if query in number:
            other = QueryDataset(scattered)[number[query]]
            assert sorted(own.labels.tolist()) == sorted(other.labels.tolist())
            assert sorted(map(tuple, own.X.tolist())) == sorted(map(tuple, other.X.tolist()))


def test_queries_that_cannot_be_trained_on_are_refused():
    with pytest.raises(DataError, match="labels are needed"):
        loader(queries().with_labels(None))
    with pytest.raises(RankwiseError, match="batch must be a whole number, 1 or more"):
        loader(queries(), 0)


# ------------------------------------------------------------------------------------------- networks of one's own


def test_a_network_of_ones_own_learns():
    torch.manual_seed(0)
    train = rw.make_lists(60, documents=10, features=5, random_state=0)
    network = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    loss, measure = ranking_loss(rw.losses.SmoothNDCG(k=10)), metric("nDCG@10")

    def score():
        with torch.no_grad():
            return measure(network(torch.tensor(train.X).float()).squeeze(-1), train.y, train.start).item()

    before, batches = score(), loader(train, 16)
    for _ in range(15):
        for X, labels, offsets, weight in batches:
            optimizer.zero_grad()
            loss(network(X).squeeze(-1), labels, offsets, weight).backward()
            optimizer.step()
    assert score() > before + 0.1


def test_the_training_loop_of_the_page_runs_as_it_is_printed(capsys):
    (loop,) = re.findall(r"```python\n(.*?)```", (DOCS / "neural.md").read_text(), re.DOTALL)
    torch.manual_seed(0)
    train, validation = rw.split(rw.make_lists(40, documents=8, features=136, random_state=0), (0.7, 0.3))
    made = {"train": train, "validation": validation}
    exec(loop, made)
    shown = [float(line.split()[3]) for line in capsys.readouterr().out.splitlines()]
    best = int(np.argmax(shown))
    assert 10 < len(shown) < 100
    assert len(shown) == made["epoch"] + 1 <= best + 20, "it stops soon after the best epoch"
    with torch.no_grad():
        scores = made["network"](torch.tensor(validation.X).float()).squeeze(-1).double().numpy()
    found = rw.evaluate(validation, scores, "nDCG@10").mean["nDCG@10"]
    assert found == pytest.approx(made["best"])
    assert round(found, 4) == max(shown)


@pytest.mark.parametrize("widths", [(3, 4), (2, 5, 5), (4, 4, 4, 2)], ids=str)
def test_the_gradient_of_neural_ranker_is_that_of_autograd(widths):
    layers, rng, lists = Layers(widths), np.random.default_rng(0), queries()
    theta = torch.tensor(rng.normal(size=layers.size), requires_grad=True)
    Z, prepared = rng.normal(size=(lists.n_documents, widths[0])), PreparedLists.of(MySquares(), lists.y, lists.start)
    place, h = 0, torch.tensor(Z)
    for number, (below, above) in enumerate(pairwise(widths)):
        weight = theta[place : place + below * above].reshape(above, below)
        place += below * above
        r = torch.relu(h @ weight.T + theta[place : place + above])
        place += above
        h = r + h if number and below == above else r
    scores = h @ theta[place : place + widths[-1]] + torch.tensor(Z) @ theta[place + widths[-1] :]
    ranking_loss(MySquares(), reduction="sum")(scores, lists.y, lists.start).backward()
    own = theta.detach().numpy()
    found, passed = layers.scores(own, Z)
    np.testing.assert_allclose(found, scores.detach().numpy(), rtol=1e-12, atol=1e-12)
    gradient = layers.gradient(own, passed, loss_lists(prepared, found)[1])
    np.testing.assert_allclose(gradient, theta.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_adamw_is_that_of_pytorch():
    rng = np.random.default_rng(0)
    own = rng.normal(size=50).astype(np.float32)
    theirs = torch.tensor(own.copy(), requires_grad=True)
    optimizer, other = AdamW(0.01, np.full(50, 0.1, np.float32)), torch.optim.AdamW([theirs], lr=0.01, weight_decay=0.1)
    for _ in range(200):
        gradient = rng.normal(size=50).astype(np.float32)
        optimizer.step(own, gradient)
        theirs.grad = torch.tensor(gradient)
        other.step()
    np.testing.assert_allclose(own, theirs.detach().numpy(), rtol=1e-4, atol=1e-5)
