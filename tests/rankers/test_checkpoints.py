"""Checkpoints of fits on parts: a restart after any end of the first run has the bits of an undisturbed one."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import rankwise as rw
from rankwise._kernels import parallel
from rankwise.errors import FileFormatError, Interrupted, RankwiseError
from rankwise.queries.parts.parts import Parts
from rankwise.queries.passes.chunked import ChunkedQueries
from tests.rankers.test_parts import RANKERS, assert_same, lists, write_parts


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(parallel, "CHUNK", 300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("parts") / "lists"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "CHUNK", 300)
        write_parts(lists(), found, part_bytes=40_000)
    return found


def journal_of(path):
    return path / "passes.journal"


@pytest.fixture
def passes(monkeypatch):
    """The number of passes that were computed, not replayed."""
    counted = []
    total = ChunkedQueries.total

    def counting(self, *given, **options):
        before = self.account.replayed
        found = total(self, *given, **options)
        counted.append(self.account.replayed == before)
        return found

    monkeypatch.setattr(ChunkedQueries, "total", counting)
    return counted


@pytest.mark.parametrize("name", ["committee", "listnet", "smoothrank", "squared pairs", "slam"])
def test_a_finished_fit_is_replayed_without_a_pass_over_its_sums(name, folder, tmp_path, passes):
    own = RANKERS[name]().fit(lists())
    assert_same(own, RANKERS[name]().fit(Parts(folder), checkpoint=tmp_path))
    assert any(passes)  # and some points, such as w = 0, are asked for twice
    passes.clear()
    assert_same(own, RANKERS[name]().fit(Parts(folder), checkpoint=tmp_path))
    assert passes
    assert not any(passes)


def test_a_journal_cut_off_anywhere_leads_to_the_same_weights(folder, tmp_path, passes):
    own = RANKERS["listnet"]().fit(Parts(folder), checkpoint=tmp_path)
    whole = journal_of(tmp_path).read_bytes()
    count = len(passes)
    for length in np.random.default_rng(4).integers(0, len(whole), 20).tolist():
        journal_of(tmp_path).write_bytes(whole[:length])
        passes.clear()
        assert_same(own, RANKERS["listnet"]().fit(Parts(folder), checkpoint=tmp_path))
        assert 0 < sum(passes) <= count
        assert journal_of(tmp_path).read_bytes() == whole


def test_a_damaged_journal_is_used_up_to_the_damage(folder, tmp_path, passes):
    own = RANKERS["ridge"]().fit(Parts(folder), checkpoint=tmp_path)
    whole = bytearray(journal_of(tmp_path).read_bytes())
    whole[-20] ^= 1
    journal_of(tmp_path).write_bytes(whole)
    passes.clear()
    assert_same(own, RANKERS["ridge"]().fit(Parts(folder), checkpoint=tmp_path))
    assert sum(passes) == 1


def test_another_fit_is_refused_by_name(folder, tmp_path):
    rw.RidgeRanker(alpha=1.0).fit(Parts(folder), checkpoint=tmp_path)
    with pytest.raises(RankwiseError, match=r"checkpoint of a fit with parameters .* and this one has"):
        rw.RidgeRanker(alpha=2.0).fit(Parts(folder), checkpoint=tmp_path)
    with pytest.raises(RankwiseError, match="with ranker RidgeRanker"):
        rw.RidgeCommittee().fit(Parts(folder), checkpoint=tmp_path)
    with pytest.raises(RankwiseError, match="checkpoint of a fit with data"):
        rw.RidgeRanker(alpha=1.0).fit(Parts(folder)[:50], checkpoint=tmp_path)
    with pytest.raises(RankwiseError, match="checkpoint of a fit with validation"):
        rw.RidgeRanker(alpha=1.0).fit(Parts(folder), validation=lists(4, 30), checkpoint=tmp_path)
    rw.RidgeRanker(alpha=1.0, n_jobs=1).fit(Parts(folder), checkpoint=tmp_path)  # threads change nothing


def test_a_foreign_file_is_not_overwritten(folder, tmp_path):
    journal_of(tmp_path).write_bytes(b"notes of mine")
    with pytest.raises(FileFormatError, match="is not a checkpoint of rankwise"):
        rw.RidgeRanker(alpha=1.0).fit(Parts(folder), checkpoint=tmp_path)
    assert journal_of(tmp_path).read_bytes() == b"notes of mine"


@pytest.mark.skipif(sys.platform == "win32", reason="files are not locked on Windows")
def test_two_fits_do_not_share_a_checkpoint(folder, tmp_path):
    import fcntl

    rw.RidgeRanker(alpha=1.0).fit(Parts(folder), checkpoint=tmp_path)
    with open(journal_of(tmp_path), "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RankwiseError, match="is in use by another fit"):
            rw.RidgeRanker(alpha=1.0).fit(Parts(folder), checkpoint=tmp_path)


def test_ctrl_c_keeps_what_was_learned_and_the_journal(folder, tmp_path, monkeypatch):
    whole = rw.ListNet(solver="lbfgs", alpha=0.01, steps=8).fit(Parts(folder))
    model, total, calls = rw.ListNet(solver="lbfgs", alpha=0.01, steps=8), ChunkedQueries.total, []

    def interrupted(self, *given, **options):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return total(self, *given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(ChunkedQueries, "total", interrupted)
        with pytest.raises(Interrupted, match="holds what it had learned by then"):
            model.fit(Parts(folder), checkpoint=tmp_path)
    assert model.coef_.any()
    assert_same(whole, rw.ListNet(solver="lbfgs", alpha=0.01, steps=8).fit(Parts(folder), checkpoint=tmp_path))


FIT = """
import sys
from rankwise._kernels import parallel
parallel.CHUNK = 300
from rankwise.queries.parts.parts import Parts
import rankwise as rw
model = rw.ListNet(solver="lbfgs", steps=40, alpha=1e-4, tolerance=0.0)
model.fit(Parts(sys.argv[1]), checkpoint=sys.argv[2])
sys.stdout.write(model.coef_.tobytes().hex())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.thorough)])
def test_kill_9_at_random_moments(kills, folder, tmp_path):
    own = rw.ListNet(solver="lbfgs", steps=40, alpha=1e-4, tolerance=0.0).fit(lists())
    random, killed = np.random.default_rng(8), 0
    journal = journal_of(tmp_path)
    while killed < kills:
        run = subprocess.Popen(
            [sys.executable, "-c", FIT, str(folder), str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        so_far = journal.stat().st_size if journal.exists() else 0
        at = so_far + int(random.integers(1, 2000))
        while run.poll() is None and not (journal.exists() and journal.stat().st_size >= at):
            time.sleep(0.001)
        run.send_signal(signal.SIGKILL)
        out, err = run.communicate()
        if run.returncode == -signal.SIGKILL:
            killed += 1
        else:  # it was faster: the next one begins anew
            assert out.decode() == own.coef_.tobytes().hex(), err.decode()
            journal.unlink()
    found = rw.ListNet(solver="lbfgs", steps=40, alpha=1e-4, tolerance=0.0).fit(Parts(folder), checkpoint=tmp_path)
    assert_same(own, found)
