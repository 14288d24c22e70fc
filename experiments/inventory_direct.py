"""direct: J. Xu, H. Li, T.-Y. Liu, Y. Peng, M. Lu and W.-Y. Ma, Direct optimization of evaluation measures."""

from experiments.inventory_item import items

GOV = "the .GOV sets (TREC 2003 and 2004) are not available"
TWO = "OHSUMED of LETOR 3.0 for 2.0"
BOUNDS = "[two types of bounds](#two-types-of-bounds)"
FIVE = "[five rankers for MAP](#five-rankers-for-map)"
LOSSES = "[printed statements](bounds.md#printed-training-queries-and-losses)"
GONE = "[not reproduced](#not-reproduced)"

ITEMS = items(
    "direct",
    [
        (
            "Section 2",
            "the hinge of IR-SVM, as related work",
            "`rw.RankSVM(pair_weights=)`, `losses.GradedPairHinge`",
            "same: weights of pairs are estimated from the training labels",
        ),
        ("Equation (1)", "linear scores of documents", "`rw.LinearModel`", "same"),
        (
            "Equations (2), (3)",
            "score of an order, over all pairs or SVMmap's",
            "`losses.permutation_score`, `losses/test_permutation.py::test_both_maps_equal_their_sums_over_pairs`",
            "same",
        ),
        (
            "Equation (4)",
            "the order of the largest score",
            "`losses/test_permutation.py::test_the_orders_of_largest_score_are_exactly_those_that_sort_the_scores`",
            "same",
        ),
        (
            "Theorem 1",
            "both models rank alike",
            "`losses/test_permutation.py::test_the_orders_of_largest_score_are_exactly_those_that_sort_the_scores`",
            "same",
        ),
        ("Table 1", "notation", "[the container](architecture.md#the-container)", "same: nothing to run"),
        ("Equation (5)", "the basic loss, 1 - measure", "`rw.evaluate`", "same"),
        (
            "Section 4.1",
            "exponential and logistic type one loss",
            "`losses.TypeOne`, `rw.AdaRank(bound=)`, "
            "`losses/test_permutation.py::test_type_one_losses_are_ordered_above_the_loss_of_the_measure`",
            "same",
        ),
        (
            "Figure 1",
            "type one bounds against the measure",
            BOUNDS,
            "same",
            "bound_forms",
        ),
        (
            "Equation (6)",
            "the loss over perfect and imperfect orders",
            "`losses.TypeTwo(form=)`",
            f"corrected: with the pairs of equation (2) it is not 0 for a perfect ranker, {LOSSES}",
        ),
        (
            "Theorem 2",
            "it is never below the basic loss",
            "`losses/test_permutation.py::"
            "test_every_form_bounds_the_measure_and_the_exponential_is_never_tighter_than_the_hinge`",
            "same",
        ),
        (
            "Section 4.2",
            "logistic, exponential and two hinge forms",
            "`losses.TypeTwo(form=)`, `losses.TypeTwoBound(form=)`, `rw.PermuRank(form=, hinge=)`",
            f"corrected: the exponential form is never tighter than the hinge, {LOSSES}",
        ),
        ("Figure 2", "type two bounds against the margin", BOUNDS, "same", "bound_forms"),
        ("Equation (7)", "sum of hinges over orders", "`rw.PermuRank(hinge=)`", "same: over the working sets"),
        (
            "Theorem 3",
            "when type two is below type one",
            "`guarantees.type_two_below_type_one`, "
            "`guarantees/test_smoothing.py::test_type_two_is_below_type_one_wherever_the_condition_is_met`",
            f"same: true, but its condition never holds in the paper's simulation, {LOSSES}",
        ),
        (
            "Equations (8), (9)",
            "the inequality and the condition of Theorem 3",
            "`experiments/test_bound_angles.py::test_type_two_is_the_tighter_bound_where_condition_9_holds`",
            "same",
        ),
        (
            "Figure 3",
            "both bounds against the angle of w, equal variances",
            f"simulated: {BOUNDS}",
            "partly: only with SVMmap's pairs",
            "bounds_by_angle",
        ),
        (
            "Figure 4",
            "the same, unequal variances",
            f"simulated: {BOUNDS}",
            "partly: only with SVMmap's pairs; the minimum is not at 45 degrees",
            "bounds_by_angle",
        ),
        (
            "Figure 5",
            "how the bounds are related, a diagram",
            "[types one and two](bounds.md#types-one-and-two)",
            "same: nothing to run",
        ),
        (
            "Section 5.1",
            "other weak rankers; measures that are dot products",
            "`rw.AdaRank(weak=, resample=)`, `guarantees/test_adarank_certificate.py::"
            "test_a_measure_that_is_a_dot_product_improves_its_bound_in_every_round`",
            "same",
        ),
        (
            "Figure 6",
            "AdaRank, the algorithm",
            "`rw.AdaRank(repeats=)`, `rankers/boosting/test_adarank.py::test_every_round_is_that_of_the_algorithm`",
            "same: the default takes every feature once",
        ),
        (
            "Theorem 4",
            "AdaRank's training measure",
            "`guarantees.adarank_certificate`, as printed `experiments.printed_bounds.adarank_printed`",
            "sharper: -log Pi in place of 1 - Pi, [printed statements](bounds.md#printed-training-queries-and-losses)",
        ),
        (
            "Figure 7",
            "PermuRank, the algorithm",
            "`rw.PermuRank`, "
            "`rankers/permutation/test_permurank_orders.py::test_a_round_reaches_the_minimum_of_a_quadratic_program`",
            "same",
        ),
        (
            "Equation (10)",
            "the objective of SVMmap",
            "`rw.SVMMap`, `losses.SVMMapHinge`, "
            "`losses/test_permutation.py::test_the_additive_form_on_relevance_is_the_svmmap_hinge`",
            "same",
        ),
        (
            "Figure 8",
            "MAP and NDCG@1, 3, 5, 10 of five rankers",
            f"{TWO}: {FIVE}",
            "differs: no ranker is ahead",
            "direct_on_map",
        ),
        ("Figure 9", "the same on TD2003", GONE, f"not reproduced: {GOV}"),
        ("Figure 10", "the same on TD2004", GONE, f"not reproduced: {GOV}"),
        (
            "Figure 11",
            "learning curves of AdaRank and PermuRank",
            f"{TWO}, fold 1: [learning curves](#learning-curves)",
            "differs: they do not climb steadily",
            "boosting_rounds",
        ),
        ("Figure 12", "five rankers on WSJ", GONE, "not reproduced: WSJ is not available"),
        (
            "Table 2",
            "MAP of five rankers on five sets",
            f"{TWO}: {FIVE}",
            "partly: the OHSUMED column; the other four sets are not available",
            "direct_on_map",
        ),
        ("Figure 13", "five rankers on AP", GONE, "not reproduced: AP is not available"),
        (
            "Table 3",
            "NDCG@3 of five rankers on five sets",
            f"{TWO}: {FIVE}",
            "partly: the OHSUMED column; the other four sets are not available",
            "direct_on_map",
        ),
        (
            "Table 4",
            "AdaRank, PermuRank and SVMmap compared in words",
            f"OHSUMED: {FIVE}",
            "partly: seconds of a fit; SVMmap is not slow here",
            "direct",
        ),
        (
            "Figure 14",
            "inverted pairs by label, AdaRank and RankBoost",
            f"{TWO}: [where they err](#where-adarank-and-rankboost-err)",
            "partly: same direction, not significant",
            "direct_on_map",
        ),
        (
            "Figure 15",
            "queries by their number of pairs",
            "OHSUMED: [queries by size](direct.md#where-does-a-ranker-err)",
            "same: equally uneven",
            "ranking_errors errors",
        ),
        (
            "Figure 16",
            "MAP of AdaRank and RankBoost by number of pairs",
            f"{TWO}: [where they err](#where-adarank-and-rankboost-err)",
            "partly: only below 1,000 pairs",
            "direct_on_map",
        ),
        (
            "Section 8, first",
            "generalization of direct optimization, announced",
            "`guarantees.linf_ball`, `guarantees.l2_ball`, `guarantees.mean_interval`",
            "same: [every ranker](guarantees.md#every-ranker-on-ohsumed) has such bounds",
        ),
        (
            "Section 8, second",
            "type one, then type two, announced",
            "`rw.TwoStage`, [results](direct.md#ohsumed-and-mq2008)",
            "same: built and measured",
        ),
        (
            "Section 8, third",
            "approximations of the measures, announced",
            "`rw.SmoothRank(loss=)`, `rw.BoostedRanker(loss=)`",
            "same: built and measured, [smoothed losses](direct.md#other-smoothed-losses)",
        ),
        (
            "Equation (11)",
            "the score of an order in the proof of Theorem 1",
            "`losses.permutation_score`",
            "same",
        ),
    ],
)
