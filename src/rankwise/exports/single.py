"""Models for engines that compute in single precision, as Java's do: every product and sum is rounded to float32, in
order.

Three sections: arithmetic in float32 and checks that numbers fit into it; weighted sums for engines with normalizers
and without a constant (Solr, Elasticsearch); and trees (Solr, RankLib, ONNX), with sums of steps as one balanced tree
per feature.

A weighted sum keeps the scaling of the features, because x - center is then taken before anything is rounded away,
which float32 bears better than weights on raw features. A constant c goes into the normalizer of the feature with the
largest weight: w (x - (center - c scale / w)) / scale = w (x - center) / scale + c.

The leaf of a tree between two thresholds is worth the sum of all alphas below it. A score is one addition per feature
in use instead of one per step, and is rounded as seldom.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import DataError, RankwiseError
from rankwise.exports.formula import StepSum, TreeSum, WeightedSum
from rankwise.exports.tree_nodes import Leaf, Node, balance, nest
from rankwise.measures._base import Vector
from rankwise.queries.checks import Floats

Single = NDArray[np.float32]

# The middle of two float32 numbers has as many digits in base two, if the larger is below 2^15 times the smaller; of
# float64 numbers in the middle of decimals one in eight thousand has.
_FEW_DIGITS = 40


def as_single(values: Vector, names: Sequence[str], what: str, engine: str, added: bool = False) -> Single:
    """Round values to float32; a value that float32 cannot hold raises an error with the name of its feature.

    With ``added`` the values are terms of a sum and not factors: one too small to differ from 0 may be 0.
    """
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(np.float32)
    lost = ~np.isfinite(rounded) | ((rounded == 0) & (values != 0) & (not added))
    if lost.any():
        place = int(np.argmax(lost))
        raise DataError(
            f"the {what} of feature {names[place]!r} is {values[place]:g}, and {engine} computes in float32, which "
            "cannot hold it: scale the features"
        )
    return rounded


def below(threshold: Vector, names: Sequence[str], engine: str) -> Single:
    """The largest float32 that is not above each threshold: x > t is the same for either, for every float32 x."""
    with np.errstate(over="ignore"):
        rounded = threshold.astype(np.float32)
        lower = np.where(rounded > threshold, np.nextafter(rounded, np.float32(-np.inf)), rounded).astype(np.float32)
    if not np.isfinite(lower).all():
        place = int(np.argmin(np.isfinite(lower)))
        raise DataError(
            f"a threshold of feature {names[place]!r} is {threshold[place]:g}, and {engine} computes in float32, which "
            "cannot hold it: scale the features"
        )
    return lower


def round_features(X: Floats) -> Single:
    """Round features to float32, as an engine of single precision holds them."""
    with np.errstate(over="ignore"):
        return np.asarray(X).astype(np.float32)


def with_defaults(X: Single, defaults: Iterable[float] = ()) -> Single:
    """Features with their defaults, or 0, in place of NaN, as an engine sees those that a document lacks."""
    return np.where(np.isnan(X), np.array([*defaults] or 0.0, dtype=np.float32), X)


def dot(X: Single, weight: Single) -> Single:
    """Weighted sums in float32, feature after feature."""
    total = np.zeros(len(X), dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for place, own in enumerate(weight):
            total += X[:, place] * own
    return total


def scale_column(column: Single, center: Any, scale: Any) -> Single:
    """(x - center) / scale in float32."""
    with np.errstate(over="ignore"):
        return np.asarray((column - np.float32(center)) / np.float32(scale), dtype=np.float32)


# -------------------------------------------------------------------------------------------------- weighted sums


class Normalized(NamedTuple):
    """A weighted sum for an engine with normalizers.

    Attributes
    ----------
    weights : dict of str to float
        The weights of the features in use, by name.
    normalizers : dict of str to tuple of float
        Center and scale of the features with a normalizer, by name.
    dropped : float
        The constant that could not be expressed.
    notes : list of str
        A note about the constant, if there is one.
    """

    weights: dict[str, float]
    normalizers: dict[str, tuple[float, float]]
    dropped: float
    notes: list[str]


def normalize(formula: WeightedSum, engine: str) -> Normalized:
    """Express a weighted sum for an engine with normalizers and float32.

    Parameters
    ----------
    formula : WeightedSum
        The sum.
    engine : str
        The engine, for messages.

    Returns
    -------
    Normalized
        Weights and normalizers.

    Raises
    ------
    DataError
        If float32 cannot hold a number.
    """
    used, names, weight = formula.used, formula.names, formula.weight
    center = np.zeros(len(names)) if formula.center is None else formula.center.copy()
    scale = np.ones(len(names)) if formula.scale is None else formula.scale
    with_norm = set() if formula.center is None else set(used)
    dropped, notes = formula.constant, []
    if formula.constant:
        largest = max(used, key=lambda place: abs(weight[place]))
        what = "left out, which no ranking sees"
        if weight[largest]:
            center[largest] -= formula.constant * scale[largest] / weight[largest]
            with_norm.add(largest)
            dropped, what = 0.0, f"part of the normalizer of {names[largest]!r}"
        notes.append(f"{engine} knows no constant: {formula.constant:.6g} is {what}")
    for values, kind in ((weight, "weight"), (center, "center"), (scale, "scale")):
        as_single(values, names, kind, engine, added=kind == "center")
    normalizers = {names[place]: (float(center[place]), float(scale[place])) for place in sorted(with_norm)}
    return Normalized({names[place]: float(weight[place]) for place in used}, normalizers, dropped, notes)


# ---------------------------------------------------------------------------------------------------- trees


def single_trees(formula: StepSum | TreeSum, engine: str) -> list[Node]:
    """Trees with thresholds and leaves in float32, and a single leaf for the constant, if that is not 0.

    Thresholds of steps that float32 cannot tell apart become one: no float32 feature lies between them.

    Parameters
    ----------
    formula : StepSum or TreeSum
        The sum of steps or trees.
    engine : str
        The engine, for messages.

    Returns
    -------
    list of Leaf or TreeSplit
        The trees.
    """
    found = _plain_trees(formula, engine) if isinstance(formula, TreeSum) else _trees_of_steps(formula, engine)
    if formula.constant or not found:
        constant = as_single(np.array([formula.constant]), ["(constant)"], "constant", engine, added=True)
        found.append(Leaf(float(constant[0])))
    return found


def _trees_of_steps(formula: StepSum, engine: str) -> list[Node]:
    """One balanced tree per feature."""
    found: list[Node] = []
    for feature, cuts, worth in formula.trees():
        names = [formula.names[feature]] * len(worth)
        lower = below(cuts, names, engine)
        last = np.append(lower[1:] != lower[:-1], True)  # of those that are now equal
        leaves = as_single(worth[np.append(True, last)], names, "leaf", engine, added=True)
        found.append(balance(feature, lower[last].astype(np.float64), [Leaf(float(one)) for one in leaves]))
    return found


def _plain_trees(formula: TreeSum, engine: str) -> list[Node]:
    """Trees for an engine that compares numbers, and for which a feature without a value is 0."""
    trees = formula.trees
    if formula.linear is not None:
        raise RankwiseError(
            f"{engine} holds trees without a linear part beside them: fit without one (AutoRanker with "
            "members=('trees',)), or export to vespa, onnx, sql, python or c"
        )
    refuse_rules(formula, engine, "vespa, sql, python or c")
    unlike_zero = trees.nan_left != (trees.threshold >= 0)
    if unlike_zero.any() and formula.missing != "zero":
        name = formula.names[int(trees.feature[unlike_zero][0])]
        raise RankwiseError(
            f"a feature without a value is 0 in {engine}, and the trees learned another side for missing values of "
            f"{name!r:.60}: set missing='zero' if no document lacks a feature (XGBoost and CatBoost have such sides in "
            "any case), fill them before fitting, or export to onnx, vespa, sql, python or c"
        )
    return round_trees(formula, engine)


def round_trees(formula: TreeSum, engine: str) -> list[Node]:
    """The trees with thresholds and leaves in float32."""
    trees = formula.trees
    leaves = as_single(trees.value, ["(leaf)"] * trees.n_leaves, "value", engine, added=True)
    return nest(trees, round_thresholds(trees.threshold), leaves.astype(np.float64))


def round_thresholds(threshold: Vector) -> Vector:
    """Thresholds of float32, between which features fall as float64 did before they were rounded to float32.

    Trees grown on float64 have thresholds between decimal numbers, and a document may have the very number in the
    middle. What is not above t is not above the nearest float32 after both are rounded, so t is rounded to the nearest.
    Trees grown on float32 have thresholds halfway between two float32 numbers, maybe adjacent ones, which the nearest
    may not separate: t is then rounded down, which is exact for every float32. Such a t has few digits in base two,
    unless the two numbers are of very different size. A threshold beyond all float32 becomes the largest of them.
    """
    most = np.finfo(np.float32).max
    inside = np.clip(threshold, -float(most), float(most))
    nearest = inside.astype(np.float32)
    lower = np.where(nearest > inside, np.nextafter(nearest, -most), nearest)
    # LightGBM takes the next float64 after the middle
    neighbors = (inside, np.nextafter(inside, -np.inf), np.nextafter(inside, np.inf))
    of_float32 = np.any([np.ldexp(np.frexp(one)[0], _FEW_DIGITS) % 1.0 == 0.0 for one in neighbors], axis=0)
    return np.where(of_float32, lower, nearest).astype(np.float64)


def refuse_rules(formula: TreeSum, engine: str, others: str, categories: bool = True) -> None:
    """Raise an error for nodes that treat 0 as missing, and for those that hold a set of categories; without
    ``categories``, for those alone that have NaN in such a set.
    """
    trees = formula.trees
    rules = {"0 as missing for": trees.flips_zero, "NaN among the categories of": trees.categorical & trees.nan_left}
    if categories:
        rules["categories of"] = trees.categorical
    for what, which in rules.items():
        if which.any():
            name = formula.names[int(trees.feature[which][0])]
            raise RankwiseError(f"{engine} cannot hold trees with {what} {name!r:.60}: export to {others}")
