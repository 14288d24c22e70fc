"""What is guaranteed, in numbers: bounds with every constant shown, and the adversary that shows what none can better.

Numbers in, numbers out: radii, norms, weights and cumulated losses go in, a :class:`Bound` comes out. No model is known
here.
"""

from rankwise.guarantees._bound import Bound, Precondition
from rankwise.guarantees.bounds.adversary import Adversary, Game, play
from rankwise.guarantees.bounds.batch import (
    best_lambda,
    equation_8,
    gap_cost,
    ogd_average,
    ogd_smooth,
    rerm,
    rerm_best,
    theorem_6,
    theorem_6_lambda,
)
from rankwise.guarantees.bounds.online import (
    WeightFacts,
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
from rankwise.guarantees.bounds.optimistic import smooth_ball, smooth_erm
from rankwise.guarantees.bounds.printed import (
    printed_corollary_8,
    printed_corollary_11,
    printed_lambda_2014,
    printed_lambda_2015,
    printed_smooth_erm,
    printed_theorem_1,
)
from rankwise.guarantees.bounds.smoothing import smoothing_error, surrogate_above_loss, type_two_below_type_one
from rankwise.guarantees.bounds.training import adarank_certificate, adarank_printed
from rankwise.guarantees.bounds.uniform import (
    ball_index,
    dudley,
    for_fitted_norm,
    l1_ball,
    l1_erm,
    l2_ball,
    linf_ball,
    linf_erm,
    smallest,
)
from rankwise.guarantees.certificate import Certificate, Claim, certify, holdout_claims
from rankwise.guarantees.holdout.interval import Interval
from rankwise.guarantees.holdout.intervals import difference_interval, mean_interval
from rankwise.guarantees.holdout.planning import Plan, paired_power, queries_needed
from rankwise.guarantees.holdout.sequences import ConfidenceSequence, confidence_sequence

__all__ = [
    "Adversary",
    "Bound",
    "Certificate",
    "Claim",
    "ConfidenceSequence",
    "Game",
    "Interval",
    "Plan",
    "Precondition",
    "WeightFacts",
    "adarank_certificate",
    "adarank_printed",
    "ball_index",
    "best_lambda",
    "certify",
    "confidence_sequence",
    "difference_interval",
    "dudley",
    "equation_8",
    "fixed_step",
    "for_fitted_norm",
    "gap_cost",
    "holdout_claims",
    "l1_ball",
    "l1_erm",
    "l2_ball",
    "largest_root",
    "linf_ball",
    "linf_erm",
    "mean_interval",
    "ogd_average",
    "ogd_smooth",
    "online_to_batch",
    "paired_power",
    "play",
    "printed_003",
    "printed_corollary_8",
    "printed_corollary_11",
    "printed_lambda_2014",
    "printed_lambda_2015",
    "printed_smooth_erm",
    "printed_theorem_1",
    "queries_needed",
    "rerm",
    "rerm_best",
    "separable_loss",
    "separable_mistakes",
    "separable_worst_pair",
    "slam_mistakes",
    "smallest",
    "smooth_ball",
    "smooth_erm",
    "smoothing_error",
    "surrogate_above_loss",
    "theorem_5",
    "theorem_6",
    "theorem_6_lambda",
    "theorem_s",
    "type_two_below_type_one",
    "worst_pair_mistakes",
]
