"""KernelPerceptron: a plain oracle, bounds in the space of the kernel until a removal, memory that does not grow."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.losses.max_pair import MaxPair
from rankwise.losses.slam import SLAM
from rankwise.queries.queries import Queries
from rankwise.rankers.online.kernel_perceptron import KernelPerceptron
from tests.rankers.online.test_streams import lists, run

KERNELS = {
    "rbf": lambda x, z: np.exp(-0.5 * ((x - z) ** 2).sum()),
    "linear": lambda x, z: x @ z,
    "poly": lambda x, z: (0.5 * (x @ z) + 1.0) ** 2,
}


def is_ideal(scores, labels, cut):
    """Whether the first positions, lower labels first among equal scores, have the labels of an ideal order."""
    order = np.lexsort((labels, -scores))[:cut]
    return labels[order].tolist() == np.sort(labels)[::-1][:cut].tolist()


def plain_run(queries, kernel, loss, cut, budget, smallest, eta=1.0):
    """The definition: stored (round, document, coefficient), and the mistakes."""
    stored, mistakes, removed = [], [], 0
    for t, query in enumerate(queries, 1):
        s = np.array([sum(c * kernel(z, x) for _, z, c in stored) for x in query.X])
        if is_ideal(s, query.y, cut):
            continue
        mistakes.append(t - 1)
        step = -eta * query.weight * loss(s, query.y)[1]
        new = [(t, x, c) for x, c in zip(query.X, step, strict=True) if c != 0]
        if len(new) > budget:
            kept = sorted(range(len(new)), key=lambda place: -abs(new[place][2]))[:budget]
            removed += len(new) - budget
            new = [new[place] for place in sorted(kept)]
        while stored and len(stored) + len(new) > budget:
            norms = {born: sum(c * c for other, _, c in stored if other == born) for born, _, _ in stored}
            out = min(norms, key=norms.get) if smallest else stored[0][0]
            removed += sum(born == out for born, _, _ in stored)
            stored = [one for one in stored if one[0] != out]
        stored += new
    return stored, mistakes, removed


@pytest.mark.parametrize("update", ["slam", "max_pair"])
@pytest.mark.parametrize("removal", ["oldest", "smallest"])
@pytest.mark.parametrize("budget", [3, 25, 1000])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_compiled_rounds_are_the_plain_ones(kernel, budget, removal, update):
    queries = lists(40, seed=2).map_features(lambda X: X + 0.03 * np.cos(np.arange(X.size)).reshape(X.shape))
    model = KernelPerceptron(
        "nDCG@3", kernel=kernel, gamma=0.5, degree=2, budget=budget, removal=removal, update=update, eta=0.5
    ).fit(queries)
    loss = MaxPair() if update == "max_pair" else SLAM.for_measure(model._measure(), None, 0.0)
    stored, mistakes, removed = plain_run(queries, KERNELS[kernel], loss, 3, budget, removal == "smallest", 0.5)
    state = model.state_
    assert np.flatnonzero(model.ledger_.tally.counts).tolist() == mistakes
    assert state.stored == len(stored)
    assert (state.removed, model.ledger_.removed) == (removed, removed)
    np.testing.assert_array_equal(state.documents[: state.stored], np.array([x for _, x, _ in stored]))
    np.testing.assert_array_equal(state.born[: state.stored], [born for born, _, _ in stored])
    np.testing.assert_allclose(state.c[: state.stored], [c for _, _, c in stored], rtol=1e-12)
    assert not state.documents[state.stored :].any()
    X = lists(4, seed=9).X
    expected = [sum(c * KERNELS[kernel](z, x) for _, z, c in stored) for x in X]
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("update", "kind"), [("slam", rw.SLAMPerceptron), ("max_pair", rw.MaxPairPerceptron)])
def test_a_linear_kernel_without_removal_is_the_linear_perceptron(update, kind):
    stream = rw.synthetic.separable_stream(200, documents=6, features=4, random_state=3)
    linear = kind("nDCG").partial_fit(stream)
    stored = KernelPerceptron("nDCG", kernel="linear", budget=3000, update=update).partial_fit(stream)
    assert stored.ledger_.mistakes == linear.ledger_.mistakes
    np.testing.assert_array_equal(stored.ledger_.tally.counts, linear.ledger_.tally.counts)
    X = stream.queries().X[:50]
    np.testing.assert_allclose(stored.predict(X), linear.predict(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(stored.state_.documents.T @ stored.state_.c, linear.coef_, rtol=1e-9, atol=1e-12)


def test_mapped_features_are_those_of_a_linear_perceptron_on_them():
    queries = lists(50)
    model = KernelPerceptron("AP", gamma=0.5, map=16, random_state=4).fit(queries)
    mapped = queries.map_features(rw.features.FourierFeatures(0.5, 16, random_state=4).fit_transform)
    linear = rw.SLAMPerceptron("AP").fit(mapped)
    np.testing.assert_array_equal(model.state_.w, linear.coef_)
    np.testing.assert_array_equal(model.predict(queries), linear.predict(mapped))
    assert model.ledger_.mistakes == linear.ledger_.mistakes
    mine, theirs = model.ledger_.bounds(queries), linear.ledger_.bounds(mapped)
    assert [(one.name, one.value) for one in mine] == [(one.name, one.value) for one in theirs]
    u = np.random.default_rng(0).normal(size=16)
    assert model.ledger_.bounds(queries, comparator=u)[0].value == linear.ledger_.bounds(mapped, comparator=u)[0].value


def test_small_blocks_of_mapped_rounds_change_no_bit(monkeypatch):
    whole = run(KernelPerceptron(map=16).fit(lists()))
    monkeypatch.setattr("rankwise.solvers.online.kernel_rounds._MAPPED_VALUES", 64)
    assert run(KernelPerceptron(map=16).fit(lists())) == whole
    assert run(KernelPerceptron(map=16, n_jobs=1).partial_fit(lists())) == whole


# ------------------------------------------------------------------------------------------- bounds


@given(
    seed=st.integers(0, 10_000),
    margin=st.sampled_from([0.02, 0.1]),
    grades=st.integers(2, 4),
    update=st.sampled_from(["slam", "max_pair"]),
    measure=st.sampled_from(["nDCG", "nDCG@2", "AP"]),
)
@settings(max_examples=40, deadline=None)
def test_until_a_removal_no_separable_stream_exceeds_the_bounds(seed, margin, grades, update, measure):
    stream = rw.synthetic.kernel_stream(150, documents=(1, 6), grades=grades, margin=margin, random_state=seed)
    model = KernelPerceptron(measure, gamma=stream.gamma, budget=2000, update=update).partial_fit(stream)
    ledger = model.ledger_
    assert ledger.removed == 0
    if not ledger.mistakes:
        return
    queries = stream.queries()
    own, best = ledger.bounds(gamma=stream.margin), ledger.bounds(queries)
    assert ledger.radius == 1.0
    for bound in (*own, *best):
        assert (ledger.loss if bound.bounds == "cumulative loss" else ledger.mistakes) <= bound.value * (1 + 1e-9)
        assert bound.applies is not False
    # the best comparator is at least as good as the hidden one
    assert best[0].terms["sharp"] <= own[0].value * (1 + 1e-2)
    mapped = KernelPerceptron(measure, gamma=stream.gamma, map=64, update=update).fit(queries).ledger_
    for bound in mapped.bounds(queries) if mapped.mistakes else ():
        assert (mapped.loss if bound.bounds == "cumulative loss" else mapped.mistakes) <= bound.value * (1 + 1e-9)
    assert mapped.radius <= 1 + 1e-12


def test_after_a_removal_no_bound_is_given_and_one_sentence_says_so():
    stream = rw.synthetic.kernel_stream(300)
    model = KernelPerceptron(gamma=stream.gamma, budget=10).partial_fit(stream)
    assert model.ledger_.removed > 0
    for asked in ({"gamma": 0.05}, {"queries": stream.queries()}):
        with pytest.raises(RankwiseError, match="no bound is proved for that") as error:
            model.ledger_.bounds(**asked)
        assert "\n" not in str(error.value)
    found = model.certificate(stream.queries())
    assert sum("no bound is proved for that" in note for note in found.notes) == 1
    assert not [row for row in found.rows if row.kind == "online" and row.bounds != "mean risk of the iterates"]
    assert model.ledger_.bounds(delta=0.1)[0].value < 1  # holds for whatever ranks in the rounds


def test_certificates_name_the_space():
    queries = rw.synthetic.kernel_stream(100).queries()
    mapped = KernelPerceptron(gamma=4.0, map=32).fit(queries).certificate(queries, longest=8)
    assert any("against the best w in that space" in note for note in mapped.notes)
    assert [row for row in mapped.rows if row.terms.get("radius") == 1.0]
    stored = KernelPerceptron(gamma=4.0, budget=2000).fit(queries).certificate(queries)
    assert any("stores documents and is not linear" in note for note in stored.notes)
    assert [row for row in stored.rows if row.bounds == "cumulative loss"]
    with pytest.raises(RankwiseError, match="cannot be given in the space of a kernel"):
        KernelPerceptron(gamma=4.0, budget=2000).fit(queries).ledger_.bounds(queries, comparator=[1.0, 2.0])


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"map": 16, "budget": 5}, "'budget' parameter of"),
        ({"map": 15}, "n_features must be even, for pairs of a cosine and a sine, got 15"),
        ({"map": 16, "kernel": "poly"}, "'budget' parameter of"),
        ({"budget": 0}, "'budget' parameter of"),
        ({"budget": 2.5}, "'budget' parameter of"),
        ({"budget": 5, "removal": "newest"}, "'removal' parameter of"),
        ({"update": "pairs"}, "'update' parameter of"),
        ({"update": "max_pair", "margin": 1.0}, "'margin' parameter of"),
        ({"gamma": -1.0}, "'gamma' parameter of"),
        ({"budget": 5, "kernel": "cosine"}, "'kernel' parameter of"),
        ({"eta": 0.0}, "'eta' parameter of"),
        ({"measure": "P@3"}, "SLAM"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given, found):
    model = KernelPerceptron(**given)
    with pytest.raises(RankwiseError, match=found) as error:
        model.fit(lists())
    assert "\n" not in str(error.value)
    assert not hasattr(model, "map_")


def test_scores_that_overflow_are_reported_and_leave_the_run_as_it_was():
    model = KernelPerceptron(kernel="poly", budget=50).fit(lists())
    before = run(model)
    huge = Queries.from_arrays(1e120 * np.eye(3), [0, 1, 2], group=[3])
    with pytest.raises(RankwiseError, match="too large for float64"):
        model.partial_fit([huge, huge, huge])
    assert run(model) == before


# ------------------------------------------------------------------------------------------- memory


def traced_peak(model, stream, first, last):
    """The largest number of bytes above those at the beginning, while some rounds are run."""
    tracemalloc.start()
    for block in stream.blocks(first=first):
        if int(block.qid[0]) >= last:
            break
        model.partial_fit(block)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [{"budget": 50}, {"map": 32}], ids=str)
def test_a_million_rounds_keep_a_state_of_the_same_size(settings):
    """What grows is what every online ranker keeps per query: 2 bytes in the ledger, 24 of fingerprints."""
    stream = rw.synthetic.kernel_stream(1_000_000, documents=3, angle=1e-3)
    model = KernelPerceptron("nDCG@1", gamma=stream.gamma, **settings)
    traced_peak(model, stream, 0, 20_000)
    sizes = [array.nbytes for array in vars(model.state_).values()]
    early = traced_peak(model, stream, 21_840, 200_000)
    late = traced_peak(model, stream, model.ledger_.rounds, 1_000_000)
    assert model.ledger_.rounds > 970_000
    assert [array.nbytes for array in vars(model.state_).values()] == sizes
    assert late - early < 100 * 1_000_000  # both are copied where they grow


# ------------------------------------------------------------------------------------------- the stream


@pytest.mark.parametrize("angle", [0.0, 0.01])
def test_the_hidden_function_separates_every_query_by_the_margin(angle):
    stream = rw.synthetic.kernel_stream(
        400, documents=(1, 9), grades=4, features=3, margin=0.03, angle=angle, random_state=5
    )
    for t, query in enumerate(stream):
        best = stream.comparator(query.X, t)
        assert np.abs(best).max() <= 1 + 1e-12, "no document is longer than 1 in the space of the kernel"
        gaps = best[:, None] - best
        assert (gaps[query.y[:, None] > query.y] >= stream.margin).all()
    points, functions = stream._functions
    K = np.exp(-stream.gamma * ((points[:, None] - points) ** 2).sum(axis=-1))
    np.testing.assert_allclose(functions @ K @ functions.T, np.eye(2), atol=1e-9)


def test_a_stream_has_the_same_bits_however_it_is_read(monkeypatch):
    monkeypatch.setattr("rankwise.synthetic.kernel_streams._BLOCK_DOCUMENTS", 100)
    stream = rw.synthetic.kernel_stream(60, documents=(2, 5))
    whole = stream.queries()
    assert len(stream) == len(whole) == 60
    for first in (0, 1, 19, 20, 59, 60):
        parts = list(stream.blocks(first=first))
        if parts:
            np.testing.assert_array_equal(Queries.concat(parts).X, whole[first:].X)
    longer = rw.synthetic.kernel_stream(90, documents=(2, 5)).queries()
    np.testing.assert_array_equal(longer[:60].X, whole.X)
    np.testing.assert_array_equal(longer[:60].y, whole.y)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"margin": 5.0}, "leaves no room for 3 grades"),
        ({"margin": 0.0}, "margin"),
        ({"gamma": float("inf")}, "gamma"),
        ({"documents": (3, 2)}, "documents"),
        ({"grades": 1}, "grades"),
        ({"angle": float("nan")}, "angle"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_streams_that_cannot_be_are_refused(given, found):
    with pytest.raises(RankwiseError, match=found):
        rw.synthetic.kernel_stream(10, **given)
