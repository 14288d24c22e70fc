"""Kernels and maps: shapes, budgets and a million rounds."""

import math
from collections.abc import Iterator

import numpy as np

from experiments import kernels
from tests.prose.claims import claims, stated
from tests.prose.pages import stored

stated(
    "kernels.md",
    "settings of the experiment",
    "four features in [-1, 1]",
    "60 training queries and 300 test queries of 20 documents",
    "Mistakes in 10,000 rounds of 8 documents each",
    "turns by 0.001 radians per round",
)
stated(
    "kernels.md",
    "tests/rankers/kernels/test_mapped.py, and constants of the code",
    "tests compare the two to 1e-8",
    "at most 10,000 documents",
    "a few blocks of 8 MB",
    "and 24 bytes per query of fingerprints",
    "for the first 4 million queries",
)


@claims("kernels.md")
def shapes() -> Iterator[str]:
    curved = ("SmoothRank on 100 landmarks", "KernelPerceptron, map=512, 10 epochs", "NeuralRanker")
    short = 0.0
    for found in stored("kernels")["shapes"].values():
        trees = found["BoostedRanker, 200 trees"]
        assert max(found["RidgeRanker"], found["SmoothRank"]) < trees - 0.1
        short = max(short, *(trees - found[name] for name in curved))
    yield f"reach what boosted trees reach, or come within {math.ceil(1000 * short) / 1000} of it"


def mistakes(stream: str, way: str) -> dict[int, int]:
    rows = stored("kernels")["budget"]["streams"][stream]["rows"]
    return {row["size"]: row["mistakes"] for row in rows if row["way"] == way}


@claims("kernels.md")
def budgets() -> Iterator[str]:
    assert (kernels.ROUNDS, kernels.ANGLE) == (10_000, 1e-3)
    still, drift = (
        {way: mistakes(stream, f"budget, {way}") for way in ("oldest", "smallest")}
        for stream in ("separable", "drifting")
    )
    if all(still["smallest"][size] <= still["oldest"][size] for size in kernels.BUDGETS):
        yield "removing the smallest coefficients is better"
    if all(drift["smallest"][size] > drift["oldest"][size] for size in kernels.BUDGETS[:-1]):
        yield "On a stream that drifts it is worse"
    if drift["oldest"][200] < drift["oldest"][1000]:
        yield "can even make fewer mistakes than a larger one"


@claims("kernels.md")
def maps() -> Iterator[str]:
    def gain(name: str, title: str) -> float:
        values = stored("kernels")["data"][name]["values"]
        return float(np.mean(values[title]) - np.mean(values["features as they are"]))

    splines, bins = ([gain(name, title) for name in ("mq2008", "ohsumed")] for title in ("splines", "bins"))
    if splines[0] > 0 > splines[1] and bins[0] < 0 < bins[1]:
        yield "splines gain on MQ2008 and lose on OHSUMED, bins the reverse"
