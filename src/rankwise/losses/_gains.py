"""What losses of NDCG have in common: gains of labels and discounts of positions."""

from typing import Any

from rankwise.losses._base import Loss, Vector
from rankwise.measures.ndcg import discounts, gains, settle_gains


class LossOfGains(Loss):
    """Base class of losses with the fields ``gain`` and ``discount``, which are those of NDCG."""

    gain: Any
    discount: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_gains(self)

    def row_values(self, labels: Vector) -> Vector:
        """The gains of the labels."""
        return gains(labels, self.gain)

    def table(self, longest: int) -> Vector:
        """The discounts of the first positions."""
        return discounts(longest, self.discount)
