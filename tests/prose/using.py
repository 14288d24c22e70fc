"""Data, the command line, comparisons, reports, exports and other tools."""

from collections.abc import Iterator
from inspect import signature
from math import comb
from typing import get_args

from experiments import hybrid
from experiments.coverage_counts import read_count
from experiments.coverage_winners import MISTAKE, TOGETHER_ALL, VALIDATION
from experiments.exported import GROWN, PRECISE, SEEDS, TREES
from rankwise._diagnose.features import SAME
from rankwise._diagnose.leaks import HALF
from rankwise._diagnose.queries import _DEVIATIONS
from rankwise.cli.demo import _RANKERS as DEMO
from rankwise.evaluation.comparison.run import _MANY_DOCUMENTS
from rankwise.evaluation.comparison.selection import USUAL
from rankwise.evaluation.statistics.intervals import FEW, How, interval
from rankwise.evaluation.statistics.paired import _EXACT_UP_TO
from rankwise.exports import targets
from rankwise.report.descriptions import LONGEST_TEXT
from rankwise.report.figures import _MOST_QUERIES
from rankwise.report.page import LARGEST, TEMPLATES
from rankwise.report.query_lists import Limits
from tests.prose.choosing import EIGHT, NINE, benchmark, megabytes_a_second
from tests.prose.claims import claims, stated
from tests.prose.pages import ROOT, stored

# ------------------------------------------------------------------------------------------- data, command line


@claims("data.md")
def reading_speed() -> Iterator[str]:
    assert min(megabytes_a_second()) > 300
    yield "Two threads read a dense file at several hundred megabytes a second"


@claims("data.md")
def rules_of_findings() -> Iterator[str]:
    yield f"a correlation of {SAME} or more, or of -{SAME} or less, within queries"
    assert (HALF, _DEVIATIONS) == (0.5, 5)
    yield "it leaves at most half of the error of the next best one"
    yield "by more than five standard deviations"


stated("command_line.md", "exit codes: tests/cli", "or 130 after Ctrl-C", "3 if `certify` found no bound")
stated("cold_start.md", "names of architectures", "on x86-64 and on 64-bit ARM carry", "On x86-64 that")
stated("cold_start.md", "names of architectures", "level x86-64-v3")
stated("cold_start.md", "names of architectures", "(x86-64-v3, or", "64-bit ARM with NEON", "processor with AVX-512")
stated("cold_start.md", "a digest and a mode: tests/kernels/test_kernel_cache.py", "SHA-256", "(mode 0700)")


@claims("command_line.md")
def ranking_against_reading() -> Iterator[str]:
    rows = benchmark("rank", "(208 MB of text) from text", peer="reading alone")
    longer = [row["rankwise_seconds"] / row["peer_seconds"] - 1 for row in rows]
    yield f"ranking a text of 208 MB takes {100 * min(longer):.0f} to {100 * max(longer):.0f} % longer than reading it"


@claims("command_line.md")
def rankers_of_the_demo() -> Iterator[str]:
    assert len(DEMO) == 8
    yield f"trains {EIGHT} rankers on synthetic queries"


@claims("compare.md")
def rankers_without_names() -> Iterator[str]:
    assert (len(USUAL), USUAL[0]) == (9, "AutoRanker")
    yield f"Without `--ranker` it compares {NINE}, `AutoRanker` and one of each family"


stated(
    "compare.md",
    "what signs mean",
    "`+` if the ranker is better than the baseline",
    "`-` if it is worse",
)


@claims("compare.md")
def one_division() -> Iterator[str]:
    import rankwise as rw

    parts = [100 * size for size in signature(rw.split).parameters["sizes"].default]
    yield f"{parts[0]:.0f}, {parts[1]:.0f} and {parts[2]:.0f} %"


@claims("compare.md")
def when_cells_follow_one_another() -> Iterator[str]:
    yield f"above some {round(_MANY_DOCUMENTS, -4):,} training documents"


@claims("uncertainty.md")
def samples_and_exact_tests() -> Iterator[str]:
    yield f"(BCa, {signature(interval).parameters['resamples'].default:,} samples of queries)"
    yield f"(Fisher's, exact up to {_EXACT_UP_TO} queries)"


@claims("uncertainty.md")
def coverage_of_few_coins() -> Iterator[str]:
    n, mean = 10, 0.1
    for how in get_args(How):
        ends = [interval([1.0] * ones + [0.0] * (n - ones), 0.95, how) for ones in range(n + 1)]
        covers = [comb(n, ones) * mean**ones * (1 - mean) ** (n - ones) for ones in range(n + 1)]
        inside = sum(chance for (low, high), chance in zip(ends, covers, strict=True) if low <= mean <= high)
        yield f"With {n} queries whose values are 0 or 1 with mean {mean}, a nominal 95 % covers {100 * inside:.0f} %"
    assert 0.3 < (1 - mean) ** n < 0.4
    yield "in a third of all samples every value is 0"
    yield f"Below {FEW} queries"


stated(
    "uncertainty.md",
    "tests/evaluation/statistics/test_significance.py",
    "exponential variable minus its mean, p is at most 0.05 in about 8 % of the samples",
    "which is more than equal means",
)


@claims("compare.md")
def certificates_of_choices() -> Iterator[str]:
    rows = {(*row[:2], row[3]): read_count(row[4]) for row in stored("coverage_winners")["winners"]}
    delta = stored("coverage_winners")["delta"]
    mistake, together, chosen = (
        f"{100 * rows[300, 49, how].rate:.1f} %" for how in (MISTAKE, TOGETHER_ALL, VALIDATION)
    )
    yield (
        f"Of 300 equal rankers, the best on 49 test queries has a false certificate at delta = {delta} in {mistake} "
        f"of the samples, at delta / 300 in {together}, and the winner on validation queries in {chosen}"
    )


stated("compare.md", "what the words mean", "The first row of the table is the best ranker")

# ------------------------------------------------------------------------------------------- report

stated("report.md", "cut-offs that are drawn: tests/report", "nDCG@k and P@k for k = 1 to 20")
stated("report.md", "rankwise demo, the size of rankwise-demo.html", "has 0.82 MB")
stated("report.md", "names of standards", "RFC 4180", "on A4 or letter paper")
stated("report.md", "DecompressionStream: Chrome 80, Safari 16.4, Firefox 113 (May 2023)", "browser of 2023 or later")


@claims("report.md")
def how_large_a_report_is() -> Iterator[str]:
    code = sum(path.stat().st_size for path in TEMPLATES.iterdir())
    yield f"templates, style and scripts are {code / 1e3:.0f} kB"
    yield f"Texts are cut to {LONGEST_TEXT} characters"
    limits = Limits()
    yield f"the {limits.queries} queries that change most"
    yield f"the documents that some ranker has among its first {limits.documents}"
    yield f"Where {LARGEST / 1e6:.0f} MB would be exceeded"
    yield f"Features are shuffled on {_MOST_QUERIES} test queries at most"


# ------------------------------------------------------------------------------------------- exports

stated(
    "production.md",
    "what engines do",
    "Solr adds 1e-6 to every threshold",
    "since 8.12",
    "except in plugins from 2024 on that put NaN in its place",
    "This was run with PyTerrier 1.1",
)


@claims("production.md")
def exported_rankers() -> Iterator[str]:
    found = stored("exported_results")
    linear = [
        one
        for name in ("RidgeRanker", "AdaRank", "RankSVM", "SLAMPerceptron")
        for one in found["rankers"][name].values()
    ]
    (shape,) = {(one["lists"], one["documents"], one["pairs"]) for one in linear}
    lists, documents, pairs = shape
    yield f"learned on three fifths ({found['training queries']} queries)"
    yield f"({lists} queries, {documents:,} documents; the linear rankers order {pairs:,} pairs of them)"
    every = [one for ranker in found["rankers"].values() for one in ranker.values()]
    assert {len(ranker) for ranker in found["rankers"].values()} == {9}
    assert all(one["inverted"] == one["tied"] == 0 and one["ranker"] == one["engine"] for one in every)
    yield "No pair of these six was inverted or tied by any of the nine targets"


@claims("production.md")
def exported_trees() -> Iterator[str]:
    found = stored("exported_results")["trees"]
    every = [one for by_target in found.values() for one in by_target.values()]
    assert {len(by_target) for by_target in found.values()} == {9}
    assert (SEEDS, len(found)) == (3, 3)
    yield f"the mean of three seeds of {TREES} trees with {GROWN['num_leaves']} leaves each"
    assert all(one["inverted"] == one["tied"] == one["largest_change"] == 0 for one in every)
    yield "No pair is inverted or tied, and no nDCG@10 of any query changed"


@claims("hybrid.md")
def learned_weights_against_the_baselines() -> Iterator[str]:
    found = stored("hybrid_results")["collections"]
    every = [one for collections in found.values() for one in collections]
    assert len(every) == 15
    assert all(one["differences"][name][0] > 0 for one in every for name in ("equal", "RRF"))
    yield f"weights are learned on {hybrid.TRAIN} queries"
    yield f"nDCG@10 of {hybrid.TRAIN} training queries against the weight"
    yield f"nDCG@10 is measured on {hybrid.TEST:,} others. The intervals are 95 % bootstrap intervals"
    yield f"The table shows the first of {'five' if hybrid.COLLECTIONS == 5 else ''} collections per row"
    yield "In all fifteen collections both intervals lie above 0"
    yield f"on {hybrid.TEST:,} test queries of three columns"


@claims("hybrid.md")
def intervals_of_weights() -> Iterator[str]:
    found = stored("hybrid_results")["intervals"]
    yield f"tried on {hybrid.REPETITIONS} training sets of {hybrid.SMALL} queries"
    yield f"{found['inside']} of them cover {found['best']:.2f}"
    yield f"the weight of BM25 that is best on {hybrid.LARGE:,} queries"
    yield f"their mean width is {found['width']:.2f}"
    yield f"the chosen weights have a standard deviation of {found['spread']:.3f}"


@claims("hybrid.md")
def engines_rank_alike() -> Iterator[str]:
    found = stored("hybrid_results")["parity"]
    assert {one["target"] for one in found} == {name for name in targets() if name.endswith("-hybrid")}
    assert all(one["inverted"] == one["tied"] == 0 for one in found)
    other = [(one["target"], one["normalizer"]) for one in found if one["ranker"] != one["engine"]]
    assert other == [("solr-hybrid", "rrf")]
    yield "No pair that the ranker orders is inverted or tied"
    yield "the mean nDCG@10 is the same to the last digit, except for Solr's `rrf`"


stated(
    "hybrid.md",
    "what engines do",
    "becomes 0.001; where",
    "not above 0 becomes 0.001.",
    "1 where max - min is below 1e-6",
    "where the norm is below 1e-6",
    "versions before [pull request 128689] returned the raw score",
    "weights since 9.2",
    "no weights as of Solr 9.11",
    "0.5 + (x - (min + max) / 2)",
    "and 0.5 where all are equal",
    "current in 2025 or later",
    "with probability 0.95",
    "Are learned weights better than",
)


@claims("production.md")
def exported_ridge_models() -> Iterator[str]:
    columns = [stored("exported_results")["ridge"][column] for column in PRECISE]
    models = {len(target) for column in columns for target in column}
    assert models == {12}
    (pairs,) = {sum(one["pairs"] for one in target) for column in columns for target in column}
    yield f"with {pairs / 1e6:.1f} million ordered pairs between them"
    assert all(one["ranker"] == one["engine"] for column in columns for target in column for one in target)
    yield "No mean of nDCG@10 changed"


# ------------------------------------------------------------------------------------------- other tools

stated("sklearn.md", "tests/test_sklearn_pipelines.py is skipped before it", "since scikit-learn 1.9")
stated(
    "measures.md",
    "labels that the tools take: tests/evaluation/test_conventions.py",
    "labels 0 to 30",
    "labels 0 to 31",
)
stated(
    "measures.md",
    "`experiments.trec_eval` was run once; a part of its output is in tests/measures/test_judged.py",
    "trec_eval 9.0.4 itself was compared",
    "195,000 values of random small runs",
)
stated(
    "migrate.md",
    "the tools were run once; what they wrote and printed is in tests/data/test_predictions.py",
    "MTEB 2.26 (retrieval and reranking) and 1.39 (retrieval)",
    "sentence-transformers 6.2 and 5.0 returned to 1e-9",
)
stated(
    "migrate.md", "labels that the tools take: tests/evaluation/test_conventions.py", "whole, 0 to 31", "whole, 0 to 30"
)
stated(
    "migrate.md",
    "tried with LightGBM 4.7.0, XGBoost 3.4.1 and their warnings",
    "above 30 without a table",
    "since LightGBM 4.7 `eval_X=` and `eval_y=` are preferred there",
    "which it has deprecated since 3.1",
)


@claims("migrate.md")
def versions_of_the_tools() -> Iterator[str]:
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    found = {}
    for package in ("lightgbm", "xgboost-cpu"):
        lines = [line for line in lock.splitlines() if line.startswith(f"{package}==")]
        assert len(lines) == 1 or "< '3.12'" in lines[0]
        found[package] = [".".join(line.partition("==")[2].split()[0].split(".")[:2]) for line in lines]
    (trees,), (first, later) = found["lightgbm"], found["xgboost-cpu"]
    yield f"LightGBM {trees} and XGBoost {first} are run by the tests of this page"
    yield f"(XGBoost {later} from Python 3.12 on)"
