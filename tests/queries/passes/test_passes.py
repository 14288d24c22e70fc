"""Passes: results in the order of chunks, sums folded in that order, what is kept between passes, and executors."""

import gc
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise import make_lists
from rankwise._kernels import parallel
from rankwise.errors import RankwiseError
from rankwise.queries.chunks import Extremes, center_and_scale, radius_of, scale_factors
from rankwise.queries.passes import executors
from rankwise.queries.passes.chunked import ChunkedQueries
from rankwise.queries.passes.executors import Processes, Threads, executor_of
from rankwise.queries.passes.work import Kept, in_order, own_bytes
from rankwise.queries.queries import Queries
from rankwise.queries.source import Job, block_of
from rankwise.rankers.linear.ridge import balance_of
from tests.queries.passes.dying import half


class InMemory:
    """Queries in memory that pretend to be parts."""

    def __init__(self, queries):
        self.queries, self.start, self.weight = queries, queries.start, queries.weight
        self.n_features, self.feature_names, self.scaling = queries.n_features, None, None
        self.has_labels, self.bytes = True, queries.X.nbytes

    def block(self, first, last):
        return block_of(self.queries, first, last)

    def fingerprints(self):
        from rankwise.queries.fingerprints import fingerprints

        return fingerprints(self.queries)


def lists(sizes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(sizes), 3)) * [1, 1e4, 1e-3]
    return Queries(X, rng.integers(0, 3, sum(sizes)), np.cumsum([0, *sizes]))


@dataclass(frozen=True)
class Sums(Job):
    """The sums of a chunk, with what was prepared counted."""

    def prepare(self, queries, offset):
        prepared.append(offset)
        return np.array(queries.X)

    def run(self, chunk, kept, factor):
        own = kept[chunk.queries.start[chunk.first] : chunk.queries.start[chunk.last]]
        return float(own.sum() * factor), chunk.block.X.sum(axis=0) * factor


prepared: list[int] = []


@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=40),
    chunk=st.integers(1, 60),
    threads=st.integers(1, 4),
    limit=st.sampled_from([None, 0, 900, 10**6]),
)
def test_neither_threads_nor_memory_change_a_bit(sizes, chunk, threads, limit):
    queries = lists(sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "CHUNK", chunk)
        expected = queries.total(Sums(), 0.1, n_jobs=1)
        chunked = ChunkedQueries.of(InMemory(queries), Threads(threads, limit))
        work = chunked.work(Sums())
        for _ in range(2):
            value, slope = chunked.total(work, 0.1)
            assert value == expected[0]
            assert slope.tobytes() == expected[1].tobytes()
        by_hand = 0.0
        for first, last in parallel.query_chunks(queries.start):
            by_hand += float(np.array(block_of(queries, first, last).X).sum() * 0.1)
        assert value == by_hand
        assert limit is None or chunked.executor.kept.bytes <= limit


@given(sizes=st.lists(st.integers(0, 30), min_size=2, max_size=30), chunk=st.integers(1, 50))
def test_scales_radii_and_balances_are_those_of_memory(sizes, chunk):
    if not sum(sizes):
        sizes = [*sizes, 3]
    queries = lists(sizes, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "CHUNK", chunk)
        chunked = ChunkedQueries.of(InMemory(queries))
        for how in ("standard", "minmax", "log"):
            for one, two in zip(center_and_scale(queries, how), center_and_scale(chunked, how), strict=True):
                assert one.tobytes() == two.tobytes()
        for one, two in zip(scale_factors(queries, "auto"), scale_factors(chunked, "auto"), strict=True):
            assert one.tobytes() == two.tobytes()
        assert radius_of(queries) == radius_of(chunked)
        assert balance_of([queries]) == balance_of([chunked])
        assert Extremes.of(chunked, "standard", counted=True).largest == np.abs(queries.X).max()


def test_moments_of_many_chunks_are_those_of_numpy():
    queries = lists([20] * 50, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "CHUNK", 70)
        center, deviation = center_and_scale(queries, "standard")
    np.testing.assert_allclose(center, queries.X.mean(axis=0), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(deviation, queries.X.std(axis=0), rtol=1e-12)


def test_what_is_prepared_is_made_once_and_dropped_with_its_work(monkeypatch):
    monkeypatch.setattr(parallel, "CHUNK", 50)
    chunked = ChunkedQueries.of(InMemory(lists([10] * 30)))
    work = chunked.work(Sums())
    prepared.clear()
    chunked.total(work, 1.0)
    chunked.total(work, 2.0)
    assert sorted(prepared) == [first for first, _ in chunked.chunks]
    assert chunked.executor.kept.bytes == 300 * 3 * 8
    del work
    assert chunked.executor.kept.bytes == 0


def test_a_full_memory_keeps_what_comes_round_again_and_drops_works_that_rest():
    kept = Kept(100)
    kept.get(("old", 0), lambda: np.zeros(5))
    for number in range(4):
        kept.get(("new", number), lambda: np.zeros(5))
    assert kept.bytes == 80  # the old one went, and two of the new ones found no room
    made = []
    for number in range(4):
        kept.get(("new", number), lambda: made.append(1) or np.zeros(5))
    assert len(made) == 2
    kept.forget("new")
    assert kept.bytes == 0


def test_mapped_features_count_nothing(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((10, 2)))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert own_bytes((mapped[2:4], np.zeros(3), {"a": [np.zeros(2)]})) == 40
    assert own_bytes(np.asarray(mapped)[1:]) == 0


def test_results_come_in_order_whatever_finishes_first():
    gates = [threading.Event() for _ in range(3)]

    def work(number):
        if number < 2:
            gates[number].wait(10)
        gates[number - 1].set()
        return number

    with ThreadPoolExecutor(3) as pool:
        assert list(in_order(lambda number: pool.submit(work, number), range(3), 3)) == [0, 1, 2]


def test_an_error_in_a_chunk_reaches_the_caller_and_stops_the_rest(monkeypatch):
    monkeypatch.setattr(parallel, "CHUNK", 10)

    @dataclass(frozen=True)
    class Failing(Job):
        def run(self, chunk, kept, *arguments):
            if chunk.offset == 5:
                raise ValueError("chunk 5")
            return (1.0,)

    chunked = ChunkedQueries.of(InMemory(lists([10] * 40)), Threads(2))
    with pytest.raises(ValueError, match="chunk 5"):
        chunked.total(Failing())
    assert len(list(make_lists(3, documents=4, features=2).map(Sums(), 1.0))) == 2  # 12 documents


def test_executors_by_name():
    assert isinstance(executor_of("threads", 3), Threads)
    assert executor_of("threads", 3).workers(None) == 3
    processes = executor_of("processes", 2, "1GB")
    assert isinstance(processes, Processes)
    assert processes.workers(None) == 2
    processes.close()
    with pytest.raises(RankwiseError, match="executor must be 'threads', 'processes' or a Dask client, got 3"):
        executor_of(3)


class Dead:
    """A thread that has ended."""

    def is_alive(self):
        return False


def test_a_result_that_nobody_hands_on_counts_as_lost():
    silent, done = Future(), Future()
    done.set_result(3)
    assert executors._Awaited(done, Dead()).result() == 3
    with pytest.raises(BrokenProcessPool, match="ended without a result"):
        executors._Awaited(silent, Dead()).result()


class FromFile:
    """What a worker process would find in the file of a work."""

    def __init__(self, worker, path, number, arguments):
        self.path = path

    def result(self):
        with open(self.path, "rb") as file:
            return len(file.read())


def test_equal_works_of_processes_do_not_end_each_other(monkeypatch):
    processes = executor_of("processes", 1)
    monkeypatch.setattr(processes, "_submit", FromFile)
    queries = ChunkedQueries.of(InMemory(lists([3, 5, 2])), processes)
    one, two = (queries.work(Sums()) for _ in range(2))
    path = f"{processes._folder.name}/{one.key}"
    assert one.key == two.key
    found = list(queries.map(one, 2.0))
    assert list(queries.map(two, 2.0)) == found
    del one
    gc.collect()
    assert list(queries.map(two, 2.0)) == found
    del two
    gc.collect()
    assert not os.path.exists(path)
    processes.close()


def test_a_worker_that_dies_in_the_middle_of_a_result_is_replaced(monkeypatch):
    processes = executor_of("processes", 1)
    monkeypatch.setattr(executors, "_chunk", half)
    queries = ChunkedQueries.of(InMemory(lists([3, 5, 2])), processes)
    assert list(queries.map(queries.work(Sums()), 2.0)) == [b"whole"]
    processes.close()
