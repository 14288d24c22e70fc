"""BoostedRanker on data sets in parts: the bits of memory, whatever is lost, killed, damaged or lacks memory."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import rankwise as rw
from rankwise import losses
from rankwise._kernels import parallel
from rankwise.errors import DataError, Interrupted, RankwiseError
from rankwise.queries.passes.executors import Threads
from rankwise.queries.passes.journal import Journal
from rankwise.rankers.boosting import boosted, packed_rows, parted_rows
from rankwise.rankers.boosting.symmetric import SymmetricModel
from rankwise.rankers.boosting.tree_rows import TreeRows
from tests.rankers.test_parts import assert_same, write_parts

CUTS = (1, 10_000, 1 << 30)
SMALL = {"trees": 20, "depth": 3, "folds": 3}
FITS = {
    "trees": "rw.BoostedRanker(trees=60, depth=3, folds=3, patience=60)",
    "auto": "rw.AutoRanker(max_trees=60, folds=3)",
}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(parallel, "CHUNK", 120)


def queries(count=80, seed=0, holes=0.1, weights=True, categories=True):
    """Judged lists of unequal lengths, one longer than a chunk and one empty, with gaps, categories and weights."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 20, count)
    sizes[5], sizes[9] = 150, 0
    X = rng.normal(size=(sizes.sum(), 7)).astype(np.float32)
    y = np.clip(np.rint(X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X))), 0, 3)
    X[:, 3] = 5.0
    X[rng.random(X.shape) < holes] = np.nan
    if categories:
        X[:, 4] = rng.integers(0, 9, len(X)) * 7
    return rw.Queries._trusted(
        X,
        y,
        np.append(0, np.cumsum(sizes)),
        weight=rng.choice([0.0, 0.5, 1.0, 2.0], count) if weights else None,
        document_weight=rng.choice([0.5, 1.0, 3.0], len(X)) if weights else None,
        feature_names=tuple("abcdefg"),
    )


def parts_of(lists, folder, cut=10_000):
    write_parts(lists, folder, part_bytes=cut)
    return rw.Parts(folder)


@pytest.fixture
def parts(tmp_path):
    return parts_of(queries(), tmp_path / "lists")


def binned(parts):
    """The files of bins beside the parts."""
    return files_of(Path(parts.path) / ".binned")


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


# ------------------------------------------------------------------------------------------------------ the same bits

FULL = {"categorical_features": ["e"], "monotone": {"a": 1, "b": -1}, "feature_fraction": 0.5, "seeds": 2}


@pytest.mark.parametrize(
    ("options", "validated"),
    [
        ({}, False),
        (FULL, False),
        ({"refit": "all", "depth": 9, "bins": 8}, True),
        ({"measure": "AP", "refit": "train", "additive": True, "depth": None}, True),
        ({"patience": None, "seeds": 2, "loss": losses.ListNet()}, True),
        ({"loss": losses.ListMLE(), "row_fraction": 1.0}, False),
    ],
    ids=["usual", "every kind of feature", "all", "train", "no search", "no curvature"],
)
def test_parts_teach_the_bits_of_memory(options, validated, tmp_path):
    train, held = queries(), queries(30, seed=1)
    validation = held if validated else None
    own = rw.BoostedRanker(**{**SMALL, **options}).fit(train, validation=validation)
    assert own.ensemble_.n_trees
    for number, cut in enumerate(CUTS):
        parts = parts_of(train, tmp_path / f"{cut}", cut)
        other = parts_of(held, tmp_path / f"held {cut}", cut) if validated and number else validation
        found = rw.BoostedRanker(n_jobs=1 + number % 2, **{**SMALL, **options}).fit(parts, validation=other)
        assert_same(own, found)
        assert found.history_["validation"].tobytes() == own.history_["validation"].tobytes()
        assert found.predict(parts).tobytes() == own.predict(train).tobytes()


@pytest.mark.parametrize("loss", [losses.SmoothNDCG(), losses.GradedPairs()], ids=repr)
def test_trees_from_a_linear_start(loss, tmp_path):
    train, held = queries(holes=0.0, weights=False), queries(30, seed=1, holes=0.0, weights=False)
    parts = parts_of(train, tmp_path / "lists")
    for start in ("ridge", rw.RidgeRanker(alpha=1.0).fit(train)):
        sigmas = (4, 1, 1 / 4) if isinstance(loss, losses.SmoothNDCG) else None
        options = {**SMALL, "loss": loss, "start": start, "sigmas": sigmas}
        own = rw.BoostedRanker(**options).fit(train, validation=held)
        assert_same(own, rw.BoostedRanker(**options).fit(parts, validation=held))
    with pytest.raises(DataError, match=r"has no finite feature .*, and BoostedRanker with start= gives no meaning"):
        rw.BoostedRanker(**options).fit(parts_of(queries(), tmp_path / "gaps"))


@pytest.mark.parametrize("start", [None, "ridge"])
def test_trees_that_are_continued(start, tmp_path):
    first, second = queries(holes=0.0, weights=False), queries(60, seed=1, holes=0.0, weights=False)
    own, found = (rw.BoostedRanker(**{**SMALL, "trees": 8}, start=start, patience=None) for _ in range(2))
    for lists, trees in ((first, 8), (second, 15)):
        parts = parts_of(lists, tmp_path / f"{trees}")
        own.set_params(trees=trees, warm_start=True).fit(lists)
        assert_same(own, found.set_params(trees=trees, warm_start=True).fit(parts))
    assert found.ensemble_.n_trees == 15


def test_of_many_queries_a_single_part_is_held_out(parts, monkeypatch):
    monkeypatch.setattr(boosted, "MANY", 30)
    assert_same(rw.BoostedRanker(**SMALL).fit(queries()), rw.BoostedRanker(**SMALL).fit(parts))


def test_thresholds_are_those_of_the_same_sample(parts, monkeypatch):
    monkeypatch.setattr(packed_rows, "_SAMPLED", 200)
    own = rw.BoostedRanker(bins=20, **SMALL).fit(queries())
    assert_same(own, rw.BoostedRanker(bins=20, **SMALL).fit(parts))


def test_a_validation_set_in_parts_of_a_training_set_in_memory(tmp_path):
    held = queries(30, seed=1)
    own = rw.BoostedRanker(**SMALL).fit(queries(), validation=held)
    assert_same(own, rw.BoostedRanker(**SMALL).fit(queries(), validation=parts_of(held, tmp_path / "held")))


def test_a_choice_of_queries_is_a_data_set_of_its_own(parts):
    chosen = np.array([3, 40, 4, 5, 60, 20, 21, 22, 9, 70])
    assert_same(rw.BoostedRanker(**SMALL).fit(queries()[chosen]), rw.BoostedRanker(**SMALL).fit(parts[chosen]))


def test_nothing_to_split(tmp_path):
    lists = queries(weights=False)
    constant = lists._replace(X=np.ones_like(lists.X))
    own = rw.BoostedRanker(**SMALL).fit(constant)
    assert_same(own, rw.BoostedRanker(**SMALL).fit(parts_of(constant, tmp_path / "lists")))
    assert own.trees_ == 0


# ------------------------------------------------------------------------------------------- what is lost or lacks room


class Forgetful(Threads):
    """Threads that lose what they keep of some chunks at random moments, as workers that die do."""

    def results(self, work, numbers, arguments, n_jobs):
        for key in list(self.kept._kept):
            if self.random.random() < 0.1:
                self.kept._drop(key)
        return super().results(work, numbers, arguments, n_jobs)


@pytest.mark.parametrize("seed", range(2))
def test_ranges_that_are_lost_follow_the_trees_again(seed, parts, monkeypatch):
    executor = Forgetful(3)
    executor.random = np.random.default_rng(seed)
    rebuilt, begin = [], parted_rows.RangeRows._begin
    monkeypatch.setattr(parted_rows.RangeRows, "_begin", lambda self: (rebuilt.append(1), begin(self))[1])
    own = rw.BoostedRanker(**SMALL, **FULL).fit(queries())
    assert_same(own, rw.BoostedRanker(**SMALL, **FULL).fit(parts.on(executor)))
    assert len(rebuilt) > 100


def test_what_a_range_was_asked_before_it_can_be_asked_again(parts, monkeypatch):
    answer = parted_rows.RangeRows.answer

    def twice(self, message):
        first, again = answer(self, message), answer(self, message)
        np.testing.assert_equal(first, again)
        return again

    monkeypatch.setattr(parted_rows.RangeRows, "answer", twice)
    assert_same(rw.BoostedRanker(**SMALL).fit(queries()), rw.BoostedRanker(**SMALL).fit(parts))


def test_a_range_that_was_interrupted_begins_again(parts, monkeypatch):
    own, failed = rw.BoostedRanker(**SMALL).fit(queries()), []
    for name in ("count", "close", "add"):
        usual = getattr(TreeRows, name)

        def failing(self, *given, usual=usual, name=name):
            found = usual(self, *given)
            if len(failed) < 40 and random.random() < 0.02:
                failed.append(name)
                raise InterruptedError
            return found

        monkeypatch.setattr(TreeRows, name, failing)

    def again(self, message, answer=parted_rows.RangeRows.answer):
        while True:
            with suppress(InterruptedError):
                return answer(self, message)

    random = np.random.default_rng(0)
    monkeypatch.setattr(parted_rows.RangeRows, "answer", again)
    assert_same(own, rw.BoostedRanker(**SMALL).fit(parts))
    assert set(failed) == {"count", "close", "add"}


def test_rows_that_do_not_fit_into_the_memory_limit_stand_in_files(parts, monkeypatch):
    own, spilled = rw.BoostedRanker(**SMALL).fit(queries()), []
    made = parted_rows._Spilled.__init__
    monkeypatch.setattr(
        parted_rows._Spilled, "__init__", lambda self, size: (spilled.append(size), made(self, size))[1]
    )
    limited = parts.on("threads", memory_limit=1000)
    assert_same(own, rw.BoostedRanker(**SMALL).fit(limited))
    assert spilled
    assert limited.executor.kept.bytes <= 1000
    spilled.clear()
    assert_same(own, rw.BoostedRanker(**SMALL).fit(parts.on("threads", memory_limit=10**6)))
    assert not spilled


@pytest.mark.thorough
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_processes_that_are_killed_one_after_the_other(workers, name, parts):
    def new():
        return rw.BoostedRanker(**SMALL) if name == "trees" else rw.AutoRanker(max_trees=20, folds=3)

    kills = 8
    own = new().fit(queries())
    several = parts.on("processes", workers)
    try:
        assert_same(own, new().fit(several))
        executor, killed, asked = several.executor, [], []
        results = executor.results

        def ending(work, numbers, arguments, n_jobs):
            asked.append(1)
            for place, result in enumerate(results(work, numbers, arguments, n_jobs)):
                if len(asked) % 37 == 36 and len(killed) < kills and not place:
                    killed.append(executor.pids()[len(killed) % len(executor.pids())])
                    os.kill(killed[-1], signal.SIGKILL)
                yield result

        executor.results = ending
        assert_same(own, new().fit(several))
        assert len(killed) == kills
    finally:
        several.executor.close()


# ------------------------------------------------------------------------------------------------------- files of bins


def test_bins_are_written_once_and_reused(parts, tmp_path):
    first = rw.BoostedRanker(**SMALL).fit(parts)
    found = {path: os.stat(path).st_mtime_ns for path in binned(parts)}
    assert len(found) > 4
    assert_same(first, rw.BoostedRanker(**SMALL).fit(rw.Parts(parts.path)))
    assert {path: os.stat(path).st_mtime_ns for path in binned(parts)} == found
    rw.BoostedRanker(bins=16, **SMALL).fit(parts)
    assert len(binned(parts)) > len(found)
    parts.verify()
    again = rw.io.write_parts(parts.path, tmp_path / "again")
    assert again.n_documents == parts.n_documents


def test_bins_that_no_fit_has_used_for_a_month_are_removed(parts):
    rw.BoostedRanker(**SMALL).fit(parts)
    (used,) = (Path(parts.path) / ".binned").iterdir()
    for name, days in (("old", 31), ("young", 29)):
        (used.parent / name).mkdir()
        os.utime(used.parent / name, (time.time() - days * 86_400,) * 2)
    os.utime(used, (time.time() - 40 * 86_400,) * 2)
    rw.BoostedRanker(**SMALL).fit(parts)
    assert sorted(one.name for one in used.parent.iterdir()) == sorted([used.name, "young"])


@pytest.mark.parametrize("how", ["cut", "changed", "removed", "foreign"])
def test_files_of_bins_that_are_damaged_or_missing_are_written_again(how, parts):
    own = rw.BoostedRanker(**SMALL).fit(parts)
    whole = {path: path.read_bytes() for path in binned(parts)}
    for path, content in whole.items():
        path.unlink()
        if how != "removed":
            changed = bytearray(content)
            changed[-9] ^= 1
            path.write_bytes({"cut": content[:-7], "changed": bytes(changed), "foreign": b"notes"}[how])
    assert_same(own, rw.BoostedRanker(**SMALL).fit(parts))
    assert {path: path.read_bytes() for path in binned(parts)} == whole


def test_a_run_that_was_killed_while_it_wrote_bins_goes_on(parts, monkeypatch):
    written, write = [], parted_rows.BinnedFile.write

    def ending(self, *given):
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append(self.path)
        return write(self, *given)

    own = rw.BoostedRanker(**SMALL).fit(queries())
    with monkeypatch.context() as patch:
        patch.setattr(parted_rows.BinnedFile, "write", ending)
        with pytest.raises(KeyboardInterrupt):
            rw.BoostedRanker(n_jobs=1, **SMALL).fit(parts)
    before = {path: os.stat(path).st_mtime_ns for path in written}
    assert_same(own, rw.BoostedRanker(**SMALL).fit(parts))
    assert {path: os.stat(path).st_mtime_ns for path in written} == before


def test_bins_of_a_folder_that_cannot_be_written_to_are_in_the_cache(parts, tmp_path, monkeypatch):
    (tmp_path / "lists" / ".binned").write_text("no folder")
    monkeypatch.setattr("rankwise.rankers.boosting.binned_parts.user_cache", lambda: tmp_path / "cache")
    assert_same(rw.BoostedRanker(**SMALL).fit(queries()), rw.BoostedRanker(**SMALL).fit(parts))
    assert len(files_of(tmp_path / "cache" / "binned")) > 4
    cluster = Threads()
    cluster.name = "dask"
    with pytest.raises(RankwiseError, match=r"trees write the bins .*\.binned cannot be written to"):
        rw.BoostedRanker(**SMALL).fit(parts.on(cluster))


# --------------------------------------------------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("options", [{}, {"start": "ridge", "loss": losses.SmoothNDCG(), "sigmas": (2, 1 / 4)}])
def test_a_finished_fit_is_replayed_without_growing_a_tree(options, tmp_path, monkeypatch):
    lists = queries(holes=0.0, weights=False)
    parts = parts_of(lists, tmp_path / "lists")
    own = rw.BoostedRanker(**SMALL, **options).fit(lists)
    grown, grow = [], SymmetricModel.next_tree
    monkeypatch.setattr(SymmetricModel, "next_tree", lambda self: (grown.append(1), grow(self))[1])
    assert_same(own, rw.BoostedRanker(**SMALL, **options).fit(parts, checkpoint=tmp_path / "run"))
    assert grown
    grown.clear()
    assert_same(own, rw.BoostedRanker(**SMALL, **options).fit(parts, checkpoint=tmp_path / "run"))
    assert not grown


def test_a_journal_cut_off_anywhere_leads_to_the_same_trees(parts, tmp_path):
    own = rw.BoostedRanker(**SMALL).fit(parts, checkpoint=tmp_path / "run")
    journal = tmp_path / "run" / "passes.journal"
    whole = journal.read_bytes()
    for length in np.random.default_rng(4).integers(0, len(whole), 5).tolist():
        journal.write_bytes(whole[:length])
        assert_same(own, rw.BoostedRanker(**SMALL).fit(parts, checkpoint=tmp_path / "run"))
        assert journal.read_bytes() == whole


def test_ctrl_c_keeps_the_trees_of_the_first_fold(parts, tmp_path, monkeypatch):
    seen, add = [], Journal.add

    def interrupted(self, *given):
        seen.append(1)
        if len(seen) == 8:
            raise KeyboardInterrupt
        add(self, *given)

    own, model = rw.BoostedRanker(**SMALL).fit(queries()), rw.BoostedRanker(**SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add", interrupted)
        with pytest.raises(Interrupted, match="BoostedRanker was stopped"):
            model.fit(parts, checkpoint=tmp_path / "run")
    assert model.trees_ == model.ensemble_.n_trees == 3
    assert_same(own, rw.BoostedRanker(**SMALL).fit(parts, checkpoint=tmp_path / "run"))


FIT = """
import sys
from rankwise._kernels import parallel
parallel.CHUNK = 120
import rankwise as rw
model = eval(sys.argv[3]).fit(rw.Parts(sys.argv[1]), checkpoint=sys.argv[2])
sys.stdout.write(model.record_.digest)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.thorough)])
def test_kill_9_at_random_moments(kills, name, parts, tmp_path):
    def new():
        return eval(FITS[name])

    own = new().fit(queries())
    random, journal = np.random.default_rng(8), tmp_path / "run" / "passes.journal"
    for _ in range(kills):
        given = [parts.path, str(tmp_path / "run"), FITS[name]]
        run = subprocess.Popen([sys.executable, "-c", FIT, *given], stdout=subprocess.PIPE)
        so_far = journal.stat().st_size if journal.exists() else 0
        at = so_far + int(random.integers(1, 20_000))
        while run.poll() is None and not (journal.exists() and journal.stat().st_size >= at):
            time.sleep(0.001)
        run.send_signal(signal.SIGKILL)
        out, _ = run.communicate()
        if run.returncode == 0:  # it was faster: the next one begins anew
            assert out.decode() == own.record_.digest
            journal.unlink()
    assert_same(own, new().fit(parts, checkpoint=tmp_path / "run"))


# ------------------------------------------------------------------------------------------------------------- errors


def test_what_does_not_run_on_parts_is_refused_by_name(parts):
    with pytest.raises(RankwiseError, match=r"BoostedRanker does not run on Parts: its engine .*engine='symmetric'"):
        rw.BoostedRanker(engine="lightgbm").fit(parts)
    with pytest.raises(DataError, match=r"StochasticNDCG.* does not run on Parts: its noise"):
        rw.BoostedRanker(loss=losses.StochasticNDCG()).fit(parts)
    with pytest.raises(DataError, match="BoostedRanker with missing='zero' gives no meaning"):
        rw.BoostedRanker(missing="zero").fit(parts)
    with pytest.raises(DataError, match="categories of feature 0 must be non-negative integers"):
        rw.BoostedRanker(categorical_features=["a"], **SMALL).fit(parts)


def test_a_stationary_start_asks_for_another(tmp_path):
    parts = parts_of(queries(holes=0.0), tmp_path / "lists")
    with pytest.raises(RankwiseError, match=r"SmoothNDCG.* gradient of 0 at equal scores.*start='ridge'"):
        rw.BoostedRanker(loss=losses.SmoothNDCG(), **SMALL).fit(parts)


def test_a_bar_says_how_many_rows_a_second_trees_take(parts, monkeypatch):
    said = []
    monkeypatch.setattr(parted_rows, "remark", said.append)
    rw.BoostedRanker(trees=3, patience=None).fit(parts)
    assert [line.split(",")[0] for line in said] == ["tree 1", "tree 2", "tree 3"]
    assert all(line.endswith(" million rows/s") for line in said)


def test_a_verbose_fit_logs_one_line_per_tree(parts, caplog):
    with caplog.at_level("INFO", logger="rankwise"):
        rw.BoostedRanker(trees=3, patience=None, verbose=True).fit(parts)
    lines = [one.getMessage() for one in caplog.records if one.getMessage().startswith("tree ")]
    assert [line.split(":")[0] for line in lines] == ["tree 1", "tree 2", "tree 3"]
    assert all("levels in" in line and "rows/s" in line for line in lines)
