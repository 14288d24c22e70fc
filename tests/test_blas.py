"""BLAS on one thread inside a scope: shared by scopes that overlap, and given back whatever happens."""

import ast
import gc
import multiprocessing
import os
import threading
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import rankwise
from rankwise._kernels import parallel
from rankwise._kernels.parallel import one_blas_thread

PACKAGE = Path(rankwise.__file__).parent


def counts():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _three_threads():
    """More than one, on any machine."""
    with one_blas_thread():
        pass  # all libraries are there
    with threadpool_limits(3, user_api="blas"):
        yield


def test_a_scope_has_one_thread_and_gives_back_what_was_there():
    with one_blas_thread():
        assert counts() == {1}
        with one_blas_thread():
            assert counts() == {1}
        assert counts() == {1}
    assert counts() == {3}


def test_an_error_gives_back_what_was_there():
    with pytest.raises(KeyboardInterrupt), one_blas_thread():
        raise KeyboardInterrupt
    assert counts() == {3}


def test_of_scopes_that_overlap_in_threads_the_last_one_gives_back_what_was_there():
    """The first to come leaves first: if it restored 3, the other would lose its limit; the other would restore 1."""
    inside, leave = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with one_blas_thread():
        thread.start()
        assert inside.wait(60)
    assert counts() == {1}
    leave.set()
    thread.join()
    assert counts() == {3}


def test_a_limit_of_the_users_own_thread_does_not_keep_other_threads_from_theirs():
    """threadpoolctl lets only the thread inside threadpool_limits (here the main one) set counts."""
    found = []
    with threadpool_limits(2, user_api="blas"):
        thread = threading.Thread(target=lambda: found.append(scoped()))
        thread.start()
        thread.join()
    assert found == [({1}, {2})]
    assert counts() == {3}


def test_many_threads_that_come_and_go_leave_what_was_there():
    def visits():
        for _ in range(200):
            with one_blas_thread():
                pass

    threads = [threading.Thread(target=visits) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts() == {3}


def test_a_scope_that_was_broken_off_before_it_could_leave_is_forgotten_by_the_next_one(monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(parallel._limit, "leave", lambda scope: None)
        with one_blas_thread():
            pass
    assert counts() == {1}
    gc.collect()
    with one_blas_thread():
        pass
    assert counts() == {3}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_that_was_forked_inside_a_scope_is_outside_of_it():
    with one_blas_thread(), multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(counts).get(timeout=60) == {3}
        assert pool.apply_async(scoped).get(timeout=60) == ({1}, {3})


def scoped():
    with one_blas_thread():
        inside = counts()
    return inside, counts()


# ------------------------------------------------------------------------------------------- who uses BLAS

PRODUCTS = {"dot", "vdot", "inner", "matmul", "tensordot", "linalg", "lstsq", "cov", "corrcoef", "polyfit", "multi_dot"}
# Only reached from a fit, a certificate, a value of clicks or the formula of a map, whose entry points are scopes, or
# from a solver that is one.
INSIDE = {
    "clicks/accounts.py",
    "exports/curves.py",
    "exports/map_sums.py",
    "rankers/auto/auto_ranker.py",
    "rankers/auto/weights.py",
    "rankers/boosting/frank.py",
    "rankers/boosting/weak_rankers.py",
    "rankers/certificate/claims.py",
    "rankers/fusion/hybrid_ranker.py",
    "rankers/linear/listnet.py",
    "rankers/smooth/stopping.py",
    "rankers/neural/network.py",
    "rankers/linear/loss_ranker.py",
    "rankers/linear/presets.py",
    "rankers/permutation/two_stage.py",
    "rankers/smooth/annealing.py",
    "solvers/batch/bundle.py",
}
# A product of rows written out in float32, sums of whole numbers, which are exact in any order, and measure @ k.
NO_BLAS = {"exports/solr.py", "exports/ranklib.py", "_diagnose/drift.py", "_workloads.py"}
NO_BLAS |= {"guarantees/holdout/demands.py"}  # measure @ cutoff


def uses_blas(text):
    """Whether a module multiplies matrices or calls linear algebra, as far as its syntax tells."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult):
            return True
        if isinstance(node, ast.Attribute) and node.attr in PRODUCTS:
            return True
    return False


def test_products_by_blas_stand_where_its_threads_are_limited():
    found, scopes = set(), set()
    for path in PACKAGE.rglob("*.py"):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(PACKAGE).as_posix()
        if uses_blas(text):
            found.add(name)
        if "one_blas_thread" in text:
            scopes.add(name)
    assert found - scopes - INSIDE - NO_BLAS == set(), "put the product into one_blas_thread()"
    assert found >= INSIDE | NO_BLAS, "a module of these lists has no product any more"
