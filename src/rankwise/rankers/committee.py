"""`Committee`: the weighted mean of the scores of several rankers, each on the scale of its own scores."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from rankwise._arrays import Array, Matrix, Numbers, Vector
from rankwise._parameters import Check, NonNegativeFloat, Seed
from rankwise._progress import progress
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.errors import DataError, RankwiseError
from rankwise.queries import checks
from rankwise.queries.queries import Queries
from rankwise.rankers._base import AnyMeasure, LinearRanker, Ranker, registered
from rankwise.rankers._foreign import fit_foreign, foreign_scores, is_fitted
from rankwise.rankers._model_selection import Folds, as_grid, parts_of
from rankwise.rankers.boosting.growing import no_trees
from rankwise.rankers.boosting.steps import ThresholdRanker
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble
from rankwise.rankers.linear.linear_model import LinearModel

_SMALLEST = float(np.finfo(np.float64).tiny)  # deviations that scores can be divided by


Members = Annotated[
    Any,
    Check(
        "a sequence of rankers, their names or objects with predict",
        lambda value: (
            isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes)) and len(value) > 0
        ),
    ),
]


@dataclass(eq=False, repr=False, kw_only=True)
class Committee(Ranker):
    r"""The weighted mean of the scores of several rankers, each divided by the deviation of its own scores.

    .. math:: s(x) = \sum_k c_k \, s_k(x) / \sigma_k,

    with :math:`\sigma_k` the standard deviation of the scores of member k within queries: its square is the mean over
    documents of (s_k(x) - mean of s_k in the query of x)^2. The deviations are constants of the model, so the
    score of a document depends on its row alone: ``predict`` needs no groups. Members that make different mistakes,
    such as a linear ranker and boosted trees, often rank better together than alone.

    Parameters
    ----------
    members : sequence of rankers, default=("RidgeRanker", "RankBoost")
        Two or more of:

        - a ranker of this package, which ``fit`` clones and fits, or a fitted one, which is used as it is;
        - the name of such a ranker, which is fitted for ``measure`` with its defaults;
        - an estimator of another package with ``fit`` and ``predict``, such as LightGBM's, XGBoost's and CatBoost's, or
          a fitted model with ``predict``. It is given the grouping in the form that its ``fit`` takes.
    measure : str or Measure, default="nDCG@10"
        The measure that members given by name are trained for; ``score`` reports it.
    weights : sequence of float, default=None
        The weights c, 0 or more; None weights all members equally. They are divided by their sum.
    folds : int, default=5
        Parts of the training queries from which the deviations of members are estimated that ``fit`` fits.
    random_state : int or numpy.random.Generator, default=0
        Seed of the division into parts.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    missing : {"error", "zero", "min", "keep"}, default="error"
        What ``fit`` and ``predict`` do with NaN in arrays; "keep" if every member gives it a meaning.

    Attributes
    ----------
    members_ : list
        The fitted members.
    weights_ : ndarray of shape (n_members,)
        The weights c, of sum 1.
    deviations_ : ndarray of shape (n_members,)
        The deviations sigma; 0 for a member that gives all documents of a query the same score, which then counts for
        nothing.

    Notes
    -----
    Scores of the training queries are inflated, those of boosted trees most. The deviation of a member that ``fit``
    fits is therefore that of out-of-fold scores, or of the scores of a validation set if one is given; that of a member
    that comes fitted is the deviation on the queries of ``fit``, which are only scored.

    A committee of linear rankers is a linear ranker, and is scored, explained and exported as one. One of linear
    rankers and sums of trees is exported as a sum of trees with a linear part, and with normal scores if a member is an
    :class:`~rankwise.AutoRanker`. A file holds the members; those of other
    packages cannot be saved. ``clone`` of scikit-learn forgets what members had learned, so a comparison or a
    search fits all of them on each training part. Files of scores cannot be members, because they have no score for
    other documents: :func:`rankwise.compare` takes them.

    Examples
    --------
    >>> from rankwise import ListNet, RidgeRanker, make_lists
    >>> train, test = make_lists(80, random_state=1), make_lists(80, random_state=2)
    >>> model = Committee([RidgeRanker(), ListNet(solver="lbfgs")]).fit(train)
    >>> model.weights_
    array([0.5, 0.5])
    >>> bool(model.score(test) > 0.5)
    True
    """

    name = "Committee"
    _reason_no_document_weights = "not all of its members take them"

    members: Members = field(default=("RidgeRanker", "RankBoost"), kw_only=False)
    measure: AnyMeasure = field(default="nDCG@10", kw_only=True)
    weights: Sequence[NonNegativeFloat] | None = None
    folds: Folds = 5
    random_state: Seed = 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._normalize_weights()
        for member in self._candidates():
            if isinstance(member, Ranker):
                member._check_parameters()

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests run on."""
        return (cls(("RidgeRanker", "LinearModel"), folds=2, weights=(3.0, 1.0)), cls(folds=2))

    @classmethod
    def of(
        cls, members: Sequence[Ranker], deviations: ArrayLike, like: Ranker, weights: Sequence[float] | None = None
    ) -> Self:
        """A committee whose members and deviations are known.

        Parameters
        ----------
        members : sequence of Ranker
            Fitted rankers.
        deviations : array-like of shape (n_members,)
            The deviations of their scores.
        like : Ranker
            The ranker whose features, measure and policy for missing values the committee takes over.
        weights : sequence of float, default=None
            The weights of the members, 0 or more; None weights all equally.

        Returns
        -------
        Committee
            The fitted committee.
        """
        taken: dict[str, Any] = {"measure": like.measure, "n_jobs": like.n_jobs, "missing": like.missing}
        model = cls([clone(one) for one in members], weights=weights, **taken)
        model.n_features_in_ = like.n_features_in_
        if hasattr(like, "feature_names_in_"):
            model.feature_names_in_ = like.feature_names_in_
        model.members_ = list(members)
        model.weights_, model.deviations_ = model._normalize_weights(), np.array(deviations, dtype=np.float64)
        model.record_ = model.record_.with_result(model)
        return model

    @property
    def takes_validation(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` uses a validation set: if a member does, or for deviations."""
        return any(isinstance(one, Ranker) and one.takes_validation for one in self._candidates())

    @property
    def takes_document_weights(self) -> bool:  # type: ignore[override]
        """Whether ``fit`` uses document weights: if every member does."""
        return all(isinstance(one, Ranker) and one.takes_document_weights for one in self._candidates())

    @property
    def keeps_missing(self) -> bool:  # type: ignore[override]
        """Whether NaN has a meaning: if it has one for every member."""
        members = getattr(self, "members_", None) or self._candidates()
        return all(isinstance(one, Ranker) and one.keeps_missing for one in members)

    # ------------------------------------------------------------------------------------------- learning

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        candidates, weights = self._candidates(), self._normalize_weights()
        if validation is not None and not self.takes_validation:
            raise DataError(f"none of {self.name}'s members does model selection: omit the validation set")
        parts = parts_of(queries, self.folds, self.random_state)
        fits = sum(not is_ready(one) for one in candidates) * (1 if validation is not None else 1 + len(parts))
        members, deviations = [], np.zeros(len(candidates))
        with self._progress(self.name, max(fits, 1)) as bar:
            for place, one in enumerate(candidates):
                if is_ready(one):
                    member, judged = self._same_features(one), queries
                    scores = member_scores(one, judged)
                else:
                    member = fit_member(one, queries, validation, self.n_jobs)
                    bar.advance(1)
                    judged = queries if validation is None else validation
                    scores = member_scores(member, judged)
                    if validation is None and parts:
                        scores = self._out_of_fold(one, queries, parts, bar)
                members.append(member)
                deviations[place] = within_query_deviation(judged, scores)
        self.members_, self.weights_, self.deviations_ = members, weights, deviations

    def _out_of_fold(self, one: Any, queries: Queries, parts: Sequence[Numbers], bar: progress) -> Vector:
        """Scores of every document by a member that has not seen its query; 0 for queries of weight 0."""
        scores = np.zeros(queries.n_documents)
        owner = queries.query_of_row
        for part in parts:
            rest = np.setdiff1d(queries.counted, part)
            member = fit_member(one, queries[rest], None, self.n_jobs)
            rows = np.isin(owner, part)
            scores[rows] = member_scores(member, queries)[rows]
            bar.advance(1)
        return scores

    def _candidates(self) -> list[Any]:
        """The members as they were given, those given by name made."""
        return [self._candidate(member) for member in self.members]

    def _candidate(self, one: Any) -> Any:
        if isinstance(one, str):
            kind = registered().get(one)
            if kind is None:
                raise RankwiseError(
                    f"the name of a member must be one of {', '.join(sorted(registered()))}, got {one!r:.60}; for "
                    "files of scores use compare()"
                )
            return kind(measure=self.measure)
        if isinstance(one, type) or not callable(getattr(one, "predict", None)):
            raise RankwiseError(
                f"a member must be a ranker, its name, or an object with predict, got {type(one).__name__}; for scores "
                "use compare()"
            )
        if isinstance(one, Ranker) and one.scores_by_query:
            raise RankwiseError(
                f"the score of a member must depend on the document alone, but {one.name} normalizes within queries"
            )
        return one

    def _same_features(self, member: Any) -> Any:
        """A member that was fitted elsewhere, if it was on the same features in the same order."""
        if not isinstance(member, Ranker):
            return member
        if member.n_features_in_ != self.n_features_in_:
            raise DataError(
                f"all members must be fitted on the same {self.n_features_in_} features, but {member.name} was fitted "
                f"on {member.n_features_in_}"
            )
        if None not in (member._names(), self._names()) and member._names() != self._names():
            raise DataError(
                f"all members must be fitted on the same features, but those of {member.name} differ in name or order"
            )
        return member

    def _normalize_weights(self) -> Vector:
        count = len(self.members)
        values = as_grid(self.weights, (1.0,) * count)
        total = math.fsum(values)
        if len(values) != count or not 0 < total < math.inf:
            raise self._wrong("weights", f"{count} non-negative floats, one per member, with a positive sum")
        return np.asarray(values, dtype=np.float64) / total

    # ------------------------------------------------------------------------------------------- ranking

    @property
    def factors_(self) -> Vector:
        """What the score of each member is multiplied by: its weight divided by its deviation."""
        counts = self.deviations_ > 0
        return np.where(counts, self.weights_ / np.where(counts, self.deviations_, 1.0), 0.0)

    def _scoring_model(self) -> Ranker:
        """The ranker whose scores these are: one linear model if every member is linear, or else the committee."""
        if not all(isinstance(one, LinearRanker) and is_plain_linear(one) for one in self.members_):
            return self
        coef, intercept = np.zeros(self.n_features_in_), 0.0
        for factor, member in zip(self.factors_.tolist(), self.members_, strict=True):
            coef += factor * member.coef_
            intercept += factor * float(getattr(member, "intercept_", 0.0))
        model = LinearModel.of(
            coef, intercept=intercept, feature_names=self._names(), measure=self.measure, missing=self.missing
        )
        model.n_jobs = self.n_jobs
        return model

    @property
    def ensemble_(self) -> TreeEnsemble:
        """The score as one sum of trees with a linear part, for exports; absent unless every member is such a sum."""
        self._check_fitted()
        parts = [as_ensemble(one) for one in self.members_]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            raise AttributeError(f"a member of this {self.name} is neither linear nor a sum of trees")
        if self.missing != "keep":  # no gap reaches a member, so what each would fill in need not agree
            known = [replace(part, fill=None) for part in known]
        try:
            return TreeEnsemble.concat(known, self.factors_.tolist())
        except RankwiseError as error:
            raise RankwiseError(
                f"the members of this {self.name} learned from different data and are no single sum: {error}"
            ) from error

    def _scores(self, X: checks.Floats) -> Vector:
        model = self._scoring_model()
        if model is not self:
            return model._scores(X)
        scores = np.zeros(len(X))
        for factor, member in zip(self.factors_.tolist(), self.members_, strict=True):
            if factor:
                own = member._scores(X) if isinstance(member, Ranker) else foreign_scores(member, X)
                scores += factor * own
        return scores

    def _contributions(self, X: checks.Floats) -> tuple[Matrix, float] | None:
        total, constant = np.zeros(X.shape), 0.0
        for factor, member in zip(self.factors_.tolist(), self.members_, strict=True):
            found = member._contributions(X) if isinstance(member, Ranker) else None
            if found is None:
                return None
            total += factor * found[0]
            constant += factor * found[1]
        return total, constant

    # ------------------------------------------------------------------------------------------- saving

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        from rankwise.rankers._record import nested_state

        foreign = [type(one).__name__ for one in self.members_ if not isinstance(one, Ranker)]
        if foreign:
            raise RankwiseError(
                f"{self.name} cannot be saved with its member {foreign[0]}: a file holds no code, and so only rankers "
                "of rankwise"
            )
        facts, arrays = nested_state(self.members_)
        return {"members": facts}, {"weights": self.weights_, "deviations": self.deviations_, **arrays}

    def _frozen_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        own: dict[str, Array] = {"weights": self.weights_, "deviations": self.deviations_}
        digests: list[list[Any]] = []
        for place, member in enumerate(self.members_):
            if isinstance(member, Ranker):
                facts, arrays = member._frozen_state()
                own |= {f"{place}.{name}": array for name, array in arrays.items()}
                digests.append([member.name, facts])
            else:  # what another package's model has learned is not known
                digests.append([type(member).__name__, None])
        return {"members": digests}, own

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        from rankwise.rankers._record import read_nested

        self._measure()
        count = len(self._candidates())
        self.weights_ = store.array("weights", np.float64, (count,))
        self.deviations_ = store.array("deviations", np.float64, (count,))
        if not ((self.deviations_ == 0) | ((self.deviations_ >= _SMALLEST) & (self.deviations_ < np.inf))).all():
            raise RankwiseError("the deviations of its members are not 0 or more")
        if not (self.weights_ >= 0).all() or not abs(self.weights_.sum() - 1) < 1e-6:
            raise RankwiseError("the weights of its members are not 0 or more with the sum 1")
        self.members_ = read_nested(store, facts["members"], self.n_features_in_)
        if len(self.members_) != count or any(one.scores_by_query for one in self.members_):
            raise RankwiseError(f"it holds {len(self.members_)} members of {count}")


# ------------------------------------------------------------------------------------------------------- its members


def is_ready(member: Any) -> bool:
    """Whether a member is fitted, and is used as it is."""
    return hasattr(member, "n_features_in_") if isinstance(member, Ranker) else is_fitted(member)


def is_plain_linear(member: LinearRanker) -> bool:
    """Whether a linear ranker scores by the product of features and weights, and perhaps a constant."""
    return hasattr(member, "coef_") and type(member)._scores in (LinearRanker._scores, LinearModel._scores)


def as_ensemble(member: Any) -> TreeEnsemble | None:
    """A fitted member as a sum of trees with a linear part; None if it is no such sum."""
    if isinstance(member, LinearRanker) and is_plain_linear(member):
        constant = float(getattr(member, "intercept_", 0.0))
        return replace(no_trees(member.n_features_in_), coef=np.asarray(member.coef_), offset=constant)
    if isinstance(member, ThresholdRanker):
        steps = member.steps_
        return TreeEnsemble.stumps(member.n_features_in_, steps["feature"], steps["threshold"], steps["alpha"])
    found = getattr(member, "ensemble_", None) if isinstance(member, Ranker) else None
    if isinstance(found, TreeEnsemble):
        return found
    inner = member._scoring_model() if isinstance(member, Ranker) else member
    return None if inner is member else as_ensemble(inner)


def fit_member(given: Any, queries: Queries, validation: Queries | None, n_jobs: int | None) -> Any:
    """A fitted clone; a ranker without a number of threads of its own gets ``n_jobs``."""
    member = clone(given, safe=False)
    if not isinstance(member, Ranker):
        return fit_foreign(member, queries)
    if member.get_params(deep=False).get("n_jobs", 1) is None:
        member.set_params(n_jobs=n_jobs)
    return member.fit(queries, validation=validation if member.takes_validation else None)


def member_scores(member: Any, queries: Queries) -> Vector:
    """The scores of all documents by a fitted member."""
    return member.predict(queries) if isinstance(member, Ranker) else foreign_scores(member, queries.X)


def within_query_deviation(queries: Queries, scores: Vector) -> float:
    """The standard deviation of scores around the mean of their query, pooled over all queries by their weights.

    Parameters
    ----------
    queries : Queries
        The queries.
    scores : ndarray of shape (n_documents,)
        One score per document, in input order.

    Returns
    -------
    float
        The deviation; 0 without documents, or if every query has one score.
    """
    largest = float(np.abs(scores).max(initial=0.0))
    if not largest:
        return 0.0
    owner, count = queries.query_of_row, len(queries)
    unit = scores / largest  # squares of huge scores would overflow
    mean = np.bincount(owner, unit, minlength=count) / np.maximum(queries.sizes, 1)
    squares = np.bincount(owner, (unit - mean[owner]) ** 2, minlength=count)
    documents = math.fsum(queries.query_weight * queries.sizes)
    if not documents:
        return 0.0
    deviation = largest * math.sqrt(math.fsum(queries.query_weight * squares) / documents)
    # equal scores differ from their mean by rounding errors, which are no scale
    return deviation if deviation > max(1e-12 * largest, _SMALLEST) else 0.0
