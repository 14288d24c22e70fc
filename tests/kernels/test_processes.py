"""Compiled loops from several threads at once, from a forked child, from other processes, and without a cache."""

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import joblib
import numba
import numpy as np
import pytest

from rankwise.evaluation.evaluation import evaluate
from rankwise.losses import registered
from rankwise.losses.compute import PreparedLists, loss_lists

MEASURES = ["nDCG@10", "AP", "ERR@5", "Pairs"]
LOSSES = [loss for kind in registered().values() for loss in kind.examples()]


def measured(seed: int = 0) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    size = 150_000
    qid = np.sort(rng.integers(0, 2_000, size))
    return evaluate(rng.integers(0, 4, size), rng.normal(size=size).round(2), MEASURES, qid=qid, n_jobs=2).mean


def suffered(seed: int = 0) -> list[tuple[str, str, str]]:
    """Every loss on lists for more than one thread: its name, and the bits of its values and gradients."""
    rng = np.random.default_rng(seed)
    size = 70_000
    start = np.append(np.arange(0, size, 7), size)
    scores, labels = rng.normal(size=size).round(2), rng.integers(0, 4, size).astype(float)
    found = []
    for loss in LOSSES:
        values, gradient = loss_lists(PreparedLists.of(loss, labels, start), scores, n_jobs=2)
        found.append((repr(loss), sha256(values.tobytes()).hexdigest(), sha256(gradient.tobytes()).hexdigest()))
    return found


over_both = pytest.mark.parametrize("work", [measured, suffered], ids=["measures", "losses"])


@over_both
def test_two_threads_at_once_get_what_one_gets(work):
    expected = [work(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@over_both
def test_a_forked_child_gets_what_its_parent_gets(work):
    expected = work()  # threads have run in the parent
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(work).get(timeout=120) == expected


# With bounds checks, kernels that may reorder sums are called where they are inlined otherwise. A process that compiles
# them holds two copies, alone and within their caller, that LLVM optimized differently; one that loads them, a single.
@pytest.mark.skipif(
    bool(numba.config.BOUNDSCHECK), reason="bounds checks: compiled and loaded code differ in last bits"
)
@over_both
def test_joblibs_processes_get_the_same(work):
    expected = [work(seed) for seed in range(2)]
    assert joblib.Parallel(n_jobs=2)(joblib.delayed(work)(seed) for seed in range(2)) == expected


def test_a_cache_folder_that_cannot_be_written_means_no_cache(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    code = "import rankwise as rw; print(rw.measures.parse('RR')([1, 2], [1, 0]))"
    environment = {**os.environ, "RANKWISE_CACHE_DIR": str(blocked / "cache"), "RANKWISE_PACK": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "0.5", done.stderr
    assert not done.stderr


def test_the_cache_can_be_moved_and_leaves_the_users_own_setting_alone(tmp_path):
    code = """
import numba
before = numba.config.CACHE_DIR
import rankwise as rw
rw.measures.parse("RR")([1, 2], [1, 0])
assert numba.config.CACHE_DIR == before
"""
    moved = {"RANKWISE_CACHE_DIR": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "users")}
    environment = {**os.environ, **moved, "RANKWISE_PACK": "0"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("kernels-")
    assert list(folder.rglob("*.kernel"))
