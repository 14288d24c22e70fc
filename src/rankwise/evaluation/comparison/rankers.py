"""What takes part in a comparison: rankers to train, models that were fitted before, and scores from elsewhere.

:func:`as_entries` turns whatever the caller gave into one of three kinds, :class:`Learner`, :class:`Fitted` and
:class:`Given`, under a name.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from rankwise._extras import require
from rankwise.errors import DataError, MissingExtraError, RankwiseError
from rankwise.evaluation.comparison.foreign import OnArrays
from rankwise.evaluation.comparison.selection import Grid, grid_for, ranker_called, refuse_unknown_grids
from rankwise.io.any_file import kind_of
from rankwise.measures._base import Measure
from rankwise.rankers._base import Ranker
from rankwise.rankers._foreign import is_fitted, takes

LIGHTGBM = "lightgbm"


@dataclass(frozen=True)
class Learner:
    """A ranker that is cloned and fitted on every fold, with a grid of settings.

    Attributes
    ----------
    ranker : object
        The ranker; foreign objects are wrapped in :class:`OnArrays`.
    grid : dict of str to sequence
        The values to try, by parameter.
    """

    ranker: Any
    grid: Grid = field(default_factory=dict)

    @property
    def model(self) -> Any:
        """The caller's own object, without the adapter around it."""
        return self.ranker.model if isinstance(self.ranker, OnArrays) else self.ranker

    def fresh(self, setting: Mapping[str, Any], inner_jobs: int | None) -> Any:
        """Make an unfitted copy.

        Parameters
        ----------
        setting : dict
            Parameters to set.
        inner_jobs : int or None
            Threads of the copy, where the caller has not set them.

        Returns
        -------
        object
            The copy.
        """
        copy = clone(self.ranker, safe=False)
        target = copy.model if isinstance(copy, OnArrays) else copy
        if setting:
            target.set_params(**setting)
        if isinstance(copy, Ranker):
            known = copy.get_params(deep=False)
            # cells already run in parallel: more threads than cores would only wait
            if "n_jobs" in known and known["n_jobs"] is None:
                copy.set_params(n_jobs=inner_jobs)
            if "verbose" in known:
                copy.set_params(verbose=False)  # one bar is enough
        return copy


@dataclass(frozen=True)
class Fitted:
    """A model that was fitted elsewhere: it only scores the test parts."""

    model: Any


@dataclass(frozen=True)
class Given:
    """Scores of the documents of the data."""

    scores: Any


Entry = Learner | Fitted | Given


def as_entries(
    rankers: Any, measure: str | Measure, grids: Mapping[str, Grid] | None, random_state: int
) -> dict[str, Entry]:
    """Turn the rankers of the caller into entries; clashing names and objects that are no ranker raise an error.

    Parameters
    ----------
    rankers : dict, list or single ranker
        What the caller gave.
    measure : str or Measure
        The measure that rankers given by name are trained for.
    grids : dict of str to dict, or None
        Grids of the caller.
    random_state : int
        Seed for objects whose own seed is None.

    Returns
    -------
    dict of str to Learner, Fitted or Given
        The entries by name.
    """
    named = _name_rankers(rankers)
    if not named:
        raise RankwiseError("a comparison requires at least one ranker")
    refuse_unknown_grids(grids, named)
    return {name: _entry(name, value, measure, grids or {}, random_state) for name, value in _present(named).items()}


def _present(named: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out LightGBM where it is not installed, with a message; raise an error where nothing would be left."""
    wanted = [name for name, value in named.items() if isinstance(value, str) and value.lower() == LIGHTGBM]
    if not wanted:
        return dict(named)
    try:
        require(LIGHTGBM)
    except MissingExtraError as error:
        if len(wanted) == len(named):
            raise
        print(f"rankwise: {', '.join(wanted)} is left out: {error}", file=sys.stderr)
        return {name: value for name, value in named.items() if name not in wanted}
    return dict(named)


def _name_rankers(rankers: Any) -> dict[str, Any]:
    """The rankers by name; a list is named by class or file."""
    if isinstance(rankers, Mapping):
        odd = [name for name in rankers if not isinstance(name, str)]
        if odd:
            raise RankwiseError(f"names of rankers must be strings, got {odd[0]!r}")
        return dict(rankers)
    # a single ranker is a list of one
    if isinstance(rankers, (str, os.PathLike, np.ndarray)) or not isinstance(rankers, Sequence):
        rankers = [rankers]
    found: dict[str, Any] = {}
    for ranker in rankers:
        if isinstance(ranker, (str, os.PathLike)):
            name = os.fspath(ranker)
        elif hasattr(ranker, "predict"):
            name = type(ranker).__name__
        else:
            raise RankwiseError(f"scores require a name: pass a dict such as {{'mine': scores}}, got {ranker!r:.40}")
        if name in found:
            raise RankwiseError(f"two rankers are named {name!r}: pass a dict with a different name for each")
        found[name] = ranker
    return found


def _entry(name: str, value: Any, measure: str | Measure, grids: Mapping[str, Grid], random_state: int) -> Entry:
    """One entry, from an object, a name or a file."""
    if isinstance(value, (str, os.PathLike)):
        value = _open(value, measure, random_state)
    if isinstance(value, (str, os.PathLike)) or not hasattr(value, "predict"):
        entry: Entry = Given(_refuse_no_scores(name, value))
    elif isinstance(value, type):
        raise RankwiseError(f"{name!r} must be an instance, got the class {value.__name__}: pass {value.__name__}(...)")
    # a fitted model is never trained again: it may have cost days
    elif hasattr(value, "n_features_in_") if isinstance(value, Ranker) else is_fitted(value):
        entry = Fitted(value)
    else:
        return _learner(name, value, grids.get(name), random_state)
    if grids.get(name):
        raise RankwiseError(f"grids names {name!r}, which is not fitted in this comparison: remove it from grids")
    return entry


def _open(value: str | os.PathLike[str], measure: str | Measure, random_state: int) -> Any:
    """The ranker of that name, the model in that file, or the path itself where it is a file of scores."""
    text = os.fspath(value)
    if text.lower() == LIGHTGBM:
        from rankwise.evaluation.comparison.foreign import LambdaRank

        return LambdaRank(measure, random_state=random_state)
    if not os.path.isfile(text):
        return ranker_called(text, measure)
    from rankwise.rankers.model_files import is_model, open_ranker

    return open_ranker(text) if is_model(text) else value


def _refuse_no_scores(name: str, value: Any) -> Any:
    """Raise an error for anything that cannot be scores."""
    if isinstance(value, (os.PathLike, Sequence)) or hasattr(value, "__array__"):
        return value
    raise RankwiseError(
        f"{name!r} is {type(value).__name__}: pass a ranker with fit and predict, a model with predict, or scores as "
        "an array or a file"
    )


def _learner(name: str, model: Any, grid: Grid | None, random_state: int) -> Learner:
    """An entry that is trained, with its grid checked and unset seeds set."""
    known = model.get_params() if hasattr(model, "get_params") else {}
    chosen = grid_for(model) if grid is None else grid
    for parameter, values in chosen.items():
        if parameter not in known:
            has = ", ".join(sorted(known)) or "none"
            raise RankwiseError(
                f"the grid of {name!r} names {parameter!r}, which is not a parameter of it: it has {has}"
            )
        if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
            raise RankwiseError(
                f"the grid of {name!r} gives {parameter!r} the values {values!r:.40}: expected a list of one or more"
            )
    # foreign objects without a seed would give other results at every run
    if isinstance(model, BaseEstimator) or known:
        # a nested parameter is named after the objects that it is inside of
        free = [parameter for parameter, value in known.items() if value is None]
        unseeded = [parameter for parameter in free if parameter.rpartition("__")[2] == "random_state"]
        model = clone(model, safe=False)
        if unseeded and not isinstance(model, Ranker):
            model.set_params(**dict.fromkeys(unseeded, random_state))
    return Learner(model if takes_lists(model) else OnArrays(model), chosen)


def takes_lists(model: Any) -> bool:
    """Whether ``predict`` takes queries, as our rankers do, or the features alone."""
    return isinstance(model, Ranker) or (hasattr(model, "fit") and not takes(model.fit, "y"))
