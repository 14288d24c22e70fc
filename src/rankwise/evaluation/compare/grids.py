"""Grids that are tried where the caller gives none, and the rankers that are compared by default.

Most rankers select their alpha or their number of rounds themselves on the validation part. The grids here hold what
they leave open. They are tried on the validation part, too, and never on a test part.
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

# Passes over the queries, scaling of the features as they come, and averaging of the weights: an averaged perceptron
# is never much worse than its last round.
_ROUNDS: Grid = {"epochs": (1, 5, 20), "scale": ("none", "standard"), "averaging": ("none", "uniform")}
_STEPS: Grid = {"eta": (0.01, 0.1, 1.0), "epochs": (1, 10), "scale": ("none", "standard")}

# The papers' weights for documents, by the kind of measure: tighter ones are not always better for training.
_PAPERS_WEIGHTS = {NDCG: "ndcg_003", AP: "ap_003"}

GRIDS: dict[str, Grid] = {
    "SLAMPerceptron": _ROUNDS,
    "MaxPairPerceptron": _ROUNDS,
    "OnlineRanker": {"loss": (None, PairHinge()), **_STEPS},
    "RankBoost": {"pairs": ("equal", "query")},
}

# One of each family, quick enough for a first look: regression, pairs, lists, boosting, online, direct optimisation.
USUAL = ("RidgeRanker", "RankSVM", "ListNet", "RankBoost", "AdaRank", "SLAMPerceptron", "SLAMRanker", "SmoothRank")

# Parameters of rankers that are given by name alone.
_BY_NAME: dict[str, dict[str, Any]] = {"ListNet": {"solver": "lbfgs"}}


def grid_for(ranker: Any) -> Grid:
    """The declared grid of a ranker, without parameters that the caller has set; empty where none is declared.

    Parameters
    ----------
    ranker : object
        The ranker.

    Returns
    -------
    dict of str to sequence
        The values to try, by parameter.
    """
    if not isinstance(ranker, Ranker):
        return {}
    usual = {name: parameter.default for name, parameter in signature(type(ranker).__init__).parameters.items()}
    declared = GRIDS.get(ranker.name, {})
    if ranker.name == "ListNet" and not ranker.takes_validation:
        declared = _STEPS  # the online solver does not select its own step size and passes, the batch solver does
    if ranker.name == "SLAMPerceptron" and type(ranker._measure()) in _PAPERS_WEIGHTS:
        declared = {**declared, "weights": (None, _PAPERS_WEIGHTS[type(ranker._measure())])}
    # a parameter that the caller has changed is a decision, not a default
    given = ranker.get_params(deep=False)
    return {name: values for name, values in declared.items() if given[name] == usual[name]}


def ranker_called(name: str, measure: str | Measure) -> Ranker:
    """Make a ranker from its name, in any case and with or without hyphens, to be trained for ``measure``.

    Every ranker of the package can be trained for nDCG, nDCG@k and AP; for any other ``measure`` it is trained for
    nDCG@10.

    Parameters
    ----------
    name : str
        The name.
    measure : str or Measure
        The measure.

    Returns
    -------
    Ranker
        The new ranker.
    """
    kinds = registered()
    kind = {known.lower(): kind for known, kind in kinds.items()}.get(name.replace("-", "").lower())
    if kind is None:
        raise RankwiseError(f"a ranker is one of {', '.join(sorted(kinds))}, lightgbm, or a file: found {name!r}")
    return kind(measure=_learnable(measure), **_BY_NAME.get(kind.name, {}))


def all_names() -> list[str]:
    """The names of all installed rankers that learn."""
    return [name for name, kind in registered().items() if kind.learns]


def _learnable(measure: str | Measure) -> str | Measure:
    """The measure itself where every ranker can be trained for it; otherwise nDCG@10."""
    meant = parse(measure)
    gains = isinstance(meant, NDCG) and meant == parse("nDCG" if meant.cutoff is None else f"nDCG@{meant.cutoff}")
    return measure if gains or (isinstance(meant, AP) and meant.cutoff is None) else "nDCG@10"
