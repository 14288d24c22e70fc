"""About how many seconds of one core the longest test files take, with compiled kernels in the cache.

Files are begun in this order, so that no core waits for a long one at the end, and the time that is left is estimated
from it. The numbers need not be exact: the estimate learns the pace of the machine while it runs.
"""

from collections import Counter
from collections.abc import Iterable

SECONDS = {
    "data/test_letor_fuzz.py": 5,  # ten minutes in a thorough run
    "rankers/test_threads.py": 65,
    "rankers/test_every_ranker.py": 90,
    "losses/test_every_fact.py": 28,
    "rankers/test_saved.py": 25,
    "cli/test_warm.py": 24,
    "test_docs.py": 21,
    "kernels/test_pack.py": 20,
    "rankers/test_interrupted.py": 20,
    "test_package.py": 20,
    "rankers/test_parts_on_dask.py": 17,
    "kernels/test_processes.py": 16,
    "evaluation/test_conventions.py": 15,
    "rankers/certificate/test_certificates.py": 15,
    "rankers/test_frozen.py": 15,
    "measures/test_every_measure.py": 14,
    "rankers/boosting/test_boosted.py": 14,
    "cli/test_online.py": 12,
    "rankers/test_parts.py": 12,
    "test_imports.py": 12,
    "test_workloads.py": 12,
    "cli/test_commands.py": 10,
    "evaluation/comparison/test_compare_killed.py": 10,
    "features/test_stored.py": 10,
    "test_first_time.py": 10,
    "test_sklearn_checks.py": 10,
    "cli/test_train.py": 9,
    "exports/test_trees.py": 9,
    "kernels/test_waiting.py": 9,
    "losses/test_every_loss.py": 9,
    "serve/test_killed.py": 9,
    "test_coverage.py": 14,
    "losses/test_a_dropped_file.py": 8,
    "rankers/boosting/test_catboost_growing.py": 8,
    "guarantees/test_certificate.py": 7,
    "rankers/auto/test_auto_ranker.py": 7,
    "rankers/online/test_perceptrons.py": 7,
    "rankers/smooth/test_anneal.py": 7,
    "rankers/smooth/test_refinement.py": 7,
    "cli/test_help.py": 6,
    "cli/test_messy_table.py": 6,
    "data/test_parts.py": 6,
    "evaluation/comparison/test_compare.py": 6,
    "kernels/test_gauss.py": 6,
    "losses/test_permutation.py": 6,
    "losses/test_smooth_ndcg.py": 6,
    "rankers/test_checkpoints.py": 6,
    "rankers/test_fit_frame.py": 6,
    "rankers/test_scorer.py": 6,
    "test_sklearn_pipelines.py": 6,
    "experiments/test_walk.py": 5,
}
ORDINARY = 0.03  # a test of any other file


def file_of(test: str) -> str:
    """The file of a test by its id, relative to the folder of tests."""
    return test.partition("::")[0].removeprefix("tests/")


def expected_seconds(tests: Iterable[str]) -> dict[str, float]:
    """The seconds that each test is expected to take: an equal share of those of its file."""
    tests = list(tests)
    sizes = Counter(map(file_of, tests))
    return {test: SECONDS[name] / sizes[name] if (name := file_of(test)) in SECONDS else ORDINARY for test in tests}
