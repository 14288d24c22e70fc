"""The parameters that rankers share, each declared once.

A ranker is a dataclass as far as its parameters go: it declares its own as fields with their defaults and inherits the
rest, and ``dataclass`` writes the constructor. scikit-learn reads the parameters off the signature of that constructor
(``get_params``, ``set_params``, ``clone``, ``repr``), as it does with any other estimator::

    @dataclass(eq=False, repr=False, kw_only=True)
    class MyRanker(SelectionParameters, LinearRanker):
        name = "MyRanker"

        temperature: float = 1.0

``eq=False`` and ``repr=False`` keep scikit-learn's own. Only classes with the decorator contribute parameters: what
``fit`` learns (names that end in an underscore) is annotated in undecorated classes or not at all.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise.data.checks import Missing
from rankwise.data.row_blocks import Scale

Vector = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class CommonParameters:
    """The parameters of every ranker.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure that the ranker is trained for, or that is used for model selection; ``score`` reports it.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min", "keep"}, default="error"
        What ``fit`` and ``predict`` do with NaN in arrays: raise an error, replace it by 0, or by the smallest value
        of the feature within the query; "keep" leaves it to rankers that give it a meaning, others raise an error.
    """

    measure: Any = "nDCG@10"
    _: KW_ONLY
    n_jobs: int | None = None
    verbose: bool = False
    missing: Missing = "error"


@dataclass(eq=False, repr=False, kw_only=True)
class SelectionParameters:
    """The parameters of rankers that select a penalty and may scale features.

    Parameters
    ----------
    scale : {"auto", "none"}, default="auto"
        "auto" divides features by their standard deviation unless all of them lie in [-1, 1].
    folds : int, default=5
        Number of parts of the training queries that select among candidates if there is no validation set.
    random_state : int or numpy.random.Generator, default=0
        Seed of the division into parts.
    """

    scale: Scale = "auto"
    folds: int = 5
    random_state: Any = 0


def as_grid(
    given: float | Sequence[float] | None, usual: Sequence[float], name: str, positive: bool = False
) -> tuple[float, ...]:
    """One alpha or several as a tuple.

    Parameters
    ----------
    given : float, sequence of float or None
        What the user gave.
    usual : sequence of float
        What None stands for.
    name : str
        The name of the parameter, for messages.
    positive : bool, default=False
        Whether 0 raises an error.

    Returns
    -------
    tuple of float
        The values, in the order given.

    Raises
    ------
    RankwiseError
        If there are none, or if one of them is negative or not finite.
    """
    values = tuple(usual) if given is None else as_numbers(given)
    if not values or not all(np.isfinite(value) and value >= 0 for value in values):
        raise RankwiseError(f"{name} is one number or several, finite and 0 or more: found {given!r:.60}")
    if positive and min(values) == 0:
        raise RankwiseError(f"{name} is above 0, because the objective may have no minimum without it: found 0")
    return values


def as_numbers(given: Any) -> tuple[float, ...]:
    """One number or a sequence of numbers as a tuple; empty for anything else."""
    try:
        values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        return ()
    return tuple(values.tolist()) if values.ndim == 1 else ()


def raw_weights(given: Any, features: int, what: str, choices: str) -> Vector:
    """Weights on raw features from a fitted linear ranker or a vector; errors name the parameter and its choices."""
    try:
        raw = np.asarray(getattr(given, "coef_", given), dtype=np.float64)
    except (TypeError, ValueError):
        raise RankwiseError(
            f"{what} is {choices}: found {type(given).__name__} without coef_ "
            "(scikit-learn's clone forgets what a ranker has learned: give its coef_)"
        ) from None
    if raw.shape != (features,):
        raise DataError(f"{what} has one weight per feature, {features}: found shape {raw.shape}")
    if not np.isfinite(raw).all():
        raise DataError(f"{what} has finite weights: found {raw[~np.isfinite(raw)][0]}")
    return raw
