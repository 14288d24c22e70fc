"""Linear weights on normal scores of features: a sum of broken lines on raw features."""

import itertools

import numpy as np

from rankwise.errors import RankwiseError
from rankwise.exports.curves import CurveSum, Piece
from rankwise.measures._base import Vector
from rankwise.queries.checks import Missing
from rankwise.queries.scaling import Scaler


def curves_of_normal_scores(
    weight: Vector, scaler: Scaler, names: tuple[str, ...], constant: float, missing: Missing
) -> CurveSum:
    """The sum over features of a weight times the normal score, on raw features.

    Parameters
    ----------
    weight : ndarray
        The weights on normal scores.
    scaler : Scaler
        The scaler that made these.
    names : tuple of str
        The names of the features.
    constant : float
        What is added.
    missing : {"error", "zero", "min"}
        How the ranker treats missing values.

    Returns
    -------
    CurveSum
        The formula.

    Raises
    ------
    RankwiseError
        If two knots of a feature are so close that the slope between them does not fit into float64.
    """
    lines = broken_lines(scaler, weight, names)
    pieces = tuple(tuple(own) if len(own) > 1 and worth else () for own, worth in zip(lines, weight, strict=True))
    return CurveSum(names, constant, missing, pieces)


def broken_lines(scaler: Scaler, weight: Vector, names: tuple[str, ...]) -> list[list[Piece]]:
    """The curve of every feature: its weight times its normal score."""
    start, knots, scores = scaler.knot_start_, scaler.knots_, scaler.scores_
    if start is None or knots is None or scores is None:
        raise RankwiseError(
            f"{scaler!r} is no map that a file holds: use scikit-learn's StandardScaler or MinMaxScaler"
        )
    inside = [slice(first, last) for first, last in itertools.pairwise(start)]
    parts = zip(inside, weight.tolist(), names, strict=True)
    return [_broken_line(knots[own], worth * scores[own], name) for own, worth, name in parts]


def _broken_line(knot: Vector, height: Vector, name: str) -> list[Piece]:
    """Lines between knots, constant before and after."""
    with np.errstate(divide="ignore", over="ignore"):
        slope = 0.5 * np.diff(height) / (0.5 * knot[1:] - 0.5 * knot[:-1])  # halves, whose differences fit into float64
    if not np.isfinite(slope).all():
        raise RankwiseError(
            f"the normal score of {name!r:.60} rises between {knot[0]:g} and {knot[-1]:g} by a slope that does not fit "
            "into float64: multiply the feature by a large number before the Scaler"
        )
    lines = zip(knot[:-1].tolist(), slope.tolist(), height[:-1].tolist(), strict=True)
    before = Piece(-np.inf, False, 0.0, (0.0, float(height[0])))
    after = Piece(float(knot[-1]), False, 0.0, (0.0, float(height[-1])))
    inside = [Piece(left, False, left, (steep, value)) for left, steep, value in lines]
    return [before, *inside, after] if inside else [before]
