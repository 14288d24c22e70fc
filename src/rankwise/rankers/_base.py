"""What every ranker shares: two doors for data, names of features, scores, ranks, and a safe file.

A ranker is a scikit-learn estimator. It learns by ``fit(queries)``, or ``fit(X, y, group=sizes)`` and ``fit(X, y,
qid=ids)`` as LightGBM's and XGBoost's users write it, and scores by ``predict``, which needs no groups. What a ranker
file gives is ``_fit`` and its parameters; what it must remember to be saved is ``_state``. Ctrl-C in a ``fit`` reaches
the caller as KeyboardInterrupt, and where a round had finished the ranker holds what was learned by then.
"""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from rankwise._blas import one_blas_thread
from rankwise._errors import DataError, Interrupted, RankwiseError
from rankwise._registry import discover
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.data import checks
from rankwise.data.fingerprints import Seen, TrainingRecord, fingerprints
from rankwise.data.queries import Queries
from rankwise.data.query import Query
from rankwise.data.unsliced import Unsliced
from rankwise.measures._base import Measure
from rankwise.measures.parse import parse
from rankwise.rankers._fit_checks import (
    is_outermost_fit,
    refuse_unknown,
    refuse_without_documents,
    warn_if_all_orders_are_alike,
    warn_of_shared_queries,
)

if TYPE_CHECKING:
    from rankwise.data.scaling import Scaler
    from rankwise.guarantees._bound import Bound
    from rankwise.guarantees.certificate import Certificate
    from rankwise.rankers._persist import Frozen
    from rankwise.rankers.certificate.objective import TrainingObjective

Vector = NDArray[np.float64]


class RankerNotFittedError(RankwiseError, NotFittedError):  # type: ignore[misc]
    """A ranker was asked for something before it had learned; scikit-learn knows it by its own name."""


class Ranker(BaseEstimator, ABC):  # type: ignore[misc]
    """What all rankers share; see the module."""

    name: ClassVar[str]
    takes_validation: ClassVar[bool] = False  # whether ``fit`` makes choices by a second set
    learns: ClassVar[bool] = True  # whether the lists of ``fit`` change what is predicted
    measure: Any
    missing: checks.Missing = "error"

    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    scaling_: "Scaler"  # that made the features of the lists; lists that nobody scaled have none
    seen_: Seen  # fingerprints of all queries that ``fit`` saw; a file of an older version has none
    frozen_: "Frozen"  # the parameters of the fit, and a digest of what it learned; a file of an older version has none

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on."""
        return (cls(),)

    # ------------------------------------------------------------------------------------------- learning

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | Sequence[Any] | None = None,
        validation: Any = None,
        eval_set: Sequence[tuple[Any, ArrayLike]] | None = None,
        eval_group: Sequence[ArrayLike] | None = None,
        **unknown: Any,
    ) -> Self:
        """Learn from judged lists.

        Parameters
        ----------
        X : `Queries`; or documents x features, with ``y`` and ``group`` or ``qid``
        y : labels, where X is an array
        group, qid : sizes of consecutive lists, or one id a row in any order
        validation : `Queries` for choices that a ranker makes by a second set (``Unsliced(queries)`` in scikit-learn)
        eval_set, eval_group : the same as ``[(X, y)]`` and ``[sizes]``; a ranker that makes no choices warns and leaves
            it aside

        Warns
        -----
        NothingLearnedWarning : no query holds documents with different labels
        DataWarning : validation queries are among the training queries
        """
        refuse_unknown(f"{self.name}.fit", unknown)
        train = self._judged(X, y, group, qid)
        refuse_without_documents(self.name, train)
        if validation is not None and eval_set is not None:
            raise DataError("validation= and eval_set= are two names for one thing: give one of them")
        if eval_set is not None or eval_group is not None:
            validation = self._judged(*_one_set(eval_set, eval_group), None)
            if not self.takes_validation:  # PyTerrier and LightGBM's users pass one to every learner
                warnings.warn(f"{self.name} makes no choice by a second set: eval_set is not used", stacklevel=2)
                validation = None
        outermost = is_outermost_fit()
        with one_blas_thread(), self._all_or_nothing():
            self._remember_features(train)
            held = None if validation is None else self._aligned(Unsliced.open(validation))
            self._remember_lists(train, held)
            if outermost and held is not None:
                warn_of_shared_queries(self.name, self.seen_, held, getattr(self, "n_jobs", None))
            if outermost and self.learns:
                warn_if_all_orders_are_alike(self.name, train)
            self._fit(train, held)
            self._freeze()
        return self

    @abstractmethod
    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        """Learn from lists that were checked; ``validation`` is None where the caller gave none."""

    # ------------------------------------------------------------------------------------------- ranking

    def predict(self, X: Any) -> Vector:
        """One score a document, in the order of the input; a higher one is ranked first."""
        self._check_fitted()
        if isinstance(X, Query):
            X = Queries._trusted(X.X, None, np.array([0, len(X.X)]), feature_names=X.feature_names)
        if isinstance(X, Queries):
            return self._scores(self._aligned(X).X)
        features = checks.as_features(self._frame_in_order(X) if hasattr(X, "columns") else X, self.n_features_in_)
        self._check_width(features.shape[1])
        if self.missing == "min" and checks.first_not_finite(features) is not None:
            raise DataError("missing='min' fills with the smallest value of a query: give Queries, which know them")
        nowhere = np.zeros(1, dtype=np.int64)
        return self._scores(checks.fill_missing(features, nowhere, None, self.missing, self._names()))

    @abstractmethod
    def _scores(self, X: checks.Floats) -> Vector:
        """One score a row of features that were checked."""

    def rank(self, queries: Queries) -> Table:
        """The documents of every query as ranked: qid, docid (or row), rank from 1, score; ties as they come."""
        scores = self.predict(queries)
        owner = queries.query_of_row
        order = np.lexsort((np.arange(len(scores)), -scores, owner))
        place = np.arange(len(order)) - np.repeat(queries.start[:-1], queries.sizes) + 1
        names = queries.names()
        rows: Any = order if queries.docid is None else list(queries.docid[order])
        qid = [names[number] for number in owner[order].tolist()]
        return Table({"qid": qid, "docid": rows, "rank": place, "score": scores[order]})

    def score(self, X: Queries, y: ArrayLike | None = None) -> float:
        """The mean of the ranker's measure on judged lists, equal scores in no order."""
        from rankwise.rankers._model_selection import mean_measure

        queries = X if y is None else X.with_labels(y)
        return mean_measure(queries, self.predict(queries), self._measure(), getattr(self, "n_jobs", None))

    # ------------------------------------------------------------------------------------------- what is guaranteed

    def certificate(
        self,
        train: Queries | None = None,
        holdout: Queries | None = None,
        delta: float = 0.05,
        *,
        row_radius: float | None = None,
        longest: int | None = None,
        first_ball: float | None = None,
        unverified: bool = False,
        random_state: int | np.random.Generator = 0,
    ) -> "Certificate":
        """What is guaranteed about this ranker: every bound that applies to it, with its formula and its constants.

        Parameters
        ----------
        train : the lists that ``fit`` learned from; None: only what needs no lists is said
        holdout : judged lists that nobody learned from or chose by; those that ``fit`` saw are named, and no bound
            rests on them
        delta : how often each bound may be wrong, and the headline, which is the smallest of several
        row_radius : declared: no document of any list to come is farther than this from 0 (or from a point of its
            list's own); None: what the ranker or the scaling of ``train`` says, or else the largest in ``train``, and
            bounds that use that are marked
        longest : declared: no list to come has more documents; None: the longest in ``train``, and bounds are marked
        first_ball : the smallest norm of weights that is told apart, chosen before the data were seen; None:
            1 / row_radius
        unverified : whether the headline may rest on constants that nobody checked
        random_state : the order in which the betting interval takes the hold-out

        Returns
        -------
        certificate : a table of bounds, the strongest first, and a headline; ``.to_json()`` for programs
        """
        from rankwise.rankers.certificate.collect import Declared, certificate_of

        self._check_fitted()
        declared = Declared(row_radius=row_radius, longest=longest, first_ball=first_ball)
        with one_blas_thread():
            return certificate_of(self, train, holdout, delta, declared, unverified, random_state)

    def _freeze(self, begins: bool = True) -> None:
        """Keep what a certificate rests on; a run that goes on keeps the parameters that it began with."""
        from rankwise.rankers._persist import Frozen

        before = getattr(self, "frozen_", None)
        if begins:
            self.frozen_ = Frozen.of(self)
        elif before is not None:
            self.frozen_ = Frozen.of(self, before.parameters)

    def _frozen_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What the digest of a fit is made of."""
        return self._state()

    def _training_objective(self) -> "TrainingObjective | None":
        """What ``coef_`` makes small, if that is a loss of :mod:`rankwise.losses`, and how that was done."""
        return None

    def _own_bounds(self) -> "Sequence[Bound]":
        """Bounds that the account of the fit itself gives, about the lists that it learned from."""
        return ()

    # ------------------------------------------------------------------------------------------- saving

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the fitted ranker to one safe file; :func:`rankwise.load` reads it back.

        The file holds the parameters of the fit, also where ``set_params`` was called after it.
        """
        from rankwise.rankers._persist import save_ranker

        self._check_fitted()
        save_ranker(self, path)

    @abstractmethod
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """(facts, arrays) of what was learned, as plain JSON and plain arrays."""

    @abstractmethod
    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        """Take back what :meth:`_state` gave; the file may be a stranger's, so everything is checked."""

    # ------------------------------------------------------------------------------------------- checks

    def _measure(self) -> Measure:
        return parse(self.measure)

    def _judged(self, X: Any, y: Any, group: Any, qid: Any) -> Queries:
        if isinstance(X, Queries):
            if group is not None or qid is not None:
                raise DataError("these queries know which rows belong together: leave out group= and qid=")
            queries = X if y is None else X.with_labels(y)
        elif isinstance(X, (str, bytes, os.PathLike)):
            raise DataError(checks.not_a_path(X))
        elif group is None and qid is None:
            raise DataError(
                f"{self.name}.fit(X, y) does not know which rows are one list: give group= (sizes of consecutive "
                "lists) or qid= (one id a row), or Queries"
            )
        else:
            queries = Queries.from_arrays(X, y, group=group, qid=qid, missing=self.missing)
        queries.labels()
        return queries

    def _remember_features(self, queries: Queries) -> None:
        self.n_features_in_ = queries.n_features
        if queries.feature_names is not None:
            self.feature_names_in_ = np.array(queries.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if queries.scaling is not None:
            self.scaling_ = queries.scaling
        elif hasattr(self, "scaling_"):
            del self.scaling_

    def _remember_lists(self, train: Queries, validation: Queries | None) -> None:
        """Fingerprints of what ``fit`` is about to see, and of what rankers among its parameters have seen."""
        n_jobs = getattr(self, "n_jobs", None)
        marks = fingerprints(train, n_jobs=n_jobs)
        seen = Seen(record=TrainingRecord().added(marks, train.weight)).with_training(marks)
        if validation is not None:
            seen = seen.with_validation(fingerprints(validation, n_jobs=n_jobs))
        for one in self._begun_from():
            seen |= getattr(one, "seen_", Seen())
        self.seen_ = seen

    def _begun_from(self) -> "list[Ranker]":
        """Rankers whose weights this one begins with: what they have seen, it has seen."""
        given = [value for value in self.get_params(deep=False).values() if isinstance(value, (Ranker, list, tuple))]
        several = [item for value in given for item in (value if isinstance(value, (list, tuple)) else [value])]
        found = [item for item in several if isinstance(item, Ranker)]
        return [*found, self] if getattr(self, "warm_start", False) and hasattr(self, "coef_") else found

    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names)

    def _aligned(self, queries: Queries) -> Queries:
        """The queries with their features in the fitted order, by name where both have names."""
        names = self._names()
        if names is not None and queries.feature_names is not None and names != queries.feature_names:
            queries = queries.select_features(names)
        self._check_width(queries.n_features)
        return queries

    def _frame_in_order(self, frame: Any) -> Any:
        """A data frame with its columns in the fitted order; other columns are left out."""
        names = self._names()
        if names is None:
            return frame
        called = {str(column): column for column in frame.columns}
        lacking = [name for name in names if name not in called]
        if lacking:
            raise DataError(
                f"{self.name} was fitted on a feature {lacking[0]!r}, and this data frame has no such column"
            )
        return frame[[called[name] for name in names]]

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """What fails, or is stopped before a first round, leaves the ranker as it was."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException as error:
            if isinstance(error, Interrupted) and error.kept_by is self:
                raise
            self.__dict__ = before
            if isinstance(error, Interrupted):  # a ranker inside of this one was stopped
                raise KeyboardInterrupt from error
            raise

    @contextmanager
    def _kept_on_ctrl_c(self, keep: Callable[[], bool]) -> Iterator[None]:
        """On Ctrl-C ``keep()`` sets the fitted state of the last finished round, or says False where there is none."""
        try:
            yield
        except KeyboardInterrupt as stop:
            if not keep():
                raise
            self._freeze()
            raise Interrupted(f"{self.name} was stopped, and holds what it had learned by then", self) from stop

    def _check_width(self, found: int) -> None:
        if found != self.n_features_in_:
            raise DataError(f"{self.name} was fitted on {self.n_features_in_} features: found {found}")

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise RankerNotFittedError(f"this {self.name} is not fitted yet: call fit(training queries) first")


class LinearRanker(Ranker):
    """A ranker whose score is a weighted sum of features: s = x . coef_."""

    coef_: Vector
    n_jobs: int | None = None

    def _scores(self, X: checks.Floats) -> Vector:
        from rankwise.rankers._model_selection import linear_scores

        return linear_scores(X, self.coef_, self.n_jobs)


def _one_set(eval_set: Any, eval_group: Any) -> tuple[Any, Any, Any]:
    """(X, y, sizes) of the one validation set that is given as LightGBM's users write it."""
    try:
        ((X, y),), (sizes,) = eval_set, eval_group
    except (TypeError, ValueError) as error:
        raise DataError("eval_set=[(X, y)] goes with eval_group=[sizes], one of each") from error
    return X, y, sizes


def registered() -> dict[str, type[Ranker]]:
    """Every ranker by name: those of this package and those that installed packages declare."""
    return cast("dict[str, type[Ranker]]", discover("rankwise.rankers", Ranker, "rankwise.rankers"))
