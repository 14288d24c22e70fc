"""Perceptrons and their kin: what they do each round, what they can lose at most, and who can make them lose it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.printed_bounds import printed_003
from rankwise.errors import RankwiseError
from rankwise.guarantees import Adversary, play
from rankwise.guarantees.bounds.adversary import publish
from rankwise.guarantees.bounds.online import SEPARABLE
from rankwise.losses import SLAM, MaxPair
from rankwise.measures._base import parse
from rankwise.queries.queries import Queries
from rankwise.queries.selection import Query
from rankwise.rankers.linear.listnet import ListNet
from rankwise.rankers.online.online_ranker import OnlineRanker
from rankwise.rankers.online.perceptron import MaxPairPerceptron, SLAMPerceptron
from rankwise.synthetic.streams import noisy_stream, separable_stream
from tests.oracles import perceptrons as plain
from tests.strategies import few

# Few distinct values, so that ties are the rule and rows are often the same.
coarse = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])
any_value = st.one_of(coarse, st.floats(-3, 3, width=32))
grades = st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.0, 2.0, 3.0])


@st.composite
def streams(draw, most=6):
    """Lists of any labels, degenerate ones among them, shown once or several times."""
    d, rounds = draw(st.integers(1, 4)), []
    for _ in range(draw(st.integers(1, 5))):
        m = draw(st.integers(1, most))
        X = draw(st.lists(st.lists(any_value, min_size=d, max_size=d), min_size=m, max_size=m))
        rounds.append((np.array(X), np.array(draw(st.lists(grades, min_size=m, max_size=m)))))
    return rounds * draw(st.sampled_from([1, 2, 4]))


def query(X, y, weight=1.0):
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    return Query(X=X, y=y, qid=0, docid=None, weight=weight, feature_names=None)


def as_queries(rounds):
    X, y = zip(*rounds, strict=True)
    return Queries.from_arrays(np.concatenate(X), np.concatenate(y), group=[len(one) for one in y])


def followed(ranker, rounds, gradient, *, always=False, eta=lambda t: 1.0):
    """Play round by round, and hold each one against its definition, given the scores that the ranker published."""
    measure = ranker._measure()
    for t, (X, labels) in enumerate(rounds, 1):
        begun = t > 1
        w = ranker.coef_ if begun else np.zeros(X.shape[1])
        scores = ranker.predict(X) if begun else np.zeros(len(X))
        mistaken = plain.is_mistake(scores, plain.classes(measure, labels), plain.looked_at(measure))
        before = ranker.ledger_.mistakes if begun else 0
        ranker.partial_fit(X, labels)
        assert ranker.ledger_.mistakes - before == mistaken, (t, scores, labels)
        found = gradient(X, labels, scores) if mistaken or always else np.zeros_like(w)
        expected = [w - eta(t) * one for one in np.reshape(found, (-1, len(w)))]  # one, or several that will do
        rounding = 1e-12 * (1 + np.abs(w).max())
        assert any(np.allclose(ranker.coef_, one, rtol=1e-12, atol=rounding) for one in expected), (t, expected)
    return ranker


# ------------------------------------------------------------------------------------------- round by round


@given(
    streams(),
    st.sampled_from(
        [
            ("nDCG", None),
            ("nDCG@1", None),
            ("nDCG@3", None),
            ("nDCG@2", "ndcg_003"),
            ("nDCG", "ndcg_000"),
            ("nDCG@3", "ndcg_tight"),
            ("AP", None),
            ("AP", "ap_003"),
            ("AP(rel=2)", "ap_000"),
        ]
    ),
    st.sampled_from([(0.0, 1.0), (0.0, 0.3), (1.0, 1.0), (1.0, 0.25), (1.0, 30.0), (0.5, 2.0)]),
)
def test_a_slam_perceptron_does_what_its_definition_says(rounds, target, step):
    (measure, rule), (margin, eta) = target, step
    ranker = SLAMPerceptron(measure, weights=rule, margin=margin, eta=eta)
    loss = SLAM.for_measure(parse(measure), rule, margin)
    followed(ranker, rounds, lambda X, y, s: plain.slam_gradient(X, y, s, loss), eta=lambda t: eta)


@given(streams(), st.sampled_from(["nDCG", "nDCG@2", "AP", "AP(rel=2)", "P@2", "RR", "WTA", "Pairs", "ERR@3"]))
def test_a_max_pair_perceptron_does_what_its_definition_says(rounds, measure):
    followed(MaxPairPerceptron(measure, eta=0.5), rounds, plain.worst_pair_gradients, eta=lambda t: 0.5)


@few
@given(streams(), st.sampled_from([("constant", 0.5), ("sqrt", 2.0)]), st.sampled_from(["labels", "gains"]))
def test_listnet_does_what_its_definition_says(rounds, steps, target):
    step, eta = steps
    followed(
        ListNet("nDCG@2", step=step, eta=eta, target=target),
        rounds,
        lambda X, y, s: plain.listnet_gradient(X, 2.0**y - 1 if target == "gains" else y, s),
        always=True,
        eta=lambda t: eta / math.sqrt(t) if step == "sqrt" else eta,
    )


def test_a_whole_run_equals_the_plain_one():
    """Not round by round: 300 rounds from w = 0, where nothing but duplicated rows can tie."""
    rng = np.random.default_rng(0)
    rounds = [(rng.normal(size=(m, 5)), rng.integers(0, 4, m).astype(float)) for m in rng.integers(1, 9, 300)]
    for X, _ in rounds[::7]:
        X[-1] = X[0]
    for measure, margin in (("nDCG@3", 0.0), ("AP", 1.0)):
        loss, w, mistakes = SLAM.for_measure(parse(measure), None, margin), np.zeros(5), []
        for X, labels in rounds:
            s = X @ w
            wrong = plain.is_mistake(s, plain.classes(parse(measure), labels), parse(measure).cutoff)
            mistakes.append(wrong)
            w = w - wrong * 0.5 * plain.slam_gradient(X, labels, s, loss)
        model = SLAMPerceptron(measure, margin=margin, eta=0.5).fit(as_queries(rounds))
        np.testing.assert_allclose(model.coef_, w, rtol=1e-9)
        np.testing.assert_array_equal(model.ledger_.tally.counts, mistakes)
        np.testing.assert_array_equal(model.ledger_.curve.mistakes, np.cumsum(mistakes))


@pytest.mark.parametrize("ranker", [SLAMPerceptron(), MaxPairPerceptron(), ListNet(step="constant"), OnlineRanker()])
def test_a_weight_is_the_length_of_a_step_and_not_a_number_of_rounds(ranker):
    """In a stream nobody can see a list twice at once: weight 3 is a step three times as long, in one round."""
    ranker.set_params(**({"averaging": "none"} if ranker.name == "OnlineRanker" else {}))
    X, y = np.array([[1.0, 0], [0, 1]]), [0.0, 1.0]
    one, three = (type(ranker)(**ranker.get_params()).partial_fit(query(X, y, weight)) for weight in (1.0, 3.0))
    assert np.abs(one.coef_).max() > 0
    np.testing.assert_allclose(three.coef_, 3 * one.coef_, rtol=1e-15)
    assert three.ledger_.rounds == three.ledger_.mistakes == 1
    assert three.ledger_.loss == pytest.approx(3 * one.ledger_.loss)


def test_mistakes_are_found_by_comparisons_not_by_losses():
    """A gap of one unit in the last place is no tie, and a tie is a mistake although a stable order looks perfect."""
    tied = SLAMPerceptron("nDCG").fit(Queries.from_arrays(np.zeros((3, 2)), [2, 1, 0], group=[3]))
    assert tied.ledger_.mistakes == 1
    model = MaxPairPerceptron("nDCG").partial_fit([[0.0], [1.0]], [0, 1])
    assert model.coef_.tolist() == [1.0]
    model.partial_fit([[1.0], [np.nextafter(1.0, 2)]], [0, 1])
    assert model.ledger_.mistakes == 1
    model.partial_fit([[1.0], [1.0]], [0, 1])
    assert model.ledger_.mistakes == 2


# ------------------------------------------------------------------------------------------- steps

WITNESS = [
    query([[0], [1], [1]], [1, 1, 0]),
    query([[-1], [2], [1]], [1, 1, 0]),
    query([[-1], [1], [0]], [1, 0, 0]),
]


def shown(ranker, rounds):
    """The rankings that are published, equal scores as they come."""
    found = []
    for number, one in enumerate(rounds):
        scores = ranker.predict(one.X) if number else np.zeros(len(one.X))
        found.append(publish(scores, len(one.y)).tolist())
        ranker.partial_fit(one)
    return found


def test_the_step_of_the_papers_perceptron_matters():
    """In print, predictions do not depend on eta: three rounds of three documents with one feature say otherwise."""
    one, quarter = (shown(SLAMPerceptron("AP", weights="ap_003", margin=1, eta=eta), WITNESS) for eta in (1.0, 0.25))
    assert one[:2] == quarter[:2]
    assert one[2] != quarter[2]


@few
@given(streams(), st.sampled_from([2.0**-40, 0.25, 2.0, 2.0**30]))
def test_it_does_not_without_a_margin_nor_for_the_worst_pair(rounds, eta):
    rounds = [query(*one) for one in rounds]
    for kind in (SLAMPerceptron, MaxPairPerceptron):
        one, other = kind("nDCG@3"), kind("nDCG@3", eta=eta)
        assert shown(one, rounds) == shown(other, rounds)
        assert one.ledger_.mistakes == other.ledger_.mistakes
        np.testing.assert_array_equal(one.coef_ * eta, other.coef_)


def test_only_the_ratio_of_margin_and_step_counts():
    rounds = WITNESS * 5
    one = SLAMPerceptron("AP", margin=1.0, eta=0.25)
    other = OnlineRanker(
        SLAM(weights="ap_sym", margin=4.0, rel=1), measure="AP", update="mistakes", step="constant", averaging="none"
    )
    assert shown(one, rounds) == shown(other, rounds)
    np.testing.assert_allclose(4 * one.coef_, other.coef_, rtol=1e-15)


# Small rows: with eta = 1 every step is far too small for a margin of 1.
SMALL = Queries.from_arrays(0.01 * np.array([[0, 0], [1, 0], [-0.5, 0.3]]), [0, 1, 1], group=[3])
SEPARATES = 100 * np.array([1.0, 5.0])


def test_the_printed_bound_fails_for_a_step_of_one_on_the_real_ranker():
    model = SLAMPerceptron("AP", weights="ap_000", margin=1.0, eta=1.0, epochs=2810).fit(SMALL)
    account = model.ledger_
    assert account.mistakes == account.rounds == 2810
    assert account.loss > 468
    by_name = {bound.name: bound for bound in account.bounds(SMALL, comparator=SEPARATES)}
    assert by_name["Quarter step"].terms["F"] == pytest.approx(0, abs=1e-9)
    printed = 4 * SEPARATES @ SEPARATES * 0.01**2 * 3 * account.weights.v_max
    assert printed == pytest.approx(468)
    assert by_name["Quarter step"].applies is False
    assert not by_name["Quarter step"].allows(account.loss)
    assert by_name["SLAM loss"].applies is True
    assert by_name["SLAM loss"].allows(account.loss)


def test_with_the_step_of_the_theorem_or_without_a_margin_the_same_lists_are_soon_learned():
    for model in (SLAMPerceptron("AP", weights="ap_000", margin=1.0, eta="theory"), SLAMPerceptron("AP")):
        account = model.set_params(epochs=300).fit(SMALL).ledger_
        assert model.score(SMALL) == 1
        assert account.mistakes < 300
        assert account.loss < 468
        for bound in account.bounds(SMALL, comparator=SEPARATES):
            assert bound.allows(account.loss)


@pytest.mark.parametrize(
    ("ranker", "found"),
    [
        (SLAMPerceptron(eta="theory"), "has no step to choose"),
        (SLAMPerceptron(margin=1, eta="theory", scale="radius"), "scale='none'"),
        (SLAMPerceptron("P@3"), "MaxPairPerceptron takes any measure"),
        (SLAMPerceptron("AP", weights="ndcg_003"), "weights 'ndcg_003'"),
        (SLAMPerceptron("nDCG@3", weights="ndcg_000"), "cut-off"),
        (SLAMPerceptron(eta=0), "'eta' parameter of"),
        (
            MaxPairPerceptron(eta="theory"),
            "'eta' parameter of MaxPairPerceptron must be a float .* Got 'theory' instead",
        ),
        (MaxPairPerceptron(scale="minmax"), "'scale' parameter of"),
        (SLAMPerceptron(averaging="all"), "'averaging' parameter of"),
        (SLAMPerceptron(epochs=0), "'epochs' parameter of"),
        (SLAMPerceptron(epochs=1.5), "'epochs' parameter of"),
        (SLAMPerceptron(epochs=70_000), "'epochs' parameter of"),
        (ListNet(eta="theory"), r"eta='theory' is max_norm / \(G1 R sqrt\(n\)\): pass max_norm=, the norm of the"),
        (OnlineRanker(eta="theory", max_norm=1.0, scale="standard"), "scale='none'"),
        (OnlineRanker(projection="l2"), "'max_norm' parameter of"),
        (OnlineRanker(projection="l1", max_norm="wide"), "'max_norm' parameter of"),
        (OnlineRanker(loss="hinge"), "'loss' parameter of"),
        (OnlineRanker(update="never"), "'update' parameter of"),
    ],
)
def test_rules_that_mean_nothing_are_refused_in_a_sentence(ranker, found):
    with pytest.raises(RankwiseError, match=found) as error:
        ranker.fit(SMALL)
    assert "\n" not in str(error.value)


def test_the_step_of_gradient_descent_comes_from_the_ball_and_the_lists():
    stream = separable_stream(40, documents=6, features=3, margin=0.2).queries()
    model = OnlineRanker(eta="theory", max_norm=5.0, epochs=2).fit(stream)
    radius = 0.0
    for one in stream:
        centered = one.X - one.X.mean(axis=0)
        radius = max(radius, min(np.linalg.norm(one.X, axis=1).max(), np.linalg.norm(centered, axis=1).max()))
    eta = 5.0 / (2.0 * radius * math.sqrt(80))
    assert model.ledger_.config.eta == pytest.approx(eta, rel=1e-12)
    assert model.ledger_.config.step == "constant"
    online = OnlineRanker(eta="theory", max_norm=5.0, row_radius=radius, horizon=80)
    online.partial_fit(stream).partial_fit(stream)
    np.testing.assert_allclose(online.coef_, model.coef_, rtol=1e-9)
    with pytest.raises(RankwiseError, match="row_radius= and horizon="):
        OnlineRanker(eta="theory", max_norm=5.0).partial_fit(stream)


# ------------------------------------------------------------------------------------------- bounds on real runs


def assert_within(account, bounds, slack=0.0):
    for bound in bounds:
        # a margin that the stream has is never refuted, which would hide a run above its bound
        assert SEPARABLE.sentence not in [one.sentence for one in bound.preconditions if one.met is False]
        if bound.applies is not False:
            found = account.loss if bound.bounds == "cumulative loss" else account.mistakes
            assert found <= bound.value * (1 + 1e-9) + slack, bound


@given(
    streams(),
    st.sampled_from([("nDCG", None), ("nDCG@2", None), ("nDCG@1", "ndcg_003"), ("AP", None), ("AP", "ap_000")]),
    st.sampled_from([(0.0, 1.0), (1.0, 0.01), (1.0, 1.0), (1.0, 100.0)]),
    st.integers(0, 99),
)
def test_no_stream_makes_a_slam_perceptron_lose_more_than_its_account_allows(rounds, target, step, seed):
    queries = as_queries(rounds)
    model = SLAMPerceptron(target[0], weights=target[1], margin=step[0], eta=step[1]).fit(queries)
    for u in comparators(model, seed):
        bounds = model.ledger_.bounds(queries, comparator=u)
        assert bounds[0].name == "SLAM loss"
        assert bounds[0].applies is True
        # a mistake that costs nothing (0.5 and 0 are not told apart by a loss) is in no bound
        losses = model.ledger_.loss
        assert bounds[0].allows(losses - 1e-12)
        if target[0] == "nDCG":
            assert_within(model.ledger_, bounds, slack=1e-9)


@given(streams(), st.sampled_from(["nDCG@2", "AP", "RR", "P@2"]), st.sampled_from([0.01, 1.0]), st.integers(0, 99))
def test_no_stream_makes_a_max_pair_perceptron_err_more_often_than_its_account_allows(rounds, measure, eta, seed):
    queries = as_queries(rounds)
    model = MaxPairPerceptron(measure, eta=eta).fit(queries)
    for u in comparators(model, seed):
        (bound,) = model.ledger_.bounds(queries, comparator=u)
        assert bound.applies is True
        assert bound.allows(model.ledger_.mistakes)


def comparators(model, seed):
    """Nothing, chance, and where the run ended, at several lengths: a good comparator makes a bound hard to keep."""
    w = model.coef_
    chance = np.random.default_rng(seed).standard_normal(len(w))
    unit = w / (math.sqrt(w @ w) or 1.0)
    return [np.zeros_like(w), *(scale * direction for scale in (0.1, 1.0, 10.0) for direction in (chance, unit))]


def small(shapes):
    return [pytest.param(*shape, id="x".join(map(str, shape))) for shape in shapes]


def large(shapes):
    return [
        pytest.param(*shape, id="x".join(map(str, shape)), marks=pytest.mark.thorough)
        for shape in shapes
        if shape[0] * shape[1] * shape[2] <= 2e8
    ]


# rounds, documents, features, margin
NORMAL = [(400, 5, 2, 0.3), (400, 20, 20, 0.1), (100, 100, 20, 0.02), (30, 500, 5, 0.1), (40, 50, 200, 0.05)]
FULL = [
    (min(100_000, int(2e8 / (documents * features))), documents, features, margin)
    for documents in (5, 50, 500)
    for features in (2, 20, 200)
    for margin in (0.2, 0.01)
]


@pytest.mark.parametrize(("rounds", "documents", "features", "margin"), [*small(NORMAL), *large(FULL)])
@pytest.mark.parametrize(
    "ranker",
    [
        SLAMPerceptron("nDCG"),
        SLAMPerceptron("nDCG@10"),
        SLAMPerceptron("nDCG@10", margin=1.0, eta=1.0),
        SLAMPerceptron("AP"),
        MaxPairPerceptron("nDCG@10"),
        MaxPairPerceptron("AP"),
    ],
    ids=lambda ranker: f"{ranker.name}-{ranker.measure}",
)
def test_on_separable_streams_loss_and_mistakes_stay_below_what_a_margin_promises(
    ranker, rounds, documents, features, margin
):
    stream = separable_stream(rounds, documents=documents, features=features, margin=margin)
    model = type(ranker)(**ranker.get_params())
    for block in stream.blocks():
        model.partial_fit(block)
        assert_within(model.ledger_, model.ledger_.bounds(gamma=margin))  # at every time, not just at the end
    account = model.ledger_
    assert account.rounds == rounds
    assert account.radius <= 1.0
    assert 0 < account.mistakes <= rounds
    truth = account.bounds(stream.blocks(), comparator=stream.comparator() / margin)
    assert_within(account, truth)
    assert truth[0].terms["F"] == pytest.approx(0, abs=1e-9 * rounds)


@pytest.mark.parametrize(
    "ranker",
    [SLAMPerceptron("nDCG"), SLAMPerceptron("AP"), SLAMPerceptron(margin=1.0), MaxPairPerceptron("nDCG")],
    ids=lambda ranker: f"{ranker.name}-{ranker.measure}-{getattr(ranker, 'margin', '')}",
)
def test_on_separable_lists_the_mistakes_stop(ranker):
    queries = separable_stream(60, documents=8, features=5, margin=0.2).queries()
    model = type(ranker)(**ranker.get_params()).set_params(epochs=200).fit(queries)
    curve = model.ledger_.curve
    last = curve.rounds[np.searchsorted(curve.mistakes, model.ledger_.mistakes)]
    assert last < 100 * 60
    assert model.score(queries) == 1
    assert model.ledger_.mistakes == (again := model.partial_fit(queries)).ledger_.mistakes
    assert again.ledger_.rounds == 201 * 60


def test_the_account_of_a_scale_free_run_does_not_grow_with_the_lists_while_the_printed_bound_does():
    ours, printed = [], []
    for documents in (5, 20, 100, 500):
        stream = separable_stream(max(20, 4000 // documents), documents=documents, features=10, margin=0.1)
        account = SLAMPerceptron("nDCG").fit(stream.queries()).ledger_
        ours.append(account.bounds(gamma=0.1)[0].value)
        facts = account.weights
        printed.append(printed_003(F=0.0, norm_u=10.0, radius=account.radius, v_max=facts.v_max, m=facts.longest).value)
        assert account.loss <= ours[-1] <= 4 / 0.1**2  # V is at most 1, whatever the length
    assert max(ours) < 2 * min(ours)
    assert printed[-1] > 100 * printed[0]


@pytest.mark.parametrize("noise", [0.02, 0.2])
@pytest.mark.parametrize("ranker", [SLAMPerceptron("nDCG@5"), MaxPairPerceptron("nDCG@5")], ids=lambda one: one.name)
def test_on_noisy_streams_the_hidden_comparator_pays_for_the_noise(ranker, noise):
    stream = noisy_stream(300, noise=noise, documents=6, features=5, margin=0.2)
    queries = stream.queries()
    account = type(ranker)(**ranker.get_params()).fit(queries).ledger_
    for length in (0.1, 1.0, 5.0):
        bounds = account.bounds(queries, comparator=length * stream.comparator())
        assert bounds[0].terms["F"] > 0
        assert_within(account, bounds)


@pytest.mark.parametrize(
    "ranker",
    [SLAMPerceptron("nDCG"), SLAMPerceptron("AP", margin=1.0), MaxPairPerceptron("nDCG@3")],
    ids=lambda one: one.name,
)
def test_the_best_comparator_still_allows_what_happened_and_is_better_than_others(ranker):
    pytest.importorskip("piqp")
    stream = noisy_stream(120, noise=0.05, documents=5, features=4, margin=0.2)
    queries = stream.queries()
    account = type(ranker)(**ranker.get_params()).set_params(epochs=2).fit(queries).ledger_
    best = account.bounds(queries)
    assert_within(account, best)
    for length in (0.5, 2.0, 5.0, 10.0):
        other = account.bounds(queries, comparator=length * stream.comparator())
        assert best[0].terms["sharp"] <= other[0].terms["sharp"] * (1 + 1e-6)


@pytest.mark.parametrize("scale", ["radius", "standard"])
def test_a_margin_may_be_claimed_in_the_units_that_were_learned_in(scale):
    """One list over and over: after its first round its scaled features no longer change."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3)) * [100.0, 1.0, 0.01]
    labels = np.argsort(np.argsort(X @ [0.01, 1.0, 100.0])).astype(float)
    queries = Queries.from_arrays(X, labels, group=[6])
    model = SLAMPerceptron("nDCG", scale=scale, epochs=1000).fit(queries)
    units = X * model.state_.scale
    u = np.array([0.01, 1.0, 100.0]) / model.state_.scale
    gaps = np.diff(np.sort(units @ u))
    assert_within(model.ledger_, model.ledger_.bounds(gamma=gaps.min() / np.linalg.norm(u)))


# ------------------------------------------------------------------------------------------- the adversary


@pytest.mark.parametrize(
    "ranker",
    [
        SLAMPerceptron("nDCG"),
        SLAMPerceptron("AP"),
        SLAMPerceptron("nDCG@1", margin=1.0, eta=0.1),
        MaxPairPerceptron("AP"),
        ListNet(eta=3.0),
        OnlineRanker(),
        OnlineRanker(MaxPair(), update="mistakes", projection="l2", max_norm=1.0),
    ],
    ids=lambda one: one.name,
)
@pytest.mark.parametrize(
    ("documents", "radius", "gamma", "forced"), [(2, 1.0, 0.5, 16), (3, 1.0, 0.25, 63), (6, 3.0, 2.0, 8)]
)
def test_nobody_escapes_the_adversary(ranker, documents, radius, gamma, forced):
    adversary = Adversary(gamma=gamma, radius=radius, documents=documents)
    assert adversary.rounds == forced == math.floor(4 * radius**2 / gamma**2) - (documents > 2)
    model = type(ranker)(**ranker.get_params())
    game = play(model, adversary)
    assert game.mistakes == forced
    assert game.margin() >= gamma * (1 - 1e-12)
    if ranker.get_params().get("averaging", "none") == "none":  # what it plays by is what it publishes
        assert model.ledger_.mistakes == forced
    if model.ledger_.config.update == "mistakes" and model.ledger_.config.projection == "none":
        assert_within(model.ledger_, model.ledger_.bounds(gamma=gamma))


def test_against_two_documents_the_bound_is_attained():
    model = MaxPairPerceptron("AP")
    play(model, Adversary(gamma=0.25, documents=2))
    (bound,) = model.ledger_.bounds(gamma=0.25)
    assert bound.value == model.ledger_.mistakes == 64


@settings(max_examples=5)
@given(st.integers(0, 99))
def test_listnet_learns_separable_lists_too(seed):
    queries = separable_stream(150, documents=10, features=5, margin=0.15, random_state=seed).queries()
    model = ListNet("nDCG@10", eta=10.0).fit(queries)
    assert model.ledger_.curve.mean[-1] > model.ledger_.curve.mean[4]
    assert model.score(queries) > 0.95
