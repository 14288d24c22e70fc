"""Distributions of judged queries whose true means are known: where guarantees are put to the test.

Every query carries one feature that is the same for all of its documents and continuous. It changes no ranking, and it
makes every query distinct, so that no rule about duplicated queries interferes. A population with finitely many kinds
of queries has exact means; the others have those of a large reference sample, with a standard error.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from rankwise.losses.compute import PreparedLists, loss_lists

Floats = NDArray[np.float64]
Draw = Callable[[int, np.random.Generator], rw.Queries]

REFERENCE = 40_000  # queries that stand for a population without exact means
KINDS = 300  # of queries, where they are finitely many


@dataclass(frozen=True)
class Mean:
    """A true mean, and the standard error with which it is known (0: exactly)."""

    value: float
    error: float = 0.0


@dataclass(frozen=True)
class Reference:
    """The queries that stand for a population, and the probability of each (None: a sample, all count the same)."""

    queries: rw.Queries
    chance: Floats | None = None

    def mean(self, values: Floats) -> Mean:
        """The mean of one value per query over the queries that have one."""
        known = ~np.isnan(values)
        if self.chance is not None:
            chance = self.chance[known]
            return Mean(float(values[known] @ chance / chance.sum()))
        return Mean(float(values[known].mean()), float(values[known].std(ddof=1) / math.sqrt(known.sum())))

    def one_minus(self, measure: str, scores: Floats, ties: str = "expected") -> Floats:
        """1 - measure of every query; NaN where the measure is not defined."""
        return 1 - rw.evaluate(self.queries, scores, [measure], ties=ties, n_jobs=1).per_query[measure]  # type: ignore[arg-type]

    def losses(self, loss: rw.losses.Loss, scores: Floats) -> Floats:
        """The loss of every query."""
        prepared = PreparedLists.of(loss, self.queries.labels(), self.queries.start)
        return loss_lists(prepared, scores, n_jobs=1)[0]


@dataclass(frozen=True)
class Population:
    """A distribution of judged queries.

    Attributes
    ----------
    name : str
    about : what it is like, in words
    radius : no document of any query is farther than this from a point of its query's own
    longest : documents of the longest query
    draw : n independent queries
    kinds : the finitely many kinds and the probability of each; None where they are not finite
    first_ball : the smallest norm of weights that uniform bounds are told to distinguish; None: their default
    """

    name: str
    about: str
    radius: float
    longest: int
    draw: Draw
    kinds: Callable[[], Reference] | None = None
    first_ball: float | None = None


@cache
def reference_of(name: str, size: int = REFERENCE) -> Reference:
    """All kinds of queries with their probabilities, or else a sample of this size, the same in every process."""
    population = POPULATIONS[name]
    if population.kinds is not None:
        return population.kinds()
    return Reference(population.draw(size, np.random.default_rng([size, *name.encode()])))


def judged(X: Floats, labels: Floats, sizes: NDArray[np.int64], own: Floats) -> rw.Queries:
    """Queries with one more feature, ``own``, which all documents of a query share."""
    return rw.Queries.from_arrays(np.column_stack([X, np.repeat(own, sizes)]), labels, group=sizes)


# ------------------------------------------------------------------------------------------- finitely many kinds


@dataclass(frozen=True)
class Kinds:
    """Kinds of queries: documents one below the other, how many each has, and how often it is drawn."""

    X: Floats
    labels: Floats
    sizes: NDArray[np.int64]
    chance: Floats

    def reference(self) -> Reference:
        return Reference(judged(self.X, self.labels, self.sizes, np.full(len(self.sizes), 0.5)), self.chance)

    def draw(self, n: int, random: np.random.Generator) -> rw.Queries:
        which = random.choice(len(self.sizes), size=n, p=self.chance)
        first = np.concatenate([[0], np.cumsum(self.sizes)])
        rows = np.concatenate([np.arange(first[kind], first[kind + 1]) for kind in which])
        return judged(self.X[rows], self.labels[rows], self.sizes[which], random.random(n))


@cache
def mixed_kinds() -> Kinds:
    """Three to eight documents, four features, three grades of which the features explain about half."""
    random = np.random.default_rng(1)
    sizes = random.integers(3, 9, size=KINDS)
    X = random.random((sizes.sum(), 4))
    useful = X @ [1.0, 0.7, 0.4, -0.5] + 0.35 * random.standard_normal(len(X))
    labels = np.digitize(useful, [0.9, 1.25]).astype(float)
    return Kinds(X, labels, sizes, random.dirichlet(np.ones(KINDS)))


COINS, BIAS = 8, 0.25  # directions of the coins, and how far each is from fair


@cache
def coins() -> Kinds:
    """Query k has the documents e_k and -e_k, and a biased coin says which of the two is relevant."""
    X = np.repeat(np.eye(COINS), 4, axis=0) * np.tile([1.0, -1.0], 2 * COINS)[:, None]
    labels = np.tile([1.0, 0.0, 0.0, 1.0], COINS)
    chance = np.tile([0.5 + BIAS, 0.5 - BIAS], COINS) / COINS
    return Kinds(X, labels, np.full(2 * COINS, 2), chance)


# ------------------------------------------------------------------------------------------- continuous ones


def separable(n: int, random: np.random.Generator) -> rw.Queries:
    """One direction ranks every query without a mistake: the best document has grade 2, the next two grade 1."""
    sizes = random.integers(4, 9, size=n)
    X = random.random((sizes.sum(), 5))
    useful = X @ [1.0, 0.8, 0.6, 0.4, 0.2]
    owner = np.repeat(np.arange(n), sizes)
    order = np.lexsort((-useful, owner))
    place = np.empty(len(X), dtype=np.int64)
    place[order] = np.arange(len(X)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return judged(X, np.select([place == 0, place <= 2], [2.0, 1.0], 0.0), sizes, random.random(n))


def noisy(n: int, random: np.random.Generator) -> rw.Queries:
    """Two labels that features hardly explain; some queries have no relevant document, or a single document."""
    sizes = random.integers(1, 9, size=n)
    X = random.random((sizes.sum(), 5))
    chance = 1 / (1 + np.exp(1.0 - 1.5 * (X[:, 0] - 0.5)))
    return judged(X, (random.random(len(X)) < chance).astype(float), sizes, random.random(n))


RARE, LONG = 0.04, 25  # the share of reversed queries, and their documents


def skewed(n: int, random: np.random.Generator) -> rw.Queries:
    """The first feature is the label, but for 4% of the queries, whose relevant document it puts last of 25."""
    rare = random.random(n) < RARE
    sizes = np.where(rare, LONG, random.integers(2, 6, size=n))
    X = random.random((sizes.sum(), 4))
    first = np.cumsum(sizes) - sizes
    labels = np.zeros(len(X))
    labels[first] = 1.0
    X[:, 0] = 0.2 + 0.6 * X[:, 0]
    X[first, 0] = np.where(rare, 0.0, 1.0)
    return judged(X, labels, sizes, random.random(n))


def tied(n: int, random: np.random.Generator) -> rw.Queries:
    """Three features that are 0 or 1, so that most documents share their score with another one."""
    sizes = random.integers(3, 9, size=n)
    X = (random.random((sizes.sum(), 3)) < 0.4).astype(float)
    useful = X @ [1.0, 0.7, 0.4] + 0.6 * random.standard_normal(len(X))
    return judged(X, np.digitize(useful, [0.9, 1.6]).astype(float), sizes, random.random(n))


def _cube(features: int) -> float:
    """Radius of the unit cube around its middle; the feature that all documents share adds nothing."""
    return math.sqrt(features) / 2


POPULATIONS = {
    one.name: one
    for one in (
        Population(
            "finite",
            f"{KINDS} kinds of queries of known probability, 3 to 8 documents, 3 grades: means are exact sums",
            _cube(4),
            8,
            lambda n, random: mixed_kinds().draw(n, random),
            lambda: mixed_kinds().reference(),
        ),
        Population("separable", "one direction ranks every query without a mistake", _cube(5), 8, separable),
        Population(
            "noisy", "two labels that the features hardly explain, some queries without any", _cube(5), 8, noisy
        ),
        Population("skewed", "96% of the queries are trivial, 4% lose nearly everything", _cube(4), LONG, skewed),
        Population("tied", "features that are 0 or 1: most scores are tied", _cube(3), 8, tied),
        Population(
            "coins",
            f"two documents in one of {COINS} directions, one of them relevant by a biased coin: means are exact sums",
            1.0,
            2,
            lambda n, random: coins().draw(n, random),
            lambda: coins().reference(),
            first_ball=0.1,
        ),
    )
}
