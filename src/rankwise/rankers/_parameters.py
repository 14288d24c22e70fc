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

from dataclasses import KW_ONLY, dataclass
from typing import Any

from rankwise._tables import Table
from rankwise.queries.checks import Missing
from rankwise.queries.chunks import Scale


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

    @property
    def path_(self) -> Table:
        """What every candidate was worth, made of the columns that ``fit`` keeps."""
        return Table(self._path_)  # type: ignore[attr-defined]
