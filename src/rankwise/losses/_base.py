"""The contract of a loss, and how losses are found.

A loss is one small frozen class: its equation, its facts, and a compiled kernel for the scores of one query.
:class:`Loss` is the base class of all of them and :class:`SmoothedMeasure` that of the losses 1 - A, where A smooths a
measure. A loss is a function of the scores s and the labels of one query, and is minimized. Adding a constant to all
scores changes nothing, so the gradient sums to 0. :mod:`rankwise.losses.compute` runs a loss over many queries.

Solvers and guarantees read the facts and never name a class: they branch on ``convex``, ``smooth`` and
``perceptron_bound``, and take constants from ``lipschitz_l1``, ``smoothness`` and ``range``. :func:`upper_bound_of` and
:func:`smoothed` ask all registered classes for a loss of a measure. The common tests search for scores that break any
of the facts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._parameters import check_parameters
from rankwise._registry import discover
from rankwise._tables import ShownAsFacts
from rankwise.errors import DataError, RankwiseError
from rankwise.measures._base import Measure
from rankwise.queries import checks

Vector = NDArray[np.float64]
Rows = NDArray[np.int64]
Form = Literal["sigmoid", "indicator"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Loss(ShownAsFacts):
    """Base class of all losses.

    Attributes
    ----------
    name : str
        The name in the registry, unique among all losses.
    convex : bool
        Whether the loss is convex in the scores.
    smooth : bool
        Whether the loss has derivatives of all orders everywhere. A loss whose gradient is only Lipschitz, such as a
        squared hinge, is not smooth in this sense but has a finite :meth:`smoothness`.
    nonnegative : bool
        Whether the loss is never below 0.
    perceptron_bound : {"weights", "worst pair"} or None
        Which mistake bound of :mod:`rankwise.guarantees.bounds.online` holds for a perceptron that runs on this loss.
        "weights": phi = sum_i v_i [margin + max over label_j < label_i of s_j - s_i]_+ with weights v of the labels
        alone, which :meth:`prepare` returns as ``value``; Theorem S applies. "worst pair": phi is the hinge of the
        worst pair. None: no such bound is known. A loss that declares one has a field ``margin``.
    linear_in_labels : bool
        Whether the loss is sum_d label_d f_d(scores) with f_d free of labels (queries of equal labels apart), so
        unbiased estimates may take the place of labels: what learning from clicks needs.
    noisy : bool
        Whether the loss draws noise, which depends on the place of a document in its set and on the iteration, see
        :meth:`at_iteration`. Such a loss has a field ``random_state``.
    kernel : compiled function
        Value and gradient of one query; see Notes.
    document_weights : bool
        Whether documents can have weights: one of weight k counts as k copies of it. The loss then has a
        ``weighted_kernel``, for queries with such weights, and may override :meth:`prepare_weighted`.
    estimate_kernel : compiled function, default=None
        For losses with one label per term: the kernel without exceptions, such as queries whose labels are all equal,
        for which it would not be affine; None if ``kernel`` has no other than 0 for labels that are all 0.
    curved_kernel : compiled function
        Gradient and second derivatives of one query, for a loss that declares a :attr:`curvature`; see Notes.

    Notes
    -----
    The kernel is called as ``kernel(score, label, value, grad, table, params)`` for one query of at least one document.
    ``label`` and ``value`` are what :meth:`prepare` made of the labels (by default the labels, and what
    :meth:`row_values` made of them), ``table`` holds the numbers of :meth:`table` and ``params`` those of
    :meth:`params`. The kernel adds the (sub)gradient to ``grad``, which comes in as zeros, and returns the loss. Arrays
    are contiguous, and only ``grad`` may be written to.

    A loss whose :attr:`curvature` is not None also has a ``curved_kernel``, called as ``curved_kernel(score, label,
    value, grad, diagonal, table, params)``. It adds the gradient to ``grad`` and the diagonal of the Hessian with
    respect to the scores, which is never negative, to ``diagonal``; both come in as zeros. It returns nothing. With
    document weights ``weighted_curved_kernel`` takes its place.
    """

    name: ClassVar[str]
    convex: ClassVar[bool]
    smooth: ClassVar[bool] = False
    nonnegative: ClassVar[bool] = True
    perceptron_bound: ClassVar[Literal["weights", "worst pair"] | None] = None
    linear_in_labels: ClassVar[bool] = False
    noisy: ClassVar[bool] = False
    kernel: ClassVar[Any]
    document_weights: ClassVar[bool] = False
    weighted_kernel: ClassVar[Any]
    estimate_kernel: ClassVar[Any] = None
    curved_kernel: ClassVar[Any]
    weighted_curved_kernel: ClassVar[Any]

    def __post_init__(self) -> None:
        check_parameters(self)

    # ------------------------------------------------------------------------------------------- facts

    def lipschitz_l1(self, m: int) -> float:
        """G1, the largest l1 norm of a (sub)gradient with respect to the scores.

        Parameters
        ----------
        m : int
            Number of documents of the longest query.

        Returns
        -------
        float
            An upper bound for queries of at most ``m`` documents; ``inf`` if there is none.

        Raises
        ------
        RankwiseError
            If the loss does not declare the constant.
        """
        raise RankwiseError(f"{self.name} does not declare lipschitz_l1")

    @property
    def labels_per_term(self) -> Literal[1, 2] | None:
        """The number of labels in a term of the loss, where the loss is a sum of such terms; None if it is no such sum.

        1: it is f(scores) + sum_d f_d(scores, label_d), as with :attr:`linear_in_labels`; the ``estimate_kernel`` is
        then affine in what :meth:`prepare` makes of each label. 2: it is a sum over pairs of documents, and a term
        depends on the scores and labels of its two documents alone; the kernel on some of the documents is then the sum
        over the pairs among them. From the labels of k documents, drawn at random, such a loss has an unbiased estimate
        if a term needs no more than k labels (:mod:`rankwise.solvers.online.top_k_rounds`). A loss that normalizes by
        all labels of a query, such as a mean over its pairs, has none.
        """
        return 1 if self.linear_in_labels else None

    def term_lipschitz_l1(self, b: float, m: int, label: float) -> float:
        """The largest l1 norm of a (sub)gradient of one term, for losses with :attr:`labels_per_term`.

        Parameters
        ----------
        b : float
            Scores are in [-b, b].
        m : int
            Number of documents of the longest query.
        label : float
            The largest label.

        Returns
        -------
        float
            An upper bound for queries of at most ``m`` documents.

        Raises
        ------
        RankwiseError
            If the loss does not declare the constant.
        """
        raise RankwiseError(f"{self.name} does not declare term_lipschitz_l1")

    def smoothness(self, m: int) -> float:
        """H1, the largest change of the gradient in the l1 norm per unit of the largest change of a score.

        Parameters
        ----------
        m : int
            Number of documents of the longest query.

        Returns
        -------
        float
            An upper bound for queries of at most ``m`` documents; ``inf`` if there is none.
        """
        return np.inf

    def range(self, b: float, m: int, labels: tuple[float, float] = (0.0, 4.0)) -> tuple[float, float]:
        """Interval that holds the loss of every query with bounded scores.

        Parameters
        ----------
        b : float
            Scores are in [-b, b].
        m : int
            Number of documents of the longest query.
        labels : tuple of float, default=(0.0, 4.0)
            The smallest and the largest label.

        Returns
        -------
        tuple of float
            The smallest and the largest value.

        Raises
        ------
        RankwiseError
            If the loss does not declare its range.
        """
        raise RankwiseError(f"{self.name} does not declare its range")

    @property
    def upper_bounds(self) -> Measure | None:
        """The measure whose loss 1 - measure, under pessimistic ties, never exceeds this loss; None if none is."""
        return None

    @property
    def squared_pairs(self) -> bool | None:
        """True for a mean, False for a sum of squared pair hinges, whose Hessian products solvers have; else None."""
        return None

    @property
    def curvature(self) -> Literal["exact"] | None:
        """Whether ``curved_kernel`` computes the diagonal of the Hessian ("exact"); None: there is no such kernel."""
        return "exact" if hasattr(self, "curved_kernel") else None

    @property
    def order_free(self) -> bool:
        """Whether the loss does not depend on the order in which the documents are given."""
        return True

    @property
    def hinge_margin(self) -> float | None:
        """The margin of a loss that has one as a field; None for other losses."""
        return cast("float | None", getattr(self, "margin", None))

    def at_iteration(self, iteration: int) -> Self:
        """The loss with the random numbers of an iteration, for losses that draw some.

        What :meth:`prepare` computes does not depend on the iteration, so prepared lists stay valid.

        Parameters
        ----------
        iteration : int
            The number of the iteration, 0 or more.

        Returns
        -------
        Loss
            A loss that draws nothing is returned as it is.
        """
        return self

    def at_margin(self, margin: float) -> Self:
        """The same loss with another margin.

        Parameters
        ----------
        margin : float
            The new margin.

        Returns
        -------
        Loss
            A loss without a margin is returned as it is.
        """
        return self if self.hinge_margin is None else replace(self, margin=margin)  # type: ignore[call-arg]

    @classmethod
    def bounding(cls, measure: Measure) -> "Loss | None":
        """The loss of this class that upper-bounds 1 - measure and serves certificates about it.

        Parameters
        ----------
        measure : Measure
            The measure.

        Returns
        -------
        loss : Loss or None
            A loss whose ``upper_bounds`` is ``measure``; None if the class offers none.
        """
        return None

    @classmethod
    def examples(cls) -> Sequence[Self]:
        """The variants that the common tests run on; by default the one without arguments."""
        return (cls(),)

    # ------------------------------------------------------------------------------------------- for the kernel

    def row_values(self, labels: Vector) -> Vector:
        """What the kernel needs of each label besides the label itself, such as its gain.

        Parameters
        ----------
        labels : ndarray, shape (n_documents,)
            Labels of the documents.

        Returns
        -------
        ndarray, shape (n_documents,)
            One number per document.
        """
        return labels

    def prepare(self, labels: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        """Compute once what the kernel needs of the labels, for any number of score vectors.

        A loss overrides this if it needs all labels of a query together, for instance to find classes or weights.

        Parameters
        ----------
        labels : ndarray, shape (n_documents,)
            Labels in input order.
        start : ndarray of int64, shape (n_queries + 1,)
            Query q owns ``rows[start[q]:start[q+1]]``.
        rows : ndarray of int64 or None
            None: rows are grouped by query.

        Returns
        -------
        label, value : ndarray, shape (n_documents,)
            As the kernel takes them.
        """
        return labels, self.row_values(labels)

    def prepare_weighted(self, labels: Vector, weight: Vector, start: Rows, rows: Rows | None) -> tuple[Vector, Vector]:
        """What :meth:`prepare` computes, for ``weighted_kernel``.

        Parameters
        ----------
        labels : ndarray, shape (n_documents,)
            Labels in input order.
        weight : ndarray, shape (n_documents,)
            Document weights in input order.
        start : ndarray of int64, shape (n_queries + 1,)
            Query q owns ``rows[start[q]:start[q+1]]``.
        rows : ndarray of int64 or None
            None: rows are grouped by query.

        Returns
        -------
        label, value : ndarray, shape (n_documents,)
            As the kernel takes them; by default labels and weights.
        """
        return labels, weight

    def table(self, longest: int) -> Vector:
        """Numbers by position, such as discounts.

        Parameters
        ----------
        longest : int
            Number of documents of the longest query.

        Returns
        -------
        ndarray
            By default empty.
        """
        return np.zeros(0)

    def params(self) -> tuple[float, ...]:
        """The parameters of the loss as the kernel reads them."""
        return ()

    # ------------------------------------------------------------------------------------------- for users

    def __call__(
        self, scores: ArrayLike, labels: ArrayLike, document_weight: ArrayLike | None = None
    ) -> tuple[float, Vector]:
        """Compute the loss of one query and its gradient with respect to the scores.

        Parameters
        ----------
        scores : array-like, shape (n_documents,)
            Finite scores.
        labels : array-like, shape (n_documents,)
            Labels, 0 or more.
        document_weight : array-like, shape (n_documents,), default=None
            Document weights, if the loss takes them.

        Returns
        -------
        value : float
            The loss; 0 where every order is perfect.
        gradient : ndarray, shape (n_documents,)
            A (sub)gradient; 0 where every order is perfect.

        Raises
        ------
        RankwiseError
            If scores or labels are not valid.
        """
        from rankwise.losses.compute import PreparedLists, loss_lists

        s, y = as_scored_list(scores, labels)
        weight = None if document_weight is None else checks.as_document_weights(document_weight, len(y))
        values, gradient = loss_lists(PreparedLists.of(self, y, np.array([0, len(y)]), None, weight), s, n_jobs=1)
        return float(values[0]), gradient

    def _facts(self) -> Mapping[str, Any]:
        """Parameters, and the facts that solvers and certificates read."""
        declared = {name: getattr(self, name) for name in ("convex", "smooth", "nonnegative", "upper_bounds")}
        return {**super()._facts(), **declared}

    def __repr__(self) -> str:
        changed = (
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        )
        return f"{type(self).__name__}({', '.join(changed)})"


@dataclass(frozen=True, kw_only=True, repr=False)
class SmoothedMeasure(Loss):
    """Base class of the losses 1 - A, where A smooths a measure with a width ``sigma``.

    Attributes
    ----------
    offered_for : tuple of type
        The classes of the measures that :meth:`smoothing` is asked for.
    """

    convex = False
    offered_for: ClassVar[tuple[type[Measure], ...]] = (Measure,)

    @property
    def smooths(self) -> Measure | None:
        """The measure that A tends to as sigma goes to 0, if no scores tie; None if it is not declared."""
        return None

    @property
    def squared_width(self) -> bool:
        """Whether sigma is in squared units of the scores: scores times c with sigma times c^2 are the same; else c."""
        return False

    @classmethod
    def smoothing(cls, measure: Measure, form: Form = "sigmoid") -> "SmoothedMeasure | None":
        """The loss of this class that smooths a measure.

        Parameters
        ----------
        measure : Measure
            The measure.
        form : {"sigmoid", "indicator"}, default="sigmoid"
            The form of the smoothing, for classes that have several.

        Returns
        -------
        loss : SmoothedMeasure or None
            None if the class does not smooth this measure.
        """
        return None

    def discounted_gains(self, labels: Vector, longest: int) -> tuple[Vector, Vector] | None:
        """The gains of labels and the discounts of positions whose products A adds up.

        Parameters
        ----------
        labels : ndarray of shape (n_documents,)
            The labels.
        longest : int
            Number of positions.

        Returns
        -------
        terms : tuple of two ndarray, or None
            (gains, discounts); None if A is not a smoothed NDCG, for which the error of the smoothing is known.
        """
        return None

    def sigma_of(self, squared: float) -> float:
        """The sigma of a width that is given in squared units of the scores.

        Parameters
        ----------
        squared : float
            The width.

        Returns
        -------
        float
            The same number, or its square root where sigma is in units of the scores, see :attr:`squared_width`.
        """
        return squared if self.squared_width else squared**0.5

    def at_sigma(self, sigma: float) -> Self:
        """The same loss with another width of the smoothing.

        What :meth:`prepare` computes does not depend on the width, so prepared lists stay valid.

        Parameters
        ----------
        sigma : float
            The new width.

        Returns
        -------
        SmoothedMeasure
            A copy.
        """
        return replace(self, sigma=sigma)  # type: ignore[call-arg]

    def measure_value(self, scores: ArrayLike, labels: ArrayLike) -> float:
        """Compute A itself, the number that papers print.

        Parameters
        ----------
        scores : array-like, shape (n_documents,)
            Finite scores.
        labels : array-like, shape (n_documents,)
            Labels, 0 or more.

        Returns
        -------
        float
            A; 1 where every order is perfect.
        """
        return 1.0 - self(scores, labels)[0]


def as_scored_list(scores: ArrayLike, labels: ArrayLike) -> tuple[Vector, Vector]:
    """The scores, which must be finite, and the labels of one query."""
    y = checks.as_one_list(labels, "labels")
    y = checks.as_labels(y, len(y))
    s = checks.as_vector(checks.as_one_list(scores, "scores"), len(y), "scores")
    refuse_unless_finite(s)
    return s, y


def refuse_unless_finite(scores: Vector) -> None:
    """Raise an error for the first score that is not a finite number."""
    finite = np.isfinite(scores)
    if not finite.all():
        place = int(np.argmin(finite))
        raise DataError(f"scores must be finite, got {scores[place]} at row {place:,}")


def registered() -> dict[str, type[Loss]]:
    """Every loss by name: those of this package and those that installed packages declare."""
    return cast("dict[str, type[Loss]]", discover("rankwise.losses", Loss, "rankwise.losses"))


def upper_bound_of(measure: Measure) -> Loss | None:
    """A loss that upper-bounds 1 - measure, from any class that offers one; None if there is none.

    Parameters
    ----------
    measure : Measure
        The measure.

    Returns
    -------
    loss : Loss or None
        The first that :meth:`Loss.bounding` of a registered class gives.
    """
    offered = (kind.bounding(measure) for kind in registered().values())
    return next((loss for loss in offered if loss is not None), None)


def smoothed(measure: Measure, form: Form = "sigmoid") -> SmoothedMeasure:
    """The loss 1 - A whose A tends to the measure as sigma tends to 0, from any class that offers one.

    Parameters
    ----------
    measure : Measure
        The measure.
    form : {"sigmoid", "indicator"}, default="sigmoid"
        The form of the smoothing, for measures that have several.

    Returns
    -------
    loss : SmoothedMeasure
        The first that :meth:`SmoothedMeasure.smoothing` of a registered class gives.

    Raises
    ------
    RankwiseError
        If no loss smooths the measure.
    """
    for kind in registered().values():
        if not (issubclass(kind, SmoothedMeasure) and isinstance(measure, kind.offered_for)):
            continue
        if (loss := kind.smoothing(measure, form)) is not None:
            return loss
    raise RankwiseError(f"only nDCG, nDCG@k, DCG@k, AP, P@k and RR can be smoothed, got {measure!r}")
