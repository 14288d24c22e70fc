"""2014: S. Chaudhuri and A. Tewari, Perceptron-like algorithms and generalization bounds for learning to rank."""

from experiments.inventory_item import items

ONLINE = "[printed statements](bounds.md#printed-online)"
LOSSES = "[printed statements](bounds.md#printed-training-queries-and-losses)"
EXPECTED = "[printed statements](bounds.md#printed-in-expectation)"

ITEMS = items(
    "2014",
    [
        ("Equation (1)", "NDCG", "`measures.NDCG`", "same"),
        ("Equation (2)", "average precision", "`measures.AP`", "same"),
        (
            "Equation (3)",
            "SLAM as a linear program",
            "`losses.SLAM`, `losses/test_slam.py::test_slam_is_the_value_of_its_linear_program`",
            "same",
        ),
        ("Equation (4)", "regularized minimization of SLAM", "`rw.SLAMRanker`", "same: with a proved gap"),
        ("Lemma 1", "SLAM is convex", "`losses/test_every_fact.py::test_no_chord_falls_below_a_convex_loss`", "same"),
        ("Equation (5)", "SLAM as a sum of maxima", "`losses.SLAM(margin=)`", "same"),
        (
            "Equation (6)",
            "weights for AP",
            '`losses.SLAM(weights=)`: [`"ap_000"`](losses.md#the-weights-of-slam)',
            "same",
        ),
        (
            "Theorem 2",
            "with them SLAM bounds 1 - AP",
            "`losses/test_slam_weights.py::test_the_outscored_documents_cover_the_loss_on_every_weak_order`",
            "same",
        ),
        ("Equation (7)", "the inequality of Theorem 2", "`guarantees.surrogate_above_loss`", "same"),
        (
            "Equation (8)",
            "these weights dominate all others",
            "`losses/test_slam_weights.py::test_the_printed_weights_for_ap_do_not_dominate_all_others_that_cover`",
            f"corrected: they have the smallest sum, {LOSSES}",
        ),
        (
            "Equation (9)",
            "weights for NDCG",
            '`losses.SLAM(weights=)`: [`"ndcg_000"`](losses.md#the-weights-of-slam)',
            'same: with a cutoff too, `"ndcg_tight"`',
        ),
        (
            "Theorem 3",
            "with them SLAM bounds 1 - NDCG",
            "`losses/test_slam_weights.py::test_the_outscored_documents_cover_the_loss_on_every_weak_order`",
            "same",
        ),
        (
            "Equations (10), (12)",
            "the inequalities of Theorems 2 and 3",
            "`guarantees.surrogate_above_loss`",
            "same",
        ),
        (
            "Equations (11), (13), (14)",
            "slacks, the loss of a round, its subgradient",
            "`rw.SLAMPerceptron`, "
            "`rankers/online/test_perceptrons.py::test_a_slam_perceptron_does_what_its_definition_says`",
            "same",
        ),
        (
            "Algorithm 1",
            "the perceptron with a step of 1",
            "`rw.SLAMPerceptron(margin=, weights=, eta=)`",
            f"corrected: its predictions do depend on the step, {ONLINE}",
        ),
        (
            "Proposition (OGD regret)",
            "regret of online gradient descent",
            "`guarantees.fixed_step`, "
            "`guarantees/test_online.py::test_small_steps_have_the_bounds_of_gradient_descent`",
            "same",
        ),
        ("Equation (15)", "the inequality of that proposition", "`guarantees.fixed_step`", "same"),
        (
            "Proposition 4",
            "the gradient is bounded by the loss",
            "`guarantees/test_counterexamples.py::"
            "test_on_a_mistake_the_gradient_is_bounded_by_the_loss_itself`, `guarantees.WeightFacts`",
            "sharper: kappa in place of m v_max",
        ),
        ("Equation (16)", "the inequality of Proposition 4", "`guarantees.WeightFacts`", "sharper: as above"),
        (
            "Theorem 5",
            "cumulative loss of Algorithm 1",
            "`guarantees.quarter_step`, for any step `guarantees.slam_loss`",
            f"corrected: only for eta = 1/(4 R^2 kappa), {ONLINE}",
        ),
        ("Equations (17), (18)", "the inequalities of Theorem 5", "`guarantees.quarter_step`", "corrected: as above"),
        (
            "Corollary 6",
            "queries separated by a margin",
            "`guarantees.separable_loss`, `guarantees.separable_mistakes`",
            f"corrected: the step, and gaps of exactly the margin suffice, {ONLINE}",
        ),
        (
            "Corollary 7",
            "a bound for NDCG@k without m",
            "`guarantees.quarter_step`, for any step `guarantees.slam_loss`",
            f"corrected: the step, {ONLINE}",
        ),
        ("Equation (19)", "the inequality of Corollary 7", "`guarantees.quarter_step`", "corrected: as above"),
        (
            "Equations (20), (21), (22)",
            "risk, best weights, regularized minimizer",
            "`rw.LossRanker(alpha=)`",
            "same: any convex loss",
        ),
        (
            "Theorem 8",
            "excess risk of regularized minimization",
            "`guarantees.rerm_in_ball`, `guarantees.rerm_best`",
            "sharper: 2 G W R/sqrt(n), [printed statements](bounds.md#printed-in-expectation)",
        ),
        ("Equation (23)", "the inequality of Theorem 8", "`guarantees.rerm_in_ball`", "sharper: as above"),
        (
            "Corollary 9",
            "when the bound does not depend on m",
            "`losses.Loss.lipschitz_l1`, `losses/test_every_fact.py::test_declared_constants_are_never_exceeded`",
            "same: [every loss](losses.md#constants) declares this constant",
        ),
        ("Equation (24)", "SLAM's subgradient, of l1 norm 2 at most", "`losses.SLAM`", "same"),
        (
            "Theorem 10",
            "linear scores that respect permutations: dimension d",
            "`guarantees/test_equivariant.py::"
            "test_there_are_2d_list_level_scoring_functions_and_d_for_single_documents`",
            "corrected: 2 d for two or more documents, [printed statements](bounds.md#printed-uniform), "
            "[why](bounds.md#why-there-are-no-list-level-weights)",
        ),
        (
            "Section 6.1",
            "slopes of RankSVM, ListNet and two structured hinges",
            "`losses.PairHinge`, `losses.ListNet`, `losses.NDCGHinge`, `losses.SVMMapHinge`",
            f"corrected: RankSVM's is 2 floor(m^2/4), {LOSSES}",
        ),
        (
            "Section 7, first",
            "a perceptron whose bound does not grow with m, asked for",
            "`guarantees.slam_loss`: [Theorem S](bounds.md#theorem-s)",
            "sharper: solved here for SLAM, by the later paper for the worst pair",
        ),
        (
            "Section 7, second",
            "losses that are not convex, asked for",
            "`guarantees.linf_ball`, `guarantees.l2_ball`",
            "same: solved by the later paper of 2015",
        ),
        (
            "Section 7, third",
            "kernels, and experiments",
            "`rw.KernelPerceptron`, `rw.SLAMRanker`: [batch](direct.md#ohsumed-and-mq2008), "
            "[online](online.md#ohsumed-and-mq2008)",
            "same: built and measured",
        ),
        (
            "Equation (25)",
            "the function in the proof of Lemma 1",
            "`losses/test_slam.py::test_slam_is_the_value_of_its_linear_program`",
            "same",
        ),
        (
            "Equations (26), (27), (28)",
            "strongly convex minimization, and its lambda",
            "`guarantees.rerm`",
            "sharper: 2 in place of 4, and without the regularizer's slope",
        ),
        (
            "Theorem 11",
            "excess risk for a Lipschitz loss",
            "`guarantees.rerm_in_ball`, `guarantees.rerm_in_ball_lambda`",
            f"corrected: the printed lambda does not know the ball, {EXPECTED}",
        ),
        ("Equation (29)", "the inequality of Theorem 11", "`guarantees.rerm_in_ball`", "corrected: as above"),
        (
            "Equation (30)",
            "NDCG@k as a sum over the k most relevant documents",
            "`measures.NDCG`",
            f"corrected: over the first k positions, {LOSSES}",
        ),
        ("Equation (31)", "weights for NDCG@k", "`losses.SLAM(weights=, k=)`", "same"),
    ],
)
