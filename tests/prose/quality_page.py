"""How good is it: what the sentences between the tables of the page of quality say."""

from collections.abc import Iterator

from benchmarks.quality import LARGE, SEEDS
from benchmarks.quality.page import LEVEL, intervals
from benchmarks.quality.peers import PATIENCE, RATE, TREES
from benchmarks.quality.sets import TEST_QUERIES
from tests.prose.claims import claims, stated
from tests.prose.pages import stored

stated(
    "quality.md",
    "rules of the benchmark: benchmarks/quality",
    "The rankers of rankwise have their defaults; those that learn from validation queries by default do so",
    "`MappedRanker` and `KernelPerceptron` are their defaults on the features as they come",
)
stated("quality.md", "metadata of allRank 1.4.3", "asks for PyTorch 1.8 or older")
stated("quality.md", "choices that were made before", "left at its defaults", "linear rankers are level at 50 queries")


@claims("quality.md")
def settings_of_the_benchmark() -> Iterator[str]:
    found = stored("quality")
    assert all(one["test queries"] == TEST_QUERIES for name, one in found.items() if "-" in name)
    yield f"with {TEST_QUERIES:,} test queries"
    yield f"five folds of its {found['trecnews']['test queries']} queries"
    yield (
        f"The peers have {TREES:,} trees at most, a learning rate of {RATE}, their defaults otherwise, and stop early "
        f"by NDCG@10 on the validation part after {PATIENCE} trees without a gain. On sets of fewer than {LARGE:,} "
        f"queries their values are means over {SEEDS} seeds"
    )
    yield f"hold for all sets together with {100 * LEVEL:.0f} per cent"
    yield f"hold for all cells of both tables together with {100 * LEVEL:.0f} per cent"
    large = found["interactions-5000"]
    assert large["training queries"] > LARGE
    yield f"more than {LARGE:,} training queries"


@claims("quality.md")
def trees_of_catboost() -> Iterator[str]:
    for count in (200, 1_000, 5_000):
        own, other = (
            stored("quality")[f"interactions-{count}"]["rankers"][name]
            for name in ("BoostedRanker", "CatBoost YetiRank")
        )
        assert 0 < other["nDCG@10"] - own["nDCG@10"] < 0.01
        assert 0.005 < other["AP"] - own["AP"] < 0.015
    yield (
        "With interactions and 200 queries or more CatBoost's symmetric trees lead those of `BoostedRanker`, which "
        "LightGBM grows leaf by leaf, by less than .01 in nDCG@10 and by about .01 in AP."
    )
