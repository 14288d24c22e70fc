"""Select settings on validation sets and test once: rankers x grids x folds.

:func:`select` is the plain relative of :func:`rankwise.compare`: it returns scores and selected settings, and leaves
measures and tests to the caller.

Most rankers select their alpha or their number of rounds themselves on the validation part. The default grids hold what
they leave open. They are tried on the validation part, too, and never on a test part.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import product
from typing import Any

import numpy as np

from rankwise._progress import track
from rankwise._tables import ShownAsFacts, Table
from rankwise.errors import DataError, RankwiseError, did_you_mean
from rankwise.evaluation.evaluation import Evaluation, evaluate
from rankwise.losses.pairwise_hinge import PairHinge
from rankwise.measures._base import Measure, Vector, parse
from rankwise.measures.ap import AP
from rankwise.measures.ndcg import NDCG
from rankwise.queries.folds import Fold
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker, registered

Grid = Mapping[str, Sequence[Any]]


# ------------------------------------------------------------------------------------------------------ default grids


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
    "KernelPerceptron": {"gamma": (None, 0.1, 1.0)},
    "RankBoost": {"pairs": ("equal", "query")},
    "HybridRanker": {"normalizer": ("min_max", "l2", "z_score", "rrf")},
}

# The one to begin with, and one of each family, quick enough for a first look: regression, pairs, lists, boosting,
# online, direct optimization.
USUAL = (
    "AutoRanker",
    "RidgeRanker",
    "RankSVM",
    "ListNet",
    "RankBoost",
    "AdaRank",
    "SLAMPerceptron",
    "SLAMRanker",
    "SmoothRank",
)

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
        known = [*sorted(kinds), "lightgbm"]
        raise RankwiseError(
            f"no ranker is called {name!r}{did_you_mean(name, known)}: a ranker must be a file, or one of "
            f"{', '.join(known)}"
        )
    return kind(measure=_learnable(measure), **_BY_NAME.get(kind.name, {}))


def all_names() -> list[str]:
    """The names of all installed rankers that learn."""
    return [name for name, kind in registered().items() if kind.learns]


def _learnable(measure: str | Measure) -> str | Measure:
    """The measure itself where every ranker can be trained for it; otherwise nDCG@10."""
    meant = parse(measure)
    gains = isinstance(meant, NDCG) and meant == parse("nDCG" if meant.cutoff is None else f"nDCG@{meant.cutoff}")
    return measure if gains or (isinstance(meant, AP) and meant.cutoff is None) else "nDCG@10"


@dataclass(frozen=True)
class Selection(ShownAsFacts):
    """Scores of every ranker on the test parts of all folds, and how its settings were selected.

    Attributes
    ----------
    queries : Queries
        The test queries of all folds, one after the other.
    scores : dict of str to ndarray
        For each ranker one score per document of ``queries``.
    chosen : Table
        Columns fold, ranker, settings, measure on the validation part, settings tried, seconds.
    """

    queries: Queries
    scores: dict[str, Vector]
    chosen: Table

    def evaluate(self, measures: Any, **conventions: Any) -> dict[str, Evaluation]:
        """Evaluate every ranker over the test queries of all folds.

        Parameters
        ----------
        measures : str, Measure or list of them
            The measures.
        **conventions : dict
            Further options of :func:`rankwise.evaluate`.

        Returns
        -------
        dict of str to Evaluation
            The evaluations by ranker.
        """
        return {name: evaluate(self.queries, scores, measures, **conventions) for name, scores in self.scores.items()}


def select(
    rankers: Mapping[str, Any],
    folds: Iterable[Fold],
    *,
    grids: Mapping[str, Grid] | None = None,
    measure: str | Measure | None = None,
    verbose: bool = False,
) -> Selection:
    """Fit on the training part, select on the validation part, test once; fold after fold.

    Parameters
    ----------
    rankers : dict of str to ranker
        The rankers, which are cloned and never changed. A ranker that selects its own settings (``takes_validation`` is
        True) receives the validation part; no ranker sees the test part.
    folds : iterable of Fold
        What :func:`read_folds` or :func:`kfold` return.
    grids : dict of str to dict, default=None
        For each ranker the values to try by parameter, in all combinations; a ranker without a grid is fitted as it is.
    measure : str or Measure, default=None
        The measure used for model selection; None takes each ranker's own.
    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    Selection
        Scores and settings.

    Examples
    --------
    >>> from rankwise import SLAMPerceptron, kfold, make_lists
    >>> folds = kfold(make_lists(60, documents=8, features=4, random_state=1), 3)
    >>> found = select({"slam": SLAMPerceptron()}, folds, grids={"slam": {"epochs": [1, 5]}})
    >>> len(found.queries), found.chosen["tried"].tolist()
    (60, [2, 2, 2])
    """
    from rankwise.evaluation.comparison.cells import choose  # which imports this module
    from rankwise.evaluation.comparison.rankers import Learner

    judge = None if measure is None else parse(measure)
    if not isinstance(rankers, Mapping):
        raise RankwiseError(f"rankers must be a dict with names as keys, got {type(rankers).__name__}")
    refuse_unknown_grids(grids, rankers)
    tests: list[Queries] = []
    scores: dict[str, list[Vector]] = {name: [] for name in rankers}
    chosen: list[dict[str, Any]] = []
    for number, fold in enumerate(track(list(folds), "folds", enabled=None if verbose else False), start=1):
        tests.append(fold.test)
        for name, ranker in rankers.items():
            began = time.perf_counter()
            best = choose(Learner(ranker, (grids or {}).get(name, {})), Fold(*fold), judge, seed=0, jobs=None)
            scores[name].append(best.model.predict(fold.test))
            line = {"settings": dict(best.setting), "validation": best.judged, "tried": best.tried}
            chosen.append({"fold": number, "ranker": name, **line, "seconds": time.perf_counter() - began})
    if not tests:
        raise DataError("a selection requires at least one fold")
    columns = {key: [line[key] for line in chosen] for key in chosen[0]} if chosen else {}
    return Selection(
        Queries.concat(tests), {name: np.concatenate(parts) for name, parts in scores.items()}, Table(columns)
    )


def refuse_unknown_grids(grids: Any, rankers: Mapping[str, Any]) -> None:
    """Raise an error unless grids is None or a dict whose keys are names of rankers."""
    if grids is not None and not isinstance(grids, Mapping):
        raise RankwiseError(f"grids must be a dict with names of rankers as keys, got {type(grids).__name__}")
    unknown = [name for name in grids or {} if name not in rankers]
    if unknown:
        known = ", ".join(map(repr, rankers))
        raise RankwiseError(f"grids names {unknown[0]!r}, which is not among the rankers {known}")


def combinations(grid: Grid) -> Iterator[dict[str, Any]]:
    """Every combination of the values, in order; one empty combination for an empty grid."""
    return (dict(zip(grid, values, strict=True)) for values in product(*grid.values()))


def fit_apart(ranker: Ranker, train: Queries, validation: Queries) -> Ranker:
    """Fit a ranker without learning from its validation set: other queries alone can judge a setting.

    Parameters
    ----------
    ranker : Ranker
        The ranker, not fitted; its parameter ``refit`` is changed if it has one.
    train : Queries
        The training queries.
    validation : Queries
        The validation queries: they select within the fit if the ranker has ``refit``, and are left out if not.

    Returns
    -------
    Ranker
        The ranker itself, fitted.
    """
    if "refit" in ranker.get_params(deep=False):
        ranker.set_params(refit="train")
        return ranker.fit(train, validation=validation)
    return ranker.fit(train)
