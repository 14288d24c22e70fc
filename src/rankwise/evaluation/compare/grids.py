"""Which settings are tried for which ranker where the caller says nothing, and the rankers that stand for the project.

Most rankers choose their alpha or their number of rounds for themselves on the validation part. What is declared
here is what they leave open. It is tried on the validation part too, and never on a test part.
"""

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

from rankwise._errors import RankwiseError
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.measures._base import Measure
from rankwise.measures.ap import AP
from rankwise.measures.ndcg import NDCG
from rankwise.measures.parse import parse
from rankwise.rankers._base import Ranker, registered

Grid = Mapping[str, Sequence[Any]]

# Passes, whether features are brought to one scale as they come, and which weights a run ends with: a pass is one
# reading of the lists, and a perceptron that is averaged never does much worse than its last round.
_ROUNDS: Grid = {"epochs": (1, 5, 20), "scale": ("none", "standard"), "averaging": ("none", "uniform")}
_STEPS: Grid = {"eta": (0.01, 0.1, 1.0), "epochs": (1, 10), "scale": ("none", "standard")}

# The papers' weights for documents, by the kind of measure: the tighter ones are not always better to learn from.
_PAPERS_WEIGHTS = {NDCG: "ndcg_003", AP: "ap_003"}

GRIDS: dict[str, Grid] = {
    "SLAMPerceptron": _ROUNDS,
    "MaxPairPerceptron": _ROUNDS,
    "OnlineRanker": {"loss": (None, PairHinge()), **_STEPS},
    "RankBoost": {"pairs": ("equal", "query")},
}

# One of each family, quick enough for a first look: regression, pairs, lists, boosting, online, direct optimisation.
USUAL = ("RidgeRanker", "RankSVM", "ListNet", "RankBoost", "AdaRank", "SLAMPerceptron", "SLAMRanker", "SmoothRank")

# What a ranker is set to where it was asked for by its name alone.
_BY_NAME: dict[str, dict[str, Any]] = {"ListNet": {"solver": "lbfgs"}}


def grid_for(ranker: Any) -> Grid:
    """The declared grid of a ranker, without what the caller has set himself; empty where none is declared."""
    if not isinstance(ranker, Ranker):
        return {}
    usual = {name: parameter.default for name, parameter in signature(type(ranker).__init__).parameters.items()}
    declared = GRIDS.get(ranker.name, {})
    if ranker.name == "ListNet" and not ranker.takes_validation:
        declared = _STEPS  # learned round by round, it leaves to others what the other solver chooses for itself
    if ranker.name == "SLAMPerceptron" and type(ranker._measure()) in _PAPERS_WEIGHTS:
        declared = {**declared, "weights": (None, _PAPERS_WEIGHTS[type(ranker._measure())])}
    given = ranker.get_params(deep=False)
    return {name: values for name, values in declared.items() if given[name] == usual[name]}


def ranker_called(name: str, measure: str | Measure) -> Ranker:
    """A new ranker by its name, in any case of letters and with or without hyphens, that learns for ``measure``.

    Every ranker of the project can learn for nDCG, nDCG@k and AP; where ``measure`` is another one, it learns for
    nDCG@10.
    """
    kinds = registered()
    kind = {known.lower(): kind for known, kind in kinds.items()}.get(name.replace("-", "").lower())
    if kind is None:
        raise RankwiseError(f"a ranker is one of {', '.join(sorted(kinds))}, lightgbm, or a file: found {name!r}")
    return kind(measure=_learnable(measure), **_BY_NAME.get(kind.name, {}))


def all_names() -> list[str]:
    """The names of all rankers that are installed and learn."""
    return [name for name, kind in registered().items() if kind.learns]


def _learnable(measure: str | Measure) -> str | Measure:
    meant = parse(measure)
    gains = isinstance(meant, NDCG) and meant == parse("nDCG" if meant.cutoff is None else f"nDCG@{meant.cutoff}")
    return measure if gains or (isinstance(meant, AP) and meant.cutoff is None) else "nDCG@10"
