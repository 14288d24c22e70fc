"""How many threads there are: n_jobs, CPU quotas, and engines with threads of their own."""

import multiprocessing
import os

import numpy as np
import pytest

import rankwise as rw
from rankwise._kernels import parallel
from rankwise.errors import RankwiseError


def files(root, **texts):
    for name, text in texts.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, True, "2"])
def test_n_jobs_that_is_no_number_of_threads_is_refused_everywhere(n_jobs):
    queries = rw.make_lists(5, random_state=0)
    for name, ask in (
        ("RidgeRanker", lambda: rw.RidgeRanker(n_jobs=n_jobs).fit(queries)),
        ("SLAMPerceptron", lambda: rw.SLAMPerceptron(n_jobs=n_jobs).fit(queries)),
        ("SLAMPerceptron", lambda: rw.SLAMPerceptron(n_jobs=n_jobs).partial_fit(queries)),
    ):
        sentence = rf"'n_jobs' parameter of {name} must be an int in \[1, inf\), -1 or None. Got {n_jobs!r} instead"
        with pytest.raises(RankwiseError, match=sentence):
            ask()
    sentence = f"n_jobs must be a positive integer, or None or -1 for all cores, got {n_jobs!r}"
    with pytest.raises(RankwiseError, match=sentence):
        rw.evaluate(queries, queries.X[:, 0], n_jobs=n_jobs)


def test_w17_a_quota_of_version_2_and_of_every_group_above(tmp_path):
    files(tmp_path, **{"cpu.max": "max 100000\n"})
    assert parallel.cgroup_quota(tmp_path, "0::/\n") is None
    files(tmp_path, **{"pods__one__cpu.max": "150000 100000\n", "pods__cpu.max": "50000 100000\n"})
    assert parallel.cgroup_quota(tmp_path, "0::/pods/one\n") == 0.5
    assert parallel.cgroup_quota(tmp_path, "0::/elsewhere\n") is None


def test_w17_a_quota_of_version_1_also_where_the_path_is_that_of_the_host(tmp_path):
    folder = "cpu,cpuacct__"
    files(tmp_path, **{f"{folder}cpu.cfs_quota_us": "250000", f"{folder}cpu.cfs_period_us": "100000"})
    groups = "5:memory:/docker/1\n3:cpu,cpuacct:/docker/1\n"
    assert parallel.cgroup_quota(tmp_path, groups) == 2.5
    files(tmp_path, **{f"{folder}cpu.cfs_quota_us": "-1"})
    assert parallel.cgroup_quota(tmp_path, groups) is None
    assert parallel.cgroup_quota(tmp_path, "") is None


def test_w17_threads_respect_the_quota_and_few_values_take_one(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(parallel, "_quota", lambda: 1.2)
    assert (parallel.threads(None), parallel.threads(-1), parallel.threads(5)) == (2, 2, 5)
    monkeypatch.setattr(parallel, "_quota", lambda: 0.1)
    assert parallel.threads(None) == 1
    monkeypatch.setattr(parallel, "_quota", lambda: None)
    assert parallel.threads(None) == 8
    assert parallel.engine_threads(None, 32_000) == 1
    assert parallel.engine_threads(None, 10**8) == 8
    assert parallel.engine_threads(3, 32_000) == 3
    monkeypatch.setattr(parallel, "_forked", True)
    assert parallel.engine_threads(3, 10**8) == 1


def trees(engine="symmetric"):
    queries = rw.make_lists(30, features=4, random_state=0)
    model = rw.BoostedRanker(trees=6, seeds=1, patience=None, engine=engine, n_jobs=2).fit(queries)
    return model.predict(queries).tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("engine", ["symmetric", "lightgbm", "catboost"])
def test_s8_trees_grow_in_a_forked_child_with_the_same_bits(engine):
    if engine != "symmetric":
        pytest.importorskip(engine)
    expected = trees(engine)  # the threads of the engine have run in the parent
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(trees, (engine,)).get(timeout=120) == expected


@pytest.mark.parametrize("engine", ["symmetric", "lightgbm"])
def test_w17_one_and_two_threads_grow_the_same_trees(engine):
    queries = rw.make_lists(30, features=4, random_state=0)
    found = {
        rw.BoostedRanker(engine=engine, trees=5, seeds=1, patience=None, n_jobs=jobs)
        .fit(queries)
        .predict(queries)
        .tobytes()
        for jobs in (None, 1, 2)
    }
    assert len(found) == 1
    assert np.isfinite(np.frombuffer(found.pop())).all()
