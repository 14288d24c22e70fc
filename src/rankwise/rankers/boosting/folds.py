"""What the models of a fit learn from, and what the fit holds while they grow."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwise._progress import progress
from rankwise.queries.queries import Queries
from rankwise.rankers.boosting.growing import Growing, TreeCurve
from rankwise.rankers.boosting.objectives import Derivatives
from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble

if TYPE_CHECKING:
    from rankwise.rankers.boosting.catboost import QuantizedRows
    from rankwise.rankers.boosting.growing import BinnedRows
    from rankwise.rankers.boosting.symmetric import SymmetricRows

    AnyRows: TypeAlias = SymmetricRows | BinnedRows | QuantizedRows

Vector = NDArray[np.float64]


class TreeFold(NamedTuple):
    """What a model learns from.

    Attributes
    ----------
    derivatives : Derivatives
        The loss; documents that are held out have a weight of 0.
    start : ndarray of shape (n_documents,), or None
        Scores that trees are added to.
    coef : ndarray of shape (n_features,), or None
        The weights that give these scores.
    part : ndarray of int64
        The queries that are held out.
    held : ndarray of int64
        Their rows.
    """

    derivatives: Derivatives
    start: Vector | None
    coef: Vector | None
    part: NDArray[np.int64] = np.empty(0, np.int64)
    held: NDArray[np.int64] = np.empty(0, np.int64)

    def model(self, rows: "AnyRows", seed: int, n_jobs: int | None) -> Growing:
        """A model without trees."""
        return rows.model(with_seed(self.derivatives, seed), seed, self.start, n_jobs)


def grown(model: Growing, trees: int, bar: progress | None = None) -> TreeEnsemble:
    """So many trees of a model."""
    for _ in range(trees):
        model.grow()
        if bar is not None:
            bar.advance(1)
    return model.ensemble()


@dataclass
class TreesGrown:
    """A fit under way; after Ctrl-C the ranker takes from it what is there.

    Attributes
    ----------
    curve : TreeCurve
        The measure by number of trees.
    trees : int
        Number of trees per model.
    coef : ndarray of shape (n_features,), or None
        The linear start of what is growing.
    growing : Growing or None
        The model of a seed, or of the first fold before the number of trees is known.
    finished : list of TreeEnsemble
        The finished models.
    earlier : TreeEnsemble or None
        What an earlier fit has grown, and these trees are added to.
    begun : int
        Its number of trees per model.
    """

    curve: TreeCurve = field(default_factory=TreeCurve)
    trees: int = 0
    coef: Vector | None = None
    growing: Growing | None = None
    finished: list[TreeEnsemble] = field(default_factory=list)
    earlier: TreeEnsemble | None = None
    begun: int = 0

    @property
    def any(self) -> bool:
        """Whether there is a new tree."""
        return bool(self.finished) or (self.growing is not None and self.growing.iteration > self.begun)

    @property
    def ensemble(self) -> TreeEnsemble:
        """The mean of the finished models, or else what is growing, after the trees of an earlier fit."""
        found = TreeEnsemble.concat(self.finished or [self.growing.ensemble()])  # type: ignore[union-attr]
        if self.earlier is not None:
            found = TreeEnsemble.concat([self.earlier, found], [1.0, 1.0])
        return replace(found, coef=self.coef)


def without_part(queries: Queries, part: NDArray[np.int64]) -> Queries:
    """The queries with a weight of 0 for a part of them, unless nothing else has a weight."""
    weight = queries.query_weight.copy()
    weight[part] = 0.0
    return queries.with_weight(weight) if len(part) and weight.any() else queries


def with_seed(derivatives: Derivatives, seed: int) -> Derivatives:
    """The same with the noise of another seed, for a loss that draws some."""
    loss = derivatives.loss
    if not loss.noisy:
        return derivatives
    drawn = replace(loss, random_state=seed)  # type: ignore[call-arg]
    return replace(derivatives, lists=replace(derivatives.lists, loss=drawn))
