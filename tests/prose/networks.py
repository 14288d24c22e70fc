"""What the page about networks says."""

from collections.abc import Iterator

from tests.prose.claims import claims, stated
from tests.prose.pages import stored


@claims("neural.md")
def networks_and_trees() -> Iterator[str]:
    found = stored("neural_results")
    against = {name: one["tests"]["NeuralRanker"] for name, one in found.items()}
    few = [against[f"products, {count} queries"] for count in (50, 200)]
    assert all(one["difference"] > 0.01 and one["p_corrected"] < 0.001 for one in few)
    many = against["products, 1,000 queries"]
    assert abs(many["difference"]) < 0.002
    assert many["p_corrected"] > 0.05
    mean = {name: one["mean"] for name, one in found.items()}
    gains = [mean[name]["NeuralRanker"] - mean[name]["RidgeRanker"] for name in ("OHSUMED", "MQ2008")]
    yield (
        "The network is ahead of LightGBM's lambdarank with few queries, and level with it where there are many. "
        "On OHSUMED and MQ2008, whose features are scores already and can be added up, it gains little over ridge "
        f"regression: {gains[0]:.3f} and {gains[1]:.3f}."
    )


stated(
    "neural.md",
    "settings of the experiment and of the ranker",
    "averaged over three draws",
    "p is corrected for two tests",
    "by default was chosen among four by test results",
    "the epoch that is best by the measure on the validation set is kept",
)
