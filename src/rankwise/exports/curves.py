"""Sums of curves, one per feature, that are polynomials between knots: linear weights on splines or on bins."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankwise.errors import RankwiseError
from rankwise.exports.map_sums import CTables, Graph, MapSum, c_tables, number_after
from rankwise.exports.raw_thresholds import last_not_above
from rankwise.measures._base import Vector

Rising = Callable[[Vector], Vector]


class Piece(NamedTuple):
    """A polynomial in x - origin, the highest power first, from ``left`` on; ``strict`` leaves ``left`` itself out."""

    left: float
    strict: bool
    origin: float
    coef: tuple[float, ...]


def scale_pieces(pieces: list[Piece], center: float, scale: float, rising: Rising | None) -> list[Piece]:
    """Pieces on raw features of pieces on z = (x - center) / scale.

    ``rising`` computes z as the ranker does, which makes ends of pieces exact for every float64; None is for curves
    without a jump, whose ends need not be.
    """
    found = []
    for piece in pieces:
        left = piece.left
        if np.isfinite(left):
            if rising is None:
                left = center + scale * left
            else:
                bound = left if piece.strict else np.nextafter(left, -np.inf)
                last = float(last_not_above(rising, np.array([bound]))[0])
                left = last if piece.strict else float(np.nextafter(last, np.inf))
        powers = np.arange(len(piece.coef) - 1, -1, -1)
        coef = np.array(piece.coef) / scale**powers
        found.append(Piece(left, piece.strict, center + scale * piece.origin, tuple(coef.tolist())))
    return found


@dataclass(frozen=True)
class CurveSum(MapSum):
    """s(x) = constant + sum_j f_j(x_j): each f_j is a polynomial between the ends of its pieces.

    Attributes
    ----------
    pieces : tuple of tuple of Piece
        The pieces of every feature from left to right; the first has no left end, and no pieces are 0.
    period : tuple of (float, float), default=None
        Start and length of the period of every feature; None if curves do not repeat.
    """

    pieces: tuple[tuple[Piece, ...], ...]
    period: tuple[tuple[float, float], ...] | None = None

    about = "a sum of curves of features"
    functions = ()
    mark = "curve"

    def _features(self) -> list[int]:
        return [place for place, own in enumerate(self.pieces) if own]

    def _flat(self) -> Iterator[tuple[int, Piece]]:
        for feature in self._features():
            yield from ((feature, piece) for piece in self.pieces[feature])

    # ------------------------------------------------------------------------------------------- ONNX

    def onnx(self, graph: Graph) -> None:
        """All polynomials by Gather and Horner's rule, of which Where keeps one per feature."""
        flat = list(self._flat())
        owner = np.array([feature for feature, _ in flat])
        values = graph.node("Gather", "X", graph.constant(owner, "INT64"), axis=1)
        exact = graph.node("Cast", values, to=graph.double)
        if self.period is None:
            # documents are float32: ends are rounded as they are, so a document at an end stays in its piece
            given, left, kind = values, self._single_ends(), "FLOAT"
        else:
            start, length = (graph.constant(column) for column in np.array(self.period)[owner].T)
            away = graph.node("Sub", exact, start)
            whole = graph.node("Mul", graph.node("Floor", graph.node("Div", away, length)), length)
            exact = graph.node("Add", graph.node("Sub", away, whole), start)
            given, left, kind = exact, np.array([self._end(piece) for _, piece in flat]), "DOUBLE"
        first = np.append(True, owner[1:] != owner[:-1])
        right = np.where(np.append(first[1:], True), np.inf, np.append(left[1:], np.inf))
        begun = graph.node("Not", graph.node("Less", given, graph.constant(left, kind)))
        inside = graph.node("And", begun, graph.node("Less", given, graph.constant(right, kind)))
        away = graph.node("Sub", exact, graph.constant([piece.origin for _, piece in flat]))
        columns = self._coefficients().T
        value = graph.node("Mul", away, graph.constant(np.zeros(len(flat))))
        value = graph.node("Add", value, graph.constant(columns[0]))
        for column in columns[1:]:
            value = graph.node("Add", graph.node("Mul", value, away), graph.constant(column))
        graph.finish(graph.add(graph.node("Where", inside, value, graph.constant([0.0]))), self.constant)

    @staticmethod
    def _end(piece: Piece) -> float:
        """The first x of a piece."""
        return float(np.nextafter(piece.left, np.inf)) if piece.strict else piece.left

    def _single_ends(self) -> Vector:
        """The first float32 of every piece, if documents are rounded to float32."""
        most = np.finfo(np.float32).max
        left = np.array([piece.left for _, piece in self._flat()])
        nearest = np.where(np.isfinite(left), np.clip(left, -most, most), left).astype(np.float32)
        strict = np.array([piece.strict for _, piece in self._flat()])
        return np.where(strict, np.nextafter(nearest, np.float32(np.inf)), nearest).astype(np.float64)

    def _coefficients(self) -> Vector:
        """Coefficients of all pieces, filled up with zeros in front, shape (n_pieces, degree + 1)."""
        flat = [piece.coef for _, piece in self._flat()]
        most = max(map(len, flat))
        return np.array([(0.0,) * (most - len(coef)) + coef for coef in flat])

    # ------------------------------------------------------------------------------------------- source text

    def python(self, value: str) -> tuple[str, list[str]]:
        """(tables, what adds to ``s``) of the module in Python."""
        rows = ""
        for feature in self._features():
            # from right to left; the last that is tried has no left end
            own = [(self._end(p) if np.isfinite(p.left) else 0.0, p.origin, p.coef) for p in self.pieces[feature]]
            start, length = self.period[feature] if self.period is not None else (0.0, 0.0)
            around = f"{start!r}, {length!r}, " if self.period is not None else ""
            rows += f"    ({feature}, {around}(\n" + "".join(f"        {one!r},\n" for one in own[::-1]) + "    )),\n"
        wrapped = ["    v = start + (v - start) % length"] if self.period is not None else []
        body = [
            f"for f, {'start, length, ' if self.period is not None else ''}pieces in _CURVES:",
            "    v = x[f]",
            f"    v = {value}",
            *wrapped,
            "    for left, origin, polynomial in pieces:",
            "        if v >= left:",
            "            break",
            "    t = 0.0",
            "    for c in polynomial:",
            "        t = t * (v - origin) + c",
            "    s += t",
        ]
        return f"_CURVES = (  # feature, pieces from right to left: left end, origin, polynomial\n{rows})\n", body

    def c(self, called: str, value: str) -> tuple[str, list[str]]:
        """(tables, what adds to ``s``) of the function in C."""
        flat, features = list(self._flat()), self._features()
        first = np.append(0, np.cumsum([len(self.pieces[feature]) for feature in features]))
        ends = [self._end(piece) if np.isfinite(piece.left) else 0.0 for _, piece in flat]
        coef, origin = self._coefficients(), [piece.origin for _, piece in flat]
        tables = c_tables(called, curve=features, first=first, left=ends, coef=coef, origin=origin)
        wrapped = []
        if self.period is not None:
            start, length = np.array(self.period)[features].T
            tables += c_tables(called, start=start, length=length)
            wrapped = [
                f"    v = fmod(v - {called}_start[f], {called}_length[f]);",
                f"    if (v < 0.0) v += {called}_length[f];",
                f"    v += {called}_start[f];",
            ]
        body = [
            "int f, i, j;",
            f"for (f = 0; f < {len(features)}; f++) {{",
            f"    double v = x[{called}_curve[f]], t = 0.0;",
            f"    v = {value};",
            *wrapped,
            f"    i = {called}_first[f + 1] - 1;",
            f"    while (i > {called}_first[f] && !(v >= {called}_left[i])) i--;",
            f"    for (j = 0; j < {coef.shape[1]}; j++)",
            f"        t = t * (v - {called}_origin[i]) + {called}_coef[i * {coef.shape[1]} + j];",
            "    s += t;",
            "}",
        ]
        return tables, body

    @classmethod
    def c_scores(cls, tables: CTables, text: str, X: Vector) -> Vector:
        """The scores of the function in C."""
        features, first, left, origin = (tables[name] for name in ("curve", "first", "left", "origin"))
        coef, total = tables["coef"].reshape(len(left), -1), np.zeros(len(X))
        for place, feature in enumerate(features):
            v = X[:, feature]
            if "length" in tables:
                start, length = tables["start"][place], tables["length"][place]
                v = np.fmod(v - start, length)
                v = np.where(v < 0.0, v + length, v) + start
            piece = np.full(len(X), first[place])
            for number in range(first[place] + 1, first[place + 1]):
                piece = np.where(v >= left[number], number, piece)
            t = np.zeros(len(X))
            for column in coef[piece].T:
                t = t * (v - origin[piece]) + column
            total += t
        return total + number_after("double s = ", text)


# ------------------------------------------------------------------------------------------- curves of transformers


def bin_curves(bins: Any, weights: Vector) -> list[list[Piece]]:
    """The curves of scikit-learn's ``KBinsDiscretizer``: one step after the other."""
    if bins.dtype is not None and np.dtype(bins.dtype) != np.float64:
        raise RankwiseError("bins of float32 cannot be exported: fit KBinsDiscretizer without dtype=")
    found: list[list[Piece]] = []
    used = 0
    for edges, count in zip(bins.bin_edges_, bins.n_bins_.tolist(), strict=True):
        if bins.encode == "ordinal":
            worth = weights[len(found)] * np.arange(count)
        else:
            worth, used = weights[used : used + count], used + count
        lefts = [-np.inf, *edges[1:-1].tolist()]
        found.append([Piece(left, False, 0.0, (value,)) for left, value in zip(lefts, worth.tolist(), strict=True)])
    return found


def spline_curves(splines: Any, weights: Vector, names: tuple[str, ...]) -> list[list[Piece]]:
    """The curves of scikit-learn's ``SplineTransformer``, with its rules outside of the knots."""
    if splines.extrapolation == "error":
        raise RankwiseError(
            "splines with extrapolation='error' raise an error beyond their knots, which a file cannot: fit with "
            "extrapolation='constant'"
        )
    if splines.degree == 0:
        raise RankwiseError("splines of degree 0 are steps and cannot be exported: fit on KBinsDiscretizer")
    if splines.degree == 1 and splines.extrapolation == "linear":
        raise RankwiseError(
            "splines of degree 1 with extrapolation='linear' cannot be exported, because scikit-learn leaves out outer "
            "knots from the second feature on: fit with extrapolation='continue', which has straight lines as well"
        )
    each = weights.reshape(len(splines.bsplines_), -1)
    if not splines.include_bias:  # the last spline of every feature was thrown away
        each = np.column_stack([each, np.zeros(len(each))])
    return [
        _curve(spline, own, splines.extrapolation, name)
        for spline, own, name in zip(splines.bsplines_, each, names, strict=True)
    ]


def periods(splines: Any) -> list[tuple[float, float]] | None:
    """Start and length of the period of every feature; 1 for one that did not vary."""
    if getattr(splines, "extrapolation", None) != "periodic":
        return None
    ends = [(float(one.t[one.k]), float(one.t[-one.k - 1])) for one in splines.bsplines_]
    return [(low, high - low if high > low else 1.0) for low, high in ends]


def _curve(spline: Any, weights: Vector, beyond: str, name: str) -> list[Piece]:
    """The weighted sum of the splines of one feature."""
    from scipy.interpolate import BSpline, PPoly

    t, k, own = spline.t, spline.k, spline.c @ weights
    low, high = float(t[k]), float(t[-k - 1])
    if beyond == "periodic" and low == high:  # scikit-learn takes 0 for such a feature
        return [_flat_piece(-np.inf, False, spline(0.0) @ weights)]
    inside = [place for place in range(k, len(t) - k - 1) if t[place] < t[place + 1]]
    if inside:
        found = PPoly.from_spline(BSpline.construct_fast(t, own, k)).c
        pieces = [Piece(float(t[place]), False, float(t[place]), tuple(found[:, place].tolist())) for place in inside]
    else:  # the feature did not vary
        pieces = [_flat_piece(low, False, spline(low) @ weights)]
    if beyond == "periodic":
        return [pieces[0]._replace(left=-np.inf), *pieces[1:]]
    if beyond == "continue":
        if not inside:
            around = spline(low + np.array([-2.0, -1.0, 0.0, 1.0, 2.0])) @ weights
            if np.ptp(around) > 0:
                raise _coinciding(name)
        elif t[k] == t[k + 1] or t[-k - 2] == t[-k - 1]:
            raise _coinciding(name)
        return [pieces[0]._replace(left=-np.inf), *pieces[1:]]
    below, above = _outside(spline, weights, beyond, low, high)
    return [below, *pieces, above]


def _outside(spline: Any, weights: Vector, beyond: str, low: float, high: float) -> tuple[Piece, Piece]:
    """The curve below the first knot, and above the last one."""
    # scikit-learn continues the first and the last splines alone: the others are 0 there, unless knots coincide
    values, ends = [], (slice(None, spline.k), slice(len(weights) - spline.k, None))
    for place, end in zip((low, high), ends, strict=True):
        slope = float(spline(place, nu=1)[end] @ weights[end]) if beyond == "linear" else 0.0
        values.append((slope, float(spline(place)[end] @ weights[end])))
    return Piece(-np.inf, False, low, values[0]), Piece(high, True, high, values[1])


def _flat_piece(left: float, strict: bool, value: Any) -> Piece:
    return Piece(left, strict, 0.0, (float(value),))


def _coinciding(name: str) -> RankwiseError:
    return RankwiseError(
        f"the knots of {name!r:.60} coincide at an end, and extrapolation='continue' has no polynomial to continue "
        "there: fit with extrapolation='constant' or knots='uniform'"
    )
