"""How good is it: what the sentences between the tables of the page of quality say."""

from collections.abc import Iterable, Iterator

from benchmarks.quality import LARGE, SEEDS
from benchmarks.quality.page import LEVEL, intervals
from benchmarks.quality.peers import PATIENCE, RATE, TREES
from benchmarks.quality.sets import TEST_QUERIES
from tests.prose.claims import claims, stated
from tests.prose.pages import stored

LANDMARKS = ("RidgeRanker on 200 landmarks", "SmoothRank on 200 landmarks")
NETWORKS = ("NeuralRanker", "Rax")
NETWORK = ("NeuralRanker", "RidgeCommittee")
PERCEPTRONS = ("KernelPerceptron", "KernelPerceptron, standardised, map=512, 10 epochs")
REAL = ("ohsumed", "mq2008", "lightgbm", "trecnews")

stated(
    "quality.md",
    "rules of the benchmark: benchmarks/quality",
    "The rankers of rankwise have their defaults; those that learn from validation queries by default do so",
    "`MappedRanker` and `KernelPerceptron` are their defaults on the features as they come",
)
stated("quality.md", "metadata of allRank 1.4.3", "asks for PyTorch 1.8 or older")
stated("quality.md", "choices that were made before", "left at its defaults", "linear rankers are level at 50 queries")
stated("quality.md", "the name of a set", "TREC news, 200 queries with interactions")
stated("quality.md", "docs/quality.json as it was before", "`AutoRanker` on the largest set, which had 0.7952")


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
    both = 1 - 2 * (1 - LEVEL)  # union bound over two measures
    yield (
        f"hold for all sets together with {100 * LEVEL:.0f} per cent (Bonferroni over the sets); "
        f"those of both measures together with {100 * both:.0f} per cent"
    )
    yield f"hold for all cells of both tables together with {100 * LEVEL:.0f} per cent"
    large = found["interactions-5000"]
    assert large["training queries"] > LARGE
    yield f"more than {LARGE:,} training queries"


@claims("quality.md")
def when_kernels_maps_and_networks_pay() -> Iterator[str]:
    found = intervals(stored("quality"))
    assert not [key for key, (_, low, _) in found.items() if key[2] == "AutoRanker" and low > 0]
    yield "nothing here is better than `AutoRanker` beyond chance on any set"

    def against(sets: Iterable[str], names: Iterable[str], other: str) -> list[tuple[float, float, float]]:
        return [found[one, name, other] for one in sets for name in names]

    interacting = [f"interactions-{count}" for count in (200, 1_000, 5_000)]
    paying = against(interacting, (*LANDMARKS, "NeuralRanker"), "RidgeCommittee")
    assert all(low > 0 for _, low, _ in paying)
    gains = [gain for gain, _, _ in paying]
    yield (
        "Where features interact and there are 200 queries or more, landmarks and `NeuralRanker` gain "
        f"{min(gains):.3f} to {max(gains):.3f} over `RidgeCommittee`."
    )
    for one in interacting:
        means = {name: own["nDCG@10"] for name, own in stored("quality")[one]["rankers"].items()}
        assert means["AutoRanker"] >= max(means[name] for name in (*LANDMARKS, "NeuralRanker"))
    yield "`AutoRanker` gains as much there with trees, or more"
    for other in ("AutoRanker", "RidgeCommittee"):
        linear = against(("linear-50", "linear-200"), (*LANDMARKS, "MappedRanker", *NETWORKS, *PERCEPTRONS), other)
        assert all(high < 0 for _, _, high in linear)
        splines = against(("linear-50", "linear-200"), ("RidgeRanker on splines",), other)
        assert all(low < 0 < high for _, low, high in splines)
        real = against(REAL, (*LANDMARKS, "MappedRanker", "RidgeRanker on splines", "NeuralRanker"), other)
        assert all(low < 0 < high for _, low, high in real)
    yield "all but splines are worse than either"
    yield "On the four real sets no difference of maps and `NeuralRanker` can be told from chance"
    everywhere = against(stored("quality"), PERCEPTRONS, "RidgeCommittee")
    assert all(difference < 0 for difference, _, _ in everywhere)
    yield "are behind `RidgeCommittee` everywhere"


@claims("neural.md")
def where_a_network_gains_and_loses() -> Iterator[str]:
    found = {key[0]: one for key, one in intervals(stored("quality")).items() if key[1:] == NETWORK}
    assert all(found[f"interactions-{count}"][1] > 0 for count in (200, 1_000, 5_000))
    assert all(found[one][2] < 0 for one in ("interactions-50", "linear-50", "linear-200"))
    yield "there are 200 queries or more, and loses with 50 queries and where features do not interact"


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
