"""A small residual network from features to a score, its gradient, and its training.

:class:`Network` is what a fit returns: it scores row by row in float64, by compiled code. :class:`Layers` is what a fit
trains: scores of a batch, and the gradient of a function of these scores with respect to all weights. Both read the
weights from one vector, theta, so an optimizer needs to know nothing about layers.

:class:`Training` runs AdamW on batches of whole queries, for any loss of the package.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.moments import add_moments
from rankwise._kernels.network import network_scores
from rankwise.errors import RankwiseError
from rankwise.losses._base import Loss
from rankwise.losses.compute import PreparedLists, loss_lists
from rankwise.queries.checks import Floats
from rankwise.queries.queries import Queries

Vector = NDArray[np.float64]
Matrix = NDArray[Any]


class Layer(NamedTuple):
    """One hidden layer.

    Attributes
    ----------
    weight : ndarray of shape (n_out, n_in)
        The weights.
    bias : ndarray of shape (n_out,)
        The biases.
    residual : bool
        Whether the values of the layer below are added to those of this one.
    """

    weight: Matrix
    bias: Matrix
    residual: bool


@dataclass(frozen=True)
class Layers:
    """s = v . h_L + u . z,  h_l = max(W_l h_{l-1} + b_l, 0) (+ h_{l-1} where both are equally wide),  h_0 = z.

    The first hidden layer has no residual: the features reach the score by u.

    Attributes
    ----------
    widths : tuple of int
        Number of features, and the widths of the hidden layers.
    """

    widths: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of weights."""
        hidden = sum((below + 1) * above for below, above in pairwise(self.widths))
        return hidden + self.widths[-1] + self.widths[0]

    def views(self, theta: Matrix) -> tuple[list[Layer], Matrix, Matrix]:
        """(hidden layers, v, u) as views of theta."""
        layers, place = [], 0
        for number, (below, above) in enumerate(pairwise(self.widths)):
            biases = place + below * above
            weight = theta[place:biases].reshape(above, below)
            layers.append(Layer(weight, theta[biases : biases + above], number > 0 and below == above))
            place = biases + above
        end = place + self.widths[-1]
        return layers, theta[place:end], theta[end:]

    def draw(self, rng: np.random.Generator, varies: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Random weights to start from; features that do not vary have weight 0, and keep it.

        Hidden layers are drawn as K. He et al. do (2015, doi:10.1109/ICCV.2015.123), uniformly with variance 2 / n_in.
        The linear part starts at 0.
        """
        theta = np.zeros(self.size, dtype=np.float32)
        layers, v, _ = self.views(theta)
        for number, layer in enumerate(layers):
            inputs = int(varies.sum()) if number == 0 else layer.weight.shape[1]
            reach = np.sqrt(6.0 / max(inputs, 1))
            layer.weight[:] = rng.uniform(-reach, reach, layer.weight.shape)
        layers[0].weight[:, ~varies] = 0.0
        v[:] = rng.uniform(-1.0, 1.0, len(v)) / np.sqrt(len(v))
        return theta

    def find_decayed(self) -> NDArray[np.bool_]:
        """The weights that are penalized: all but the biases."""
        found = np.ones(self.size, dtype=bool)
        for layer in self.views(found)[0]:
            layer.bias[:] = False
        return found

    def scores(
        self, theta: Matrix, Z: Matrix, kept: Sequence[Matrix] | None = None
    ) -> tuple[Matrix, list[tuple[Matrix, Matrix]]]:
        """Scores of a batch, and what :meth:`gradient` needs of the way there.

        Parameters
        ----------
        theta : ndarray of shape (size,)
            The weights.
        Z : ndarray of shape (n_documents, n_features)
            Standardized features, of the type of theta.
        kept : sequence of ndarray, default=None
            For every hidden layer the factors of its values, documents x width; None is 1.

        Returns
        -------
        scores : ndarray of shape (n_documents,)
            The scores.
        passed : list of tuple
            For every hidden layer the values below it, and the slopes of its own values.
        """
        layers, v, u = self.views(theta)
        h, passed = Z, []
        for number, layer in enumerate(layers):
            a = h @ layer.weight.T + layer.bias
            slope = (a > 0).astype(theta.dtype)
            if kept is not None:
                slope *= kept[number]
            passed.append((h, slope))
            h = a * slope + h if layer.residual else a * slope
        passed.append((h, Z))
        return h @ v + Z @ u, passed

    def gradient(self, theta: Matrix, passed: Sequence[tuple[Matrix, Matrix]], slopes: Matrix) -> Matrix:
        """The gradient with respect to theta of a function of the scores.

        Parameters
        ----------
        theta : ndarray of shape (size,)
            The weights.
        passed : sequence of tuple
            What :meth:`scores` returned.
        slopes : ndarray of shape (n_documents,)
            The gradient of the function with respect to the scores.

        Returns
        -------
        ndarray of shape (size,)
            The gradient.
        """
        found = np.empty_like(theta)
        (layers, v, _), (into, to_v, to_u) = self.views(theta), self.views(found)
        h, Z = passed[-1]
        to_v[:], to_u[:] = slopes @ h, slopes @ Z
        upper = slopes[:, None] * v
        for layer, own, (below, slope) in zip(layers[::-1], into[::-1], passed[-2::-1], strict=True):
            inner = upper * slope
            own.weight[:], own.bias[:] = inner.T @ below, inner.sum(axis=0)
            upper = inner @ layer.weight + upper if layer.residual else inner @ layer.weight
        return found


@dataclass(frozen=True)
class Network:
    """A trained network on raw features, which it standardizes: z = (x - center) / scale.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
        Mean and standard deviation of the features; a feature that did not vary in training has scale 1 and no weight.
    widths : tuple of int
        Number of features, and the widths of the hidden layers.
    theta : ndarray of float32
        All weights, in the order of :class:`Layers`.
    """

    center: Vector
    scale: Vector
    widths: tuple[int, ...]
    theta: NDArray[np.float32]

    def views(self) -> tuple[list[Layer], Vector, Vector]:
        """(hidden layers, weights of the last layer, weights of the standardized features) in float64."""
        return Layers(self.widths).views(self.theta.astype(np.float64))

    def standardize(self, X: Floats) -> NDArray[np.float32]:
        """The features of a batch, standardized, in the type that is trained on."""
        return ((X - self.center) / self.scale).astype(np.float32)

    def predict(self, X: Floats, n_jobs: int | None = None) -> Vector:
        """One score per row; the score of a row does not depend on the others, to the bit.

        Parameters
        ----------
        X : ndarray of shape (n_documents, n_features)
            Raw features.
        n_jobs : int, default=None
            Number of threads; None uses all cores. The result does not depend on it.

        Returns
        -------
        ndarray of shape (n_documents,)
            The scores.
        """
        widths, theta = np.array(self.widths, dtype=np.int64), self.theta.astype(np.float64)
        return network_scores(X, self.center, self.scale, widths, theta, n_jobs)


# ------------------------------------------------------------------------------------------------------------ training


Single = NDArray[np.float32]

TOO_LARGE = "the features are too large to learn from: scale them"


def moments(queries: Queries) -> tuple[Vector, Vector]:
    """Mean and standard deviation of every feature over the documents of queries of non-zero weight.

    The deviation is 0 where a feature does not vary. The rows are added query after query, so their order in X
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
    optimizer : AdamW
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
    optimizer: AdamW
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
        theta = layers.draw(rng, varies)
        network = Network(mean, np.where(varies, deviation, 1.0), layers.widths, theta)
        decay = np.where(layers.find_decayed(), np.float32(weight_decay), np.float32(0.0))
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
            # the mean weight of all queries stands for that of the batch, which would favor light queries
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
        scores, passed = layers.scores(theta, self.network.standardize(part.X), self._draw_dropout(part.n_documents))
        self._refuse_unless_finite(scores)
        lists = PreparedLists.of(self.loss, part.labels(), part.start)
        values, slopes = loss_lists(lists, scores.astype(np.float64), n_jobs=self.n_jobs)
        slopes *= np.repeat(weight, part.sizes)
        self.optimizer.step(theta, layers.gradient(theta, passed, slopes.astype(np.float32)))
        return values

    def _refuse_unless_finite(self, values: Single) -> None:
        if not np.isfinite(values).all():
            raise RankwiseError("the weights overflowed: pass a smaller learning_rate")

    def _draw_dropout(self, count: int) -> list[Single] | None:
        """Factors of the hidden values: 0 for those that are dropped, and more than 1 for the others."""
        if not self.dropout:
            return None
        keep = np.float32(1.0 - self.dropout)
        drawn = (self.rng.random((count, width), dtype=np.float32) for width in self.network.widths[1:])
        return [(one < keep).astype(np.float32) / keep for one in drawn]
