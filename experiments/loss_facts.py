"""The table of facts of every loss: ``python3 run.py python -m experiments.loss_facts``.

Writes two parts of docs/losses.md. Convexity, smoothness and bounds are read from the code. Constants are written as
formulas, each with the same formula in Python, and a test compares both with the code. A loss without a row here gets
one from its docstring and its declared constants, so that a new loss needs no edit.
"""

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.loss_costs import cases
from experiments.pages import DOCS, code_pieces, markdown_table, write_block
from rankwise.losses import (
    SLAM,
    GivenSoftmax,
    GradedPairs,
    ListNet,
    Loss,
    MaxPair,
    NDCGHinge,
    PairHinge,
    PairLogistic,
    PropensityHinge,
    SmoothAP,
    SmoothDCG1,
    SmoothedMeasure,
    SmoothNDCG,
    SmoothPrecision,
    SmoothRR,
    SoftRank,
    SoftRankNDCG,
    StochasticNDCG,
    SVMMapHinge,
    registered,
)
from rankwise.measures import AP, NDCG, WTA

PAGE = DOCS / "losses.md"


@dataclass(frozen=True)
class Stated:
    """A constant as text, and as a function of the loss and m, or of the loss, b and m."""

    words: str
    number: Callable[..., Any]


@dataclass(frozen=True)
class Facts:
    """One row: a loss, what it computes, the measure that it smooths if it bounds none, and its constants."""

    loss: Loss
    does: str
    steepness: Stated
    range: Stated
    about: str = ""
    curvature: Stated | None = None


def lambert(m: int) -> float:
    from scipy.special import lambertw

    return float(lambertw((m - 1) / math.e).real)


def discounted(loss: Any, m: int) -> float:
    """The sum of discounts over the first, up to the cut-off."""
    d = loss.table(m if loss.k is None else min(loss.k, m))
    return float(d.sum() / d[0])


def last_discount(loss: Any, m: int) -> float:
    return float(loss.table(m)[-1] / loss.table(m)[0])


def swaps(loss: Any, m: int) -> float:
    """The sum of D(p) - D(q) over positions p up to the cut-off and q after p, over D(1)."""
    d = loss.table(m)
    return float(sum((d[p] - d[p + 1 :]).sum() for p in range(min(loss.k, m))) / d[0])


TWO = Stated("2", lambda loss, m: 2.0)
MARGIN = Stated("0 to margin + 2 b", lambda loss, b, m: (0.0, loss.margin + 2 * b))
UNIT = Stated("0 to 1", lambda loss, b, m: (0.0, 1.0))
BELOW_LAST = Stated("0 to 1 - D(m) / D(1)", lambda loss, b, m: (0.0, 1 - last_discount(loss, m)))

WRITTEN = (
    Facts(
        SLAM(),
        "sum over documents of a weight times the hinge against the highest-scored less relevant one",
        TWO,
        MARGIN,
    ),
    Facts(MaxPair(), "hinge of the worst pair of different labels", TWO, MARGIN),
    Facts(
        PairHinge(),
        "mean hinge over all pairs of different labels",
        TWO,
        Stated("0 to 1 + 2 b", lambda loss, b, m: (0.0, 1 + 2 * b)),
    ),
    Facts(
        PairHinge(squared=True),
        "mean squared hinge over these pairs",
        Stated("unbounded", lambda loss, m: np.inf),
        Stated("0 to (1 + 2 b)^2", lambda loss, b, m: (0.0, (1 + 2 * b) ** 2)),
        curvature=Stated("8", lambda loss, m: 8.0),
    ),
    Facts(
        PairHinge(per_pair=False),
        "sum of hinges over these pairs",
        Stated("2 floor(m^2 / 4)", lambda loss, m: 2.0 * (m * m // 4)),
        Stated("0 to (1 + 2 b) m (m - 1) / 2", lambda loss, b, m: (0.0, (1 + 2 * b) * m * (m - 1) / 2)),
    ),
    Facts(
        PairLogistic(),
        "mean logistic loss over these pairs, the loss of RankNet",
        TWO,
        Stated("0 to log(1 + e^(2 b))", lambda loss, b, m: (0.0, math.log1p(math.exp(2 * b)))),
        curvature=Stated("1", lambda loss, m: 1.0),
    ),
    Facts(
        GradedPairs(),
        "sum of the same weighted by the difference of the labels, over the number of documents",
        Stated("unbounded", lambda loss, m: np.inf),
        Stated(
            "0 to log(1 + e^(2 b)) floor(m^2 / 4) / m times the largest label",
            lambda loss, b, m: (0.0, math.log1p(math.exp(2 * b)) * (m * m // 4) / m * 4.0),
        ),
    ),
    Facts(
        StochasticNDCG(),
        "logistic loss over pairs, weighted by what swaps under noisy scores change in NDCG@k",
        Stated("unbounded", lambda loss, m: np.inf),
        Stated(
            "0 to log(1 + e^(2 b)) times the sum of D(p) - D(q) over positions p <= k and q > p, over D(1)",
            lambda loss, b, m: (0.0, math.log1p(math.exp(2 * b)) * swaps(loss, m)),
        ),
    ),
    Facts(
        ListNet(),
        "Kullback-Leibler divergence of softmax(scores) from softmax(labels)",
        TWO,
        Stated("0 to 2 b + largest - smallest label", lambda loss, b, m: (0.0, 2 * b + 4.0)),
        curvature=Stated("1", lambda loss, m: 1.0),
    ),
    Facts(
        GivenSoftmax(),
        "cross-entropy of softmax(scores) with the labels as weights, linear in them",
        Stated("unbounded", lambda loss, m: np.inf),
        Stated(
            "0 to m (2 b + log m) times the largest label", lambda loss, b, m: (0.0, 4.0 * m * (2 * b + math.log(m)))
        ),
    ),
    Facts(
        PropensityHinge(),
        "sum over documents of the label times the hinges against all others, linear in the labels",
        Stated("unbounded", lambda loss, m: np.inf),
        Stated(
            "0 to (1 + 2 b) m (m - 1) times the largest label",
            lambda loss, b, m: (0.0, 4.0 * (1 + 2 * b) * m * (m - 1)),
        ),
    ),
    Facts(
        SVMMapHinge(),
        "maximum over all rankings of 1 - AP plus the amount by which the scores prefer it to a perfect one",
        Stated("4", lambda loss, m: 4.0),
        Stated("0 to 1 + 4 b", lambda loss, b, m: (0.0, 1 + 4 * b)),
    ),
    Facts(
        NDCGHinge(),
        "the same for NDCG, with preferences weighted by positions",
        Stated("floor(m^2 / 2)", lambda loss, m: m * m // 2),
        Stated("0 to 1 + b floor(m^2 / 2)", lambda loss, b, m: (0.0, 1 + b * (m * m // 2))),
    ),
    Facts(
        NDCGHinge(normalized=True),
        "the same, scaled to be as steep as SLAM",
        TWO,
        Stated("0 to 1 + 2 b", lambda loss, b, m: (0.0, 1 + 2 * b)),
    ),
    Facts(
        SmoothNDCG(),
        "NDCG with a soft indicator of the document at each position",
        Stated(
            "2 sum D / D(1) sqrt(W / sigma)",
            lambda loss, m: 2 * discounted(loss, m) * math.sqrt(lambert(m) / loss.sigma),
        ),
        Stated("1 - sum D / D(1) to 1", lambda loss, b, m: (1 - discounted(loss, m), 1.0)),
        about="NDCG@k",
    ),
    Facts(
        SmoothPrecision(k=10),
        "precision with the same indicators",
        Stated(
            "2 min(m / k, 1) sqrt(W / sigma)",
            lambda loss, m: 2 * min(m / loss.k, 1) * math.sqrt(lambert(m) / loss.sigma),
        ),
        UNIT,
        about="P@k",
    ),
    Facts(
        SmoothRR(),
        "reciprocal rank with the same indicators",
        Stated(
            "2 (1 + 1/2 + ... + 1/m) sqrt(W / sigma)",
            lambda loss, m: 2 * sum(1 / j for j in range(1, m + 1)) * math.sqrt(lambert(m) / loss.sigma),
        ),
        UNIT,
        about="RR",
    ),
    Facts(
        SmoothDCG1(),
        "expected gain of a first document drawn by softmax, over the largest gain",
        Stated("1 / (2 sigma)", lambda loss, m: 0.5 / loss.sigma),
        UNIT,
        about="NDCG@1",
        curvature=Stated("1 / sigma^2", lambda loss, m: 1 / loss.sigma**2),
    ),
    Facts(
        SmoothAP(),
        "average precision with a sigmoid for every comparison of two scores",
        Stated("(m - 1) / (2 m sigma)", lambda loss, m: (m - 1) / (2 * m * loss.sigma)),
        Stated("0 to 1 - 1/m", lambda loss, b, m: (0.0, 1 - 1 / m)),
        about="AP",
        curvature=Stated("32 / (27 sigma^2)", lambda loss, m: 32 / 27 / loss.sigma**2),
    ),
    Facts(
        SmoothAP(form="indicator"),
        "average precision with the indicators of SmoothNDCG",
        Stated(
            "(3 m + 1) sqrt(log(1 + (m - 1) / e) / sigma)",
            lambda loss, m: (3 * m + 1) * math.sqrt(math.log1p((m - 1) / math.e) / loss.sigma),
        ),
        Stated("(1 - m) / 2 to 1", lambda loss, b, m: ((1 - m) / 2, 1.0)),
        about="AP",
    ),
    Facts(
        SoftRankNDCG(),
        "NDCG with the discount at the expected rank",
        Stated(
            "(2 / sigma) min(0.3734, (m - 1) / (8 log 2))",
            lambda loss, m: 2 / loss.sigma * min(0.3734, (m - 1) / (8 * math.log(2))),
        ),
        BELOW_LAST,
        about="NDCG",
    ),
    Facts(
        SoftRankNDCG(noise="gaussian"),
        "the same, with normal noise on the scores",
        Stated(
            "min(sqrt(log(m - 1)), (m - 1) / (2 sqrt(pi))) / (sigma log 2)",
            lambda loss, m: (
                min(math.sqrt(math.log(m - 1)), (m - 1) / (2 * math.sqrt(math.pi))) / (loss.sigma * math.log(2))
            ),
        ),
        BELOW_LAST,
        about="NDCG",
    ),
    Facts(
        SoftRank(),
        "NDCG with the expected discount of a random rank",
        Stated(
            "min(2.340 sqrt(log(m - 1)), 0.2082 m (m - 1) / sum D) / sigma",
            lambda loss, m: (
                min(
                    4 * (math.log2(3) - 1) * math.sqrt(math.log(m - 1)),
                    (1 - 1 / math.log2(3)) / math.sqrt(math.pi) * m * (m - 1) / discounted(loss, m),
                )
                / loss.sigma
            ),
        ),
        BELOW_LAST,
        about="NDCG@k",
    ),
)


def from_code(loss: Loss) -> Facts:
    """The row of a loss that has none above: the first line of its docstring, and its constants in numbers."""
    steep, curved = loss.lipschitz_l1(100), loss.smoothness(100)
    low, high = loss.range(1.0, 100)
    same = steep == loss.lipschitz_l1(1001) and curved == loss.smoothness(1001)
    at = "" if same else " at m = 100"
    return Facts(
        loss,
        str(type(loss).__doc__).partition("\n")[0].rstrip("."),
        Stated("unbounded" if np.isinf(steep) else f"{steep:.4g}{at}", lambda loss, m: loss.lipschitz_l1(m)),
        Stated(f"{low:.4g} to {high:.4g} at b = 1{at}", lambda loss, b, m: loss.range(b, m)),
        str(loss.smooths) if isinstance(loss, SmoothedMeasure) else "",
        None if np.isinf(curved) else Stated(f"{curved:.4g}{at}", lambda loss, m: loss.smoothness(m)),
    )


def unwritten(written: Iterable[type]) -> list[Loss]:
    """The first example of every loss of the package that is not among ``written``."""
    kinds = [kind for kind in registered().values() if kind.__module__.startswith("rankwise.")]
    known = set(written)
    return [kind.examples()[0] for kind in kinds if kind not in known]


FACTS = (*WRITTEN, *map(from_code, unwritten(type(row.loss) for row in WRITTEN)))


def aim(row: Facts) -> str:
    """The measure whose loss it bounds, or which it smooths."""
    if isinstance(row.loss, SmoothedMeasure):
        return f"soft 1 - {row.about}"
    if row.loss.upper_bounds is None:
        return "bounds no measure"
    names = {AP: "1 - AP", NDCG: "1 - NDCG@k", WTA: "1 - WTA, NDCG, AP ..."}
    return "bounds " + names.get(type(row.loss.upper_bounds), f"1 - {row.loss.upper_bounds}")


def shape(loss: Loss) -> str:
    """Convex or not; smooth, with a Lipschitz gradient, or neither."""
    smooth = "smooth" if loss.smooth else "continuous gradient" if np.isfinite(loss.smoothness(100)) else ""
    return ", ".join(filter(None, ("convex" if loss.convex else "", smooth))) or "neither"


def cost(loss: Loss) -> str:
    """The stated cost of this variant among the timed cases, or else of its class."""
    own = [case for case in cases() if type(case.work) is type(loss)]
    return next((case.stated for case in own if case.work == loss), own[0].stated)


def words_table() -> str:
    """One row per loss: definition, aim, shape and cost."""
    rows = [[code_pieces(repr(row.loss)), row.does, aim(row), shape(row.loss), cost(row.loss)] for row in FACTS]
    return markdown_table(["loss", "what it is", "aim", "shape", "cost"], rows)


def constants_table() -> str:
    """One row per loss: G1, its value for 100 documents, H1 and range."""
    rows = []
    for row in FACTS:
        steep = row.loss.lipschitz_l1(100)
        number = "" if np.isinf(steep) else f"{steep:,.0f}" if steep >= 1_000 else f"{steep:.3g}"
        curved = row.curvature.words if row.curvature else ""
        rows.append([code_pieces(repr(row.loss)), row.steepness.words, number, curved, row.range.words])
    return markdown_table(["loss", "G1", "m = 100", "H1", "range"], rows)


def main() -> int:
    write_block(PAGE, "facts", words_table())
    write_block(PAGE, "constants", constants_table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
