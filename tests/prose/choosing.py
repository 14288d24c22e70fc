"""Pages for those who begin and who choose: README, tour, ranker, measure, tuning, planning."""

import itertools
import math
import re
from ast import literal_eval
from collections.abc import Iterator

import numpy as np

from experiments.promises import REPEATS, SIZES, broken
from rankwise.cli.demo import _RANKERS as DEMO
from rankwise.evaluation.comparison.foreign import LambdaRank
from rankwise.evaluation.comparison.selection import USUAL
from rankwise.measures import registered
from rankwise.measures.conventions import CONVENTIONS
from tests.locks import locked
from tests.prose.claims import claims, stated
from tests.prose.pages import path_of, printed, stored, written_part

EIGHT, NINE = "eight", "nine"
ONLINE = {"ohsumed": "OHSUMED", "mq2008": "MQ2008"}


def benchmark(name: str, work: str, how: str = "", peer: str = "") -> list[dict]:
    """The rows of a benchmark that have these words in them."""
    rows = stored("benchmarks")["results"][name]
    found = [row for row in rows if work in row["work"] and how in row["how"] and peer in row["peer"]]
    assert found, f"no row of {name}: {work}, {how}, {peer}"
    return found


def running(data: str, ranker: str, measure: str = "nDCG@10") -> float:
    return float(np.mean(stored("online_results")["data"][data]["rows"][ranker][measure]))


def megabytes_a_second() -> list[float]:
    rows = benchmark("read_letor", "read LETOR text, 200 MB", "2 threads", "XGBoost")
    return [200 / row["rankwise_seconds"] for row in rows]


# ------------------------------------------------------------------------------------------- README, index, tour

stated("README.md", "versions and how long one reads", "Python 3.11 or newer", "A tour in two minutes")
stated("index.md", "a version", "Python 3.11 or newer")
stated("tour.md", "how long one reads", "A tour in ten minutes")


@claims("README.md")
def reading_against_xgboost() -> Iterator[str]:
    ratios = [row["ratio"] for row in benchmark("read_letor", "read LETOR text", "2 threads", "XGBoost")]
    assert list(map(round, ratios)) == [4, 4]
    yield "On two cores, LETOR text is read about four times as fast as by XGBoost"


@claims("README.md")
def listnet_on_judgements() -> Iterator[str]:
    for data in ONLINE:
        others = stored("online_results")["data"][data]["rows"]
        assert running(data, "ListNet") > max(running(data, name) for name in others if name != "ListNet")
    yield "On judgements that no weights rank perfectly `ListNet` learns better"


@claims("README.md")
def counts_of_the_comparison() -> Iterator[str]:
    own = [kind for kind in registered().values() if kind.__module__.startswith("rankwise.")]
    yield f"| other tools' conventions by name | {len(CONVENTIONS)} |"
    yield f"| measures | {len(own)} | more than here |"


@claims("README.md")
def rankers_of_the_demo() -> Iterator[str]:
    assert (len(DEMO), len(USUAL)) == (8, 9)
    whole = path_of("README.md").read_text(encoding="utf-8")
    assert whole.count(f"{EIGHT} rankers and LightGBM") == 2
    assert f"# {NINE} rankers (-r all: every one)" in whole
    yield from ()


stated("README.md", "the rule of AutoRanker: tests/rankers/auto", "unless another is clearly better")


@claims("README.md")
def auto_ranker_against_its_peers() -> Iterator[str]:
    sets = stored("quality")
    worse = [one for one in sets.values() if one["differences"]["AP"]["high"] < 0]
    assert (len(sets), len(worse)) == (10, 3)
    assert all(one["picked"] == "CatBoost YetiRank" and "interactions" in one["title"] for one in worse)
    yield "compares it with LightGBM, XGBoost and CatBoost on ten sets"
    yield "CatBoost is ahead of `AutoRanker` in AP on three of the ten sets"


@claims("index.md")
def promises_of_the_front_page() -> Iterator[str]:
    found = stored("promises")
    over, every = broken(found)
    assert over <= found["delta"] * every
    sizes = list(map(int, found["promised"]))
    assert [len(values) for values in found["promised"].values()] == [REPEATS] * len(SIZES)
    yield f"from {sizes[0]} to {sizes[-1]}. Each dot is the value that one certificate promises at least, {REPEATS} for"
    bound = re.search(r"<= ([\d.]+)", printed("index.md", "promise.summary()"))
    yield f"So nDCG@10 of future queries is at least {1 - float(bound[1]):.3f}"


@claims("index.md")
def reading_speed_on_the_front_page() -> Iterator[str]:
    assert min(megabytes_a_second()) > 200
    yield "read at hundreds of megabytes a second"


@claims("tour.md")
def three_rankers_of_the_tour() -> Iterator[str]:
    marks = literal_eval(printed("tour.md", 'comparison.mark(name, "nDCG@10")'))
    assert list(marks.values()) == ["base", "=", "-"]
    yield (
        "`+` means better than the first ranker after correction for the number of tests, `-` means worse, and `=` "
        "means that no difference was shown. 400 queries are enough to separate the first from the third, not from the "
        "second"
    )


@claims("first_model.md")
def what_the_certificate_comes_to() -> Iterator[str]:
    bound = re.search(r"<= ([\d.]+) with probability", path_of("first_model.md").read_text(encoding="utf-8"))
    yield f"nDCG@10 is at least {1 - float(bound[1]):.3f}, and such a bound is wrong at most once in twenty times"


@claims("first_model.md")
def one_list_by_the_scorer() -> Iterator[str]:
    seconds = [row["rankwise_seconds"] for row in benchmark("scorer", "a linear ranker")]
    assert all(round(1e5 * second) == 1 for second in seconds)
    yield "in about ten microseconds"


stated("first_model.md", "names of encodings", "UTF-16 and Windows-1252")
stated("data.md", "names of encodings", "UTF-16 or UTF-32 with", "or Windows-1252, which", "as Windows-1252, and")


@claims("first_model.md")
def how_many_are_compared() -> Iterator[str]:
    assert len(USUAL) == 9
    yield f"To try {NINE} of them"


# ------------------------------------------------------------------------------------------- which ranker


def batch(data: str) -> dict[str, dict]:
    return {row[0]: stored("direct_results")[data][row[0]] for row in written_part("choose_ranker.md", "measured")}


NDCG = {"ohsumed": "nDCG@10", "mq2008": "nDCG@5"}
stated(
    "choose_ranker.md",
    "what is asked for",
    "a proof that nothing better was missed",
    "When LightGBM is the better choice",
)
stated(
    "choose_ranker.md",
    "others' findings, marked as such",
    "published comparisons on tens of thousands of queries have trees ahead",
)


@claims("choose_ranker.md")
def ridge_regression_first() -> Iterator[str]:
    for data, title in NDCG.items():
        means = {name: line["mean"][title] for name, line in batch(data).items()}
        assert max(means.values()) - means["RidgeRanker"] < 0.015
        assert batch(data)["RidgeRanker"]["seconds"] < 1
        best = max(means, key=means.__getitem__)
        assert batch(data)[best]["seconds"] < 4
    yield "takes less than a second and stays within 0.015 of the best NDCG on both sets"
    yield "in NDCG nothing here is more than 0.015 above ridge regression"
    yield "the best ranker takes less than 4 seconds per fold"


@claims("choose_ranker.md")
def sizes_of_the_sets() -> Iterator[str]:
    sets = stored("set_facts")
    ohsumed, mq2008 = sets["ohsumed"], sets["mq2008"]
    yield f"OHSUMED has {ohsumed['queries']} queries of {ohsumed['documents']:.0f} documents"
    yield f"MQ2008 {mq2008['queries']} of {mq2008['documents']:.0f}"


@claims("choose_ranker.md")
def width_of_an_interval() -> Iterator[str]:
    widths = [high - low for low, high in (line["interval"]["nDCG@10"] for line in batch("ohsumed").values())]
    assert {f"{width:.1f}" for width in widths} == {"0.1"}
    yield "An interval on OHSUMED is 0.1 wide"


@claims("choose_ranker.md")
def one_pass_over_ohsumed() -> Iterator[str]:
    listnet, pair, slam = (running("ohsumed", name) for name in ("ListNet", "MaxPairPerceptron", "SLAMPerceptron"))
    nothing = stored("online_results")["data"]["ohsumed"]["plain"]["no order"]["nDCG@10"]
    means = [line["mean"]["nDCG@10"] for line in batch("ohsumed").values()]
    assert listnet - slam > max(means) - min(means)  # the differences are larger
    yield (f"ListNet {listnet:.3f}, max-pair perceptron {pair:.3f}, SLAM perceptron {slam:.3f}, no order {nothing:.3f}")


@claims("choose_ranker.md")
def speeds() -> Iterator[str]:
    (ada,) = benchmark("adarank", "nDCG@10, 50 rounds, 33,000 x 136")
    (boost,) = benchmark("boosting", "RankBoost, 300 rounds, 33,000 x 136")
    (smooth,) = benchmark("smoothrank", "smooth nDCG@50 and its gradient, 720,000 x 136", "one pass")
    yield f"50 rounds of AdaRank on 33,000 documents with 136 features take {ada['rankwise_seconds']:.1f} s"
    yield f"300 rounds of RankBoost less than {math.ceil(boost['rankwise_seconds'])} s"
    yield (
        "one value and gradient of smoothed nDCG@50 on 720,000 documents with 136 features "
        f"{smooth['rankwise_seconds']:.2f} s"
    )


@claims("choose_ranker.md")
def features_that_work_together() -> Iterator[str]:
    found = literal_eval(printed("choose_ranker.md", "in found.means.items()"))
    nothing = float(printed("choose_ranker.md", "# no order"))
    assert nothing < found["RidgeRanker"] < found["RankBoost"] < found["lightgbm"]
    assert printed("choose_ranker.md", "coef_[:2] < 0") == "[True, True]"  # two low values first
    yield f"that is better than no order ({nothing:.2f}), and worse than the other two"


@claims("choose_ranker.md")
def trees_on_small_sets() -> Iterator[str]:
    found = stored("trees_results")
    tests = {data: found[data]["tests"]["lightgbm"] for data in found}
    for title in ("nDCG@10", "AP"):
        assert tests["ohsumed"][title]["difference"] < 0
        assert tests["ohsumed"][title]["p_corrected"] < 0.05 < tests["mq2008"][title]["p_corrected"]
    assert sum(len(test) for test in found["ohsumed"]["tests"].values()) == 12  # what p is corrected for
    yield "it is the other way round (OHSUMED), or no difference can be shown (MQ2008)"
    default = LambdaRank()
    yield (
        f"LightGBM {'.'.join(locked('lightgbm')[0].split('.')[:2])} lambdarank with at most {default.trees:,} trees of "
        f"{default.leaves} leaves, step {default.rate}"
    )


# ------------------------------------------------------------------------------------------- measure, tuning, planning

stated("choose_measure.md", "arithmetic, and what labels may be", "starts at 0.125", "nothing is cut to 30 or 31")


@claims("choose_measure.md")
def widths_by_cut_off() -> Iterator[str]:
    intervals = stored("smoothrank_results")["ohsumed"]["interval"]["SmoothRank k=50"]
    first, tenth = (intervals[title][1] - intervals[title][0] for title in ("nDCG@1", "nDCG@10"))
    queries = stored("set_facts")["ohsumed"]["queries"]
    yield f"on OHSUMED's {queries} queries the 95 % interval of nDCG@1 is {first:.2f} wide, that of nDCG@10 {tenth:.2f}"
    yield "k = 50"


@claims("choose_measure.md")
def tools_of_the_example() -> Iterator[str]:
    lines = printed("choose_measure.md", "for tool in (None, *tools)").splitlines()
    assert (len(lines), len({line.split()[1] for line in lines})) == (8, 7)
    yield f"these {EIGHT} give seven values"


stated("tune.md", "advice", "extend the grid. A flat path means that the choice hardly matters")


@claims("tune.md")
def lambdas_in_the_middle() -> Iterator[str]:
    worth = stored("smoothrank_results")["grid"]["halves"]
    assert min(worth[power] for power in ("-3", "-1", "1")) > worth["-6 to 3"]
    yield (
        "on OHSUMED, with 21 queries to choose by, any lambda in the middle of SmoothRank's grid is better than "
        "the one that is chosen from all of it"
    )


stated(
    "plan.md",
    "questions and advice",
    '"B is better than A, if by 0.02"',
    '"it is at least 0.5"',
    "their mean hardly more certain",
)


@claims("plan.md")
def spread_of_differences() -> Iterator[str]:
    lines = stored("direct_results")["ohsumed"].values()
    values = [np.array(line["values"]["nDCG@10"]) for line in lines]
    spread = np.median([(a - b).std() for a, b in itertools.combinations(values, 2)])
    yield f"OHSUMED has {len(values[0])}, and between two of its [rankers]"
    yield f"the standard deviation of the difference in nDCG@10 is {spread:.2f} in the median"


@claims("plan.md")
def power_of_106_queries() -> Iterator[str]:
    first = literal_eval(printed("plan.md", "paired_power(106"))[0]
    assert round(1 / first) == 5
    yield "A difference of 0.01 is then found one time in five"


@claims("plan.md")
def two_intervals() -> Iterator[str]:
    low, high, sure_low, sure_high = map(float, re.findall(r"\d\.\d+", printed("plan.md", "bootstrap {low")))
    assert sure_low < low < high < sure_high
    yield "the one that is guaranteed at every n is wider"
    low, high = map(float, re.findall(r"[-+]\d\.\d+", printed("plan.md", "{better.low")))
    assert low < 0 < high
    yield "0 is inside the last interval: neither ranker has been shown to be better on future queries"


@claims("plan.md")
def betting_is_narrow() -> Iterator[str]:
    found = stored("holdout_widths")
    for name, curve in {**found["coins"], "ohsumed": found["ohsumed"]["parts"]}.items():
        for n, one in curve.items():
            width = one["mean width"]["betting"] / min(one["mean width"].values())
            assert width <= (1.08 if name == "0.5" and int(n) >= 50 else 1.0)
    yield "betting is the narrowest of those that are guaranteed, except on even coins"
