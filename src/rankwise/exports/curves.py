"""Sums of curves, one per feature, that are polynomials between knots: linear weights on splines or on bins."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rankwise.errors import RankwiseError
from rankwise.exports.map_sums import CTables, Graph, MapSum, c_tables, number_after
from rankwise.exports.raw_thresholds import center_and_scale, last_not_above
from rankwise.exports.tree_nodes import CurveLeaf, Leaf, Node, balance
from rankwise.measures._base import Vector
from rankwise.queries.scaling import Scaler

Rising = Callable[[Vector], Vector]


class Piece(NamedTuple):
    """A polynomial in x - origin, the highest power first, from ``left`` on; ``strict`` leaves ``left`` itself out."""

    left: float
    strict: bool
    origin: float
    coef: tuple[float, ...]

    def at(self, x: float) -> float:
        """The polynomial at x, by Horner's rule."""
        return float(np.polyval(self.coef, x - self.origin))

    def plus(self, slope: float) -> "Piece":
        """The sum of a straight line and a slope times x."""
        steep, value = self.coef
        return self._replace(coef=(steep + slope, value + slope * self.origin))

    @property
    def end(self) -> float:
        """The first x of the piece."""
        return float(np.nextafter(self.left, np.inf)) if self.strict else self.left


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
    fill : ndarray, default=None
        What NaN counts as; None makes the score NaN.
    """

    pieces: tuple[tuple[Piece, ...], ...]
    period: tuple[tuple[float, float], ...] | None = None
    fill: Vector | None = None

    about = "a sum of curves of features"
    functions = ()
    mark = "curve"

    @property
    def used(self) -> list[int]:
        """Features with a curve."""
        return [place for place, own in enumerate(self.pieces) if own]

    @property
    def gaps(self) -> Vector | None:
        """What an engine without infinities counts for a missing value; None makes the score missing."""
        return np.zeros(len(self.names)) if self.missing == "zero" else self.fill

    def _flat(self) -> Iterator[tuple[int, Piece]]:
        for feature in self.used:
            yield from ((feature, piece) for piece in self.pieces[feature])

    def scale_by(self, scaler: Scaler) -> "CurveSum":
        """The curves over features that the scaler makes, which must have no jumps."""
        varies, center, scale = center_and_scale(scaler)
        constant, pieces = self.constant, []
        for place, own in enumerate(self.pieces):
            if not varies[place]:
                constant += value_of(own, 0.0)
                own = ()
            pieces.append(tuple(scale_pieces(list(own), float(center[place]), float(scale[place]), None)))
        fill = None if self.fill is None else center + scale * self.fill
        return replace(self, constant=constant, pieces=tuple(pieces), fill=fill)

    def trees(self) -> list[tuple[int, Node, float | None]]:
        """The curve of every feature as a balanced tree, and its value for NaN, if that has one."""
        found = []
        for feature in self.used:
            own = self.pieces[feature]
            # x <= t goes left, and the piece begins at the next number
            cuts = np.array([np.nextafter(piece.end, -np.inf) for piece in own[1:]])
            missing = None if self.gaps is None else value_of(own, float(self.gaps[feature]))
            found.append((feature, balance(feature, cuts, [_leaf(feature, piece) for piece in own]), missing))
        return found

    # ------------------------------------------------------------------------------------------- ONNX

    def onnx(self, graph: Graph) -> None:
        """The sum of curves in float64, rounded once."""
        graph.finish(self.onnx_sum(graph), self.constant)

    def onnx_sum(self, graph: Graph) -> str:
        """The sum without the constant: a binary search for the piece of every feature, and Horner's rule.

        Memory is a few numbers per document and feature, however many pieces there are.
        """
        if not self.used:  # a score per document all the same
            return replace(self, pieces=((_flat_piece(-np.inf, False, 0.0),), *self.pieces[1:])).onnx_sum(graph)
        values = graph.node("Gather", "X", graph.constant(self.used, "INT64"), axis=1)
        if self.fill is not None:
            fill = graph.constant(self.fill[self.used], "FLOAT")
            values = graph.node("Where", graph.node("IsNaN", values), fill, values)
        if self.period is None:  # beyond float32 a feature is infinite, and would be so times a slope of 0
            most = [graph.constant(sign * np.finfo(np.float32).max, "FLOAT") for sign in (-1, 1)]
            values = graph.node("Clip", values, *most)
        exact = graph.node("Cast", values, to=graph.double)
        if self.period is None:
            # documents are float32: ends are rounded as they are, so a document at an end stays in its piece
            given, left, kind = values, self._single_ends(), "FLOAT"
        else:
            start, length = (graph.constant(column) for column in np.array(self.period)[self.used].T)
            away = graph.node("Sub", exact, start)
            whole = graph.node("Mul", graph.node("Floor", graph.node("Div", away, length)), length)
            exact = graph.node("Add", graph.node("Sub", away, whole), start)
            given, left, kind = exact, np.array([piece.end for _, piece in self._flat()]), "DOUBLE"
        sizes = np.array([len(self.pieces[feature]) for feature in self.used])
        width = 1 << int(sizes.max() - 1).bit_length()
        # every feature has as many pieces as the widest, a power of two: those that it lacks begin at infinity
        place = np.concatenate([row * width + np.arange(size) for row, size in enumerate(sizes)])

        def table(column: Vector, other: float, kind: str) -> str:
            whole = np.full(len(sizes) * width, other)
            whole[place] = column
            return graph.constant(whole, kind)

        zero = graph.node("Mul", graph.node("Cast", values, to=graph.whole), graph.constant([0], "INT64"))
        piece = graph.node("Add", zero, graph.constant(np.arange(len(sizes)) * width, "INT64"))
        step = width >> 1
        ends = table(left, np.inf, kind) if step else ""
        while step:
            later = graph.node("Add", piece, graph.constant([step], "INT64"))
            below = graph.node("Less", given, graph.node("Gather", ends, later))
            piece = graph.node("Where", below, piece, later)
            step >>= 1
        origin = np.array([piece.origin for _, piece in self._flat()])
        if self.period is None:
            origin = np.where(origin == [piece.left for _, piece in self._flat()], left, origin)
        away = graph.node("Sub", exact, graph.node("Gather", table(origin, 0.0, "DOUBLE"), piece))
        value, *others = (graph.node("Gather", table(c, 0.0, "DOUBLE"), piece) for c in self._coefficients().T)
        for coef in others:
            value = graph.node("Add", graph.node("Mul", value, away), coef)
        return graph.add(value)

    def _single_ends(self) -> Vector:
        """The first float32 of every piece, if documents are rounded to float32."""
        most = np.finfo(np.float32).max
        left = np.array([piece.left for _, piece in self._flat()])
        nearest = np.where(np.isfinite(left), np.clip(left, -most, most), left).astype(np.float32)
        strict = np.array([piece.strict for _, piece in self._flat()])
        with np.errstate(over="ignore"):  # a piece beyond all float32 begins at infinity
            return np.where(strict, np.nextafter(nearest, np.float32(np.inf)), nearest).astype(np.float64)

    def _coefficients(self) -> Vector:
        """Coefficients of all pieces, filled up with zeros in front, shape (n_pieces, degree + 1)."""
        flat = [piece.coef for _, piece in self._flat()]
        most = max(map(len, flat), default=1)
        return np.array([(0.0,) * (most - len(coef)) + coef for coef in flat]).reshape(-1, most)

    # ------------------------------------------------------------------------------------------- source text

    def python(self, value: str) -> tuple[str, list[str]]:
        """(tables, what adds to ``s``) of the module in Python."""
        rows = ""
        names, changes = "", [f"    v = {value}"]
        if self.fill is not None:
            names, changes = "fill, ", ["    v = v if v == v else fill"]
        if self.period is not None:
            names, changes = f"{names}start, length, ", [*changes, "    v = start + (v - start) % length"]
        for feature in self.used:
            # the first piece has no left end, and is not asked for it
            own = [(piece.end if np.isfinite(piece.left) else 0.0, *piece[2:]) for piece in self.pieces[feature]]
            head = f"{feature}" if self.fill is None else f"{feature}, {float(self.fill[feature])!r}"
            if self.period is not None:
                head += ", {!r}, {!r}".format(*self.period[feature])
            rows += f"    ({head}, (\n" + "".join(f"        {one!r},\n" for one in own) + "    )),\n"
        body = [
            f"for f, {names}pieces in _CURVES:",
            "    v = x[f]",
            *changes,
            "    i, k = 0, len(pieces)",
            "    while k - i > 1:",
            "        m = (i + k) // 2",
            "        if v >= pieces[m][0]:",
            "            i = m",
            "        else:",
            "            k = m",
            "    left, origin, polynomial = pieces[i]",
            "    t = 0.0",
            "    for c in polynomial:",
            "        t = t * (v - origin) + c",
            "    s += t",
        ]
        return f"_CURVES = (  # feature, pieces from left to right: left end, origin, polynomial\n{rows})\n", body

    def c(self, called: str, value: str) -> tuple[str, list[str]]:
        """(tables, what adds to ``s``) of the function in C."""
        flat = list(self._flat())
        first = np.append(0, np.cumsum([len(self.pieces[feature]) for feature in self.used]))
        ends = [piece.end if np.isfinite(piece.left) else 0.0 for _, piece in flat]
        coef, origin = self._coefficients(), [piece.origin for _, piece in flat]
        curve = np.array(self.used, np.int64)
        tables = c_tables(called, curve=curve, first=first.astype(np.int64), knot=ends, coef=coef, origin=origin)
        changes = [f"    v = {value};"]
        if self.fill is not None:
            tables += c_tables(called, fill=self.fill[self.used])
            changes = [f"    v = v == v ? v : {called}_fill[f];"]
        if self.period is not None:
            start, length = np.array(self.period)[self.used].T
            tables += c_tables(called, start=start, length=length)
            changes += [
                f"    v = fmod(v - {called}_start[f], {called}_length[f]);",
                f"    if (v < 0.0) v += {called}_length[f];",
                f"    v += {called}_start[f];",
            ]
        body = [
            "int f, j;",
            f"for (f = 0; f < {len(self.used)}; f++) {{",
            f"    int i = {called}_first[f], k = {called}_first[f + 1];",
            f"    double v = x[{called}_curve[f]], t = 0.0;",
            *changes,
            "    while (k - i > 1) {",
            "        int m = i + (k - i) / 2;",
            f"        if (v >= {called}_knot[m]) i = m; else k = m;",
            "    }",
            f"    for (j = 0; j < {coef.shape[1]}; j++)",
            f"        t = t * (v - {called}_origin[i]) + {called}_coef[i * {coef.shape[1]} + j];",
            "    s += t;",
            "}",
        ]
        return tables, body

    @classmethod
    def c_scores(cls, tables: CTables, text: str, X: Vector) -> Vector:
        """The scores of the function in C."""
        return cls.c_add(tables, X, np.full(len(X), number_after("double s = ", text)))

    @classmethod
    def c_add(cls, tables: CTables, X: Vector, total: Vector) -> Vector:
        """Add the curves to sums as the function in C does."""
        first, knot, origin = (tables[name] for name in ("first", "knot", "origin"))
        coef = tables["coef"].reshape(len(knot), -1)
        for place, feature in enumerate(tables["curve"][: len(first) - 1]):
            v = X[:, feature]
            if "fill" in tables:
                v = np.where(np.isnan(v), tables["fill"][place], v)
            if "length" in tables:
                start, length = tables["start"][place], tables["length"][place]
                v = np.fmod(v - start, length)
                v = np.where(v < 0.0, v + length, v) + start
            piece = first[place] + np.searchsorted(knot[first[place] + 1 : first[place + 1]], v, side="right")
            t = np.zeros(len(X))
            for column in coef[piece].T:
                t = t * (v - origin[piece]) + column
            total += t
        return total


def value_of(pieces: Sequence[Piece], x: float) -> float:
    """The value of a curve at x; 0 where there is none."""
    return next((one.at(x) for one in reversed(pieces) if one.end <= x), 0.0)


def refuse_periods(curves: CurveSum, engine: str) -> None:
    """Raise an error for curves that repeat."""
    if curves.period is not None:
        raise RankwiseError(f"{engine} cannot hold splines that repeat: export to c, onnx, python")


def _leaf(feature: int, piece: Piece) -> Leaf:
    """A piece as a leaf of a tree."""
    *higher, value = piece.coef
    while higher and not higher[0]:
        higher.pop(0)
    return CurveLeaf(value, feature, piece.origin, tuple(higher)) if higher else Leaf(value)


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
