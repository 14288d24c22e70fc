"""The base classes of all rankers: :class:`Ranker`, and :class:`LinearRanker` for those with weights on features.

A ranker is a scikit-learn estimator. It learns by ``fit(queries)``, or by ``fit(X, y, group=sizes)`` and ``fit(X, y,
qid=ids)`` as users of LightGBM and XGBoost write it, and scores documents by ``predict``, which needs no groups. The
base class checks the data, aligns features by name, keeps fingerprints of the training queries, freezes what
certificates rest on, ranks, and saves.

A ranker implements ``_fit`` and ``_scores``, and ``_state`` and ``_restore`` for its file. Ctrl-C during ``fit``
reaches the caller as KeyboardInterrupt; if a round had finished, the ranker holds what was learned by then.
"""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from rankwise._kernels.blas import one_blas_thread
from rankwise._kernels.machine.compile_progress import announce_kernels
from rankwise._kernels.parallel import threads
from rankwise._registry import discover
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.errors import DataError, Interrupted, MeasureError, RankwiseError
from rankwise.measures._base import Measure, parse
from rankwise.queries import checks
from rankwise.queries.fingerprints import Seen, TrainingRecord, fingerprints, recorded_weights
from rankwise.queries.folds import Unsliced
from rankwise.queries.grouped_labels import Labels
from rankwise.queries.parts.parts import Parts
from rankwise.queries.passes.chunked import ChunkedQueries
from rankwise.queries.queries import Queries, as_queries
from rankwise.queries.selection import Query
from rankwise.rankers._fit_frame import (
    Frozen,
    is_outermost_fit,
    refuse_unknown,
    refuse_without_documents,
    warn_if_all_orders_are_alike,
    warn_of_shared_queries,
)
from rankwise.rankers._parameters import CommonParameters
from rankwise.rankers._passes import ScoresOfChunk, recorded_passes
from rankwise.rankers._raw_tables import as_built, without_gaps

if TYPE_CHECKING:
    from rankwise.features.builder import FeatureBuilder
    from rankwise.guarantees._bound import Bound
    from rankwise.guarantees.certificate import Certificate
    from rankwise.queries.chunks import Job
    from rankwise.queries.passes.estimate import Estimate
    from rankwise.queries.scaling import Scaler
    from rankwise.rankers.certificate.objective import TrainingObjective

Vector = NDArray[np.float64]


NOT_LINEAR = "the bounds for linear weights do not apply"


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
    learns : bool
        Whether the training queries change what is predicted.
    keeps_missing : bool
        Whether the ranker gives a meaning to NaN, so that ``missing="keep"`` is allowed.
    takes_document_weights : bool
        Whether ``fit`` uses document weights; a ranker that does not raises an error for them.
    runs_on_parts : bool
        Whether ``fit`` takes :class:`~rankwise.Parts`, because all that it computes are passes over them.
    before : mapping of str to object
        Values of newer parameters under which the ranker works as it did before they came; files without them have
        these.
    document_weights_ : bool
        True after a fit with document weights that differ from 1, otherwise absent.
    click_sessions_ : ndarray of uint64
        Hashes of the sessions of the click log that ``fit`` learned from, otherwise absent; they are not saved.
    n_features_in_ : int
        Number of features seen by ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if the training queries had names.
    scaling_ : Scaler
        The scaler that made the features of the training queries, if one did.
    features_ : FeatureBuilder
        The builder that made the training queries of a table, if one did; ``predict``, ``rank``, ``score`` and
        ``certificate`` apply it to raw tables.
    seen_ : Seen
        Fingerprints of all queries that ``fit`` saw. Absent after loading a file of an older version.
    frozen_ : Frozen
        The parameters of the fit and a digest of what it learned. Absent after loading a file of an older version.
    """

    name: ClassVar[str]
    takes_validation: ClassVar[bool] = False
    learns: ClassVar[bool] = True
    keeps_missing: ClassVar[bool] = False
    takes_document_weights: ClassVar[bool] = False
    before: ClassVar[Mapping[str, Any]] = {}
    runs_on_parts: ClassVar[bool] = False

    document_weights_: bool
    click_sessions_: NDArray[np.uint64]

    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    scaling_: "Scaler"
    features_: "FeatureBuilder"
    seen_: Seen
    frozen_: Frozen

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
    def scores_by_query(self) -> bool:
        """Whether a score depends on the other documents of the query, so that ``predict`` needs the grouping."""
        return False

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
            Labels, if X is an array. Those of :func:`rankwise.sklearn.labels` carry the grouping, so that neither
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
        refuse_unknown(f"{self.name}.fit", unknown)
        threads(getattr(self, "n_jobs", None))  # a number that is none is an error before anything is read
        announce_kernels(self.name)
        sessions = None
        if hasattr(X, "as_training_queries"):  # a click log, which a higher layer has
            X, sessions = X.as_training_queries(self), X.hashes()
        train = self._judged(X, y, group, qid)
        if isinstance(train, ChunkedQueries):
            if sample_weight is not None:
                raise DataError("Parts hold their own document weights: leave out sample_weight=")
        elif checkpoint is not None:
            raise RankwiseError("checkpoint= records passes over Parts: give Parts, or leave it out")
        elif sample_weight is not None:
            train = train.with_document_weight(sample_weight)
        self._refuse_document_weights(train)
        refuse_without_documents(self.name, train)
        if validation is not None and eval_set is not None:
            raise DataError("validation= and eval_set= have the same meaning: give one of them")
        if eval_set is not None or eval_group is not None:
            validation = self._judged(*_one_set(eval_set, eval_group), None)
            if not self.takes_validation:  # PyTerrier and users of LightGBM pass one to every learner
                warnings.warn(f"{self.name} does no model selection: eval_set is not used", stacklevel=2)
                validation = None
        outermost = is_outermost_fit()
        with one_blas_thread(), self._all_or_nothing():
            self._remember_features(train)
            self.__dict__.pop("document_weights_", None)
            if checks.differing_weights(train) is not None:
                self.document_weights_ = True
            if hasattr(self, "features_") and not isinstance(validation, (Unsliced, type(None))):
                validation = self._built(validation, grouped=True, judged=True)  # it may be a table
            held = None if validation is None else self._aligned(Unsliced.open(validation))
            self._remember_lists(train)
            if held is not None:
                if outermost:
                    warn_of_shared_queries(self.name, self.seen_, held, getattr(self, "n_jobs", None))
                self._remember_validation(held)
            if outermost and self.learns:
                warn_if_all_orders_are_alike(self.name, train)
            with nullcontext() if checkpoint is None else recorded_passes(self, checkpoint, train, held):
                self._fit(train, held)
            self._freeze()
            self.__dict__.pop("click_sessions_", None)
            if sessions is not None:
                self.click_sessions_ = sessions
        return self

    def _refuse_document_weights(self, queries: Any) -> None:
        """Raise an error if there are document weights, even weights of 1, and the ranker takes none."""
        if queries.document_weight is not None and not self.takes_document_weights:
            raise DataError(
                f"{self.name} takes no document weights: {self._why_unweighted()}; leave out sample_weight= and "
                "document_weight=, or weight queries by weight="
            )

    def _why_unweighted(self) -> str:
        """Why the ranker takes no document weights, for its error message."""
        return "what it minimises is defined for whole rankings"

    def _why_not_linear(self) -> str | None:
        """Why labels that estimate relevance without bias, clicks over propensities, would bias the fit; else None."""
        return "what it minimises is not linear in the labels"

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
        if isinstance(X, Parts):
            return np.concatenate([np.empty(0), *X.chunked().map(ScoresOfChunk(self), n_jobs=1)])
        X = self._built(X)
        if isinstance(X, Query):
            X = Queries._trusted(X.X, None, np.array([0, len(X.X)]), feature_names=X.feature_names)
        if isinstance(X, Queries):
            return self._scores(self._aligned(X).X)
        features = checks.as_features(self._frame_in_order(X) if hasattr(X, "columns") else X, self.n_features_in_)
        self._check_width(features.shape[1])
        self._check_policy()
        if self.missing == "min" and checks.first_not_finite(features) is not None:
            raise DataError(
                "missing='min' takes the smallest value within a query: give Queries, which hold the grouping"
            )
        nowhere = np.zeros(1, dtype=np.int64)
        return self._scores(checks.fill_missing(features, nowhere, None, self.missing, self._names()))

    @abstractmethod
    def _scores(self, X: checks.Floats) -> Vector:
        """One score per row of checked features."""

    def _scoring_model(self) -> "Ranker":
        """The ranker that computes the scores: another one for rankers that consist of others and may collapse."""
        return self

    def _contributions(self, X: checks.Floats) -> tuple[NDArray[np.float64], float] | None:
        """(what each feature adds to the score of each row, constant), or None if the score is no sum over features."""
        return None

    def rank(self, queries: Any) -> Table:
        """Rank the documents of every query.

        Parameters
        ----------
        queries : Queries, Parts, or data frame
            The queries, with or without labels; a raw table if the ranker has ``features_``. `Parts` are ranked block
            by block, into one table in memory.

        Returns
        -------
        ranking : Table
            Columns qid, docid (or row number), rank from 1, and score; ties in input order.
        """
        self._check_fitted()
        if isinstance(queries, Parts):
            return self._rank_parts(queries)
        queries = as_queries(self._built(queries, grouped=True), f"{self.name}.rank")
        scores = self.predict(queries)
        owner = queries.query_of_row
        order = np.lexsort((np.arange(len(scores)), -scores, owner))
        place = np.arange(len(order)) - np.repeat(queries.start[:-1], queries.sizes) + 1
        names = queries.names()
        rows: Any = order if queries.docid is None else list(queries.docid[order])
        qid = [names[number] for number in owner[order].tolist()]
        return Table({"qid": qid, "docid": rows, "rank": place, "score": scores[order]})

    def _rank_parts(self, parts: Parts) -> Table:
        """The ranking of a data set in parts, whose rows are numbered through."""
        found: dict[str, list[Any]] = {name: [] for name in ("qid", "docid", "rank", "score")}
        for first, last in parts.chunks():
            block = parts.block(first, last)
            table = self.rank(block if block.qid is not None else block._replace(qid=np.arange(first, last)))
            before = int(parts.start[first]) if block.docid is None else 0
            for name, column in found.items():
                column.extend((table[name] + before if before and name == "docid" else table[name]).tolist())
        return Table({**found, "rank": np.array(found["rank"], np.int64), "score": np.array(found["score"], float)})

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
        from rankwise.rankers._model_selection import mean_measure, weighted_mean
        from rankwise.rankers._passes import measured

        if sample_weight is not None:
            raise DataError(
                f"{self.name}.score takes no sample_weight: a measure weights queries, not documents; inside a search, "
                "give Queries with document_weight=, or the weights to fit alone, in a pipeline as step__sample_weight="
            )
        self._check_fitted()
        if isinstance(X, Parts):
            parts = self._judged(X, y, group, qid, "score")
            return weighted_mean(measured(self, cast(Any, parts), self._measure()), parts.query_weight)
        X = self._built(X, grouped=True, judged=y is None)
        queries = self._judged(self._frame_in_order(X) if hasattr(X, "columns") else X, y, group, qid, "score")
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
        train, holdout = (
            part if part is None or isinstance(part, Parts) else self._built(part, grouped=True, judged=True)
            for part in (train, holdout)
        )
        with one_blas_thread():
            return certify_ranker(self, train, holdout, delta, declared, unverified)

    def _freeze(self, begins: bool = True) -> None:
        """Freeze what a certificate rests on; a continued run keeps the parameters that it began with."""
        before = getattr(self, "frozen_", None)
        if begins:
            self.frozen_ = Frozen.of(self)
        elif before is not None:
            self.frozen_ = Frozen.of(self, before.parameters)

    def _frozen_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """(facts, arrays) that the digest of a fit is computed from."""
        return self._state()

    def _training_objective(self) -> "TrainingObjective | None":
        """The loss of :mod:`rankwise.losses` that ``coef_`` minimises, if there is one, and how."""
        return None

    def _linear_space(self, queries: Queries) -> "tuple[Vector | None, Queries, str]":
        """(weights, these queries with the features that the weights belong to, a note for the certificate).

        The weights are None if the score is no product of weights and features that were fixed beforehand.
        """
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
        from rankwise.rankers._persist import save_ranker

        self._check_fitted()
        save_ranker(self, path)

    @abstractmethod
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """(facts, arrays): what was learned, as JSON values and arrays."""

    @abstractmethod
    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        """Restore what :meth:`_state` returned; the file is untrusted, so that everything is checked."""

    # ------------------------------------------------------------------------------------------- checks

    def _measure(self) -> Measure:
        return trainable(self.measure)

    def _judged(self, X: Any, y: Any, group: Any, qid: Any, method: str = "fit") -> Queries:
        if isinstance(X, (ChunkedQueries, Parts)):
            return cast(Queries, self._in_parts(X, y, group, qid, method))
        if isinstance(X, Queries):
            if group is not None or qid is not None:
                raise DataError("Queries hold their own grouping: leave out group= and qid=")
            queries = X if y is None else X.with_labels(y)
        elif isinstance(X, (str, bytes, os.PathLike)):
            raise DataError(checks.not_a_path(X))
        elif group is None and qid is None and not isinstance(y, Labels):
            raise DataError(
                f"{self.name}.{method}(X, y) needs the grouping of rows: give group= (sizes of consecutive queries), "
                "qid= (one id per row), or Queries; inside scikit-learn, y=rankwise.sklearn.labels(y, qid=...) carries "
                "it, and rankwise.sklearn.DocumentTransformer(transformer) keeps Queries"
            )
        elif isinstance(y, Labels) and y.qid is not None and not (group is None and qid is None):
            raise DataError("y carries its own grouping (rankwise.sklearn.labels): leave out group= and qid=")
        else:
            queries = Queries.from_arrays(X, y, group=group, qid=qid, missing=self.missing)
        queries.labels()
        self._check_policy()
        return self._without_missing(self._without_gaps(queries))

    def _in_parts(self, X: Any, y: Any, group: Any, qid: Any, method: str) -> Any:
        """Parts as :class:`ChunkedQueries`, checked; an error if this ranker does not run on them."""
        if not all(one is None for one in (y, group, qid)):
            raise DataError("Parts hold their own labels and grouping: leave out y, group= and qid=")
        if method == "fit" and not self.runs_on_parts:
            raise DataError(
                f"{self.name} does not run on Parts: {self._why_not_on_parts()}; give it queries in memory, as "
                "parts[:10_000].to_queries() makes them"
            )
        queries = X if isinstance(X, ChunkedQueries) else X.chunked(verbose=self.verbose)
        queries.labels()
        self._check_policy()
        return self._without_missing(cast(Queries, queries))

    def _estimate(self, queries: ChunkedQueries) -> "Estimate":
        """What a fit on these queries will cost."""
        from rankwise.queries.passes.estimate import Estimate

        self._in_parts(queries, None, None, None, "fit")
        return Estimate.of(queries, *self._expected_passes(queries))

    def _expected_passes(self, queries: ChunkedQueries) -> "tuple[Job, tuple[Any, ...], int, int]":
        """(a typical job, its arguments, the usual number of passes, the largest number); one more is the survey."""
        from rankwise.losses.over_chunks import LossOfChunk
        from rankwise.losses.pairwise_hinge import PairHinge

        w = np.zeros(queries.n_features)
        return LossOfChunk(PairHinge(), None), (w, PairHinge()), 2, 2

    def _why_not_on_parts(self) -> str:
        """Why the ranker does not run on parts, for its error message."""
        return "it needs all documents in memory"

    def _built(self, X: Any, **how: bool) -> Any:
        """What the ranker was given, with the features that it learned from; ``features_`` makes those of a table."""
        if isinstance(X, (ChunkedQueries, Parts)):
            return X
        if isinstance(X, Queries) and not hasattr(self, "features_"):
            return X
        return as_built(self, X, **how)

    def _without_gaps(self, queries: Queries) -> Queries:
        """The queries without the NaN that a builder with ``missing="keep"`` leaves."""
        if queries.built_by is None or isinstance(queries, ChunkedQueries):  # of these a survey names the gaps
            return queries
        return without_gaps(self, queries)

    def _check_policy(self) -> None:
        if self.missing == "keep" and not self.keeps_missing:
            raise RankwiseError(f"{self.name} gives no meaning to missing values: give missing='zero' or missing='min'")

    def _without_missing(self, queries: Queries) -> Queries:
        """The queries, unless they hold NaN that was kept and this ranker cannot take it."""
        if isinstance(queries, ChunkedQueries):
            missing = queries.survey.missing
            if missing is not None and not self.keeps_missing:
                raise DataError(
                    f"query {missing[0]:,} has no finite feature {missing[1]}, and {self.name} gives no meaning to "
                    "missing values: make the parts with missing='zero' or missing='min'"
                )
        elif not self.keeps_missing:
            queries._refuse_missing(self.name)
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
        if queries.built_by is not None:
            self.features_ = queries.built_by
        elif hasattr(self, "features_"):
            del self.features_

    def _remember_lists(self, train: Queries) -> None:
        """Keep fingerprints of the training queries, and of those that rankers among the parameters saw."""
        marks = fingerprints(train, n_jobs=getattr(self, "n_jobs", None))
        seen = Seen(record=TrainingRecord().added(marks, recorded_weights(train))).with_training(marks)
        for one in self._begun_from():
            seen |= getattr(one, "seen_", Seen())
        self.seen_ = seen

    def _remember_validation(self, validation: Queries) -> None:
        """Keep fingerprints of the validation queries: as training queries if they are learned from."""
        marks, seen = fingerprints(validation, n_jobs=getattr(self, "n_jobs", None)), self.seen_
        if not self._learns_from_validation() or seen.record is None:
            self.seen_ = seen.with_validation(marks)
            return
        record = seen.record.added(marks, recorded_weights(validation))
        self.seen_ = replace(seen.with_training(marks), record=record)

    def _learns_from_validation(self) -> bool:
        """Whether a validation set is learned from, so that its queries count as training queries."""
        return False

    def _begun_from(self) -> "list[Ranker]":
        """Rankers whose weights this one starts from: the queries that they saw count as seen."""
        given = [value for value in self.get_params(deep=False).values() if isinstance(value, (Ranker, list, tuple))]
        several = [item for value in given for item in (value if isinstance(value, (list, tuple)) else [value])]
        found = [item for item in several if isinstance(item, Ranker)]
        return [*found, self] if getattr(self, "warm_start", False) and hasattr(self, "coef_") else found

    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names)

    def _aligned(self, queries: Queries, scaled: bool = True) -> Queries:
        """The queries with their features in the fitted order, matched by name if both have names."""
        if isinstance(queries, Parts):
            queries = queries.chunked(verbose=self.verbose)
        queries = self._without_gaps(self._built(queries, scaled=scaled))
        names = self._names()
        if names is not None and queries.feature_names is not None and names != queries.feature_names:
            if isinstance(queries, ChunkedQueries):
                raise DataError("these parts have other features, or another order of features, than the training data")
            queries = queries.select_features(names)
        self._check_width(queries.n_features)
        return self._without_missing(queries)

    def _frame_in_order(self, frame: Any) -> Any:
        """A data frame with its columns in the fitted order; other columns are dropped."""
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
        """Leave the ranker unchanged if the body fails, or is stopped before its first round."""
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
        """On Ctrl-C call ``keep()``, which sets the state of the last finished round, or returns False without one."""
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
    """Base class of rankers whose score is s = x . coef_, with ``coef_`` of shape (n_features,)."""

    coef_: Vector

    def _scores(self, X: checks.Floats) -> Vector:
        from rankwise._kernels.dot_products import linear_scores

        return linear_scores(X, self.coef_, self.n_jobs)

    def _contributions(self, X: checks.Floats) -> tuple[NDArray[np.float64], float] | None:
        return X.astype(np.float64) * self.coef_, float(getattr(self, "intercept_", 0.0))


def _one_set(eval_set: Any, eval_group: Any) -> tuple[Any, Any, Any]:
    """(X, y, sizes) of the one validation set that ``eval_set`` and ``eval_group`` give."""
    try:
        ((X, y),) = eval_set
        (sizes,) = (None,) if eval_group is None and isinstance(y, Labels) else eval_group
    except (TypeError, ValueError) as error:
        raise DataError("eval_set=[(X, y)] goes with eval_group=[sizes], one of each") from error
    return X, y, sizes


def trainable(spelling: Any) -> Measure:
    """The measure of this spelling, or an error if no ranker can be trained for it."""
    measure = parse(spelling)
    if not measure.depends_on_labels:
        raise MeasureError(f"{measure.title} does not depend on labels: no ranker can be trained for it")
    return measure


def registered() -> dict[str, type[Ranker]]:
    """All rankers by name: those of this package, and those that installed packages declare as entry points."""
    return cast("dict[str, type[Ranker]]", discover("rankwise.rankers", Ranker, "rankwise.rankers"))
