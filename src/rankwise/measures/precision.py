"""Precision, recall, R-precision and success: how many relevant (or judged) documents are among the first k.

The kernels share :func:`relevant_within`, the expected number of relevant documents above the cut-off, and
:func:`first_relevant_block`, which :class:`~rankwise.measures.RR` uses, too.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.machine.jit import kernel
from rankwise.measures._base import BinaryMeasure, Measure, Vector


@kernel
def relevant_within(value, end, retrieved, cut):
    """Expected number of relevant documents among the first ``cut``."""
    found = 0.0
    stop = int(min(cut, float(retrieved)))
    t = 0
    while t < stop:
        e = end[t]
        found += value[t:e].sum() * ((min(e, stop) - t) / (e - t))
        t = e
    return found


@kernel
def precision_formula(value, end, retrieved, best, table, params):
    """P@k; ``params`` are k and whether a short list is divided by its own length."""
    if best.sum() == 0.0:
        return np.nan
    size = min(params[0], float(len(best))) if params[1] != 0.0 else params[0]
    return relevant_within(value, end, retrieved, params[0]) / size


@kernel
def recall_formula(value, end, retrieved, best, table, params):
    """R@k."""
    relevant = best.sum()
    if relevant == 0.0:
        return np.nan
    return relevant_within(value, end, retrieved, params[0]) / relevant


@kernel
def rprec_formula(value, end, retrieved, best, table, params):
    """Rprec."""
    relevant = best.sum()
    if relevant == 0.0:
        return np.nan
    return relevant_within(value, end, retrieved, relevant) / relevant


@kernel
def first_relevant_block(value, end, stop):
    """(begin, relevant documents) of the first tie block before ``stop`` that holds a relevant one, or (-1, 0)."""
    t = 0
    while t < stop:
        inside = value[t : end[t]].sum()
        if inside > 0.0:
            return t, inside
        t = end[t]
    return -1, 0.0


@kernel
def success_formula(value, end, retrieved, best, table, params):
    """Success@k."""
    if best.sum() == 0.0:
        return np.nan
    stop = int(min(params[0], float(retrieved)))
    t, inside = first_relevant_block(value, end, stop)
    if t < 0:
        return 0.0
    size = end[t] - t
    missed = 1.0  # probability that the places of the block within the cut-off hold no relevant document
    for j in range(min(end[t], stop) - t):
        missed *= max(0.0, size - inside - j) / (size - j)
    return 1.0 - missed


@dataclass(frozen=True, kw_only=True, repr=False)
class P(BinaryMeasure):
    """Precision: P@k = (relevant documents in 1..k) / k.

    Parameters
    ----------
    cutoff : int
        The cut-off k; required.
    rel : float, default=1
        A document is relevant if its label is at least this.
    short : {"k", "list"}, default="k"
        What to divide by if the list is shorter than k: k as in trec_eval, or its own length as in XGBoost.

    Notes
    -----
    A query without a relevant document cannot distinguish rankers and counts as empty, as in every measure.
    """

    short: Literal["k", "list"] = "k"

    name = "P"
    aliases = ("Precision",)
    needs_cutoff = True
    kernel = precision_formula

    def at_each_cutoff(self, value: Vector) -> Vector:
        """The relevant documents so far, divided by their places."""
        return np.cumsum(value) / np.arange(1, len(value) + 1)

    def params(self) -> tuple[float, ...]:
        """Whether a list shorter than k is divided by its own length."""
        return (float(self.short == "list"),)


@dataclass(frozen=True, kw_only=True, repr=False)
class R(BinaryMeasure):
    """Recall: R@k = (relevant documents in 1..k) / (relevant documents).

    Parameters
    ----------
    cutoff : int
        The cut-off k; required.
    rel : float, default=1
        A document is relevant if its label is at least this.

    Notes
    -----
    The measure is 0/0 if no document is relevant.
    """

    name = "R"
    aliases = ("Recall",)
    needs_cutoff = True
    grows_to_one = True
    kernel = recall_formula

    def at_each_cutoff(self, value: Vector) -> Vector:
        """The relevant documents so far, divided by all of them."""
        found = np.cumsum(value)
        return np.asarray(found / found[-1])


@dataclass(frozen=True, kw_only=True, repr=False)
class Rprec(BinaryMeasure):
    """R-precision: Rprec = (relevant documents in 1..r) / r, where r documents are relevant.

    Precision and recall are equal at this cut-off, which every query has of its own.

    Parameters
    ----------
    cutoff : None
        Not allowed; the number of relevant documents is the cut-off.
    rel : float, default=1
        A document is relevant if its label is at least this.

    Notes
    -----
    The measure is 0/0 if no document is relevant.

    Examples
    --------
    >>> Rprec()([0.9, 0.5, 0.3, 0.1], [1, 0, 1, 0])
    0.5
    """

    name = "Rprec"
    aliases = ("RPrecision",)
    takes_cutoff = False
    kernel = rprec_formula


@dataclass(frozen=True, kw_only=True, repr=False)
class Success(BinaryMeasure):
    """Success@k = 1 if any of the first k documents is relevant, else 0.

    Parameters
    ----------
    cutoff : int
        The cut-off k; required.
    rel : float, default=1
        A document is relevant if its label is at least this.

    Notes
    -----
    A query without a relevant document counts as empty.
    """

    name = "Success"
    needs_cutoff = True
    grows_to_one = True
    kernel = success_formula


# ---------------------------------------------------------------------------------------------------- judged documents


@kernel
def judged_formula(value, end, retrieved, best, table, params):
    """Judged@k; ``value`` is 1 for judged documents."""
    if len(value) == 0:
        return np.nan
    if retrieved == 0:
        return 0.0
    return relevant_within(value, end, retrieved, params[0]) / min(params[0], float(retrieved))


@dataclass(frozen=True, kw_only=True, repr=False)
class Judged(Measure):
    """Judged@k = (judged documents in 1..k) / k, or divided by the number of retrieved documents if that is smaller.

    It measures the judgments and not the ranking: where it is far below 1, the other measures take much for
    non-relevant that nobody looked at. ir-measures has the same definition.

    Parameters
    ----------
    cutoff : int
        The cut-off k; required.

    Notes
    -----
    The measure is 0/0 if a query has no documents, and 0 if none was retrieved. A query without a relevant document
    counts, other than in all other measures.

    Examples
    --------
    >>> (Judged() @ 2)([0.9, 0.5, 0.1], [1, 0, 0], judged=[True, False, True])
    0.5
    """

    name = "Judged"
    needs_cutoff = True
    depends_on_labels = False
    kernel = judged_formula

    def row_values(self, labels: Vector) -> Vector:
        """1 for every document."""
        return np.ones(len(labels))

    def row_values_judged(self, labels: Vector, judged: NDArray[np.bool_]) -> Vector:
        """1 for judged documents, 0 for others."""
        return judged.astype(np.float64)


# ---------------------------------------------------------------------------------------------------- reciprocal rank


@kernel
def rr_formula(value, end, retrieved, best, table, params):
    """RR; ``value`` holds 0/1 relevance."""
    if best.sum() == 0.0:
        return np.nan
    stop = int(min(params[0], float(retrieved)))
    t, inside = first_relevant_block(value, end, stop)
    if t < 0:
        return 0.0
    size = end[t] - t
    total = 0.0
    none_yet = 1.0  # probability that the places 1..q of the block hold no relevant document
    for q in range(min(end[t], stop) - t):
        total += none_yet * (inside / (size - q)) / (t + q + 1)
        none_yet *= (size - q - inside) / (size - q)
    return total


@dataclass(frozen=True, kw_only=True, repr=False)
class RR(BinaryMeasure):
    """Reciprocal rank: RR = 1 / (position of the first relevant document), 0 if it is below the cut-off.

    Parameters
    ----------
    cutoff : int, default=None
        The cut-off k; None for the whole list.
    rel : float, default=1
        A document is relevant if its label is at least this.

    Notes
    -----
    The measure is 0/0 if no document is relevant.

    Examples
    --------
    >>> RR()([0.3, 0.1, 0.9], [1, 0, 0])
    0.5
    """

    name = "RR"
    aliases = ("MRR",)
    kernel = rr_formula

    @property
    def decisive_positions(self) -> float:
        """1: once the first document is relevant, nothing below it matters."""
        return 1.0
