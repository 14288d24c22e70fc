"""A cut-off with a guarantee as a value: which documents it keeps, what is guaranteed of them, and what calibrated it.

:class:`Cutoff` is what :func:`rankwise.cutoff` returns. It belongs to one model, is written to and read from a small
JSON file, and knows the fingerprints of its calibration queries, which cannot certify the lists that it cuts.
"""

import base64
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from rankwise._arrays import Mask, Numbers, Vector
from rankwise._files import path_of, writing
from rankwise._tables import ShownAsFacts, Table
from rankwise.errors import DataError, FileFormatError, RankwiseError
from rankwise.guarantees._bound import CALIBRATION, Bound, Precondition, Scope
from rankwise.guarantees.certificate import as_json_number, bound_as_json, bound_of_json, of_json_number
from rankwise.queries.fingerprints import SKETCHED, Fingerprints, pack_marks
from rankwise.queries.queries import Queries

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAYOUT = 1
By = Literal["score", "standardized", "rank"]
BY: tuple[str, ...] = get_args(By)
_CURVE = ("cut", "kept", "documents", "estimate", "bound")


def standardize(scores: Vector, query: Numbers, sizes: Numbers) -> Vector:
    r"""Standardize scores within each query.

    .. math:: z = (s - \bar s) / \sigma

    with the mean and the standard deviation of the query's own documents; 0 where all of its scores are equal.

    Parameters
    ----------
    scores : ndarray, shape (n_documents,)
        Finite scores.
    query : ndarray of int64, shape (n_documents,)
        The query of each document.
    sizes : ndarray of int64, shape (n_queries,)
        Documents per query.

    Returns
    -------
    ndarray, shape (n_documents,)
        The standardized scores.
    """
    count = np.maximum(sizes, 1)
    order = np.lexsort((scores, query))  # sums in the order of the scores do not depend on the order of the rows

    def means(values: Vector) -> Vector:
        return np.asarray(np.bincount(query[order], values[order], len(sizes)) / count)

    away = scores - means(scores)[query]
    spread = np.sqrt(means(away**2))[query]
    return np.divide(away, spread, out=np.zeros_like(away), where=spread > 1e-12 * np.abs(scores).max(initial=0.0))


def places(scores: Vector, query: Numbers, sizes: Numbers) -> Numbers:
    """The rank of every document in its query, from 1 on; equal scores keep the order of the input."""
    order = np.lexsort((-scores, query))  # stable
    found = np.empty(len(scores), np.int64)
    found[order] = np.arange(1, len(order) + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return found


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Cutoff(ShownAsFacts):
    """Where to cut lists, with what is guaranteed of those that are cut.

    Attributes
    ----------
    keep : str
        The demand.
    by : {"score", "standardized", "rank"}
        Whether ``value`` is a threshold on scores, a threshold on scores standardized within their query, or a number
        of documents.
    value : float
        Kept are the documents with at least this score, all tied ones included, or so many of the best. -inf, or a
        number of inf, keeps everything; inf, or a number of 0, nothing.
    share_kept : float
        The share of the calibration set's documents that is kept.
    estimate : float
        The mean of what the demand is about over the calibration queries that count.
    bound : Bound
        What is guaranteed: the demand, with its population, its numbers and its preconditions.
    curve : Table
        Columns cut, kept (share of the documents), documents (kept per query), estimate and bound, for some cuts of the
        sequence. Each bound holds for its cut alone, with probability 1 - delta.
    vacuous : bool
        Whether no cut was shown, so the cut-off is the beginning of its sequence: it keeps everything, or nothing.
    model : str or None
        SHA-256 of what the model had learned; None for scores of another source.
    scaling : str or None
        SHA-256 of the scaler of the calibration queries; None for queries that were not scaled.
    calibrated_on : Fingerprints
        The calibration queries.
    notes : tuple of str
        Repeated and known queries of the calibration set.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.make_lists(500, documents=20, random_state=0)
    >>> model = rw.RidgeRanker().fit(lists[:200])
    >>> found = rw.cutoff(model, lists[200:], keep="recall>=0.8")
    >>> print(found)
    keep score >= -1.03125: 60.9% of the documents
    R of what is kept on future queries with a relevant document >= 0.8 with probability 0.95
    (0.836 on 297 of 300 calibration queries)
    >>> model.rank(lists[:1], cutoff=found).columns
    ('qid', 'docid', 'rank', 'score')
    """

    keep: str
    by: By
    value: float
    share_kept: float
    estimate: float
    bound: Bound
    curve: Table
    vacuous: bool = False
    model: str | None = None
    scaling: str | None = None
    calibrated_on: Fingerprints = field(default_factory=Fingerprints)
    notes: tuple[str, ...] = ()

    scope: ClassVar[Scope] = CALIBRATION

    @property
    def preconditions(self) -> tuple[Precondition, ...]:
        """The conditions of the guarantee, each with whether it is met."""
        return self.bound.preconditions

    @property
    def rule(self) -> str:
        """Which documents are kept, in words."""
        if self.by == "rank":
            if math.isinf(self.value):
                return "keep every document"
            return f"keep the first {self.value:,.0f} documents" if self.value else "keep no document"
        if math.isinf(self.value):
            return "keep every document" if self.value < 0 else "keep no document"
        return f"keep {'score' if self.by == 'score' else 'standardized score'} >= {self.value:.6g}"

    def __repr__(self) -> str:
        sign = "<=" if self.bound.side == "at most" else ">="
        n, drawn = self.bound.terms["n"], self.bound.terms["drawn"]
        count = f"{n:,.0f}{'' if n == drawn else f' of {drawn:,.0f}'} calibration queries"
        lines = [
            f"{self.rule}: {100 * self.share_kept:.1f}% of the documents",
            f"{self.bound.bounds} {sign} {self.bound.value:g} with probability {1 - self.bound.terms['delta']:g}",
            f"({self.estimate:.3f} on {count})",
        ]
        if self.vacuous:
            lines.append("- no cut was shown to meet the demand: more calibration queries, or a lower demand")
        return "\n".join([*lines, *(f"- {note}" for note in self.notes)])

    # ------------------------------------------------------------------------------------------- cutting

    def kept(self, queries: Queries, scores: Vector) -> Mask:
        """Which documents are kept.

        Parameters
        ----------
        queries : Queries
            The queries, with or without labels.
        scores : array-like, shape (n_documents,)
            The scores of their documents by the model of the cut-off.

        Returns
        -------
        ndarray of bool, shape (n_documents,)
            True for the documents that are kept.

        Examples
        --------
        >>> import rankwise as rw
        >>> lists = rw.make_lists(500, documents=20, random_state=0)
        >>> scores = lists.X[:, 0]
        >>> found = rw.cutoff(scores[4000:], lists[200:], keep="recall>=0.8", by="rank")
        >>> int(found.value), int(found.kept(lists[:3], scores[:60]).sum())
        (13, 39)
        """
        self.refuse_other_scaling(queries)
        given = np.asarray(scores, dtype=np.float64)
        if given.shape != (queries.n_documents,):
            raise DataError(f"scores must hold one number per document, {queries.n_documents:,}, got {given.shape}")
        return self.kept_of(given, queries.query_of_row, queries.sizes)

    def kept_of(self, scores: Vector, query: Numbers, sizes: Numbers) -> Mask:
        """Which documents are kept, from their scores and their queries; see :meth:`kept`."""
        if self.by == "rank":
            return np.asarray(places(scores, query, sizes) <= self.value)
        shown = standardize(scores, query, sizes) if self.by == "standardized" else scores
        return np.asarray(shown >= self.value)

    def refuse_other_model(self, digest: str | None, name: str) -> None:
        """Raise an error for a model with another digest than that of the cut-off."""
        if self.model is not None and digest != self.model:
            raise RankwiseError(
                f"the cut-off belongs to another model than this {name}: its threshold means nothing for other scores; "
                "calibrate one for this model, by cutoff(model, queries, keep=...)"
            )

    def refuse_other_scaling(self, queries: Queries) -> None:
        """Raise an error for queries that were scaled in another way than the calibration queries."""
        given = None if queries.scaling is None else queries.scaling.digest_
        if given != self.scaling and queries.built_by is None:
            was, now = ("raw" if one is None else "scaled" for one in (self.scaling, given))
            how = f"these are {now}" if was != now else "these were scaled by another Scaler"
            raise RankwiseError(
                f"the cut-off was calibrated on {was} queries, and {how}: their scores are on another scale"
            )

    # ------------------------------------------------------------------------------------------- figure

    def plot(self) -> "Figure":
        """Draw the share of documents kept, the estimate and its bound, against the cut; needs the extra ``plot``.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from rankwise._figures import COLORS, FAINT, INK, house_style, new_figure

        cut = self.curve["cut"]
        figure = new_figure(5.2, 4.4)
        with house_style():
            above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
            above.plot(cut, self.curve["estimate"], color=COLORS[0], label="mean of the calibration queries")
            side = "upper" if self.bound.side == "at most" else "lower"
            above.plot(
                cut, self.curve["bound"], color=COLORS[0], linestyle="--", label=f"{side} bound for each cut alone"
            )
            above.axhline(self.bound.value, color=COLORS[1], linewidth=1.0, label=f"demanded: {self.bound.value:g}")
            below.plot(cut, 100 * self.curve["kept"], color=COLORS[2])
            below.set_ylim(-3, 103)
            if np.isfinite(self.value):
                for axes in (above, below):
                    axes.axvline(self.value, color=INK, linewidth=1.0, linestyle=":")
                below.plot([self.value], [100 * self.share_kept], "o", color=INK, markersize=5)
            below.set_title(f"{self.rule}: {100 * self.share_kept:.0f}% of the documents")
            above.set_title(self.bound.bounds, wrap=True)
            above.set_ylabel(self.keep.rpartition(" ")[0].rpartition(" ")[0])
            below.set_ylabel("documents kept, %")
            below.set_xlabel({"score": "score", "standardized": "standardized score", "rank": "documents"}[self.by])
            above.legend(loc="best")
            above.tick_params(colors=FAINT, labelcolor=INK)
        return figure

    # ------------------------------------------------------------------------------------------- to JSON and back

    def to_dict(self) -> dict[str, Any]:
        """The cut-off as plain values; "inf" and "-inf", which JSON lacks, are strings."""
        marks = self.calibrated_on.marks
        return {
            "cutoff": LAYOUT,
            "keep": self.keep,
            "by": self.by,
            "value": as_json_number(self.value),
            "rule": self.rule,
            "share_kept": self.share_kept,
            "estimate": self.estimate,
            "vacuous": self.vacuous,
            "bound": bound_as_json(self.bound),
            "curve": {name: [as_json_number(one) for one in self.curve[name].tolist()] for name in _CURVE},
            "model": self.model,
            "scaling": self.scaling,
            "notes": list(self.notes),
            "calibrated_on": {
                "hash": _packed(marks["hash"].astype("<u8")),
                "documents": _packed(marks["documents"].astype("<u4")),
                "forgotten": self.calibrated_on.forgotten,
            },
        }

    def to_json(self, indent: int | None = None) -> str:
        """The cut-off as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Cutoff":
        """Read what :meth:`to_dict` returned; raises RankwiseError for anything else."""
        try:
            layout, by = document["cutoff"], document["by"]
            if not isinstance(layout, int) or layout > LAYOUT:
                raise RankwiseError(f"cut-off layout {layout!r:.20} requires a newer version of rankwise")
            if by not in BY:
                raise ValueError(f"by is {by!r:.40}")
            value, bound = of_json_number(document["value"]), bound_of_json(document["bound"])
            if math.isnan(value) or not {"n", "drawn", "delta"} <= set(bound.terms):
                raise ValueError("its numbers are incomplete")
            seen = document["calibrated_on"]
            hashes = _unpacked(seen["hash"], "<u8")
            sketches = _unpacked(seen["documents"], "<u4").reshape(len(hashes), SKETCHED)
            return cls(
                keep=str(document["keep"]),
                by=by,
                value=value,
                share_kept=float(document["share_kept"]),
                estimate=float(document["estimate"]),
                vacuous=bool(document["vacuous"]),
                bound=bound,
                curve=Table({name: [of_json_number(one) for one in document["curve"][name]] for name in _CURVE}),
                model=_text_or_none(document["model"]),
                scaling=_text_or_none(document["scaling"]),
                notes=tuple(map(str, document["notes"])),
                calibrated_on=Fingerprints.of(pack_marks(hashes, sketches), int(seen["forgotten"])),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise RankwiseError(f"this is not a cut-off: {type(error).__name__}: {error!s:.80}") from error

    @classmethod
    def from_json(cls, text: str) -> "Cutoff":
        """Read what :meth:`to_json` returned; raises RankwiseError for anything else."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RankwiseError(f"this is not a cut-off, because it is not JSON: {error!s:.80}") from error
        return cls.from_dict(document)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the cut-off to a JSON file, which :meth:`load` reads.

        Parameters
        ----------
        path : str or path-like
            The file; an existing one is replaced atomically.
        """
        with writing(path) as part:
            part.write_text(self.to_json(indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Cutoff":
        """Read the file of a cut-off.

        Parameters
        ----------
        path : str or path-like
            A file that :meth:`save` wrote.

        Returns
        -------
        Cutoff
            The cut-off.
        """
        name = path_of(path)
        try:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            raise FileFormatError(f"{name} does not exist") from None
        except (OSError, UnicodeDecodeError) as error:
            raise FileFormatError(f"{name} is not a cut-off: {error!s:.80}") from error
        try:
            return cls.from_json(text)
        except RankwiseError as error:
            raise FileFormatError(f"{name}: {error}") from error


def _packed(array: Any) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")


def _unpacked(text: Any, dtype: str) -> Any:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype).astype(dtype.replace("<", "="))


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)
