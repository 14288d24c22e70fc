"""What rankers with a network compute."""

from dataclasses import dataclass, replace

from rankwise.exports.raw_thresholds import center_and_scale
from rankwise.queries import checks
from rankwise.queries.scaling import Scaler
from rankwise.rankers.neural.network import Network


@dataclass(frozen=True)
class NetworkSum:
    """s(x) = constant + the score of a network, on raw features.

    Attributes
    ----------
    names : tuple of str
        The names of the features.
    network : Network
        The network, with a standardization of raw features.
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
