"""Why a ranker puts one document above another, feature by feature.

The score of an additive ranker is a constant plus one part per feature, s(x) = c + sum_j f_j(x_j), so the difference of
two scores is the sum of f_j(x_aj) - f_j(x_bj). For linear rankers that is w_j (x_aj - x_bj). A ranker declares its
parts by ``_contributions``; :func:`explain` subtracts them and returns an :class:`Explanation` of two documents, or a
:class:`QueryExplanation` of all documents of a query against the average one.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._figures import COLORS, FAINT, house_style, new_figure
from rankwise._tables import Table, notebook_html, paragraph
from rankwise.errors import DataError, RankwiseError
from rankwise.queries import checks
from rankwise.queries.checks import names_or_columns
from rankwise.queries.queries import Queries
from rankwise.queries.selection import Query
from rankwise.rankers._base import LinearRanker, Ranker
from rankwise.rankers._inputs import align, as_rows
from rankwise.rankers.model_files import instead_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Vector = NDArray[np.float64]

MEAN = "the average document"
_DRAWN = 15  # features, or documents, that a picture shows
_COLUMNS = 5  # features with a column of their own in the table of a query


def explain(model: Ranker, query: Any, a: Any = None, b: Any = None) -> "Explanation | QueryExplanation":
    r"""Explain why a ranker puts document ``a`` above document ``b``, feature by feature.

    .. math:: s(x_a) - s(x_b) = \sum_j \big( f_j(x_{aj}) - f_j(x_{bj}) \big),
        \qquad f_j(x) = w_j x \text{ for linear rankers}

    Parameters
    ----------
    model : Ranker
        A fitted ranker whose score is a sum over features: every linear ranker, sums of steps such as
        :class:`RankBoost` and :class:`FRank`, and a :class:`HybridRanker` with the arithmetic mean.
    query : Query, Queries of one query, data frame or array of shape (n_documents, n_features)
        The documents, as ``model.predict`` takes them.
    a : int or str, default=None
        A document: its row in the query, from 0, or its id. None explains all documents of the query.
    b : int or str, default=None
        The document to compare with. None compares with the mean contribution of the documents of the query.

    Returns
    -------
    Explanation or QueryExplanation
        Of two documents, the features with the largest contributions first; or of all documents, the best first. Both
        print as tables and have ``table()``, ``to_dict()`` and ``plot()``.

    Raises
    ------
    RankwiseError
        If the score of the ranker is not a sum over features, or if there is no such document.

    Notes
    -----
    A contribution of a linear ranker is one subtraction and one multiplication in float64, each rounded once; that of a
    sum of steps is one subtraction. ``difference`` is that of the scores of ``predict``, and ``rounding`` what the
    contributions, added exactly, lack to it: some units in the last place of the largest term.

    Contributions of correlated features can be large and cancel each other. They explain the score, not the label.

    Examples
    --------
    >>> from rankwise import LinearModel, Queries
    >>> names = ["bm25", "age"]
    >>> queries = Queries.from_arrays(
    ...     [[3.0, 1.0], [1.0, 2.0]], qid=[7, 7], docid=["d1", "d2"], feature_names=names
    ... )
    >>> explain(LinearModel.of([0.5, -0.25], feature_names=names), queries[0], "d1", "d2")
    LinearModel: d1 above d2, 1.2500 against 0.0000
    feature       a       b    adds
    bm25     3.0000  1.0000  1.0000
    age      1.0000  2.0000  0.2500
    """
    lists = _one_query(model, query)
    names, scores = names_or_columns(lists), model.predict(lists)
    parts = contributions_of(model, lists)
    shown = [f"row {name}" if lists.docid is None else str(name) for name in _names(lists)]
    if a is None:
        if b is not None:
            raise DataError("explain(model, query, a, b) compares a with b: pass a as well")
        mean = parts.mean(axis=0) if len(parts) else np.zeros(len(names))
        return QueryExplanation(model.name, _names(lists), scores, parts - mean, names, lists.y)
    one = _place(lists, a)
    values = _raw_values(model, lists.X)
    if b is None:
        part = parts[one] - parts.mean(axis=0)
        sides = values[one], values.mean(axis=0)
        return Explanation(model.name, shown[one], MEAN, (float(scores[one]), _mean(scores)), names, sides, part)
    two = _place(lists, b)
    if isinstance(model, LinearRanker) and hasattr(model, "coef_"):
        # the subtraction comes first: products of large, almost equal values would cancel
        part = model.coef_ * (lists.X[one].astype(np.float64) - lists.X[two].astype(np.float64))
    else:
        part = parts[one] - parts[two]
    both = float(scores[one]), float(scores[two])
    return Explanation(model.name, shown[one], shown[two], both, names, (values[one], values[two]), part)


@dataclass(frozen=True, eq=False)
class Explanation:
    """What every feature adds to the score of one document over that of another.

    Attributes
    ----------
    ranker : str
        The name of the ranker.
    a, b : str
        The documents.
    scores : tuple of two float
        Their scores.
    features : list of str
        The features, in the order of the ranker.
    values : tuple of two ndarray of shape (n_features,)
        The values of both documents; in raw units where the ranker knows the scaling of its features.
    contribution : ndarray of shape (n_features,)
        What each feature adds to the score of ``a`` over that of ``b``.
    """

    ranker: str
    a: str
    b: str
    scores: tuple[float, float]
    features: list[str]
    values: tuple[Vector, Vector]
    contribution: Vector

    @property
    def difference(self) -> float:
        """The score of ``a`` minus the score of ``b``."""
        return self.scores[0] - self.scores[1]

    @property
    def rounding(self) -> float:
        """The difference minus the exact sum of the contributions: nothing but rounding."""
        return math.fsum([*self.scores[:1], -self.scores[1], *(-self.contribution).tolist()])

    def table(self) -> Table:
        """The features, the largest contribution first.

        Returns
        -------
        Table
            Columns feature, a, b (the values of both documents) and adds.
        """
        order = np.argsort(-np.abs(self.contribution), kind="stable")
        return Table(
            {
                "feature": [self.features[place] for place in order],
                "a": self.values[0][order],
                "b": self.values[1][order],
                "adds": self.contribution[order],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON.

        Returns
        -------
        dict
            The documents, their scores, the difference, the rounding, and the columns of :meth:`table`.
        """
        return {
            "ranker": self.ranker,
            "a": self.a,
            "b": self.b,
            "scores": list(self.scores),
            "difference": self.difference,
            "rounding": self.rounding,
            "features": self.table().to_dict(),
        }

    def plot(self) -> "Figure":
        """Draw the largest contributions as bars; needs the extra ``plot``.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        table = self.table()
        rows = list(table)[:_DRAWN]
        figure = new_figure(5.2, 1.2 + 0.2 * max(1, len(rows)))
        with house_style():
            axes = figure.subplots()
            at = np.arange(len(rows))[::-1]
            colors = [COLORS[0] if row["adds"] >= 0 else COLORS[1] for row in rows]
            axes.barh(at, [row["adds"] for row in rows], color=colors, height=0.7)
            axes.axvline(0, color=FAINT, linewidth=0.8)
            axes.set_yticks(at, [row["feature"] for row in rows])
            axes.grid(visible=False, axis="y")
            axes.set_xlabel(f"adds to the difference of {self.difference:+.4g}")
            axes.set_title(f"{self.a} over {self.b}")
        return figure

    def _headline(self) -> str:
        sign = "above" if self.difference > 0 else "below" if self.difference < 0 else "level with"
        return f"{self.ranker}: {self.a} {sign} {self.b}, {self.scores[0]:.4f} against {self.scores[1]:.4f}"

    def __repr__(self) -> str:
        return f"{self._headline()}\n{self.table()!r}"

    def _repr_html_(self) -> str:
        return notebook_html(paragraph(self._headline()), self.table().html())


@dataclass(frozen=True, eq=False)
class QueryExplanation:
    """What every feature adds to the score of every document, over the average document of the query.

    Attributes
    ----------
    ranker : str
        The name of the ranker.
    documents : list
        The documents, in the order of the rows.
    scores : ndarray of shape (n_documents,)
        Their scores.
    contribution : ndarray of shape (n_documents, n_features)
        What each feature adds; a row adds up to the score minus the mean score.
    features : list of str
        The features.
    labels : ndarray of shape (n_documents,) or None
        The labels, where there are some.
    """

    ranker: str
    documents: list[Any]
    scores: Vector
    contribution: Vector
    features: list[str]
    labels: Vector | None = None

    @property
    def order(self) -> NDArray[np.int64]:
        """The rows from best to worst; equal scores keep the order of the rows."""
        return np.argsort(-self.scores, kind="stable")

    @property
    def largest(self) -> NDArray[np.int64]:
        """The features, those whose contributions differ most between documents first."""
        spread = np.ptp(self.contribution, axis=0) if len(self.contribution) else np.zeros(len(self.features))
        return np.argsort(-spread, kind="stable")

    def table(self, columns: int = _COLUMNS) -> Table:
        """The documents, the best first, with a column for each of the features that move them most.

        Parameters
        ----------
        columns : int, default=5
            How many features have a column; ``others`` is the sum of the rest.

        Returns
        -------
        Table
            Columns rank, document, label where there are labels, score, features, others.
        """
        order, shown = self.order, self.largest[:columns]
        rest = np.delete(self.contribution, shown, axis=1).sum(axis=1)
        head: dict[str, Any] = {
            "rank": np.arange(1, len(order) + 1),
            "document": [self.documents[row] for row in order],
            **({} if self.labels is None else {"label": self.labels[order]}),
            "score": self.scores[order],
        }
        taken = [*head, "others"]
        found = {
            (f"{self.features[place]} " if self.features[place] in taken else self.features[place]): place
            for place in shown
        }
        parts = {name: self.contribution[order, place] for name, place in found.items()}
        return Table({**head, **parts, **({"others": rest[order]} if len(self.features) > len(shown) else {})})

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, the best document first.

        Returns
        -------
        dict
            The documents with ranks, scores and the contributions of all features.
        """
        order = self.order
        return {
            "ranker": self.ranker,
            "features": list(self.features),
            "documents": [
                {
                    "rank": rank,
                    "document": str(self.documents[row]),
                    "label": None if self.labels is None else float(self.labels[row]),
                    "score": float(self.scores[row]),
                    "adds": self.contribution[row].tolist(),
                }
                for rank, row in enumerate(order.tolist(), start=1)
            ],
        }

    def plot(self) -> "Figure":
        """Draw the contributions of the first documents, one row per document; needs the extra ``plot``.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        order, shown = self.order[:_DRAWN], self.largest[:_DRAWN]
        values = self.contribution[order][:, shown]
        limit = float(np.abs(values).max(initial=0)) or 1.0
        figure = new_figure(2.2 + 0.3 * max(1, len(shown)), 1.6 + 0.2 * max(1, len(order)))
        with house_style():
            axes = figure.subplots()
            drawn = axes.imshow(values, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
            axes.set_yticks(np.arange(len(order)), [str(self.documents[row]) for row in order])
            axes.set_xticks(np.arange(len(shown)), [self.features[place] for place in shown], rotation=60, ha="right")
            axes.grid(visible=False)
            figure.colorbar(drawn, label="adds to the score")
            axes.set_title(f"{self.ranker}: contributions over {MEAN}")
        return figure

    def _headline(self) -> str:
        return f"{self.ranker}: what features add to the score of each document, over {MEAN} ({_mean(self.scores):.4f})"

    def __repr__(self) -> str:
        return f"{self._headline()}\n{self.table()!r}"

    def _repr_html_(self) -> str:
        return notebook_html(paragraph(self._headline()), self.table().html())


def contributions_of(model: Any, queries: Queries) -> Vector:
    """What each feature adds to the score of each document.

    Parameters
    ----------
    model : Ranker
        A fitted ranker.
    queries : Queries
        The documents, with their features in the order of the ranker.

    Returns
    -------
    ndarray of shape (n_documents, n_features)
        The contributions; with a constant they add up to the scores.

    Raises
    ------
    RankwiseError
        If the score is not a sum over features.
    """
    found = model._contributions(queries.X)
    if found is None:
        raise RankwiseError(
            f"the score of {model.name} is not a sum over features, so features have no contributions: "
            "use permutation_importance, which works for every ranker"
        )
    return np.asarray(found[0], dtype=np.float64)


def _one_query(model: Any, query: Any) -> Queries:
    """The documents as queries of one query, with features in the order of the ranker."""
    if not isinstance(model, Ranker):
        raise DataError(f"explain requires a fitted ranker of rankwise, got {type(model).__name__}{instead_of(model)}")
    model._check_fitted()
    if isinstance(query, Query):
        start = np.array([0, len(query.X)])
        query = Queries._trusted(query.X, query.y, start, docid=query.docid, feature_names=query.feature_names)
    elif not isinstance(query, Queries):
        named = hasattr(query, "columns")
        X = as_rows(model, query)
        query = Queries.from_arrays(
            X, group=[len(X)], missing=model.missing, feature_names=model._names() if named else None
        )
    if len(query) != 1:
        raise DataError(f"explain requires the documents of one query, such as queries[0], got {len(query):,} queries")
    aligned = align(model, query)
    names = model._names()
    return aligned._replace(feature_names=names) if aligned.feature_names is None and names is not None else aligned


def _place(lists: Queries, document: Any) -> int:
    """The row of a document, given by its id or its row."""
    count = lists.n_documents
    if checks.is_whole(document, 0) and not isinstance(document, bool):
        if int(document) >= count:
            raise DataError(f"there is no row {document}: the query has {count:,} documents, from 0 to {count - 1}")
        return int(document)
    if lists.docid is None:
        raise DataError(
            f"these documents have no ids: pass the row of a document, counted from 0, got {document!r:.60}"
        )
    found = [row for row, name in enumerate(lists.docid) if str(name) == str(document)]
    if len(found) != 1:
        what = "no document" if not found else f"{len(found)} documents"
        raise DataError(f"the query has {what} with the id {document!r:.60}: pass its row instead, counted from 0")
    return found[0]


def _names(lists: Queries) -> list[Any]:
    """The ids of the documents, or their rows."""
    return list(range(lists.n_documents)) if lists.docid is None else list(lists.docid)


def _mean(scores: Vector) -> float:
    """The exactly rounded mean."""
    return math.fsum(scores.tolist()) / len(scores) if len(scores) else math.nan


def _raw_values(model: Ranker, X: checks.Floats) -> Vector:
    """The features in the units before the scaling that the ranker learned on, where it can be undone."""
    values = X.astype(np.float64)
    scaler = model.record_.scaler
    if scaler is None or scaler.center_ is None or scaler.scale_ is None:
        return values
    raw = values * scaler.scale_ + scaler.center_
    return np.sign(raw) * np.expm1(np.abs(raw)) if scaler.how == "log" else raw
