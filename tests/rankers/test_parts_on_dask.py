"""Rankers on a Dask cluster: the bits of memory with 1, 2 and 4 workers, lost workers, and workers of another kind."""

import os
import signal

import pytest

from rankwise._kernels import parallel
from rankwise.errors import RankwiseError
from rankwise.queries.parts.parts import Parts
from rankwise.queries.passes import executors
from tests.rankers.test_parts import CUTS, RANKERS, assert_same, lists, write_parts

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module", autouse=True)
def small_chunks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "CHUNK", 300)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("parts") / "lists"
    write_parts(lists(), found, part_bytes=40_000)
    return found


def cluster(workers, **options):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50, **options
    )


@pytest.fixture(scope="module")
def client():
    with cluster(2) as two, distributed.Client(two) as client:
        yield client


def test_a_cluster_gives_the_bits_of_memory(client, folder):
    parts = Parts(folder).on(client)
    for name in ("committee", "listnet", "trees"):
        assert_same(RANKERS[name]().fit(lists()), RANKERS[name]().fit(parts))


@pytest.mark.parametrize("name", ["smoothrank", "trees", pytest.param("auto", marks=pytest.mark.thorough)])
def test_a_worker_killed_in_the_middle_of_a_fit(name, client, folder):
    parts, killed = Parts(folder).on(client), []
    results = parts.executor.results

    def ending(work, numbers, arguments, n_jobs):
        for place, result in enumerate(results(work, numbers, arguments, n_jobs)):
            if place == 1 and not killed:
                killed.append(sorted(client.run(os.getpid).values())[0])
                os.kill(killed[0], signal.SIGKILL)
            yield result

    parts.executor.results = ending
    assert_same(RANKERS[name]().fit(lists()), RANKERS[name]().fit(parts))
    assert killed


def test_workers_with_other_bits_are_refused_unless_allowed(client, folder, monkeypatch):
    parts = Parts(folder).on(client)
    own = executors.arithmetic()
    monkeypatch.setattr(executors, "_arithmetic", [own._replace(facts={**own.facts, "numba": "0.1"})])
    with pytest.raises(
        RankwiseError, match=r"the worker tcp://.* computes other bits .*\(numba .* there and 0.1 here\)"
    ):
        RANKERS["ridge"]().fit(parts)
    monkeypatch.setattr(executors, "_arithmetic", [own._replace(digest="other")])
    with pytest.raises(RankwiseError, match=r"computes other bits than this process \(with the same versions\)"):
        RANKERS["ridge"]().fit(Parts(folder).on(client))
    assert RANKERS["ridge"]().fit(Parts(folder).on(client, strict=False)).coef_.shape == (6,)


def test_the_first_chunk_of_every_worker_is_computed_here_too(client, folder, monkeypatch):
    parts = Parts(folder).on(client)
    monkeypatch.setattr(executors, "digest_of", lambda value: os.urandom(8))
    with pytest.raises(RankwiseError, match="computes other bits than this process"):
        RANKERS["ridge"]().fit(parts)


@pytest.mark.thorough
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_every_ranker_with_any_number_of_workers_and_files(workers, tmp_path):
    own = {name: make().fit(lists()) for name, make in RANKERS.items()}
    with cluster(workers) as some, distributed.Client(some) as client:
        for cut in CUTS:
            write_parts(lists(), tmp_path / f"{cut}", part_bytes=cut)
            parts = Parts(tmp_path / f"{cut}").on(client)
            for name, make in RANKERS.items():
                assert_same(own[name], make().fit(parts))


@pytest.mark.thorough
def test_an_adaptive_cluster(folder):
    with cluster(1) as some, distributed.Client(some) as client:
        some.adapt(minimum=1, maximum=3, interval="100ms")
        for name in ("listnet", "trees", "auto"):
            assert_same(RANKERS[name]().fit(lists()), RANKERS[name]().fit(Parts(folder).on(client)))
