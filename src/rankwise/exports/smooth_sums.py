"""What rankers compute that are no sum over single features: networks, and weights on random Fourier features."""

from dataclasses import dataclass, replace

import numpy as np

from rankwise.data import checks
from rankwise.data.scaling import Scaler
from rankwise.exports.raw_thresholds import center_and_scale
from rankwise.features.kernel_maps import FourierFeatures
from rankwise.measures._base import Vector
from rankwise.rankers._base import LinearRanker, Ranker
from rankwise.rankers.mapped import MappedRanker
from rankwise.rankers.neural.network import Network
from rankwise.rankers.online.kernel_perceptron import KernelPerceptron


@dataclass(frozen=True)
class NetworkSum:
    """s(x) = constant + the score of a network, on raw features.

    Attributes
    ----------
    names : tuple of str
        The names of the features.
    network : Network
        The network, with a standardisation of raw features.
    constant : float
        The constant.
    missing : {"error", "zero", "min"}
        How the ranker treats missing values.
    """

    names: tuple[str, ...]
    network: Network
    constant: float = 0.0
    missing: checks.Missing = "error"

    @classmethod
    def of(
        cls, network: Network, names: tuple[str, ...], missing: checks.Missing = "error", scaler: Scaler | None = None
    ) -> "NetworkSum":
        """The formula of a network that sees raw features, or the features that a scaler makes."""
        if scaler is not None:
            # a feature that did not vary has no weight in the network
            _, center, scale = center_and_scale(scaler)
            # ((x - c) / s - C) / S = (x - (c + s C)) / (s S)
            network = replace(network, center=center + scale * network.center, scale=scale * network.scale)
        return cls(names, network, missing=missing)


@dataclass(frozen=True)
class FourierSum:
    """s(x) = constant + sum_j cosine_j cos(w_j . x) + sine_j sin(w_j . x), with the frequencies w.

    Attributes
    ----------
    names : tuple of str
        The names of the features.
    frequencies : ndarray, shape (n_frequencies, n_features)
        The frequencies.
    cosine : ndarray
        The weights of the cosines.
    sine : ndarray
        The weights of the sines.
    constant : float
        The constant.
    missing : {"error", "zero", "min"}
        How the ranker treats missing values.
    """

    names: tuple[str, ...]
    frequencies: Vector
    cosine: Vector
    sine: Vector
    constant: float = 0.0
    missing: checks.Missing = "error"

    @classmethod
    def of(cls, ranker: Ranker, names: tuple[str, ...]) -> "FourierSum | None":
        """The formula of linear weights on random Fourier features; None for any other ranker."""
        if isinstance(ranker, MappedRanker) and isinstance(ranker.ranker_, LinearRanker):
            map_, weights = ranker.transformer_, ranker.ranker_.coef_
            constant = float(getattr(ranker.ranker_, "intercept_", 0.0))
        elif isinstance(ranker, KernelPerceptron):
            map_, weights, constant = getattr(ranker, "map_", None), getattr(ranker.state_, "w", np.empty(0)), 0.0
        else:
            return None
        if type(map_) is not FourierFeatures:
            return None
        half = len(map_.frequencies_)
        weights = weights / np.sqrt(half)
        return cls(names, map_.frequencies_, weights[:half], weights[half:], constant, ranker.missing)
