"""A certificate: rows sorted by alpha, a headline that pays for being the smallest, and JSON that comes back."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.bounds_by_size import draw_bounds_by_size, gaps_by_size
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import Bound, Precondition
from rankwise.guarantees.bounds.uniform import for_fitted_norm, l2_ball, linf_ball
from rankwise.guarantees.certificate import Certificate, Claim, certificate_of, holdout_claims
from rankwise.guarantees.holdout.betting import Readings
from rankwise.guarantees.holdout.intervals import mean_interval
from tests.guarantees import coin_lists
from tests.strategies import at_length

UNSEEN = Precondition("nobody learned from these lists", True)


def bound(value, **changes):
    made = Bound(name="B", bounds="loss", statement="value", value=value, terms={"value": value}, ceiling=1.0)
    return replace(made, **changes)


def at(value, **changes):
    """A claim whose bound is ``value`` divided by delta: weaker at a smaller delta."""
    return Claim(lambda delta: bound(value / delta, **changes), headline=True)


# ------------------------------------------------------------------------------------------- rows


def test_rows_are_sorted_by_what_they_leave_and_those_that_say_nothing_come_last():
    not_met = (Precondition("the moon is full", False),)
    claims = [
        bound(2.0, name="vacuous"),
        bound(0.1, name="not met", preconditions=not_met),
        bound(0.5, name="half"),
        bound(0.3, name="unverified", status="unverified"),
        bound(30.0, ceiling=100.0, name="a third"),
        bound(0.9, side="at least", floor=0.0, name="from below"),
        bound(3.0, ceiling=math.inf, name="no ceiling"),
    ]
    found = certificate_of([Claim.certain(one) for one in claims], about="rows", delta=0.1)
    assert [row.name for row in found.rows] == [
        "from below",
        "a third",
        "half",
        "no ceiling",
        "unverified",
        "vacuous",
        "not met",
    ]
    assert found.headline is None
    assert found.summary().startswith("nothing certified: pass judged queries")


def test_the_table_says_what_holds_and_what_says_nothing():
    rows = [bound(0.2), bound(2.0, status="unverified", preconditions=(Precondition("?", False),))]
    text = str(certificate_of([Claim.certain(row) for row in rows], about="two rows", delta=0.1, notes=["a <note>"]))
    assert text.splitlines()[0].startswith("two rows")
    assert "1 more bound is vacuous" in text
    whole = str(certificate_of([Claim.certain(row) for row in rows], about="", delta=0.1).table())
    assert "unverified, vacuous" in whole
    assert "not met" in whole
    assert text.endswith("- a <note>")
    assert "&lt;note&gt;" in certificate_of([], about="", delta=0.1, notes=["a <note>"])._repr_html_()


def test_details_show_every_constant_and_condition():
    row = bound(0.25, terms={"G": 2.0}, preconditions=(Precondition("it rains", None), Precondition("it snows", True)))
    text = certificate_of([Claim.certain(row)], about="", delta=0.1).details()
    assert "G=2" in text
    assert "it rains (assumed)" in text
    assert "it snows (met)" in text


# ------------------------------------------------------------------------------------------- the headline


@given(st.lists(st.floats(0.001, 0.01), min_size=1, max_size=6), st.floats(0.01, 0.5))
def test_the_headline_is_the_smallest_at_delta_divided_by_how_many_there_are(values, delta):
    found = certificate_of([at(value) for value in values], about="", delta=delta)
    assert found.headline.value == pytest.approx(min(values) * len(values) / delta)
    assert found.headline.terms["compared"] == len(values)
    assert found.headline.terms["delta_each"] == pytest.approx(delta / len(values))
    assert f"smallest of {len(values)}" in found.summary()


def test_unverified_bounds_are_no_headline_unless_asked_for():
    claims = [at(0.01), at(0.001, status="unverified")]
    assert certificate_of(claims, about="", delta=0.1).headline.terms["compared"] == 1
    assert certificate_of(claims, about="", delta=0.1).headline.value == pytest.approx(0.1)
    asked = certificate_of(claims, about="", delta=0.1, unverified=True).headline
    assert (asked.terms["compared"], asked.status) == (2, "unverified")
    assert certificate_of(claims[1:], about="", delta=0.1).headline is None


def test_what_does_not_apply_is_paid_for_and_never_the_headline():
    broken = at(0.0001, preconditions=(Precondition("?", False),))
    found = certificate_of([at(0.01), broken], about="", delta=0.1).headline
    assert found.value == pytest.approx(0.2)
    assert certificate_of([broken], about="", delta=0.1).headline is None


def test_delta_is_a_chance():
    with pytest.raises(RankwiseError, match="delta must be between 0 and 1"):
        certificate_of([], about="", delta=1.0)


# ------------------------------------------------------------------------------------------- JSON


def test_a_certificate_comes_back_from_json_with_numbers_that_json_has_not():
    rows = [bound(math.inf), bound(0.5, terms={"a": math.inf, "b": -math.inf}, kind="training", floor=0.25)]
    found = certificate_of([at(0.01), *map(Claim.certain, rows)], about="é", delta=0.1, notes=["n"])
    text = found.to_json(indent=1)
    assert Certificate.from_json(text) == found
    assert Certificate.from_json(text).to_json() == found.to_json()
    assert "Infinity" not in text


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"certificate": 99}', '{"certificate": 1, "about": "", "delta": 0.1, "rows": [{}], "notes": []}'],
)
def test_what_is_no_certificate_is_refused_in_a_sentence(text):
    with pytest.raises(RankwiseError) as error:
        Certificate.from_json(text)
    assert "\n" not in str(error.value)


# ------------------------------------------------------------------------------------------- hold-out


def test_the_rows_of_a_hold_out_are_upper_ends_at_every_delta():
    losses = np.random.default_rng(0).random(40)
    claims = holdout_claims(losses, of="loss", unseen=UNSEEN)
    for claim, method in zip(claims, ("hoeffding", "empirical bernstein", "betting"), strict=True):
        for delta in (0.05, 0.2):
            interval = mean_interval(losses, delta, method=method, ends="high")
            assert claim.make(delta).value == interval.high
            assert claim.make(delta).preconditions[0] == UNSEEN


def test_t8_no_claim_takes_a_seed():
    with pytest.raises(TypeError, match="random_state"):
        holdout_claims([0.1, 0.2], of="loss", unseen=UNSEEN, random_state=1)
    claims = holdout_claims(np.random.default_rng(0).random(40), of="loss", unseen=UNSEEN)
    assert claims[2].make(0.1) == claims[2].make(0.1)


def test_w12_a_certificate_without_a_headline_says_why_and_what_to_do():
    row = Claim.certain(bound(0.2))
    assert certificate_of([row], about="", delta=0.1).summary() == (
        "nothing certified: pass judged queries that were not used in training as holdout="
    )
    given = certificate_of([row], about="", delta=0.1, missing="all 80 hold-out queries were used in training")
    assert given.summary() == "nothing certified: all 80 hold-out queries were used in training"
    assert Certificate.from_json(given.to_json()) == given
    assert certificate_of([at(0.001)], about="", delta=0.1, missing="not needed").missing == ""


def test_groups_and_seen_queries_make_the_claims_those_of_the_readings():
    losses, group = np.array([0.1, 0.9, 0.2, 0.3, math.nan]), np.array([0, 0, 1, 2, 3])
    seen = np.array([False, False, False, True, False])
    readings = Readings.of(losses, group, seen)
    hoeffding, bernstein, betting = holdout_claims(losses, of="loss", unseen=UNSEEN, group=group, seen=seen)
    for delta in (0.05, 0.5):
        assert hoeffding.make(delta).value == readings.hoeffding(delta)
        assert betting.make(delta).value == readings.betting(delta)
    assert bernstein.make(0.1).applies is False
    row = hoeffding.make(0.1)
    assert {name: row.terms[name] for name in ("drawn", "sure", "optional", "n")} == {
        "drawn": 5,
        "sure": 2,
        "optional": 2,
        "n": 4,
    }
    assert holdout_claims(losses, of="loss", unseen=UNSEEN, group=group, seen=np.ones(5, bool)) == []


def test_losses_that_rounding_left_outside_are_clipped_under_readings_too():
    losses, group = np.array([-1e-12, 1 + 1e-12, 0.5]), np.array([0, 0, 1])
    claims = holdout_claims(losses, of="loss", unseen=UNSEEN, group=group)
    expected = holdout_claims([0.0, 1.0, 0.5], of="loss", unseen=UNSEEN, group=group)
    assert [one.make(0.1).value for one in claims] == [one.make(0.1).value for one in expected]


def test_weights_that_differ_are_refused_at_once():
    with pytest.raises(RankwiseError, match="equal query weights"):
        holdout_claims([0.1, 0.2], of="loss", unseen=UNSEEN, weight=[1.0, 2.0])


# ------------------------------------------------------------------------------------------- how often it is wrong

REPETITIONS = at_length(2_000, 4)


def held_out(losses, method):
    def make(delta):
        return mean_interval(losses, delta, method=method, ends="high", of="loss").bounds()[0]

    return Claim(make, headline=True)


def too_often(wrong, delta):
    return np.mean(wrong) > delta + 3 * math.sqrt(delta * (1 - delta) / len(wrong))


@pytest.mark.parametrize("n", [10, 40])
def test_the_headline_of_many_hold_outs_is_wrong_no_more_often_than_delta_though_the_smallest_row_is(n):
    """Eight hold-outs of coins with the true mean 0.5: the smallest of eight bounds misses eight times as often."""
    random, delta = np.random.default_rng(n), 0.2
    wrong, smallest_row = [], []
    for _ in range(REPETITIONS):
        claims = [held_out(random.integers(0, 2, n).astype(float), "hoeffding") for _ in range(8)]
        found = certificate_of(claims, about="", delta=delta)
        wrong.append(found.headline.value < 0.5)
        smallest_row.append(found.rows[0].value < 0.5)
    assert not too_often(wrong, delta)
    assert too_often(smallest_row, delta)


@pytest.mark.parametrize(("n", "m", "held", "delta"), [(400, 2, 15, 0.05), (1500, 6, 60, 0.2)])
def test_the_headline_over_hold_out_and_fitted_norm_is_wrong_no_more_often_than_delta(n, m, held, delta):
    """Fair coins: whatever was memorized has the risk 1/2, and the length of w is chosen by the sample as well."""
    K, W_0 = 200, 0.25
    samples = coin_lists.draw(REPETITIONS, n, np.full(K, 0.5), seed=n)
    lengths = np.array([0.1, 0.5, 2.0, 8.0])
    tried = [coin_lists.memorized(samples, length) for length in lengths]
    risks = np.stack([samples.risk(w) for w in tried])
    taken = risks.argmin(axis=0)
    risk, norm = risks.min(axis=0), np.stack([np.linalg.norm(w, axis=1) for w in tried])[taken, np.arange(REPETITIONS)]
    unseen = np.random.default_rng(1).random((REPETITIONS, held)) < 0.5
    known = {"radius": coin_lists.RADIUS, "m": m, "n": n, "b": coin_lists.B}

    def uniform(which, constants, risk, norm):
        def make(delta):
            def ball(W, level):
                return which(risk=risk, W=W, delta=level, **known, **constants)

            return replace(for_fitted_norm(ball, norm=norm, W_0=W_0, delta=delta), bounds="loss")

        return Claim(make, headline=True)

    wrong, balls, spoke = [], set(), 0
    for number in range(REPETITIONS):
        claims = [
            *(held_out(unseen[number].astype(float), method) for method in ("hoeffding", "empirical bernstein")),
            uniform(l2_ball, {"L2": coin_lists.L2}, risk[number], norm[number]),
            uniform(linf_ball, {"G": coin_lists.G}, risk[number], norm[number]),
        ]
        headline = certificate_of(claims, about="", delta=delta).headline
        wrong.append(headline.value < 0.5)
        spoke += not headline.vacuous
        balls.add(claims[2].make(delta).terms["j"])
    assert not too_often(wrong, delta)
    assert spoke > REPETITIONS / 2
    assert balls - {0.0}, "the fitted norm lies in balls beyond the first"


# ------------------------------------------------------------------------------------------- bounds by size


def test_bounds_by_size_are_those_of_the_functions():
    known = {"G": 2.0, "H1": 1.0, "W": 1.0, "radius": 1.0, "b": 3.0, "d": 45, "risk": 0.2, "delta": 0.05}
    gaps = gaps_by_size(**known)
    assert gaps["uniform, l2-Lipschitz"](10_000, 100) == pytest.approx(0.39, abs=0.005)
    assert gaps["regularized, on average"](10_000, 100) == pytest.approx(0.04)
    reach = mean_interval(np.full(400, 0.3), 0.05, method="hoeffding", ends="high").terms["reach"]
    assert gaps["hold-out of n queries (Hoeffding)"](400, 7) == pytest.approx(reach)
    for name, gap in gaps.items():
        assert gap(10**7, 100) < gap(10**6, 100), name
        assert gap(10**6, 100) <= gap(10**6, 1000), name


def test_bounds_by_size_draw_a_line_for_each_in_both_panels():
    figure = draw_bounds_by_size(queries=[10, 1000, 10**5], lengths=[2, 50], at=(500, 20))
    left, right = figure.axes
    assert len(left.lines) == len(right.lines) == 8  # seven bounds, and the line above which they say nothing
    assert left.get_title(loc="left") == "lists of 20 documents"
    assert right.get_title(loc="left") == "500 queries"
