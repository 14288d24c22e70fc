"""How tight the bounds of a measure's loss are as a linear ranker turns: one query in the plane, every direction of w.

For w = (cos t, sin t) this gives the loss 1 - E of a measure, the exponential type one bound exp(-E) and the
exponential type two bound

    max over perfect orders pi*, imperfect orders pi of (1 - E(pi)) exp(-(F(pi*) - F(pi))),

exactly, with both scores F of :func:`rankwise.losses.permutation.permutation_score`. :mod:`experiments.bound_patterns`
computes the bounds, and :mod:`experiments.bounds_by_angle` runs the study of the documentation.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from experiments.bound_patterns import measured, placement_patterns
from rankwise._figures import COLORS, house_style, new_figure
from rankwise._parameters import as_random
from rankwise._tables import Table
from rankwise.errors import DataError, RankwiseError
from rankwise.measures._base import Measure, Vector, parse
from rankwise.queries import checks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHADE = "#dcd9d0"
_ONE, _PAIRS, _RELEVANT = COLORS[7], COLORS[1], COLORS[0]
_LOWEST = 0.1  # a loss of 0 has no place on a logarithmic scale
_TICK = 45.0


def two_clouds(
    variance: tuple[float, float] = (0.2, 0.2),
    *,
    relevant: int = 7,
    irrelevant: int = 14,
    random_state: int | np.random.Generator = 0,
) -> tuple[Vector, Vector]:
    """Draw one query in the plane: relevant documents around (1, 1), irrelevant ones around (-1, -1), both normal.

    Parameters
    ----------
    variance : tuple of float, default=(0.2, 0.2)
        The variances of the two features, which are independent; (0.2, 1.3) mixes the classes.
    relevant : int, default=7
        The number of relevant documents.
    irrelevant : int, default=14
        The number of irrelevant documents.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    X : ndarray of shape (n_documents, 2)
        The features.
    labels : ndarray of shape (n_documents,)
        1 for the relevant documents, which come first, 0 for the others.

    References
    ----------
    The simulations of Figures 3 and 4 of the paper on direct optimization of evaluation measures.
    """
    pair = isinstance(variance, Sequence) and len(variance) == 2 and all(map(checks.is_number, variance))
    some = checks.is_whole(relevant) and checks.is_whole(irrelevant) and max(relevant, irrelevant) < 2**40
    if not some or not pair or not all(0 <= each < math.inf for each in variance):
        raise RankwiseError(
            "two clouds have a relevant and an irrelevant document at least, and variances from 0 on: "
            f"found relevant={relevant!r:.40}, irrelevant={irrelevant!r:.40}, variance={variance!r:.40}"
        )
    random = as_random(random_state)
    spread = np.diag(variance)
    above = random.multivariate_normal((1.0, 1.0), spread, relevant)
    below = random.multivariate_normal((-1.0, -1.0), spread, irrelevant)
    return np.concatenate([above, below]), np.repeat([1.0, 0.0], [relevant, irrelevant])


def bounds_by_angle(
    X: ArrayLike, labels: ArrayLike, *, angles: int | ArrayLike = 72, measure: Any = "AP"
) -> "AngleBounds":
    """The loss of a measure and its exponential bounds for the directions w = (cos t, sin t).

    Parameters
    ----------
    X : array-like of shape (n_documents, 2)
        The documents of one query.
    labels : array-like of shape (n_documents,)
        One positive label for relevant documents, 0 for the rest; both occur.
    angles : int or array-like, default=72
        The number of angles t, equally spaced from 0 on; or the angles themselves, in radians.
    measure : str or Measure, default="AP"
        A measure that is 1 at its best order (AP, NDCG, RR, ...).

    Returns
    -------
    AngleBounds
        The loss and its bounds at every angle.

    Notes
    -----
    The bounds are exact, and therefore for short lists: O(N1 C(n, N1)) per angle, some milliseconds for 7 relevant
    documents of 21.

    Examples
    --------
    >>> found = bounds_by_angle(*two_clouds(), angles=8)
    >>> found.summary()["bound"].tolist()
    ['type one', 'type two, pairs', 'type two, relevant']
    """
    rows, y = _checked(X, labels)
    t = 2 * np.pi * np.arange(angles) / angles if isinstance(angles, int) else np.asarray(angles, dtype=np.float64)
    if t.ndim != 1 or len(t) == 0 or not np.isfinite(t).all():
        raise RankwiseError(f"angles is a number of angles from 1 on, or a list of angles in radians: found {angles!r}")
    wanted = parse(measure)
    scores = rows[:, 0] * np.cos(t)[:, None] + rows[:, 1] * np.sin(t)[:, None]
    reached = measured(wanted, scores, np.broadcast_to(y, scores.shape))
    relevant = y > 0
    patterns = placement_patterns(int(relevant.sum()), int((~relevant).sum()), float(y.max()), wanted)
    found = patterns.bounds(scores[:, relevant], scores[:, ~relevant])
    return AngleBounds(
        X=rows,
        labels=y,
        measure=wanted,
        angle=t,
        reached=reached,
        type_one=np.exp(-reached),
        type_two={"pairs": found.pairs, "relevant": found.relevant},
        best_sorted=found.best_sorted,
        margin={"pairs": found.pairs_margin, "relevant": found.relevant_margin},
    )


@dataclass(frozen=True, eq=False, repr=False)
class AngleBounds:
    """A loss and its bounds against the angle of w; what :func:`bounds_by_angle` returns.

    Attributes
    ----------
    X : ndarray of shape (n_documents, 2)
        The documents.
    labels : ndarray of shape (n_documents,)
        Their labels.
    measure : Measure
        The measure E.
    angle : ndarray
        t, in radians.
    reached : ndarray
        E of the documents ranked by w = (cos t, sin t), ties pessimistic; the loss is 1 - E.
    type_one : ndarray
        exp(-E).
    type_two : dict of str to ndarray
        The exponential type two bound by map, "pairs" and "relevant".
    best_sorted : ndarray
        Type two by "pairs" against the best perfect order in place of all of them; a bound as well, since F of that
        order does not exceed F of the ranking either.
    margin : dict of str to ndarray
        By map, the smallest F(pi*) - F(pi); where it is E or more, condition (9) of the paper makes type two the
        tighter bound.
    """

    X: Vector
    labels: Vector
    measure: Measure
    angle: Vector
    reached: Vector
    type_one: Vector
    type_two: dict[str, Vector]
    best_sorted: Vector
    margin: dict[str, Vector]

    @property
    def degrees(self) -> Vector:
        """The angles in degrees."""
        return np.degrees(self.angle)

    @property
    def loss(self) -> Vector:
        """1 - E at every angle."""
        return 1 - self.reached

    def table(self) -> Table:
        """A row for each angle: degrees, loss, type one, type two by both maps, and against the best perfect order."""
        return Table(
            {
                "degrees": self.degrees,
                "loss": self.loss,
                "type one": self.type_one,
                **{f"type two, {name}": values for name, values in self.type_two.items()},
                "pairs, best sorted": self.best_sorted,
            }
        )

    def summary(self) -> Table:
        """A row for each bound: its smallest value and where it is reached, the angles at which it is tighter than type
        one, and those at which (9) holds.

        ``tighter`` counts angles with a smaller value than type one, ``condition`` those at which (9) holds.
        """
        columns: dict[str, list[Any]] = {"bound": [], "smallest": [], "degrees": [], "tighter": [], "condition": []}
        bounds = {"type one": self.type_one, **{f"type two, {name}": each for name, each in self.type_two.items()}}
        for name, values in bounds.items():
            margin = self.margin.get(name.removeprefix("type two, "))
            columns["bound"].append(name)
            columns["smallest"].append(float(values.min()))
            columns["degrees"].append(float(self.degrees[values.argmin()]))
            columns["tighter"].append(int((values < self.type_one).sum()))
            columns["condition"].append(None if margin is None else int((margin >= self.reached).sum()))
        return Table(columns)

    def plot(self) -> "Figure":
        """Draw the documents in the plane, and the loss with its bounds against the angle; needs the extra ``plot``."""
        return draw_bounds({"the list": self})

    def __repr__(self) -> str:
        return repr(self.summary())


def _checked(X: ArrayLike, labels: ArrayLike) -> tuple[Vector, Vector]:
    """The documents and labels of one query in the plane."""
    rows = np.array(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2 or not np.isfinite(rows).all():
        raise DataError(f"X holds two finite features a document: found shape {rows.shape}")
    y = checks.as_labels(np.array(labels, dtype=np.float64), len(rows))
    if len(np.unique(y)) != 2 or y.min() != 0:
        raise DataError(f"labels are 0 and one positive number, and both occur: found {np.unique(y).tolist()[:5]}")
    return rows, y


# ---------------------------------------------------------------------------------------------------- figure


def draw_bounds(found: Mapping[str, AngleBounds]) -> "Figure":
    """Draw a row for each query, by title: its documents, and the loss with its bounds against the angle of w.

    Where the type two bound by relevant and irrelevant documents is the tighter one, its line is broad.
    """
    figure = new_figure(8.0, 0.5 + 2.5 * len(found))
    with house_style():
        rows = figure.subplots(len(found), 2, squeeze=False, width_ratios=(1, 2.3))
        for (plane, curves), (title, each) in zip(rows, found.items(), strict=True):
            _draw_list(plane, each)
            _draw_curves(curves, each)
            plane.set_title(title)
            curves.set_title(f"1 - {each.measure.title} and its bounds")
        rows[0, 0].legend(loc="upper left")
        rows[0, 1].legend(loc="upper center")
        rows[-1, 1].set_xlabel("angle of w in degrees")
        rows[-1, 0].set_xlabel("first feature")
        for plane in rows[:, 0]:
            plane.set_ylabel("second feature")
    return figure


def _draw_list(axes: Any, found: AngleBounds) -> None:
    """The documents in the plane."""
    relevant = found.labels > 0
    axes.scatter(*found.X[relevant].T, s=14, color=_RELEVANT, label="relevant", zorder=2)
    axes.scatter(*found.X[~relevant].T, s=14, facecolor="none", edgecolor=_PAIRS, label="irrelevant", zorder=2)
    reach = 1.1 * float(np.abs(found.X).max(initial=1e-9))
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")


def _draw_curves(axes: Any, found: AngleBounds) -> None:
    """The loss and its bounds against the angle."""
    degrees, by_relevant = found.degrees, found.type_two["relevant"]
    axes.plot(degrees, by_relevant, color=_RELEVANT, label="type two, relevant against irrelevant")
    axes.plot(degrees, found.type_two["pairs"], color=_PAIRS, label="type two, all pairs")
    best = {"linewidth": 0.9, "linestyle": (0, (3, 1.2)), "label": "type two, all pairs, best perfect order"}
    axes.plot(degrees, found.best_sorted, color=_PAIRS, **best)
    axes.plot(degrees, found.type_one, color=_ONE, linewidth=1.1, label="type one")
    axes.fill_between(degrees, np.maximum(found.loss, _LOWEST), _LOWEST, color=_SHADE, linewidth=0, label="the loss")
    tighter = np.where(by_relevant < found.type_one, by_relevant, np.nan)
    axes.plot(degrees, tighter, color=_RELEVANT, linewidth=3.6, solid_capstyle="butt", alpha=0.4)
    lowest = int(by_relevant.argmin())
    axes.plot(degrees[lowest], by_relevant[lowest], "o", color=_RELEVANT, markersize=4)
    axes.annotate(
        f"{by_relevant[lowest]:.2f} at {degrees[lowest]:.0f}°",
        (degrees[lowest], by_relevant[lowest]),
        xytext=(0, -5),
        textcoords="offset points",
        color=_RELEVANT,
        fontsize=7,
        ha="center",
        va="top",
    )
    axes.set(yscale="log", ylim=(_LOWEST, None), xlim=(degrees.min(), degrees.max()))
    if np.ptp(degrees) > 2 * _TICK:
        axes.set_xticks(np.arange(_TICK * np.ceil(degrees.min() / _TICK), degrees.max() + 0.5, _TICK))
