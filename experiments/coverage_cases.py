"""The rankers whose certificates are tested: every ranker of the package, with fixed settings that are quick to fit.

Alpha is fixed, features are not scaled and no prior weights are learned from the same queries, so that the
preconditions of as many rows as possible are met. A grid of alphas and a first stage are tested as well.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import rankwise as rw
from experiments.coverage_populations import Reference
from experiments.coverage_rows import Case
from rankwise.losses import SLAM, ListNet, Loss, MaxPair, NDCGHinge, PairHinge, PairLogistic, SmoothNDCG, SVMMapHinge

ALPHA, SIGMAS = 0.1, (1.0, 0.1, 0.01, 0.001)
FIXED: dict[str, Any] = {"alpha": ALPHA, "prior_coef": None, "scale": "none", "n_jobs": 1}
GAMMA = 0.5  # of the rbf kernel: features are between 0 and 1
FOURIER = rw.features.FourierFeatures(GAMMA, n_features=8)
STOPPED = "SmoothRank, stopped by a bound"
PRECISE = {"tolerance": 1e-6, "max_calls": 5_000}


def mean_loss(loss: Loss, queries: rw.Queries, coef: np.ndarray) -> float:
    """The mean over queries that all count the same."""
    return float(Reference(queries).losses(loss, queries.X @ coef).mean())


def regularized(loss: Loss, alpha: float = ALPHA) -> Callable[[Any, rw.Queries], float]:
    """(alpha/2) norm(w)^2 + mean loss."""

    def objective(model: Any, queries: rw.Queries) -> float:
        return alpha / 2 * float(model.coef_ @ model.coef_) + mean_loss(loss, queries, model.coef_)

    return objective


def convex(name: str, make: Callable[..., Any], loss: Loss, alpha: float = ALPHA) -> Case:
    """A ranker that minimizes a regularized convex loss."""
    settings = FIXED | {"alpha": alpha}
    return Case(
        name, lambda d: make(**settings), {loss.name: loss}, objective=regularized(loss, alpha), precise=PRECISE
    )


def in_ball(name: str, loss: Loss, norm: float, penalty: str) -> Case:
    """The minimizer of a convex loss over a ball that is fixed beforehand."""
    settings: dict[str, Any] = {"max_norm": norm, "penalty": penalty, "scale": "none", "n_jobs": 1}
    return Case(
        name,
        lambda d: rw.LossRanker(loss, **settings),
        {loss.name: loss},
        objective=lambda model, queries: mean_loss(loss, queries, model.coef_),
        precise=PRECISE,
    )


def fixed_weights(features: int) -> rw.LinearModel:
    """A ranker that learns nothing: the first two features, the first counting twice."""
    return rw.LinearModel(coef=np.concatenate([[1.0, 0.5], np.zeros(max(0, features - 2))])[:features])


def on_map(name: str, ranker: Callable[[], Any], **rest: Any) -> Case:
    """A ranker on random features, which do not depend on the queries: its rows are about the mapped space."""
    return Case(name, lambda d: rw.MappedRanker(FOURIER, ranker(), n_jobs=1), mapped=True, map=FOURIER, **rest)


def kernel_perceptron(name: str, losses: Mapping[str, Loss] | None = None, most: int = 100, **settings: Any) -> Case:
    """A perceptron with a kernel."""
    make = partial(rw.KernelPerceptron, gamma=GAMMA, n_jobs=1, **settings)
    return Case(name, lambda d: make(), losses or {}, mapped=True, most=most)


def _cases() -> list[Case]:
    smooth = SmoothNDCG(k=10, sigma=SIGMAS[-1])
    return [
        Case("LinearModel", fixed_weights),
        Case("RidgeRanker", lambda d: rw.RidgeRanker(n_jobs=1)),
        Case("RidgeCommittee", lambda d: rw.RidgeCommittee(n_jobs=1)),
        convex("RankSVM", rw.RankSVM, PairHinge()),
        Case(
            "RankSVM, squared",
            lambda d: rw.RankSVM(loss="squared", **FIXED),
            objective=regularized(PairHinge(squared=True)),
            precise=PRECISE,
        ),
        convex("SLAMRanker", rw.SLAMRanker, SLAM(weights="ndcg_tight_sym", k=10)),
        convex("SLAMRanker, alpha 10", rw.SLAMRanker, SLAM(weights="ndcg_tight_sym", k=10), 10.0),
        Case("SLAMRanker, grid", lambda d: rw.SLAMRanker(alpha=(1.0, 0.01), folds=2, n_jobs=1)),
        convex("MaxPairRanker", rw.MaxPairRanker, MaxPair()),
        convex("StructuredNDCG", rw.StructuredNDCG, NDCGHinge(k=10, normalized=True)),
        convex("SVMMap", rw.SVMMap, SVMMapHinge()),
        convex("LossRanker", partial(rw.LossRanker, PairLogistic()), PairLogistic()),
        in_ball("LossRanker, l2 ball", PairHinge(), 1.0, "l2"),
        in_ball("LossRanker, l1 ball", ListNet(), 1.0, "l1"),
        Case(
            "ListNet",
            lambda d: rw.ListNet(solver="lbfgs", alpha=ALPHA, scale="none", n_jobs=1),
            {"ListNet": ListNet()},
            objective=regularized(ListNet()),
            precise={"tolerance": 1e-9},
        ),
        Case("ListNet, online", lambda d: rw.ListNet(scale="none", n_jobs=1), {"ListNet": ListNet()}),
        Case("OnlineRanker", lambda d: rw.OnlineRanker(step="constant", eta=0.1, n_jobs=1), {"SLAM": SLAM()}),
        Case("SLAMPerceptron", lambda d: rw.SLAMPerceptron(n_jobs=1)),
        Case("SLAMPerceptron, margin 1", lambda d: rw.SLAMPerceptron(margin=1.0, eta=0.001, n_jobs=1)),
        Case("SLAMPerceptron, quarter step", lambda d: rw.SLAMPerceptron(margin=1.0, eta="theory", n_jobs=1)),
        Case("MaxPairPerceptron", lambda d: rw.MaxPairPerceptron(n_jobs=1), {"MaxPair": MaxPair()}),
        Case("AdaRank", lambda d: rw.AdaRank(rounds=10, n_jobs=1), ties="expected"),
        Case("BoostedRanker", lambda d: rw.BoostedRanker(trees=10, seeds=1, n_jobs=1)),
        Case("AutoRanker", lambda d: rw.AutoRanker(max_trees=10, folds=2, n_jobs=1)),
        Case("Committee", lambda d: rw.Committee(("RidgeRanker", "AdaRank"), folds=2, n_jobs=1)),
        Case("FRank", lambda d: rw.FRank(rounds=10, n_jobs=1)),
        Case("RankBoost", lambda d: rw.RankBoost(rounds=10, n_jobs=1)),
        Case("NeuralRanker", lambda d: rw.NeuralRanker(hidden=(8,), epochs=5, n_jobs=1)),
        Case("HybridRanker", lambda d: rw.HybridRanker(bootstrap=0, n_jobs=1)),
        Case(
            "PermuRank",
            lambda d: rw.PermuRank(alpha=ALPHA, map="relevant", hinge="max", rounds=5, stop="last", n_jobs=1),
        ),
        Case(
            "SmoothRank",
            lambda d: rw.SmoothRank("nDCG@10", alpha=1.0, sigmas=SIGMAS, steps=20, protocol="paper", n_jobs=1),
            {"SmoothNDCG": smooth},
        ),
        Case(
            STOPPED,
            lambda d: rw.SmoothRank("nDCG@10", alpha=1.0, stop="bound", steps=20, n_jobs=1),
            {"SmoothNDCG": width_kept},
        ),
        Case(
            "TwoStage",
            lambda d: rw.TwoStage("AP", first="ridge", alpha=ALPHA, scale="none", n_jobs=1),
            {"SVMMapHinge": SVMMapHinge()},
            objective=around_first_stage,
            precise={"tolerance": 1e-9},
        ),
        on_map(
            "MappedRanker",
            lambda: rw.RankSVM(**FIXED),
            losses={"PairHinge": PairHinge()},
            objective=regularized(PairHinge()),
            precise=PRECISE,
        ),
        on_map("MappedRanker, SLAMPerceptron", lambda: rw.SLAMPerceptron(n_jobs=1)),
        kernel_perceptron("KernelPerceptron", map=16),
        kernel_perceptron("KernelPerceptron, max-pair", {"MaxPair": MaxPair()}, most=30, map=16, update="max_pair"),
        kernel_perceptron("KernelPerceptron, budget never full", most=30, budget=1_000),
        kernel_perceptron("KernelPerceptron, budget with removals", most=30, budget=6),
    ]


def width_kept(model: Any) -> Loss:
    """The smoothed loss at the width where the annealing was stopped."""
    kept = (model.history_.coefs == model.coef_).all(axis=1).argmax()
    return SmoothNDCG(k=10, sigma=float(model.history_["sigma"][kept]))


def around_first_stage(model: Any, queries: rw.Queries) -> float:
    """(alpha/2) norm(w - t w0)^2 + mean hinge over the queries that have a relevant document."""
    away = model.coef_ - model.length_ * model.first_
    kept = queries[np.array([bool((queries[q].y > 0).any()) for q in range(len(queries))])]
    return ALPHA / 2 * float(away @ away) + mean_loss(SVMMapHinge(), kept, model.coef_)


# Rankers for which uniform bounds are not vacuous on many tiny queries.
SHORT = (
    *("MappedRanker", "LinearModel", "RankSVM", "SLAMRanker", "SLAMRanker, alpha 10", "MaxPairRanker", "ListNet"),
    STOPPED,
)
CASES = {case.name: case for case in _cases()}
