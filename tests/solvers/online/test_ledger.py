"""The account of a run: its numbers, its bounds with what they rest on, and what it refuses to promise."""

import io
import math
from dataclasses import replace

import numpy as np
import pytest

import rankwise as rw
from rankwise._kernels.radius import largest_radius
from rankwise.errors import RankwiseError
from rankwise.guarantees import WeightFacts
from rankwise.guarantees.bounds.online import COVERED, SEPARABLE
from rankwise.losses import SLAM, PairHinge
from rankwise.losses.compute import PreparedLists
from rankwise.measures._base import parse
from rankwise.queries.queries import Queries
from rankwise.rankers.linear.listnet import ListNet
from rankwise.rankers.online.online_ranker import OnlineRanker
from rankwise.rankers.online.perceptron import MaxPairPerceptron, SLAMPerceptron
from rankwise.solvers.online.ledger import Ledger
from rankwise.synthetic.streams import separable_stream


def lists(count=40, seed=0, weight=None):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 7, count)
    X = rng.normal(size=(sizes.sum(), 3))
    return Queries(X, rng.integers(0, 3, len(X)).astype(float), np.cumsum([0, *sizes]), weight=weight)


def one_sentence(error):
    return "\n" not in str(error.value) and 20 < len(str(error.value)) < 400


# ------------------------------------------------------------------------------------------- the numbers


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("measure", ["nDCG@3", "AP"])
def test_the_account_adds_up_what_was_published(measure, weighted):
    rng = np.random.default_rng(1)
    queries = lists(weight=rng.integers(0, 3, 40) / 2 if weighted else None)
    query_weight = np.ones(40) if queries.weight is None else queries.weight
    model = SLAMPerceptron(measure)
    mean, loss, counted, learned, before = 0.0, 0.0, 0.0, [], 0
    for number in range(40):
        query = queries[number]
        scores = model.predict(query) if number else np.zeros(len(query))
        model.partial_fit(query)
        if model.ledger_.mistakes > before:
            learned.append(number)
            before = model.ledger_.mistakes
        expected = model._measure()(scores, query.y, ties="expected") if len(query) else math.nan
        if not math.isnan(expected):
            counted += query_weight[number]
            mean += query_weight[number] * expected
            loss += query_weight[number] * (1 - model._measure()(scores, query.y, ties="pessimistic"))
    account = model.ledger_
    assert account.rounds == 40
    assert account.counted == pytest.approx(counted)
    assert account.mean == pytest.approx(mean / counted, rel=1e-12)
    assert account.loss == pytest.approx(loss, rel=1e-12)
    assert np.flatnonzero(account.tally.counts).tolist() == learned
    some = queries[learned]
    assert account.radius == pytest.approx(largest_radius(some.X, some.start, some.rows), rel=1e-12)
    v = PreparedLists.of(account.config.loss, queries.labels(), queries.start).value * np.repeat(
        query_weight, queries.sizes
    )
    chosen = np.isin(np.repeat(np.arange(40), queries.sizes), learned)
    facts = WeightFacts.of(v[chosen], np.concatenate([[0], np.cumsum(queries.sizes[learned])]))
    for name in ("V", "smallest", "v_max", "longest", "steepest"):
        assert getattr(account.weights, name) == pytest.approx(getattr(facts, name), rel=1e-12)
    assert account.curve.mistakes[-1] == account.mistakes
    assert account.curve.loss[-1] == account.loss
    assert account.curve.mean[-1] == account.mean
    assert (account.lightest, account.heaviest) == (query_weight.min(), query_weight.max())


def test_before_any_round_there_is_an_empty_account():
    account = SLAMPerceptron().partial_fit(lists()[:0]).ledger_
    assert (account.rounds, account.mistakes, account.loss) == (0, 0, 0.0)
    assert math.isnan(account.mean)
    assert len(account.curve.points) == 0
    assert [bound.value for bound in account.bounds(gamma=0.1)] == [0.0, 0.0]
    assert "rounds" in str(account.table())


def test_the_table_tells_everything_in_lines():
    queries = separable_stream(50, documents=5, features=3, margin=0.2).queries()
    account = SLAMPerceptron("nDCG").fit(queries).ledger_
    table = account.table()
    value = dict(zip(table["what"], table["value"], strict=True))
    assert value["rounds"] == 50
    assert value["mistakes"] == account.mistakes
    assert value["mean nDCG"] == account.mean
    assert value["cumulative loss of nDCG"] == account.loss
    assert value["largest radius"] == account.radius
    assert value["kappa"] == account.weights.kappa
    bounds = account.bounds(gamma=0.2)
    longer = account.table(bounds)
    assert len(longer) == len(table) + 2
    assert longer["value"][-2:].tolist() == [bound.value for bound in bounds]
    assert "kappa" not in str(MaxPairPerceptron().fit(queries).ledger_.table())


def test_the_same_run_draws_the_same_picture():
    pytest.importorskip("matplotlib")
    queries = separable_stream(80, documents=5, features=3, margin=0.2).queries()

    def picture():
        account = SLAMPerceptron().fit(queries).ledger_
        file = io.BytesIO()
        account.plot(account.bounds(gamma=0.2)).savefig(file, format="png")
        return file.getvalue()

    first = picture()
    assert first.startswith(b"\x89PNG")
    assert picture() == first


@pytest.mark.parametrize("ranker", [ListNet(), MaxPairPerceptron(), SLAMPerceptron("AP")], ids=lambda one: one.name)
def test_every_run_can_be_drawn(ranker):
    pytest.importorskip("matplotlib")
    for queries in (lists(), lists()[:1]):
        figure = type(ranker)(**ranker.get_params()).fit(queries).ledger_.plot()
        assert len(figure.axes) == 2


# ------------------------------------------------------------------------------------------- the bounds


def test_bounds_carry_the_constants_of_the_run():
    queries = separable_stream(100, documents=6, features=4, margin=0.1).queries()
    account = SLAMPerceptron("nDCG@3", margin=1.0, eta=0.5).fit(queries).ledger_
    u = np.array([1.0, -2.0, 0.5, 3.0])
    bounds = {bound.name: bound for bound in account.bounds(queries, comparator=u)}
    assert set(bounds) == {"SLAM loss", "SLAM mistakes", "Fixed step", "Quarter step"}
    terms = bounds["SLAM loss"].terms
    loss = SLAM(k=3)
    wrong = [one for one, times in zip(queries, account.tally.counts, strict=True) if times]
    assert len(wrong) == account.mistakes
    assert terms["F"] == pytest.approx(sum(loss(one.X @ u, one.y)[0] for one in wrong), rel=1e-10)
    assert terms["norm_u"] == pytest.approx(np.linalg.norm(u))
    assert terms["c"] == pytest.approx(4 * account.radius**2 * account.weights.V + 2 / 0.5)
    assert bounds["SLAM loss"].applies is True
    assert bounds["SLAM mistakes"].terms["smallest"] == account.weights.smallest
    assert bounds["Fixed step"].terms["kappa"] == account.weights.kappa
    assert all(bound.allows(account.loss) for bound in bounds.values() if bound.applies)
    claimed = account.bounds(gamma=0.1)
    assert [bound.applies for bound in claimed] == [None, None]  # nobody but the caller knows of the margin
    assert len(account.bounds(queries, comparator=u, gamma=0.1, delta=0.1)) == 7


@pytest.mark.parametrize("ranker", [SLAMPerceptron("nDCG", margin=1.0), SLAMPerceptron("AP"), MaxPairPerceptron()])
def test_t17_a_margin_that_the_run_refutes_is_not_met(ranker):
    """T17: bounds(gamma=10.0) printed "cumulative loss <= 0.035" beside a ledger with a loss of 45."""
    account = type(ranker)(**ranker.get_params()).fit(lists(300)).ledger_
    assert account.loss > 20
    for gamma in (10.0, 2.0):  # more than two documents can differ by, and a margin that allows fewer losses
        bounds = account.bounds(gamma=gamma)
        assert [bound.applies for bound in bounds] == [False] * len(bounds)
        assert all(SEPARABLE.sentence in repr(bound) and "<=" not in repr(bound).split("[")[0] for bound in bounds)
        table = account.table(bounds)
        assert np.isnan(table["value"][-len(bounds) :]).all()
        assert "NOT met: one unit vector" in table["note"][-1]
    # a claim that is too small to be refuted stays a claim
    assert {bound.applies for bound in account.bounds(gamma=1e-4)} == {None}


def test_t17_what_does_not_hold_for_another_reason_refutes_nothing():
    account = SLAMPerceptron("nDCG", margin=1.0).fit(lists(300)).ledger_
    other = replace(account, config=replace(account.config, measure=parse("AP")))
    met = {one.sentence: one.met for one in other.bounds(gamma=1e-4)[0].preconditions}
    assert met[COVERED.sentence] is False
    assert met[SEPARABLE.sentence] is None


def test_the_step_of_the_theorem_has_the_bound_of_gradient_descent():
    queries = separable_stream(60, documents=4, features=3, margin=0.3).queries()
    for lists_ in (queries, queries.with_weight(np.linspace(0.1, 3, 60))):
        model = SLAMPerceptron("AP", margin=1.0, eta="theory").fit(lists_)
        bounds = {one.name: one for one in model.ledger_.bounds(lists_, comparator=[1.0, 2.0, -1.0])}
        assert bounds["Fixed step"].applies is True
        assert bounds["Fixed step"].allows(model.ledger_.loss)


def test_lists_may_be_given_again_in_blocks_and_over_epochs():
    queries = lists()
    account = SLAMPerceptron("nDCG", epochs=3, shuffle=True).fit(queries).ledger_
    assert account.tally.counts.sum() == account.mistakes > 40
    u = [0.5, 1.0, -1.0]
    one = account.bounds(queries, comparator=u)
    other = account.bounds((queries[i : i + 9] for i in range(0, 40, 9)), comparator=u)
    for a, b in zip(one, other, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-12)
    loss, times = SLAM(), account.tally.counts
    expected = sum(n * loss(q.X @ np.array(u), q.y)[0] for q, n in zip(queries, times, strict=True) if n)
    assert one[0].terms["F"] == pytest.approx(expected, rel=1e-10)


def test_weights_that_are_not_made_for_the_measure_promise_nothing_about_it():
    queries = lists()
    model = OnlineRanker(SLAM(weights="ap_sym", margin=0.0), measure="nDCG", update="mistakes", step="constant")
    bounds = model.fit(queries).ledger_.bounds(queries, comparator=[1.0, 1.0, 1.0])
    assert [bound.applies for bound in bounds] == [False, False]
    assert "no bound; NOT met: the weights v" in str(model.ledger_.table(bounds)["note"][-1])


def test_weighted_lists_count_by_their_weights_in_the_bound_of_slam():
    rng = np.random.default_rng(0)
    for seed in range(20):
        queries = lists(seed=seed, weight=rng.choice([0.0, 0.1, 1.0, 20.0], 40))
        model = SLAMPerceptron("nDCG", epochs=3).fit(queries)
        for u in (model.coef_ / np.linalg.norm(model.coef_), 5 * rng.normal(size=3)):
            loss, mistakes = model.ledger_.bounds(queries, comparator=u)
            assert loss.allows(model.ledger_.loss)
            counted = queries.weight > 0  # a list that does not count teaches nothing, so it is missed again and again
            assert mistakes.allows(model.ledger_.tally.counts[counted].sum())


def test_what_is_said_of_new_lists_is_the_mean_loss_and_the_doubt():
    queries = lists()
    account = ListNet().fit(queries).ledger_
    (bound,) = account.bounds(delta=0.1)
    n = round(account.counted)
    assert n < 40  # lists without anything to find are in no mean
    assert bound.value == pytest.approx(account.loss / n + math.sqrt(math.log(10) / (2 * n)))
    assert bound.applies is None


LISTS = lists()
WORLD = separable_stream(20, documents=4, features=3).queries()


@pytest.mark.parametrize(
    ("ranker", "asked", "found"),
    [
        (SLAMPerceptron(), {}, "needs something to compare with"),
        (SLAMPerceptron(), {"comparator": [1, 2, 3]}, "give queries= as well"),
        (SLAMPerceptron(), {"queries": LISTS, "comparator": [1, 2]}, r"one finite weight per feature, 3, got \[1, 2\]"),
        (
            SLAMPerceptron(),
            {"queries": LISTS, "comparator": [1, 2, math.nan]},
            "one finite weight per feature, 3, got .*nan",
        ),
        (
            SLAMPerceptron(),
            {"queries": LISTS[:20], "comparator": [1, 2, 3]},
            "has seen 40 queries, and these are others",
        ),
        (SLAMPerceptron(), {"queries": iter([LISTS, WORLD]), "comparator": [1, 2, 3]}, "and these are others"),
        (SLAMPerceptron(), {"queries": iter([WORLD]), "comparator": [1, 2, 3]}, "and these are others"),
        (SLAMPerceptron(), {"queries": iter([]), "comparator": [1, 2, 3]}, "and these are others"),
        (SLAMPerceptron(scale="radius"), {"queries": LISTS, "comparator": [1, 2, 3]}, "claim a margin on the scaled"),
        (SLAMPerceptron(scale="standard"), {"queries": LISTS}, "claim a margin on the scaled"),
        (SLAMPerceptron(), {"gamma": 0}, "gamma must be finite and above 0"),
        (SLAMPerceptron(), {"gamma": -1}, "gamma must be finite and above 0"),
        (SLAMPerceptron(), {"delta": 0}, "delta must be between 0 and 1"),
        (SLAMPerceptron(epochs=2), {"delta": 0.1}, "one pass over the queries"),
        (ListNet(), {"gamma": 0.1}, "bounds on the loss of a run are for perceptrons"),
        (OnlineRanker(), {"gamma": 0.1}, "bounds on the loss of a run are for perceptrons"),
        (OnlineRanker(PairHinge(), update="mistakes", step="constant"), {"gamma": 0.1}, "SLAM or MaxPair"),
        (OnlineRanker(update="mistakes"), {"gamma": 0.1}, "step='sqrt'"),
        (
            OnlineRanker(update="mistakes", step="constant", projection="l2", max_norm=1.0),
            {"gamma": 0.1},
            "projection='l2'",
        ),
    ],
)
def test_what_does_not_apply_is_refused_in_a_sentence(ranker, asked, found):
    account = type(ranker)(**ranker.get_params()).fit(LISTS).ledger_
    with pytest.raises(RankwiseError, match=found) as error:
        account.bounds(**asked)
    assert one_sentence(error)


def test_weighted_lists_have_no_bound_on_a_number_of_mistakes_nor_a_risk():
    """Light lists may be missed any number of times before they outweigh a heavy one."""
    heavy = Queries.from_arrays([[1.0, 0.0], [-1.0, 0.0]], [0, 1], group=[2])
    light = Queries.from_arrays([[1.0, 0.1], [-1.0, -0.1]], [1, 0], group=[2])
    queries = Queries.concat([heavy, *[light] * 60]).with_weight([1.0] + [0.01] * 60)
    model = MaxPairPerceptron("AP").fit(queries)
    assert model.ledger_.mistakes > 40
    for asked in ({"gamma": 0.1}, {"queries": queries, "comparator": [0.0, 1.0]}, {"delta": 0.1}):
        with pytest.raises(RankwiseError, match=r"weights from 0\.01 to 1") as error:
            model.ledger_.bounds(**asked)
        assert one_sentence(error)
    with pytest.raises(RankwiseError, match="weights from 100 to 100"):
        ListNet().fit(LISTS.with_weight(np.full(40, 100.0))).ledger_.bounds(delta=0.1)


def test_an_account_is_a_value_that_later_rounds_do_not_change():
    queries = lists()
    model = SLAMPerceptron().fit(queries[:20])
    account = model.ledger_
    shown = str(account.table()), account.tally.counts.tobytes(), account.curve.points.tobytes()
    model.partial_fit(queries[20:]).partial_fit(queries)
    assert (str(account.table()), account.tally.counts.tobytes(), account.curve.points.tobytes()) == shown
    assert isinstance(account, Ledger)
    assert rw.guarantees.Ledger is Ledger
