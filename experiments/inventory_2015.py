"""2015: A. Tewari and S. Chaudhuri, Generalization error bounds: does the length of document lists matter?"""

from experiments.inventory_item import items

UNIFORM = "[printed statements](bounds.md#printed-uniform)"
EXPECTED = "[printed statements](bounds.md#printed-in-expectation)"
LOSSES = "[printed statements](bounds.md#printed-training-queries-and-losses)"

ITEMS = items(
    "2015",
    [
        (
            "Table 1",
            "which bound is for which method",
            "`guarantees.ogd_average`, `guarantees.rerm`, `guarantees.linf_erm`",
            "same: [in expectation](bounds.md#in-expectation), [uniform](bounds.md#uniform)",
        ),
        ("Equation (1)", "linear scores of documents", "`rw.LinearModel`", "same"),
        (
            "Section 1",
            "ListMLE and RankCosine, as related work",
            "`losses.ListMLE`, `losses.RankCosine`, [results](#methods-without-published-results)",
            "same: with equal labels that do not compete",
        ),
        (
            "Section 2",
            "minimization over balls of l2 and l1 norm",
            "`rw.LossRanker(max_norm=, penalty=)`",
            "same: with a proved gap",
        ),
        (
            "Proposition 1",
            "ListNet: Lipschitz and smooth, whatever m",
            "`losses.ListNet`, `losses/test_listnet.py::test_the_curvature_1_is_attained_by_two_documents_at_a_tie`",
            f"sharper: H1 = 1 in place of 2, {LOSSES}",
        ),
        (
            "Footnote 1",
            "ListNet over the first k documents",
            "`losses.ListNetTopK(k=)`",
            "same: exact for k up to 3",
        ),
        (
            "Proposition 2",
            "smooth DCG@1: Lipschitz, whatever m",
            "`losses.SmoothDCG1`, "
            "`losses/test_smooth_ndcg.py::test_the_steepest_softmax_is_attained_and_a_quarter_of_what_is_in_print`",
            f"sharper: a quarter, which is attained, {LOSSES}",
        ),
        (
            "Section 3.2",
            "DCG@k in place of DCG@1, announced",
            "`losses.SmoothNDCG(k=)`, "
            "`losses/test_smooth_ndcg.py::test_no_gradient_is_longer_than_the_proven_constant`",
            "same: [its constants](losses.md#constants)",
        ),
        (
            "Section 3.3",
            "RankSVM's slope; appendix C has its gradient",
            "`losses.PairHinge`, `losses/test_pairs.py::test_the_pair_hinge_gradient_counts_pairs_and_not_their_slack`",
            f"corrected: indicators in place of slacks, {LOSSES}",
        ),
        (
            "Section 4",
            "Theorem 1 of SmoothRank, quoted",
            "`guarantees.l2_ball`",
            f"corrected: for losses in [0, 1], {UNIFORM}",
        ),
        (
            "Theorem 3",
            "linear scores that respect permutations: dimension 2 d",
            "`guarantees/test_equivariant.py::"
            "test_there_are_2d_list_level_scoring_functions_and_d_for_single_documents`",
            "corrected: for two or more documents, [why](bounds.md#why-there-are-no-list-level-weights)",
        ),
        (
            "Equation (2)",
            "the class of Theorem 3",
            "`guarantees/test_equivariant.py::test_the_list_level_half_moves_no_ranking`",
            "same",
        ),
        (
            "Lemma 4",
            "the 1 -> p norm is that of the longest row",
            "`losses/test_every_fact.py::test_weights_feel_no_more_than_the_radius_of_the_documents`",
            "same: used for p = 2",
        ),
        (
            "Theorem 5",
            "online gradient descent, averaged",
            "`guarantees.ogd_average`, `rw.OnlineRanker(averaging=, eta=)`",
            "sharper: without sqrt(2), [printed statements](bounds.md#printed-in-expectation)",
        ),
        (
            "Equation (3)",
            "regularized minimizer in a ball",
            "`rw.LossRanker(alpha=, max_norm=)`",
            "partly: with a penalty or in a ball, not both at once",
        ),
        (
            "Theorem 6",
            "its excess risk",
            "`guarantees.rerm_in_ball`, `guarantees.rerm_best`",
            "sharper: 2 G W R/sqrt(n), [printed statements](bounds.md#printed-in-expectation)",
        ),
        (
            "Proposition 7",
            "covering numbers, l2 ball",
            "`guarantees/test_printed.py::test_no_points_that_are_far_apart_outnumber_the_covering_number`",
            f"corrected: proved with a factor of 4; the printed one is unverified, {UNIFORM}",
        ),
        (
            "Equation (4)",
            "a query counts as m rows",
            "`guarantees/test_printed.py::test_the_covering_numbers_are_those_of_dudleys_integral`",
            "same",
        ),
        ("Equations (5), (6)", "Dudley's integral", "`guarantees.dudley`", "same"),
        (
            "Corollary 8",
            "complexity of the l2 ball",
            "`guarantees.linf_ball`, as printed `experiments.printed_bounds.printed_corollary_8`",
            f"corrected: it can be negative, {UNIFORM}",
        ),
        (
            "Footnote 3",
            "losses are bounded on the ball",
            "`losses/test_listnet.py::test_two_equal_labels_cost_log_2_in_print_and_nothing_here`",
            f"corrected: not for cross entropy, {LOSSES}",
        ),
        (
            "Theorem 9",
            "uniform bound and minimizer, l2 ball",
            "`guarantees.linf_ball`, `guarantees.linf_erm`, `rw.LossRanker(max_norm=)`",
            "sharper: tails of B in place of 3 B, [printed statements](bounds.md#printed-uniform)",
        ),
        (
            "Proposition 10",
            "covering numbers, l1 ball",
            "`guarantees.l1_ball`, "
            "`guarantees/test_printed.py::test_no_points_that_are_far_apart_outnumber_the_covering_number`",
            "sharper: 2 in place of 288, by Maurey's sampling",
        ),
        (
            "Corollary 11",
            "complexity of the l1 ball",
            "`guarantees.l1_ball`, as printed `experiments.printed_bounds.printed_corollary_11`",
            f"corrected: it can be 0, {UNIFORM}",
        ),
        (
            "Theorem 12",
            "uniform bound and minimizer, l1 ball",
            "`guarantees.l1_ball`, `guarantees.l1_erm`, `rw.LossRanker(penalty=, max_norm=)`",
            "sharper: tails of B in place of 3 B, [printed statements](bounds.md#printed-uniform)",
        ),
        (
            "Equations (7), (8)",
            "gradient descent on smooth losses",
            "`guarantees.ogd_smooth_small_step`, `guarantees.ogd_smooth`",
            "sharper: `guarantees.ogd_smooth`, [printed statements](bounds.md#printed-in-expectation)",
        ),
        (
            "Lemma 13",
            "roots of smooth functions of a number",
            "`guarantees/test_printed.py::"
            "test_roots_of_smooth_losses_are_lipschitz_with_a_constant_of_1_for_the_printed_6`",
            "sharper: 1 in place of 6, which is attained",
        ),
        (
            "Lemma 14",
            "the same for functions of a vector",
            "`guarantees/test_printed.py::test_a_constant_below_1_would_be_false`",
            "sharper: as above",
        ),
        (
            "Proposition 15",
            "covering numbers of smooth losses",
            "`guarantees.smooth_ball`, "
            "`guarantees/test_printed.py::test_the_constants_of_theorem_17_are_larger_than_ours`",
            "sharper: the constant of Lemma 14",
        ),
        (
            "Corollary 16",
            "complexity of smooth losses",
            "`guarantees/test_printed.py::test_the_constants_of_theorem_17_are_larger_than_ours`",
            "sharper: 5 sqrt(2) in place of 5 sqrt(3), [printed statements](bounds.md#printed-uniform)",
        ),
        (
            "Theorem 17",
            "optimistic rates",
            "`guarantees.smooth_ball`, `guarantees.smooth_erm`",
            "same: marked unverified, because [its constants](bounds.md#smooth-losses-unverified) were not checked",
        ),
        (
            "Section 9",
            "active learning and multi-label losses, announced",
            "[limitations](limitations.md#open-in-the-papers)",
            "open: neither is here",
        ),
        (
            "Equation (9)",
            "regularized minimizer of a general loss",
            "`rw.LossRanker(alpha=)`",
            "same",
        ),
        (
            "Theorem 18",
            "excess risk for a Lipschitz loss",
            "`guarantees.rerm_in_ball`, `guarantees.rerm_in_ball_lambda`",
            f"corrected: the printed lambda lacks 1/n, {EXPECTED}",
        ),
        ("Equation (10)", "the inequality of Theorem 18", "`guarantees.rerm_in_ball`", "corrected: as above"),
        (
            "Equations (11), (12)",
            "a query counts as m rows, in the appendix",
            "`guarantees.l1_ball`, `guarantees.smooth_ball`",
            "same",
        ),
        (
            "Section M.1",
            "last lines of the proof of Theorem 17",
            "`guarantees.smooth_erm`, as printed `experiments.printed_bounds.printed_smooth_erm`",
            f"corrected: the risk of the best weights is lost, {UNIFORM}",
        ),
    ],
)
