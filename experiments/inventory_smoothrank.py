"""SmoothRank: O. Chapelle and M. Wu, Gradient descent optimization of smoothed information retrieval metrics (2009)."""

from experiments.inventory_item import items

GOV = "the .GOV sets (TREC 2003 and 2004) are not available"
LOSSES = "[printed statements](bounds.md#printed-training-queries-and-losses)"

ITEMS = items(
    "SmoothRank",
    [
        ("Equation (1)", "ordinal grades", "labels of `rw.Queries`", "same: any numbers from 0 on"),
        ("Equation (2)", "DCG and NDCG", "`measures.DCG`, `measures.NDCG`", "same"),
        ("Equations (3), (4)", "average precision, in two forms", "`measures.AP`", "same"),
        (
            "Section 3",
            "expected rank under normal noise; SoftRank",
            "`losses.SoftRankNDCG(noise=)`, `losses.SoftRank`",
            f"corrected: the formula needs sqrt(2) sigma, {LOSSES}",
        ),
        (
            "Equation (5)",
            "DCG at the expected rank; a linear test is announced",
            "`losses.SoftRankNDCG`, `rw.SmoothRank(loss=)`, [results](#methods-without-published-results)",
            "same: the announced test finds no significant difference to SmoothRank",
            "paper_rows",
        ),
        ("Equation (6)", "softmax of the scores, and NDCG@1 smoothed by it", "`losses.SmoothDCG1`", "same"),
        (
            "Equation (7)",
            "soft indicator that document i has position j",
            "`losses.SmoothNDCG`, "
            "`losses/test_smooth_ndcg.py::test_the_gain_is_the_sum_over_positions_of_soft_indicators_that_sum_to_one`",
            "same",
        ),
        (
            "Proposition 1",
            "the soft indicator is continuous",
            "`rankers/smooth/test_anneal.py::test_the_objective_is_continuous_where_scores_tie`",
            "same",
        ),
        (
            "Remark 1",
            "it has no derivative where scores tie",
            "`losses/test_smooth_ndcg.py::test_a_tie_is_a_kink_in_a_list_of_three_and_none_in_a_list_of_two`",
            "partly: smooth NDCG has no kink for two documents alone",
        ),
        ("Equation (8)", "smooth NDCG", "`losses.SmoothNDCG`", f"corrected: it can exceed 1, {LOSSES}"),
        (
            "Section 4.1",
            "the same for precision at k and reciprocal rank",
            "`losses.SmoothPrecision`, `losses.SmoothRR`",
            "same",
        ),
        ("Section 4.2", "average precision by soft indicators", "`losses.SmoothAP(form=)`", "same"),
        (
            "Equation (9)",
            "average precision by sigmoids",
            "`losses.SmoothAP`",
            f"corrected: without the diagonal's 1/2, {LOSSES}",
        ),
        (
            "Equations (10), (11), (12)",
            "gradients; appendix B writes them out",
            "`losses.SmoothNDCG`, `losses/test_smooth_ndcg.py::test_the_gradient_is_the_slope_away_from_ties`",
            "sharper: in O(m log m) operations for long queries, not O(m^2)",
        ),
        (
            "Section 4.4.1",
            "regression as start and center of the penalty",
            "`rw.RidgeRanker`, `rw.SmoothRank(start=)`",
            "same",
        ),
        (
            "Section 4.4.2",
            "annealing from sigma 2^6 to 2^-6",
            "`rw.SmoothRank(sigmas=)`, "
            "`rankers/smooth/test_smoothrank.py::test_the_usual_stages_are_thirteen_powers_of_two`",
            "same",
        ),
        (
            "Figure 1",
            "the smoothed objective along a random direction",
            "OHSUMED, fold 1: [landscape](direct.md#the-papers-protocol)",
            "same",
            "smoothrank",
        ),
        (
            "Figure 2",
            "training and test NDCG along the annealing",
            "OHSUMED: [the annealing](#the-annealing)",
            "same: training climbs, test saturates",
            "annealing",
        ),
        (
            "Algorithm 1",
            "SmoothRank",
            "`rw.SmoothRank(protocol=)`: [the paper's protocol](direct.md#the-papers-protocol)",
            "same",
        ),
        (
            "Equation (13)",
            "the objective of a stage",
            "`rankers/smooth/test_smoothrank.py::"
            "test_every_stage_is_a_descent_of_the_objective_that_the_docstring_states`",
            "same",
        ),
        (
            "Section 5.1",
            "smoothing error of order exp(-mu/sigma)",
            "`guarantees.smoothing_error`: [smoothing](bounds.md#smoothing)",
            f"corrected: with the constant, {LOSSES}",
        ),
        (
            "Theorem 1",
            "generalization of Lipschitz losses",
            "`guarantees.l2_ball`, as printed `experiments.printed_bounds.printed_theorem_1`",
            "corrected: it requires bounded losses, [printed statements](bounds.md#printed-uniform)",
        ),
        (
            "Equation (14)",
            "the inequality of Theorem 1",
            "`guarantees.l2_ball`, `guarantees/test_printed.py::test_between_0_and_1_the_printed_numbers_are_valid`",
            "corrected: the printed numbers are valid for losses in [0, 1]",
        ),
        (
            "Section 5.2",
            "slope of smooth NDCG, and its term of order 1/sigma",
            "`losses.SmoothNDCG`, "
            "`guarantees/test_printed.py::test_smoothranks_complexity_follows_from_its_own_constant`",
            "sharper: a slope of order 1/sqrt(sigma), [constants](losses.md#constants)",
        ),
        (
            "Section 5.3",
            "sigma to infinity",
            "`rankers/smooth/test_anneal.py::test_as_sigma_goes_to_infinity_only_the_regularizer_is_left`",
            "same",
        ),
        (
            "Lemma 1",
            "without a center, lambda and sigma are one parameter",
            "`rankers/smooth/test_anneal.py::test_strength_and_width_are_one_parameter_where_the_center_is_zero`",
            "same",
        ),
        (
            "Equation (15)",
            "the objective in the proof of Lemma 1",
            "`rankers/smooth/test_anneal.py::test_the_minimizers_that_are_found_obey_the_law`",
            "same",
        ),
        (
            "Section 6",
            "kernel PCA map, network, functional boosting",
            "`rw.MappedRanker`, `rw.features.KernelPCAMap`, `rw.NeuralRanker(loss=)`, "
            "`rw.BoostedRanker(loss=, sigmas=)`",
            "same: the paper reports no experiment with them; [ours](boosting.md#annealing-a-smoothed-measure)",
        ),
        (
            "Table 1",
            "sizes of the sets",
            "OHSUMED: [the set](#the-set)",
            f"partly: the OHSUMED row; {GOV}",
            "set_facts",
        ),
        (
            "Figure 3",
            "NDCG@10 of nine rankers, NDCG@k of some",
            "OHSUMED: [SmoothRank and the rankers of LETOR](#smoothrank-and-the-rankers-of-letor)",
            "partly: the values agree, the order does not",
            "cutoffs",
        ),
        (
            "Figure 4",
            "means over the seven sets of LETOR 3.0",
            "[not reproduced](#not-reproduced)",
            f"not reproduced: {GOV}",
        ),
        (
            "Figure 5",
            "SmoothNDCG and FITC-Rank on the OHSUMED of LETOR 2.0",
            "[limitations](limitations.md#open-in-the-papers)",
            "not reproduced: neither that set nor FITC-Rank is available",
        ),
        (
            "Table 2",
            "NDCG@10 and MAP of nine rankers on seven sets",
            "OHSUMED: [SmoothRank and the rankers of LETOR](#smoothrank-and-the-rankers-of-letor)",
            f"partly: the OHSUMED column; {GOV}",
            "cutoffs",
        ),
        (
            "Table 3",
            "NDCG@1, @5, @10 when trained at k = 1, 5, 10, 50",
            "OHSUMED: [the training cutoff](#the-training-cutoff)",
            "differs: k = 10 is best here, not 50",
            "smoothrank",
        ),
        (
            "Section 8",
            "stopping the annealing by the bound, announced",
            "`rw.SmoothRank(stop=)`: [stopping by a bound](direct.md#stopping-by-a-bound)",
            "same: built and measured; at these sizes all bounds are vacuous",
            "stopping",
        ),
    ],
)
