"""What is guaranteed, in numbers: bounds with every constant shown, and the adversary that shows what none can better.

Numbers in, numbers out: radii, norms, weights and cumulated losses go in, a :class:`Bound` comes out. No model is known
here.
"""

from rankwise.guarantees._bound import Bound, Precondition
from rankwise.guarantees.adversary import Adversary, Game, play
from rankwise.guarantees.online import (
    fixed_step,
    largest_root,
    online_to_batch,
    printed_003,
    separable_loss,
    separable_mistakes,
    separable_worst_pair,
    slam_mistakes,
    theorem_5,
    theorem_s,
    worst_pair_mistakes,
)
from rankwise.guarantees.weights import WeightFacts

__all__ = [
    "Adversary",
    "Bound",
    "Game",
    "Precondition",
    "WeightFacts",
    "fixed_step",
    "largest_root",
    "online_to_batch",
    "play",
    "printed_003",
    "separable_loss",
    "separable_mistakes",
    "separable_worst_pair",
    "slam_mistakes",
    "theorem_5",
    "theorem_s",
    "worst_pair_mistakes",
]
