"""Direct optimisation, SmoothRank, and what is said of batch rankers elsewhere."""

import re
from collections.abc import Iterator

import numpy as np

from experiments.bound_angles import bounds_by_angle, two_clouds
from experiments.bounds_by_angle import SHOWN, VARIANCES, title_of
from experiments.direct import PUBLISHED
from experiments.smoothrank import PAPER
from tests.prose.claims import claims, stated
from tests.prose.pages import ROOT, stored


def direct(data: str) -> dict[str, dict]:
    return stored("direct_results")[data]


# ------------------------------------------------------------------------------------------- the tables

stated("direct.md", "the number of the version", "(LETOR 2.0)")
stated("direct.md", "measured by others", "reaches a standard NDCG@10 of 0.4952 and MAP of 0.4700")
stated("direct.md", "an exit code: tests/cli/test_commands.py", "exits with 130")


@claims("direct.md")
def how_to_read_the_table() -> Iterator[str]:
    lines = direct("ohsumed")
    widths = [high - low for low, high in (line["interval"]["nDCG@10"] for line in lines.values())]
    assert {f"{width:.1f}" for width in widths} == {"0.1"}
    assert sum(bool(line["test"]) for line in lines.values()) == 16
    queries = len(lines["RidgeRanker"]["values"]["nDCG@10"])
    yield (
        f"an interval is 0.1 wide, so the order of these rankers on {queries} queries is mostly chance, and of sixteen "
        "differences tested at 5 % one comes out by chance alone"
    )


@claims("direct.md")
def ridge_regression_on_ohsumed() -> Iterator[str]:
    lines = direct("ohsumed")
    ridge = lines["RidgeRanker"]["mean"]["nDCG@10"]
    above = [line["test"] for line in lines.values() if line["mean"]["nDCG@10"] > ridge]
    assert all(float(test.partition("p = ")[2].rstrip(")")) > 0.05 for test in above)
    yield "Ridge regression is hard to beat here"
    published = PUBLISHED["ohsumed"]["RidgeRanker"][0]
    yield f"Its NDCG@10 is {ridge - published:.3f} above the published one"
    as_printed = stored("smoothrank_results")["ohsumed"]["mean"]["RidgeRanker"]["nDCG@10"]
    yield f"it is {as_printed:.4f}, {as_printed - PAPER['RidgeRanker'][0]:.3f} above"


@claims("direct.md")
def validation_queries() -> Iterator[str]:
    queries = stored("set_facts")["ohsumed"]["queries"]
    yield f"the selection of the alpha on {queries // 5} queries"


@claims("direct.md")
def below_the_published_on_mq2008() -> Iterator[str]:
    lines, published = direct("mq2008"), PUBLISHED["mq2008"]
    behind = {name for name, (first, _) in published.items() if first and lines[name]["mean"]["nDCG@5"] < first - 0.01}
    assert {name.partition(",")[0] for name in behind} == {"AdaRank", "RidgeRanker"}
    yield "AdaRank and ridge regression stay more than 0.01 below their published NDCG@5"
    own = lines["AdaRank, AP"]["standard"]
    yield f"ours trained on AP has {own['nDCG@10']:.4f} and {own['AP']:.4f}"


# ------------------------------------------------------------------------------------------- bounds by angle

stated("direct.md", "the setting of the simulation", "Left, 7 relevant and 14 irrelevant documents in the plane")
stated(
    "direct.md",
    "a legend, a theorem, and what a mistake means",
    "marks where type two is the tighter bound",
    "Theorem 3 makes type two the tighter one where every perfect order beats every imperfect one",
    "is worse than confusing neighbours",
)


def over_lists(bound: str, column: str) -> list[tuple[float, float]]:
    """Smallest and largest of a column, a pair for each kind of list."""
    found = []
    for lists in stored("bounds_by_angle")["lists"].values():
        values = [row[column] for each in lists for row in each["bounds"] if row["bound"] == bound]
        found.append((min(values), max(values)))
    return found


@claims("direct.md")
def where_bounds_are_tight() -> Iterator[str]:
    angles = stored("bounds_by_angle")["angles"]
    (one, most), (other, rest) = over_lists("type two, relevant", "tighter")
    yield f"Five queries of each kind, {angles} angles"
    yield f"type two is tighter at {one} to {most} and {other} to {rest} of the {angles} angles"
    assert over_lists("type two, pairs", "tighter") == [(0, 0), (0, 0)]
    yield "Over all pairs, type two is looser than type one at every angle of every query"
    yield f"Type one never falls below exp(-1) = {np.exp(-1):.2f}"
    _, (low, high) = over_lists("type two, relevant", "degrees")
    yield f"the minimum is at {low:.0f} to {high:.0f} degrees, not at 45"
    assert list(stored("bounds_by_angle")["lists"]) == [title_of(variance) for variance in VARIANCES]


@claims("direct.md")
def what_the_figure_of_angles_shows() -> Iterator[str]:
    found = [bounds_by_angle(*two_clouds(variance), angles=SHOWN) for variance in VARIANCES]
    lowest = []
    for one in found:
        tight = one.type_two["relevant"]
        place = int(tight.argmin())
        lowest.append(f"{tight[place]:.2f} at {np.degrees(SHOWN[place]):.0f} degrees")
        assert tight.max() > 100
        assert f"{one.loss[tight.argmax()]:.1f}" == "0.8"
        assert (one.best_sorted < one.type_two["pairs"]).all()
        assert (one.best_sorted > one.type_one).all()
    yield f"with its minimum {lowest[0]} and {lowest[1]}, and rises above 100 for the worst ones"
    yield "with SVMmap's pairs, over 100 where the loss is 0.8"
    yield "The dashed line, against the best perfect order alone, is lower and still looser"


# ------------------------------------------------------------------------------------------- where a ranker errs


def curve(k: int, part: str) -> list[float]:
    found = stored("ranking_errors")["analysis_learning_curves"]
    columns = zip(found["ranker"], found["part"], found["value"], strict=True)
    return [value for ranker, each, value in columns if (ranker, each) == (f"SmoothRank, k = {k}", part)]


def inverted(ranker: str) -> dict[str, str]:
    """Per cent of inverted pairs, by the labels of the pair."""
    found = stored("ranking_errors")["analysis_label_pairs"]
    columns = zip(found["pair"], found["ranker"], found["share"], strict=True)
    return {pair: f"{100 * share:.0f}" for pair, each, share in columns if each == ranker}


@claims("direct.md")
def the_figure_of_learning_curves() -> Iterator[str]:
    stages = {len(curve(k, part)) for k in (5, 10) for part in ("train", "validation")}
    assert stages == {13}
    assert [np.argmax(curve(k, "validation")) + 1 for k in (5, 10)] == [12, 9]
    yield "the twelfth for k = 5 and the ninth for k = 10"
    yield "SmoothRank along its 13 stages"


def the_figure_of_label_pairs() -> Iterator[str]:
    ridge, smooth, slam = (inverted(name) for name in ("RidgeRanker", "SmoothRank", "SLAMPerceptron"))
    assert ridge == smooth
    yield (
        f"RidgeRanker and SmoothRank invert {ridge['definitely-not']} per cent of the pairs definitely against not "
        f"relevant, {ridge['definitely-possibly']} per cent of definitely against possibly, and "
        f"{ridge['possibly-not']} per cent of possibly against not relevant"
    )
    yield f"SLAMPerceptron {slam['definitely-not']}, {slam['definitely-possibly']} and {slam['possibly-not']} per cent"


claims("direct.md")(the_figure_of_label_pairs)
claims("explain.md")(the_figure_of_label_pairs)


@claims("direct.md")
def the_figure_of_query_sizes() -> Iterator[str]:
    found = stored("ranking_errors")["analysis_query_sizes"]
    few = sum(count for end, count in zip(found["to"], found["queries"], strict=True) if end < 4_000)
    yield (
        f"Histogram of the {sum(found['queries'])} queries of OHSUMED by their number of pairs of documents with "
        f"different labels, in bins of {found['to'][0] + 1:,}. {few} queries have fewer than 4,000 pairs; a tail "
        f"reaches to {max(found['to']) + 1:,}"
    )


@claims("direct.md")
def the_figure_of_gains() -> Iterator[str]:
    found = stored("ranking_errors")["analysis_gains"]
    judged = {count - skipped for count, skipped in zip(found["queries"], found["skipped"], strict=True)}
    (size,) = judged
    yield (
        f"for five groups of {size} queries by their number of pairs, from {found['from'][0]} to {found['to'][0]:,} up "
        f"to {found['from'][-1]:,} to {found['to'][-1]:,}"
    )
    yield f"The differences lie between {min(found['gain']):.3f} and {max(found['gain']):+.3f}"
    clear = [place for place in range(5) if found["low"][place] > 0 or found["high"][place] < 0]
    assert clear == [1]  # the second group
    assert found["high"][1] < 0
    ridge, smooth, slam = (inverted(name) for name in ("RidgeRanker", "SmoothRank", "SLAMPerceptron"))
    assert ridge == smooth
    assert slam["definitely-not"] > ridge["definitely-not"]
    assert slam["possibly-not"] > ridge["possibly-not"]
    assert slam["definitely-possibly"] <= ridge["definitely-possibly"]
    yield (
        "the two batch rankers make nearly the same errors in all three kinds of pairs, and no group of queries stands "
        "out; of five intervals at 95 %, one that just excludes 0 is no surprise"
    )


@claims("tune.md")
def the_best_stages_on_the_page_of_tuning() -> Iterator[str]:
    assert [np.argmax(curve(k, "validation")) + 1 for k in (5, 10)] == [12, 9]
    yield "the twelfth for k = 5 and the ninth for k = 10"


# ------------------------------------------------------------------------------------------- SmoothRank

stated(
    "smoothrank.md",
    "settings of the figures, and what they show",
    "against sigma from 64 to 1/64",
    "where a smaller sigma no longer helps",
    "sigma 1 and 64 are nearly straight",
)


@claims("smoothrank.md")
def how_the_grid_came_about() -> Iterator[str]:
    found = stored("smoothrank_results")
    halves, queries = found["grid"]["halves"], stored("set_facts")["ohsumed"]["queries"]
    yield f"on {queries // 5} validation queries"
    assert min(halves[power] for power in ("-3", "-1", "1")) > halves["-6 to 3"]
    yield "Any single lambda in the middle is better than the one that is selected from the whole grid"
    first = found["grid"]["protocol with the paper's"]
    for title, mean in first.items():
        low, high = found["ohsumed"]["interval"]["SmoothRank k=50"][title]
        assert low < mean < high
    yield f"NDCG@10 is {first['nDCG@10']:.4f} and MAP {first['AP']:.4f}. Both lie in the interval above"
    yield f"differences of 0.01 cannot be resolved with {queries} queries"


@claims("smoothrank.md")
def the_committee_against_one_regression() -> Iterator[str]:
    tests = {
        (data, line["ranker"]): line
        for data, one in stored("committee_results").items()
        for line in one["tests"]
        if line["measure"] == "nDCG@10"
    }
    names = ("RidgeCommittee", "SmoothRank")
    assert all(tests["mq2008", name]["low"] > 0 for name in names)
    assert all(tests["ohsumed", name]["low"] < 0 < tests["ohsumed", name]["high"] for name in names)
    first, second = (f"{tests['mq2008', name]['p']:.3f}" for name in names)
    yield (
        f"On MQ2008 the committee and SmoothRank are better than one ridge regression (p = {first} and {second} in "
        "nDCG@10); on OHSUMED no difference can be shown"
    )


# ------------------------------------------------------------------------------------------- limits

stated(
    "limitations.md",
    "release-check --without-extras, and the wheels of the day",
    "On 3.15 the README's tour was run",
    "have no wheels for 3.15 yet",
)
stated("limitations.md", "versions, and a proof that nobody has", "Version 0.1.", "about a better one")


@claims("limitations.md")
def declared_pythons() -> Iterator[str]:
    declared = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    assert declared == [f"3.{minor}" for minor in range(11, 11 + len(declared))]
    yield f"Tested on Linux with Python {declared[0]} to {declared[-1]}"


@claims("limitations.md")
def what_rankers_cost() -> Iterator[str]:
    seconds = {(data, name): line["seconds"] for data in ("ohsumed", "mq2008") for name, line in direct(data).items()}
    yield (
        f"took {seconds['mq2008', 'PermuRank']:.0f} seconds per fold on MQ2008, "
        f"and {seconds['ohsumed', 'PermuRank']:.0f} on OHSUMED, where RankSVM takes one or two"
    )
    assert 1 <= round(seconds["ohsumed", "RankSVM"]) <= 2


@claims("limitations.md")
def limits_of_labels() -> Iterator[str]:
    import pytest

    from rankwise.analysis.mistakes import _LABELS_AT_MOST
    from rankwise.measures import NDCG

    assert np.isfinite(NDCG()([1.0, 0.0], [996, 0]))
    with pytest.raises(ValueError, match="overflows at label 997"):
        NDCG()([1.0, 0.0], [997, 0])
    yield "overflow from label 997"
    yield f"takes {_LABELS_AT_MOST} different labels at most"


@claims("migrate.md")
def svm_rank_and_ours() -> Iterator[str]:
    folds = stored("direct_results")["svm_rank"]["folds"]
    assert min(one["correlation"] for one in folds) >= 0.999
    yield "the scores of the two correlate by 0.999"
