"""A small residual network from features to a score, and its gradient.

:class:`Network` is what a fit returns: it scores row by row in float64, by compiled code. :class:`Layers` is what a fit
trains: scores of a batch, and the gradient of a function of these scores with respect to all weights. Both read the
weights from one vector, theta, so that an optimiser needs to know nothing about layers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.rows import network_scores
from rankwise.data.checks import Floats

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

    def opened(self, theta: Matrix) -> tuple[list[Layer], Matrix, Matrix]:
        """(hidden layers, v, u) as views of theta."""
        layers, place = [], 0
        for number, (below, above) in enumerate(pairwise(self.widths)):
            biases = place + below * above
            weight = theta[place:biases].reshape(above, below)
            layers.append(Layer(weight, theta[biases : biases + above], number > 0 and below == above))
            place = biases + above
        end = place + self.widths[-1]
        return layers, theta[place:end], theta[end:]

    def drawn(self, rng: np.random.Generator, varies: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Random weights to start from; features that do not vary have weight 0, and keep it.

        Hidden layers are drawn as K. He et al. do (2015, doi:10.1109/ICCV.2015.123), uniformly with variance 2 / n_in.
        The linear part starts at 0.
        """
        theta = np.zeros(self.size, dtype=np.float32)
        layers, v, _ = self.opened(theta)
        for number, layer in enumerate(layers):
            inputs = int(varies.sum()) if number == 0 else layer.weight.shape[1]
            reach = np.sqrt(6.0 / max(inputs, 1))
            layer.weight[:] = rng.uniform(-reach, reach, layer.weight.shape)
        layers[0].weight[:, ~varies] = 0.0
        v[:] = rng.uniform(-1.0, 1.0, len(v)) / np.sqrt(len(v))
        return theta

    def decayed(self) -> NDArray[np.bool_]:
        """The weights that are penalised: all but the biases."""
        found = np.ones(self.size, dtype=bool)
        for layer in self.opened(found)[0]:
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
            Standardised features, of the type of theta.
        kept : sequence of ndarray, default=None
            For every hidden layer the factors of its values, documents x width; None is 1.

        Returns
        -------
        scores : ndarray of shape (n_documents,)
            The scores.
        passed : list of tuple
            For every hidden layer the values below it, and the slopes of its own values.
        """
        layers, v, u = self.opened(theta)
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
        (layers, v, _), (into, to_v, to_u) = self.opened(theta), self.opened(found)
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
    """A trained network on raw features, which it standardises: z = (x - center) / scale.

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

    def opened(self) -> tuple[list[Layer], Vector, Vector]:
        """(hidden layers, weights of the last layer, weights of the standardised features) in float64."""
        return Layers(self.widths).opened(self.theta.astype(np.float64))

    def standardised(self, X: Floats) -> NDArray[np.float32]:
        """The features of a batch, standardised, in the type that is trained on."""
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
