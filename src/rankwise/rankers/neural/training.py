"""Train a network: batches of whole queries, any loss of the package, AdamW."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._kernels.rows import add_moments
from rankwise.data.queries import Queries
from rankwise.losses._base import Loss
from rankwise.losses.compute import PreparedLists, loss_lists
from rankwise.rankers.neural.network import Layers, Network

Vector = NDArray[np.float64]
Single = NDArray[np.float32]

TOO_LARGE = "the features are too large to learn from: scale them"


def moments(queries: Queries) -> tuple[Vector, Vector]:
    """Mean and standard deviation of every feature over the documents of queries of non-zero weight.

    The deviation is 0 where a feature does not vary. The rows are added query after query, so that their order in X
    changes no bit.
    """
    mean, squares = np.zeros(queries.n_features), np.zeros(queries.n_features)
    rows = queries.rows[np.repeat(queries.query_weight > 0, queries.sizes)]
    with np.errstate(over="ignore", invalid="ignore"):
        count = add_moments(np.asarray(queries.X), rows, 0, mean, squares)
        deviation = np.sqrt(squares / max(count, 1))
    if not (np.isfinite(mean).all() and np.isfinite(deviation).all()):
        raise RankwiseError(TOO_LARGE)
    return mean, deviation


@dataclass
class AdamW:
    """theta <- theta - rate (m / (sqrt(v) + epsilon) + decay theta), m and v running means of g and g^2.

    Attributes
    ----------
    rate : float
        The learning rate.
    decay : ndarray
        The weight decay of every weight.
    mean, square : ndarray
        Running means of the gradient and of its square.
    steps : int
        Number of steps.

    References
    ----------
    D. P. Kingma, J. Ba (2015). Adam: a method for stochastic optimization. ICLR. arXiv:1412.6980.

    I. Loshchilov, F. Hutter (2019). Decoupled weight decay regularization. ICLR. arXiv:1711.05101.
    """

    rate: float
    decay: Single
    mean: Single = field(init=False)
    square: Single = field(init=False)
    steps: int = 0

    def __post_init__(self) -> None:
        self.mean, self.square = np.zeros_like(self.decay), np.zeros_like(self.decay)

    def step(self, theta: Single, gradient: Single) -> None:
        """Change theta in place; the constants are those of the papers."""
        self.steps += 1
        self.mean += np.float32(0.1) * (gradient - self.mean)
        self.square += np.float32(0.001) * (gradient * gradient - self.square)
        # running means that start at 0 are too small at first
        mean, square = self.mean / np.float32(1 - 0.9**self.steps), self.square / np.float32(1 - 0.999**self.steps)
        theta -= np.float32(self.rate) * (mean / (np.sqrt(square) + np.float32(1e-8)) + self.decay * theta)


@dataclass
class Training:
    """A fit under way.

    Attributes
    ----------
    queries : Queries
        The training queries; those of weight 0 are not used.
    loss : Loss
        The loss.
    network : Network
        The network; its theta is changed in place.
    optimiser : AdamW
        The steps.
    batch : int
        Number of queries per step.
    dropout : float
        The probability with which a hidden value is set to 0 in a step.
    rng : numpy.random.Generator
        Draws the orders of the queries and the values that are dropped.
    n_jobs : int or None
        Number of threads.
    """

    queries: Queries
    loss: Loss
    network: Network
    optimiser: AdamW
    batch: int
    dropout: float
    rng: np.random.Generator
    n_jobs: int | None = None

    @classmethod
    def of(
        cls,
        queries: Queries,
        loss: Loss,
        hidden: tuple[int, ...],
        rng: np.random.Generator,
        *,
        learning_rate: float,
        weight_decay: float,
        **options: Any,
    ) -> "Training":
        """Draw a network for these queries.

        Parameters
        ----------
        queries : Queries
            The training queries.
        loss : Loss
            The loss.
        hidden : tuple of int
            The widths of the hidden layers.
        rng : numpy.random.Generator
            The source of chance.
        learning_rate, weight_decay : float
            The settings of AdamW.
        **options : Any
            The other attributes.

        Returns
        -------
        Training
            Before its first epoch.
        """
        layers = Layers((queries.n_features, *hidden))
        mean, deviation = moments(queries)
        varies = deviation > 0
        theta = layers.drawn(rng, varies)
        network = Network(mean, np.where(varies, deviation, 1.0), layers.widths, theta)
        decay = np.where(layers.decayed(), np.float32(weight_decay), np.float32(0.0))
        queries = queries._replace(qid=None, docid=None)  # which batches would copy
        return cls(queries, loss, network, AdamW(learning_rate, decay), rng=rng, **options)

    def epoch(self) -> float:
        """Visit every query once, in a new order; the weighted mean loss on the way is returned."""
        weight = self.queries.query_weight
        total, seen = [], math.fsum(weight)
        share = len(self.queries.counted) / seen
        for numbers in self._batches():
            part = self.queries[numbers]
            own = weight[numbers]
            # the mean weight of all queries stands for that of the batch, which would favour light queries
            total.append(math.fsum(self._step(part, own * share / len(numbers)) * own))
        self._refuse_unless_finite(self.network.theta)
        return math.fsum(total) / seen

    def _batches(self) -> Iterator[NDArray[np.int64]]:
        order = self.rng.permutation(self.queries.counted)
        for first in range(0, len(order), self.batch):
            yield np.sort(order[first : first + self.batch])  # a mapped X is read from the front to the back

    @np.errstate(over="ignore", invalid="ignore")  # weights that grow without end are found below
    def _step(self, part: Queries, weight: Vector) -> Vector:
        """One step on a batch of grouped queries; the losses of the queries before it are returned."""
        layers, theta = Layers(self.network.widths), self.network.theta
        scores, passed = layers.scores(theta, self.network.standardised(part.X), self._kept(part.n_documents))
        self._refuse_unless_finite(scores)
        lists = PreparedLists.of(self.loss, part.labels(), part.start)
        values, slopes = loss_lists(lists, scores.astype(np.float64), n_jobs=self.n_jobs)
        slopes *= np.repeat(weight, part.sizes)
        self.optimiser.step(theta, layers.gradient(theta, passed, slopes.astype(np.float32)))
        return values

    def _refuse_unless_finite(self, values: Single) -> None:
        if not np.isfinite(values).all():
            raise RankwiseError("the weights grew beyond all numbers: give a smaller learning_rate")

    def _kept(self, count: int) -> list[Single] | None:
        """Factors of the hidden values: 0 for those that are dropped, and more than 1 for the others."""
        if not self.dropout:
            return None
        keep = np.float32(1.0 - self.dropout)
        drawn = (self.rng.random((count, width), dtype=np.float32) for width in self.network.widths[1:])
        return [(one < keep).astype(np.float32) / keep for one in drawn]
