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

The annotations are constraints (:mod:`rankwise._parameters`): ``fit`` checks them before it looks at X. Conditions on
several parameters go into ``_check_parameters``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._parameters import (
    Check,
    Jobs,
    NonNegativeFloat,
    NumberRange,
    PositiveFloat,
    Seed,
    check_parameters,
    describe,
)
from rankwise._tables import Table
from rankwise.errors import DataError, MeasureError, RankwiseError
from rankwise.losses._base import Loss
from rankwise.measures._base import Measure, parse
from rankwise.queries.checks import Missing
from rankwise.queries.chunks import Scale


def trainable(spelling: Any) -> Measure:
    """The measure of this spelling, or an error if no ranker can be trained for it."""
    measure = parse(spelling)
    if not measure.depends_on_labels:
        raise MeasureError(f"{measure.title} does not depend on labels: no ranker can be trained for it")
    return measure


def is_vector(value: Any) -> bool:
    """Whether a value is one number per feature, whatever the number of features, or a ranker with such weights."""
    from sklearn.base import BaseEstimator

    if isinstance(value, BaseEstimator) and not hasattr(value, "coef_"):
        raise RankwiseError(
            f"this {type(value).__name__} has no coef_, which scikit-learn's clone drops: pass the coef_ itself"
        )
    try:
        array = np.asarray(getattr(value, "coef_", value))
    except (TypeError, ValueError):
        return False
    return array.ndim == 1 and array.dtype.kind in "fiu" and bool(np.isfinite(array).all())


def raw_weights(given: Any, features: int, name: str) -> NDArray[np.float64]:
    """Weights on raw features from a fitted linear ranker or a vector."""
    if not is_vector(given):
        raise RankwiseError(f"{name} must be a fitted linear ranker or a vector of finite weights, got {given!r:.60}")
    raw = np.asarray(getattr(given, "coef_", given), dtype=np.float64)
    if raw.shape != (features,):
        raise DataError(f"{name} must have one weight per feature, {features}, got {len(raw)} weights")
    return raw


def _is_sign(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and value in (1, -1)


def as_grid(given: Any, usual: Sequence[float]) -> tuple[float, ...]:
    """One value or several as a tuple; ``usual`` if none was given."""
    return tuple(np.atleast_1d(usual if given is None else given).astype(np.float64).tolist())


AnyMeasure = Annotated[Any, Check("a measure or its name, such as 'nDCG@10'", lambda value: bool(trainable(value)))]
AnyLoss = Annotated[Loss, Check("a loss of rankwise.losses", lambda value: isinstance(value, Loss))]
Weights = Annotated[Any, Check("a fitted linear ranker or a vector of finite weights", is_vector)]
Signs = Annotated[
    Mapping[Any, int],
    Check(
        "a mapping of feature names or numbers to 1 or -1",
        lambda value: isinstance(value, Mapping) and all(_is_sign(sign) for sign in value.values()),
    ),
]
Features = Annotated[
    Sequence[Any],
    Check(
        "a sequence of feature names or numbers",
        lambda value: isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes)),
    ),
]
Folds = Annotated[int, NumberRange(2)]
Alphas = NonNegativeFloat | Sequence[NonNegativeFloat] | None
PositiveAlphas = PositiveFloat | Sequence[PositiveFloat] | None


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

    measure: AnyMeasure = "nDCG@10"
    _: KW_ONLY
    n_jobs: Jobs = None
    verbose: bool = False
    missing: Missing = "error"

    def _check_parameters(self) -> None:
        """Raise an error for parameters that cannot be used; nothing here depends on data."""
        check_parameters(self)
        if self.missing == "keep" and not getattr(self, "keeps_missing", False):
            raise self._wrong("missing", "'error', 'zero' or 'min', because it gives no meaning to missing values")

    def _wrong(self, name: str, expected: str) -> RankwiseError:
        """The error about a parameter that does not fit the others."""
        return RankwiseError(describe(getattr(self, name), name, type(self).__name__, expected))


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
    folds: Folds = 5
    random_state: Seed = 0

    @property
    def path_(self) -> Table:
        """What every candidate was worth, made of the columns that ``fit`` keeps."""
        return Table(self._path_)  # type: ignore[attr-defined]
