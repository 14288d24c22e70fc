"""What the pages say about defaults, against the signatures."""

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import rankwise as rw
from rankwise.guarantees import mean_interval
from rankwise.losses import SLAM, PairHinge
from rankwise.measures import AP
from tests.prose.claims import claims, stated


def default(of: Callable[..., Any], parameter: str) -> Any:
    return signature(of).parameters[parameter].default


stated("choose_ranker.md", "the protocol of experiments/direct.py", "defaults for NDCG@10 (AP for the last three;")
stated("direct.md", "the protocol of experiments/direct.py", "each ranker with its defaults for NDCG@10")
stated("direct.md", "how a default came about", "This default, and FRank's step, follow the validation parts")
stated("online.md", "refers to the weights above", "and not the default ones")
stated("measures.md", "the title of a column", "used by default in")
stated(
    "production.md",
    "defaults of engines",
    "so give such features a default",
    "give fields a default",
    "form=ranklib` or a default with those",
)


def ties_and_empty_queries() -> None:
    """``None`` means expected ties, and queries without a relevant document left out."""
    assert default(rw.evaluate, "ties") is default(rw.evaluate, "empty") is None
    found = rw.evaluate([1, 0, 0, 0], [0.0, 0.0, 0.0, 1.0], [AP()], group=[2, 2])
    assert found.mean["AP"] == 0.75
    assert found.skipped["AP"] == 1


@claims("choose_measure.md")
def measures_are_means_over_orders_without_empty_queries() -> Iterator[str]:
    ties_and_empty_queries()
    yield "the mean over all orders (the default)"
    yield '`empty="skip"` (default) leaves queries without a relevant document out'


@claims("measures.md")
def empty_queries_are_left_out() -> Iterator[str]:
    ties_and_empty_queries()
    yield '`empty="skip"`, the default, leaves it out of the mean'


@claims("compare.md")
def every_core() -> Iterator[str]:
    assert default(rw.compare, "n_jobs") is None
    yield "`n_jobs=`, every core by default"


@claims("direct.md")
def mean_over_pairs() -> Iterator[str]:
    assert default(rw.RankSVM, "per_pair") is default(PairHinge, "per_pair") is True
    yield "the mean over pairs of each query, its default here"


@claims("migrate.md")
def mean_over_pairs_for_those_from_svm_rank() -> Iterator[str]:
    assert default(rw.RankSVM, "per_pair") is True
    yield "The default here is the mean over the pairs of a list"


@claims("losses.md")
def weights_of_slam() -> Iterator[str]:
    assert default(SLAM, "weights") == "ndcg_tight_sym"
    yield '`"ndcg_tight_sym"` (default)'


@claims("online.md")
def margin_of_the_perceptron() -> Iterator[str]:
    assert default(rw.SLAMPerceptron, "margin") == 0
    yield "`SLAMPerceptron(margin=0)`, the default,"


@claims("plan.md")
def the_interval_of_certificates() -> Iterator[str]:
    assert default(mean_interval, "method") == "betting"
    yield "The betting interval, the default of certificates,"


@claims("tune.md")
def folds_of_the_training_set() -> Iterator[str]:
    from rankwise.rankers._base import registered

    folds = {default(kind, "folds") for kind in registered().values() if "folds" in signature(kind).parameters}
    assert folds == {5}
    yield "are divided into `folds=5` parts"


@claims("compare.md")
def folds_of_a_comparison() -> Iterator[str]:
    lists = rw.make_lists(10, documents=(3, 4), features=2, random_state=0)
    found = rw.compare({"a": rw.RidgeRanker(alpha=1.0), "b": lists.X[:, 0]}, lists, n_jobs=1)
    assert len(found.models["a"]) == 5
    yield "(divided by query into `folds=5`"
