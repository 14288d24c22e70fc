"""RidgeRanker: ridge regression on gains, with relevant and other documents given the same total weight.

min over w, b of sum_i c_i (w . x_i + b - g_i)^2 + alpha norm(w)^2 needs only sum c, sum c x, sum c x x' and sum c g x:
:class:`Moments`, from one pass over X. If there are fewer rows than features, the products x_i . x_k of the rows are
fewer: :class:`WeightedRows`. Both keep relevant and other documents apart, so that any balance between the two classes,
and any union of sets of queries, is a sum. Both give the same bits on every number of threads: chunks of rows are fixed
and added in order, and factorisations run on one thread of BLAS. All alphas are then solved together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankwise._blas import one_blas_thread
from rankwise._errors import RankwiseError
from rankwise._kernels import drive
from rankwise._store import Store
from rankwise._tables import Table
from rankwise.data.checks import differing_weights
from rankwise.data.queries import Queries
from rankwise.data.row_blocks import rows_in_order, scale_factors
from rankwise.measures.ndcg import gains
from rankwise.rankers._base import LinearRanker
from rankwise.rankers._fit_frame import as_grid
from rankwise.rankers._model_selection import best_alpha, held_out, mean_over_parts, measure_of_weights, parts_of
from rankwise.rankers._parameters import SelectionParameters

Vector = NDArray[np.float64]


# ------------------------------------------------------------------------------------------ the least squares problem


# Rows per chunk: 20 ms of work at 136 features. The bits of the result depend on it.
_CHUNK = 1 << 14
# Bytes of partial sums that may wait to be added.
_WAITING = 1 << 30


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows of (1, x, g) times its transpose, as one symmetric matrix per class of documents.

    Attributes
    ----------
    sums : ndarray, shape (2, n_features + 2, n_features + 2)
        ``sums[0]`` is over the documents without relevance, ``sums[1]`` over the relevant ones; row and column 0 belong
        to the 1, the last ones to the target g.
    """

    sums: Vector

    @classmethod
    def of(
        cls,
        queries: Queries,
        target: Vector,
        factor: Vector,
        shift: Vector,
        lists: NDArray[np.int64] | None = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Moments of (x - shift) factor over queries; X is neither copied nor converted.

        Parameters
        ----------
        queries : Queries
            Judged queries.
        target : ndarray, shape (n_documents,)
            The targets g.
        factor : ndarray, shape (n_features,)
            The scale of the features.
        shift : ndarray, shape (n_features,)
            Subtracted from the features before they are scaled.
        lists : ndarray of int64, default=None
            Which queries; None for all.
        n_jobs : int, default=None
            Number of threads; None uses every core.

        Returns
        -------
        Moments
            The problem.
        """
        from rankwise._kernels.rows import moments_on

        X, labels = np.asarray(queries.X), queries.labels()
        rows, count = rows_in_order(queries, lists)
        weight = _row_weight(queries)
        width = queries.n_features + 2
        add_moments = moments_on(X.dtype)

        def part(first: int, last: int) -> Vector:
            own = np.zeros((2, width, width))
            add_moments(first, last, rows, X, labels, target, weight, shift, factor, own)
            return own

        step = max(_CHUNK, 4 * width)  # with fewer rows, adding the sums would take longer than computing them
        chunks = [(first, min(first + step, count)) for first in range(0, count, step)]
        together = max(1, _WAITING // (16 * width**2))
        sums = np.zeros((2, width, width))
        for first in range(0, len(chunks), together):
            for own in drive.run(part, chunks[first : first + together], n_jobs):
                sums += own
        upper = np.triu(np.ones((width, width), dtype=bool))
        return cls(np.where(upper, sums, sums.transpose(0, 2, 1)))

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.sums + other.sums)

    def ridge(self, alphas: Sequence[float], most: float | None) -> list[Vector]:
        """Solve the ridge problem.

        Parameters
        ----------
        alphas : sequence of float
            Strengths of the penalty.
        most : float or None
            As for :func:`class_shares`.

        Returns
        -------
        list of ndarray, shape (n_features,)
            The weights w for every alpha.
        """
        first, second = class_shares(self.sums[:, 0, 0], most)
        total = first * self.sums[0] + second * self.sums[1]
        mean = total[0] / total[0, 0] if total[0, 0] else total[0]
        centred = total[1:-1, 1:] - np.outer(mean[1:-1], total[0, 1:])
        with one_blas_thread():
            values, vectors = np.linalg.eigh(centred[:, :-1])
            along = vectors.T @ centred[:, -1]
            return [np.asarray(vectors @ part) for part in _shrunk(along, values, alphas, len(values))]


@dataclass(frozen=True)
class WeightedRows:
    """The rows themselves, for fewer rows than features: w = Z' (Z Z' + alpha)^-1 t is a combination of the rows.

    Z has the rows sqrt(c_i) (x_i - mean), t the numbers sqrt(c_i) (g_i - mean). w is that of :class:`Moments` up to
    rounding, in O(rows^2 features) and without a matrix of features x features.

    Attributes
    ----------
    x : ndarray, shape (n_rows, n_features)
        Scaled rows.
    target, weight : ndarray, shape (n_rows,)
        Targets g and weights c.
    relevant : ndarray of bool, shape (n_rows,)
        Whether the label is above 0.
    """

    x: Vector
    target: Vector
    weight: Vector
    relevant: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        queries: Queries,
        target: Vector,
        factor: Vector,
        shift: Vector,
        lists: NDArray[np.int64] | None = None,
        n_jobs: int | None = None,
    ) -> Self:
        """The rows (x - shift) factor of queries.

        Parameters
        ----------
        queries : Queries
            Judged queries.
        target : ndarray, shape (n_documents,)
            The targets g.
        factor : ndarray, shape (n_features,)
            The scale of the features.
        shift : ndarray, shape (n_features,)
            Subtracted from the features before they are scaled.
        lists : ndarray of int64, default=None
            Which queries; None for all.
        n_jobs : int, default=None
            Number of threads; None uses every core.

        Returns
        -------
        WeightedRows
            The problem.
        """
        rows, count = rows_in_order(queries, lists)
        rows = rows if len(rows) else np.arange(count)
        given = _row_weight(queries)
        weight = given[rows] if len(given) else np.ones(len(rows))
        return cls((queries.X[rows] - shift) * factor, target[rows], weight, queries.labels()[rows] > 0)

    def __add__(self, other: "WeightedRows") -> "WeightedRows":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return WeightedRows(*(np.concatenate(pair) for pair in pairs))

    def ridge(self, alphas: Sequence[float], most: float | None) -> list[Vector]:
        """Solve the ridge problem.

        Parameters
        ----------
        alphas : sequence of float
            Strengths of the penalty.
        most : float or None
            As for :func:`class_shares`.

        Returns
        -------
        list of ndarray, shape (n_features,)
            The weights w for every alpha.
        """
        counts = np.array([self.weight[self.relevant == part].sum() for part in (False, True)])
        share = class_shares(counts, most)
        weight = self.weight * np.where(self.relevant, share[1], share[0])
        total, root = weight.sum() or 1.0, np.sqrt(weight)
        z = (self.x - (weight[:, None] * self.x).sum(axis=0) / total) * root[:, None]
        t = (self.target - (weight * self.target).sum() / total) * root
        with one_blas_thread():
            values, vectors = np.linalg.eigh(z @ z.T)
            along = vectors.T @ t
            return [np.asarray((vectors @ part) @ z) for part in _shrunk(along, values, alphas, z.shape[1])]


def _row_weight(queries: Queries) -> Vector:
    """The weight of every row, query weight times document weight; empty if all are 1."""
    own = differing_weights(queries)
    if queries.weight is None:
        return np.empty(0) if own is None else own
    weight = queries.weight[queries.query_of_row]
    return weight if own is None else np.asarray(weight * own)


def ridge_problem(queries: Queries) -> type[Moments] | type[WeightedRows]:
    """The cheaper form of the problem for these queries."""
    return WeightedRows if queries.n_documents < queries.n_features else Moments


def class_shares(counts: Vector, most: float | None) -> tuple[float, float]:
    """Factors of (documents without relevance, relevant documents) that give both classes the same weight.

    Parameters
    ----------
    counts : ndarray, shape (2,)
        The total weights of the two classes.
    most : float or None
        The largest factor of documents without relevance; the total weight stays the same. None: no balance, (1, 1).

    Returns
    -------
    tuple of float
        The two factors.
    """
    others, relevant = map(float, counts)
    if most is None or not (others and relevant):
        return 1.0, 1.0
    total = others + relevant
    if total / (2 * others) <= max(most, 1.0):
        return total / (2 * others), total / (2 * relevant)
    return most, (relevant - (most - 1) * others) / relevant


def _shrunk(along: Vector, values: Vector, alphas: Sequence[float], features: int) -> list[Vector]:
    """along / (values + alpha) for every alpha, 0 in directions in which the features do not vary but for rounding."""
    flat = values <= values.max(initial=0.0) * features * np.finfo(float).eps
    return [np.where(flat, 0.0, along / np.where(flat, 1.0, values + alpha)) for alpha in alphas]


ALPHAS = tuple(10.0**power for power in range(-2, 6))
# Integers up to this one are grades: LightGBM's table of gains ends there, too.
_LARGEST_GRADE = 30
# The largest weight of a document without relevance. Without a limit a single one would count as much as all others
# together, and with weak features the order would be almost random. Sets with at least 5 % of such documents, among
# them all that LETOR has published, never reach the limit.
_MOST_OF_GRADES = 10.0


@dataclass(eq=False, repr=False, kw_only=True)
class RidgeRanker(SelectionParameters, LinearRanker):
    r"""min over w, b of sum_i c_i (w . x_i + b - G(label_i))^2 + alpha norm(w)^2, scores w . x.

    c_i is the weight of the query times the weight of the document, and the balance of ``balanced``.

    Parameters
    ----------
    measure : str or Measure, default="nDCG@10"
        The measure used for model selection, which ``score`` reports; the regression does not depend on it.
    alpha : float or sequence of float, default=None
        The penalty, for features in the units of ``scale``. Of several the best one on the validation set is taken
        (without one, by folds over the training queries); None tries 10^-2, ..., 10^5.
    target : {"gains", "labels"}, default="gains"
        G: the gains 2^label - 1, or the labels themselves.
    balanced : bool, default=True
        Whether relevant documents (label above 0) and other documents get the same total weight, however few the former
        are. If the others are fewer, one of them counts at most 10 times if labels are grades (integers up to 30), and
        once if they are not: the zeros of continuous labels are the end of a range and no class of their own. The total
        weight stays the same.
    scale : {"auto", "none"}, default="auto"
        "auto" divides features by their standard deviation unless all of them lie in [-1, 1].
    folds : int, default=5
        Number of parts of the training queries that select alpha if there is no validation set.
    random_state : int or numpy.random.Generator, default=0
        Seed of the division into parts.
    n_jobs : int, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    verbose : bool, default=False
        Accepted for uniformity; a fit shows no progress bar.
    missing : {"error", "zero", "min"}, default="error"
        What to do with NaN in arrays.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights on raw features.
    alpha_ : float
        The alpha that was selected.
    path_ : Table
        For every alpha the measure that it was judged by.

    Notes
    -----
    A fit costs one pass over X (two with folds), then O(features^3) for all alphas together; with fewer documents than
    features O(documents^2 features) instead. If there are fewer queries than folds, every query is a part. Where
    nothing can judge them, the largest alpha is taken.

    Examples
    --------
    >>> from rankwise import make_lists
    >>> queries = make_lists(60, documents=8, features=4, random_state=1)
    >>> model = RidgeRanker(alpha=(0.1, 10.0)).fit(queries)
    >>> model.path_["alpha"]
    array([ 0.1, 10. ])
    """

    name = "RidgeRanker"
    takes_validation = True
    takes_document_weights = True

    alpha: float | Sequence[float] | None = None
    target: str = "gains"
    balanced: bool = True

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """Instances that the common tests of all rankers use."""
        return cls(alpha=1.0), cls("AP", alpha=(0.1, 10.0), target="labels", balanced=False, folds=2)

    def _fit(self, queries: Queries, validation: Queries | None) -> None:
        if self.target not in ("gains", "labels"):
            raise RankwiseError(f"target is 'gains' or 'labels': found {self.target!r}")
        alphas = as_grid(self.alpha, ALPHAS, "alpha")
        labels = queries.labels()
        target = gains(labels, "exp2") if self.target == "gains" else labels
        factor, centre = scale_factors(queries, self.scale)
        most, problem = self._most(labels), ridge_problem(queries)
        whole = problem.of(queries, target, factor, centre, n_jobs=self.n_jobs)
        judged = np.full(len(alphas), np.nan)
        if validation is not None:
            judged = self._judge(alphas, most, whole, validation, factor)
        elif len(alphas) > 1 and (parts := parts_of(queries, self.folds, self.random_state)):
            # one pass over X: the problem without a part is the sum over all other parts
            apart = [problem.of(queries, target, factor, centre, part, self.n_jobs) for part in parts]
            found = []
            for number, part in enumerate(parts):
                others = reduce(add, apart[:number] + apart[number + 1 :])
                found.append(self._judge(alphas, most, others, held_out(queries, part)[1], factor))
            judged = mean_over_parts(found)
        self.alpha_ = alphas[best_alpha(alphas, judged)]
        self.path_ = Table({"alpha": list(alphas), self._measure().title: judged})
        self.coef_ = whole.ridge([self.alpha_], most)[0] * factor

    def _most(self, labels: Vector) -> float | None:
        """The largest weight of a document without relevance; None if classes are not balanced."""
        if not self.balanced:
            return None
        grades = bool((labels <= _LARGEST_GRADE).all() and (labels == np.rint(labels)).all())
        return _MOST_OF_GRADES if grades else 1.0

    def _judge(
        self,
        alphas: Sequence[float],
        most: float | None,
        problem: Moments | WeightedRows,
        held: Queries,
        factor: Vector,
    ) -> Vector:
        """The measure of every alpha on queries that were held out."""
        paths, measure = problem.ridge(alphas, most), self._measure()
        return np.array([measure_of_weights(held, w * factor, measure, self.n_jobs) for w in paths])

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        judged = self.path_[self.path_.columns[1]]
        return {"alpha": self.alpha_}, {"coef": self.coef_, "alphas": self.path_["alpha"], "judged": judged}

    def _restore(self, facts: Mapping[str, Any], store: Store) -> None:
        self.coef_ = read_coef(store, self.n_features_in_)
        self.alpha_ = float(facts["alpha"])
        alphas, judged = (store.array(name, np.float64, (None,)) for name in ("alphas", "judged"))
        self.path_ = Table({"alpha": alphas, self._measure().title: judged})


def read_coef(store: Store, features: int) -> Vector:
    """The weights in a file, one finite number per feature."""
    coef: Vector = store.array("coef", np.float64, (features,))
    if not np.isfinite(coef).all():
        raise RankwiseError("its weights are not finite")
    return coef
