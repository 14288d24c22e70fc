"""What is guaranteed, in numbers: bounds with every constant shown, and certificates that collect them.

Numbers in, numbers out: radii, norms, weights and cumulative losses go in, a :class:`Bound` comes out. No model is
known here. :mod:`~rankwise.guarantees.bounds` has the theorems about training, online runs and future queries, and the
adversary that shows which of them cannot be improved; :mod:`~rankwise.guarantees.holdout` has intervals from held-out
queries and the number of queries that a given width takes; :mod:`~rankwise.guarantees.certificate` puts bounds in one
table with a headline.
"""

from rankwise._registry import lazy_names

_HOMES = {
    "_bound": ["Bound", "Precondition"],
    "bounds.adversary": ["Adversary", "Game", "play"],
    "bounds.batch": [
        "best_lambda",
        "equation_8",
        "gap_cost",
        "ogd_average",
        "ogd_smooth",
        "rerm",
        "rerm_best",
        "theorem_6",
        "theorem_6_lambda",
    ],
    "bounds.online": [
        "WeightFacts",
        "fixed_step",
        "largest_root",
        "online_to_batch",
        "separable_loss",
        "separable_mistakes",
        "separable_worst_pair",
        "slam_mistakes",
        "theorem_5",
        "theorem_s",
        "worst_pair_mistakes",
    ],
    "bounds.training": [
        "adarank_certificate",
        "smoothing_error",
        "surrogate_above_loss",
        "type_two_below_type_one",
    ],
    "bounds.uniform": [
        "ball_index",
        "dudley",
        "for_fitted_norm",
        "l1_ball",
        "l1_erm",
        "l2_ball",
        "linf_ball",
        "linf_erm",
        "smallest",
        "smooth_ball",
        "smooth_erm",
    ],
    "certificate": ["Certificate", "Claim", "certificate_of", "holdout_claims"],
    "holdout.interval": ["Interval"],
    "holdout.intervals": ["Plan", "difference_interval", "mean_interval", "paired_power", "queries_needed"],
    "holdout.sequences": ["ConfidenceSequence", "confidence_sequence"],
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
