"""The base classes of all rankers: :class:`Ranker`, and :class:`LinearRanker` for those with weights on features.

A ranker is a scikit-learn estimator. It learns by ``fit(queries)``, or by ``fit(X, y, group=sizes)`` and ``fit(X, y,
qid=ids)`` as users of LightGBM and XGBoost write it, and scores documents by ``predict``, which needs no groups. The
base class checks the data, aligns features by name, keeps fingerprints of the training queries, freezes what
certificates rest on, ranks, and saves.

A ranker implements ``_fit`` and ``_scores``, and ``_state`` and ``_restore`` for its file. Ctrl-C during ``fit``
reaches the caller as KeyboardInterrupt; if a round had finished, the ranker holds what was learned by then.

As far as its parameters go, a ranker is a dataclass: it declares its own as fields with their defaults and inherits the
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

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, cast

import numpy as np
from numba import types
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from rankwise._arrays import Array, Matrix, Numbers, Vector
from rankwise._kernels import parallel
from rankwise._kernels.dot_products import dot
from rankwise._kernels.machine.jit import INTS_IN, MATRIX, MATRIX_IN, compiled, features_in, kernel
from rankwise._kernels.parallel import announce_kernels, one_blas_thread
from rankwise._parameters import Check, Jobs, check_parameters, describe
from rankwise._progress import progress
from rankwise._registry import discover
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.errors import DataError, Interrupted, MeasureError, RankwiseError
from rankwise.measures._base import Measure, parse
from rankwise.queries.checks import Floats, Missing
from rankwise.queries.parts.parts import Parts
from rankwise.queries.passes.chunked import ChunkedQueries
from rankwise.queries.queries import Queries, as_queries
from rankwise.queries.selection import Query
from rankwise.queries.source import QuerySet
from rankwise.rankers import _inputs as inputs
from rankwise.rankers._inputs import rank_by_scores, rank_parts, score_queries
from rankwise.rankers._record import FitRecord, begin_record, digest_of_scores, record_passes

if TYPE_CHECKING:
    from rankwise.features.builder import FeatureBuilder
    from rankwise.guarantees._bound import Bound
    from rankwise.guarantees.certificate import Certificate
    from rankwise.guarantees.cutoff import Cutoff
    from rankwise.queries.passes.estimate import Estimate
    from rankwise.queries.source import Job, QuerySource
    from rankwise.rankers.certificate.objective import TrainingObjective


def trainable(spelling: Any) -> Measure:
    """The measure of this spelling, or an error if no ranker can be trained for it."""
    measure = parse(spelling)
    if not measure.depends_on_labels:
        raise MeasureError(f"{measure.title} does not depend on labels: no ranker can be trained for it")
    return measure


AnyMeasure = Annotated[Any, Check("a measure or its name, such as 'nDCG@10'", lambda value: bool(trainable(value)))]


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

    @classmethod
    def _parameters_from_file(cls, found: dict[str, Any]) -> dict[str, Any]:
        """The parameters in a file, as they are called today; rankers mend those that they no longer take."""
        return found

    def _progress(self, what: str, total: float) -> progress:
        """A progress bar, which is shown with ``verbose``."""
        return progress(what, total, enabled=None if self.verbose else False)

    def _wrong(self, name: str, expected: str) -> RankwiseError:
        """The error about a parameter that does not fit the others."""
        return RankwiseError(describe(getattr(self, name), name, type(self).__name__, expected))


# Whether a fit runs in this thread: rankers fitted inside another ranker do not warn.
_IN_FIT = ContextVar("in_fit", default=False)

NOT_LINEAR = "the bounds for linear weights do not apply"


_NO_ROWS = np.empty(0, np.int64)


class RankerNotFittedError(RankwiseError, NotFittedError):  # type: ignore[misc]
    """Raised if a ranker is used before ``fit``; also a ``sklearn.exceptions.NotFittedError``."""


class Ranker(CommonParameters, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of all rankers.

    Attributes
    ----------
    name : str
        The name in the registry and in files, unique among all rankers.
    takes_validation : bool
        Whether ``fit`` uses a validation set for model selection.
    learns_from_validation : bool
        Whether the final fit learns from the validation set, so its queries count as training queries.
    learns : bool
        Whether the training queries change what is predicted.
    keeps_missing : bool
        Whether the ranker gives a meaning to NaN, which allows ``missing="keep"``.
    takes_document_weights : bool
        Whether ``fit`` uses document weights; a ranker that does not raises an error for them.
    runs_on_parts : bool
        Whether ``fit`` takes :class:`~rankwise.Parts`, because all that it computes are passes over them.
    scores_by_query : bool
        Whether a score depends on the other documents of the query, so ``predict`` needs the grouping.
    before : mapping of str to object
        Values of newer parameters for files without them, under which the ranker works as before.
    n_features_in_ : int
        Number of features seen by ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if the training queries had names.
    record_ : FitRecord
        What the fit keeps about its queries and parameters; certificates rest on it.
    """

    name: ClassVar[str]
    takes_validation: ClassVar[bool] = False
    learns_from_validation: ClassVar[bool] = False
    learns: ClassVar[bool] = True
    keeps_missing: ClassVar[bool] = False
    takes_document_weights: ClassVar[bool] = False
    runs_on_parts: ClassVar[bool] = False
    scores_by_query: ClassVar[bool] = False
    before: ClassVar[Mapping[str, Any]] = {}

    _records_rounds: ClassVar[bool] = False  # whether queries are recorded as their rounds are run
    # for error messages; the last is None if unbiased labels, such as clicks over propensities, do not bias the fit
    _reason_no_document_weights: ClassVar[str] = "what it minimizes is defined for whole rankings"
    _reason_not_on_parts: ClassVar[str] = "it needs all documents in memory"
    _reason_not_linear_in_labels: ClassVar[str | None] = "what it minimizes is not linear in the labels"

    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    record_ = FitRecord()

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests run on."""
        return (cls(),)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # made dense
        tags.input_tags.allow_nan = self.missing != "error"
        tags.target_tags.positive_only = True
        return tags

    @property
    def features_(self) -> "FeatureBuilder":
        """The FeatureBuilder that made the training queries of a table; absent if none did."""
        if self.record_.builder is None:
            raise AttributeError(f"this {self.name} did not learn from a table")
        return self.record_.builder

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
        sample_weight: ArrayLike | None = None,
        checkpoint: "str | os.PathLike[str] | None" = None,
        **unknown: Any,
    ) -> Self:
        """Learn from judged queries.

        Parameters
        ----------
        X : Queries, Parts, ClickLog, or array of shape (n_documents, n_features)
            The training queries; an array or data frame needs ``y`` and one of ``group`` and ``qid``. Rankers with
            ``runs_on_parts`` take :class:`~rankwise.Parts`, and learn the same bits from them as from queries in
            memory. A click log with propensities is for rankers whose objective is linear in the labels; others raise
            an error.
        y : array of shape (n_documents,), default=None
            Labels, if X is an array. Those of :func:`rankwise.sklearn.labels` carry the grouping, so neither
            ``group`` nor ``qid`` is needed.
        group : array of int, default=None
            Sizes of consecutive queries.
        qid : array of shape (n_documents,), default=None
            The query id of each row, in any order.
        validation : Queries, default=None
            Queries used for model selection; ``Unsliced(queries)`` inside scikit-learn.
        eval_set : list of one tuple (X, y), default=None
            Another form of ``validation``. A ranker without model selection warns and does not use it.
        eval_group : list of one array of int, default=None
            Sizes of the consecutive queries of ``eval_set``; not needed with labels of :func:`rankwise.sklearn.labels`.
        sample_weight : array of shape (n_documents,), default=None
            Document weights, in place of those of X if X is Queries. A ranker without them raises an error.
        checkpoint : path, default=None
            With :class:`~rankwise.Parts`, a folder that records the results of passes. A fit that was stopped or
            killed at any moment continues from there when it is run again, and ends with the same bits.
        **unknown : object
            No other argument is accepted.

        Returns
        -------
        self : Ranker
            The fitted ranker.

        Raises
        ------
        DataError
            If the data are malformed, or the grouping of rows is not given.

        Warns
        -----
        NothingLearnedWarning
            If no query holds documents with different labels.
        DataWarning
            If validation queries are among the training queries.
        """
        inputs.refuse_unknown(f"{self.name}.fit", unknown)
        self._check_parameters()
        announce_kernels(self.name)
        train = inputs.training_queries(self, X, y, group, qid, sample_weight, checkpoint)
        validation = inputs.validation_queries(self, validation, eval_set, eval_group)
        with fit_scope(self) as outermost:
            begin_record(self, train, X.hashes() if hasattr(X, "as_training_queries") else None)
            held = inputs.align_validation(self, validation)
            if held is not None:
                if outermost and self.record_.seen is not None:
                    inputs.warn_of_shared_queries(self.name, self.record_.seen, held, self.n_jobs)
                self.record_ = self.record_.with_validation(self, held)
            if outermost and self.learns:
                inputs.warn_if_all_orders_are_alike(self.name, train)
                inputs.warn_of_document_order(self, train)
            with nullcontext() if checkpoint is None else record_passes(self, checkpoint, train, held):
                self._fit(train, held)
            self.record_ = self.record_.with_result(self)
        return self

    @abstractmethod
    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        """Learn from checked queries; ``validation`` is None if none was given."""

    # ------------------------------------------------------------------------------------------- ranking

    def predict(self, X: Any) -> Vector:
        """Score documents.

        Parameters
        ----------
        X : Queries, Parts, Query, data frame or array of shape (n_documents, n_features)
            The documents; named features are matched by name. A ranker with ``features_`` takes raw tables, too.
            `Parts` are scored block by block.

        Returns
        -------
        scores : ndarray of shape (n_documents,)
            One score per document, in input order; a higher score is ranked first.
        """
        self._check_fitted()
        X = inputs.apply_builder(self, X)
        if isinstance(X, Query):
            X = inputs.as_single_query(X)
        if isinstance(X, QuerySet):
            return np.asarray(X.as_source().apply(score_queries, self, n_jobs=1))
        return self._scores(inputs.fill_rows(self, inputs.as_rows(self, X)))

    @abstractmethod
    def _scores(self, X: Floats) -> Vector:
        """One score per row of checked features."""

    def _scoring_model(self) -> "Ranker":
        """The ranker that computes the scores: another one for rankers that consist of others and may collapse."""
        return self

    def _contributions(self, X: Floats) -> tuple[Matrix, float] | None:
        """(what each feature adds to the score of each row, constant), or None if the score is no sum over features."""
        return None

    def rank(self, queries: Any, *, cutoff: "Cutoff | None" = None) -> Table:
        """Rank the documents of every query.

        Parameters
        ----------
        queries : Queries, Parts, or data frame
            The queries, with or without labels; a raw table if the ranker has ``features_``. `Parts` are ranked block
            by block, into one table in memory.
        cutoff : Cutoff, default=None
            The cut-off of this ranker (:func:`rankwise.cutoff`): the table has only the documents that it keeps.

        Returns
        -------
        ranking : Table
            Columns qid, docid (or row number), rank from 1, and score; ties in input order.
        """
        self._check_fitted()
        if cutoff is not None:
            cutoff.refuse_other_model(digest_of_scores(self), self.name)
        if isinstance(queries, Parts):
            return rank_parts(self, queries, cutoff)
        queries = as_queries(inputs.apply_builder(self, queries, grouped=True), f"{self.name}.rank")
        scores = self.predict(queries)
        return rank_by_scores(queries, scores, None if cutoff is None else cutoff.kept(queries, scores))

    def score(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | Sequence[Any] | None = None,
        sample_weight: None = None,
    ) -> float:
        """The mean of the ranker's measure over judged queries, ties averaged.

        Parameters
        ----------
        X : Queries, data frame or array of shape (n_documents, n_features)
            The queries; an array needs ``y`` and its grouping. A ranker with ``features_`` takes raw tables, too.
        y : array of shape (n_documents,), default=None
            Labels, in place of those of ``X`` if X is Queries. Those of :func:`rankwise.sklearn.labels` carry the
            grouping.
        group : array of int, default=None
            Sizes of consecutive queries.
        qid : array of shape (n_documents,), default=None
            The query id of each row, in any order.
        sample_weight : None
            Measures have query weights and no document weights: anything but None raises an error. The parameter is
            here because pipelines of scikit-learn ask for it.

        Returns
        -------
        score : float
            The weighted mean over the queries that the measure is defined for.

        Raises
        ------
        DataError
            If the data are malformed, or the grouping of rows is not given.
        """
        from rankwise.rankers._model_selection import measure_ranker, weighted_mean

        if sample_weight is not None:
            raise DataError(
                f"{self.name}.score takes no sample_weight: a measure weights queries, not documents; inside a search, "
                "give Queries with document_weight=, or the weights to fit alone, in a pipeline as step__sample_weight="
            )
        self._check_fitted()
        X = inputs.order_columns(self, inputs.apply_builder(self, X, grouped=True, judged=y is None))
        queries = inputs.judged_queries(self, X, y, group, qid, "score")
        (values,) = measure_ranker(queries, self, self._measure(), ("expected",))
        return weighted_mean(values, queries.query_weight)

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
    ) -> "Certificate":
        """Certify the ranker: every bound that applies to it, with its formula and its constants.

        Parameters
        ----------
        train : Queries, default=None
            The queries that ``fit`` learned from; without them only bounds that need none are given.
        holdout : Queries or Parts, default=None
            Judged queries that ``fit`` has not seen. Queries with the content of queries that it saw, for training or
            for model selection, are named in a note. They are copies, or further draws of the same queries; bounds
            hold in either case, and are tighter without them.
        delta : float, default=0.05
            The probability with which each bound may fail, and the headline, which is the smallest of several.
        row_radius : float, default=None
            Declared: no document of any future query is farther than this from 0 (or from a point of its query's
            own). None takes what the ranker or the scaling of ``train`` declares, or else the largest radius in
            ``train``; bounds that use the latter are marked.
        longest : int, default=None
            Declared: no future query has more documents. None takes the longest in ``train``; bounds are then marked.
        first_ball : float, default=None
            The smallest norm of weights that is distinguished, fixed before the data were seen; None is
            1 / row_radius.
        unverified : bool, default=False
            Whether the headline may rest on constants that were not verified.

        Returns
        -------
        certificate : Certificate
            A table of bounds, the strongest first, and a headline; ``to_json()`` serves programs.
        """
        from rankwise.rankers.certificate.collect import Declared, certify_ranker

        self._check_fitted()
        declared = Declared(row_radius=row_radius, longest=longest, first_ball=first_ball)
        train, holdout = (inputs.apply_builder(self, part, grouped=True, judged=True) for part in (train, holdout))
        with one_blas_thread():
            return certify_ranker(self, train, holdout, delta, declared, unverified)

    def _frozen_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """(facts, arrays) that the digest of a fit is computed from."""
        return self._state()

    def _training_objective(self) -> "TrainingObjective | None":
        """The loss of :mod:`rankwise.losses` that ``coef_`` minimizes, if there is one, and how."""
        return None

    def _linear_space(self, queries: Queries) -> "tuple[Vector | None, Queries, str]":
        """(weights, these queries with the features that the weights belong to, a note for the certificate).

        The weights are None if the score is no product of weights and features that were fixed beforehand.
        """
        if self.record_.learned_features:
            return None, queries, f"no uniform bound: {self.record_.learned_features}"
        coef = getattr(self, "coef_", None)
        return coef, queries, "" if coef is not None else f"{self.name} is not linear: {NOT_LINEAR}"

    def _own_bounds(self) -> "Sequence[Bound]":
        """Bounds that the fit itself provides, about its training queries."""
        return ()

    # ------------------------------------------------------------------------------------------- saving

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the fitted ranker to one safe file, which :func:`rankwise.load` reads.

        The file holds the parameters of the fit, even if ``set_params`` was called after it.

        Parameters
        ----------
        path : str or path-like
            The file; an existing one is replaced atomically.
        """
        from rankwise.rankers._record import save_ranker

        self._check_fitted()
        save_ranker(self, path)

    @abstractmethod
    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """(facts, arrays): what was learned, as JSON values and arrays."""

    @abstractmethod
    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        """Restore what :meth:`_state` returned; the file is untrusted, so everything is checked."""

    # ------------------------------------------------------------------------------------------- checks

    def _measure(self) -> Measure:
        return trainable(self.measure)

    def _estimate(self, queries: ChunkedQueries) -> "Estimate":
        """What a fit on these queries will cost."""
        from rankwise.queries.passes.estimate import Estimate

        inputs.judged_queries(self, queries, None, None, None)
        return Estimate.of(queries, *self._expected_passes(queries))

    def _expected_passes(self, queries: "QuerySource") -> "tuple[Job, tuple[Any, ...], int, int]":
        """(a typical job, its arguments, the usual number of passes, the largest number); one more is the survey."""
        from rankwise.losses.compute import LossJob
        from rankwise.losses.pairwise_hinge import PairHinge

        w = np.zeros(queries.n_features)
        return LossJob(PairHinge(), None), (w, PairHinge()), 2, 2

    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names)

    @contextmanager
    def _keep_on_interrupt(self, keep: Callable[[], Any], finished: Callable[[], Any] = lambda: True) -> Iterator[None]:
        """On Ctrl-C call ``keep()``, which sets the state of the last finished round, unless none is ``finished()``.

        ``keep`` may also return False if it has set nothing.
        """
        try:
            yield
        except KeyboardInterrupt as stop:
            if not finished() or keep() is False:
                raise
            self.record_ = self.record_.with_result(self)
            raise Interrupted(f"{self.name} was stopped, and holds what it had learned by then", self) from stop

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise RankerNotFittedError(f"this {self.name} is not fitted yet: call fit(training queries) first")


class LinearRanker(Ranker):
    """Base class of rankers whose score is s = x . coef_, with ``coef_`` of shape (n_features,).

    ``coef_`` is absent while another ranker, which is not linear, computes the scores (``_scoring_model``).
    """

    coef_: Vector

    def _scores(self, X: Floats) -> Vector:
        model = self._scoring_model()
        return linear_scores(X, self.coef_, self.n_jobs) if model is self else model._scores(X)

    def _contributions(self, X: Floats) -> tuple[Matrix, float] | None:
        return X.astype(np.float64) * self.coef_, float(getattr(self, "intercept_", 0.0))

    def _read_coef(self, store: Store) -> Vector:
        """The weights in a file, one finite number per feature."""
        coef: Vector = store.array("coef", np.float64, (self.n_features_in_,))
        if not np.isfinite(coef).all():
            raise RankwiseError("its weights are not finite")
        return coef


def _score_rows_by(first: int, last: int, rows: Any, X: Any, weights: Any, out: Any) -> None:
    """Scores of the rows at places first..last-1 by several vectors of weights, in the bits of ``dot``."""
    for place in range(first, last):
        row = place if len(rows) == 0 else rows[place]
        for k in range(len(weights)):
            out[k, place] = dot(X[row], weights[k])


@cache
def _score_rows_by_on(dtype: np.dtype[Any]) -> Any:
    given = (types.int64, types.int64, INTS_IN, features_in(dtype), MATRIX_IN, MATRIX)
    return compiled(kernel(_score_rows_by), types.void(*given))


def scores_by_weights(X: Any, rows: Numbers, count: int, weights: Matrix, n_jobs: int | None) -> Matrix:
    """The scores of ``count`` rows by several linear models, which read every row once.

    Parameters
    ----------
    X : ndarray, shape (n_documents, n_features)
        The features.
    rows : ndarray of int64
        The rows; empty for the first ``count`` ones.
    count : int
        Number of rows.
    weights : ndarray, shape (n_models, n_features)
        One vector of weights per model.
    n_jobs : int or None
        Number of threads; None uses every core.

    Returns
    -------
    scores : ndarray, shape (n_models, count)
        In the bits of :func:`rankwise._kernels.dot_products.dot`.
    """
    features, models = np.ascontiguousarray(X), np.ascontiguousarray(weights, dtype=np.float64)
    scores = np.empty((len(models), count))
    run = _score_rows_by_on(features.dtype)
    parts = [(first, min(first + parallel.CHUNK, count)) for first in range(0, count, parallel.CHUNK)]
    parallel.map_chunks(lambda first, last: run(first, last, rows, features, models, scores), parts, n_jobs)
    return scores


def linear_scores(X: Any, coef: Vector, n_jobs: int | None) -> Vector:
    """X coef, row by row. All linear predictions come from here, so candidates are judged by the final bits."""
    scores: Vector = scores_by_weights(X, _NO_ROWS, len(X), coef[None], n_jobs)[0]
    return scores


@contextmanager
def fit_scope(ranker: Ranker) -> Iterator[bool]:
    """Run a fit on one thread of BLAS, and leave the ranker unchanged if it fails or stops before its first round.

    Yields
    ------
    bool
        Whether the fit is not inside another one.
    """
    outermost, before = not _IN_FIT.get(), ranker.__dict__.copy()
    try:
        _IN_FIT.set(True)
        with one_blas_thread():
            yield outermost
    except BaseException as error:
        if isinstance(error, Interrupted) and error.kept_by is ranker:
            raise
        ranker.__dict__ = before
        if isinstance(error, Interrupted):  # a ranker inside of this one was stopped
            raise KeyboardInterrupt from error
        raise
    finally:
        _IN_FIT.set(not outermost)


def registered() -> dict[str, type[Ranker]]:
    """All rankers by name: those of this package, and those that installed packages declare as entry points."""
    return cast("dict[str, type[Ranker]]", discover("rankwise.rankers", Ranker, "rankwise.rankers"))
