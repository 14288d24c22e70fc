"""Rankers on data sets in parts: the bits of memory, whoever computes and however the data set is cut into files."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest

import rankwise as rw
from rankwise._kernels import parallel
from rankwise.errors import RankwiseError
from rankwise.queries.parts.parts import Parts
from rankwise.queries.parts.write import PartsWriter
from rankwise.rankers._base import registered

# Bytes of a file: one chunk each, a few, all.
CUTS = (1, 40_000, 1 << 30)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Chunks of 300 documents, so that small data sets have several."""
    monkeypatch.setattr(parallel, "CHUNK", 300)


def lists(seed=1, queries=90, weights=False, document_weights=False):
    """Queries of unequal sizes, one of them longer than a chunk, and some empty, in float32 of several scales."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 25, queries)
    sizes[7], sizes[11:13] = 700, 0
    total = int(sizes.sum())
    X = (rng.normal(size=(total, 6)) * [1, 30, 0.2, 5, 1, 400] + [0, 2, 0, 0, 0, 50]).astype(np.float32)
    X[:, 4] = X[:, 0] > 0.3
    y = np.clip(np.round(X[:, 0] + 0.4 * X[:, 2] + rng.normal(size=total)), 0, 3)
    return rw.Queries(
        X,
        y,
        np.concatenate([[0], np.cumsum(sizes)]),
        weight=rng.choice([0.0, 0.3, 1.0, 2.5], queries) if weights else None,
        document_weight=rng.choice([0.1, 1.0, 3.0], total) if document_weights else None,
        feature_names=list("abcdef"),
    )


def write_parts(queries, folder, part_bytes=1 << 20):
    """A data set in parts, in files as small as single chunks if they should be."""
    with PartsWriter(folder, part_bytes=part_bytes) as writer:
        writer.append(queries)


RANKERS = {
    "ridge": lambda: rw.RidgeRanker(),
    "ridge, global": lambda: rw.RidgeRanker("AP", intercept="global", target="labels", balanced=False, folds=3),
    "committee": lambda: rw.RidgeCommittee(),
    "listnet": lambda: rw.ListNet(solver="lbfgs", steps=6, alpha=(0.1, 0.001), folds=2),
    "smoothrank": lambda: rw.SmoothRank(steps=3, folds=2, alpha=(0.3, 0.01), sigmas=(2.0, 0.5)),
    "smoothrank, soft ranks": lambda: rw.SmoothRank(loss="SoftRankNDCG", steps=3, folds=2, alpha=0.1, sigmas=(2.0,)),
    "smoothrank, bound": lambda: rw.SmoothRank(stop="bound", steps=3, folds=2, alpha=0.1, sigmas=(2.0, 0.5)),
    **{
        f"smoothrank, {loss!r}": lambda loss=loss: rw.SmoothRank(loss=loss, steps=2, folds=2, alpha=0.1, sigmas=(2.0,))
        for loss in (
            *(rw.losses.SoftRank(k=5), rw.losses.SmoothDCG1(), rw.losses.SmoothNDCG(k=5), rw.losses.SmoothRR()),
            *(rw.losses.SmoothAP(), rw.losses.SmoothAP(form="indicator"), rw.losses.SmoothPrecision(k=3)),
        )
    },
    "smoothrank, dcg": lambda: rw.SmoothRank("DCG@5", steps=3, folds=2, alpha=0.1, sigmas=(2.0,)),
    "ranksvm": lambda: rw.RankSVM(alpha=(0.1, 0.01), folds=2, max_calls=20),
    "ranksvm, sums": lambda: rw.RankSVM(per_pair=False, folds=2, max_calls=4),
    "ball": lambda: rw.LossRanker(rw.losses.ListMLE(), max_norm=(0.3, 1.0), folds=2, max_calls=10),
    "squared pairs": lambda: rw.LossRanker(rw.losses.PairHinge(squared=True), alpha=0.1),
    "l1": lambda: rw.LossRanker(rw.losses.PairLogistic(), alpha=0.05, penalty="l1", max_calls=15),
    "slam": lambda: rw.SLAMRanker(alpha=0.1, max_calls=15),
    "max pair": lambda: rw.MaxPairRanker(alpha=0.1, max_calls=15),
    "svmmap": lambda: rw.SVMMap(alpha=0.1, max_calls=10),
    "structured ndcg": lambda: rw.StructuredNDCG(alpha=0.1, max_calls=10),
    "perceptron": lambda: rw.SLAMPerceptron(epochs=2, shuffle=True),
    "online": lambda: rw.OnlineRanker(rw.losses.ListNet(), eta="theory", max_norm=1.0),
    "listnet, sgd": lambda: rw.ListNet(),
    "trees": lambda: rw.BoostedRanker(trees=10, depth=3, folds=2),
    "auto": lambda: rw.AutoRanker(max_trees=10, folds=2),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same queries in one file per chunk, in a few files, and in one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "CHUNK", 300)
        found = {}
        for cut in CUTS:
            found[cut] = tmp_path_factory.mktemp("parts") / "lists"
            write_parts(lists(), found[cut], part_bytes=cut)
    return found


@pytest.fixture(scope="module")
def in_memory():
    """Every ranker, fitted in memory at its first use."""
    fitted = {}

    def fit(name):
        if name not in fitted:
            fitted[name] = RANKERS[name]().fit(lists())
        return fitted[name]

    return fit


def assert_same(one, two):
    if hasattr(one, "coef_"):  # trees have no weights
        assert one.coef_.tobytes() == two.coef_.tobytes()
    assert one.record_.digest == two.record_.digest  # everything that was learned, histories and paths included
    assert one.record_.seen.record == two.record_.seen.record
    assert one.record_.seen.training.marks.tobytes() == two.record_.seen.training.marks.tobytes()


@pytest.mark.parametrize("name", RANKERS)
def test_parts_teach_the_bits_of_memory(name, folders, in_memory):
    own = in_memory(name)
    for cut in CUTS if name in ("ridge", "smoothrank", "listnet", "trees") else CUTS[1:2]:
        parts = Parts(folders[cut])
        assert len(parts.chunks()) > 4
        found = RANKERS[name]().fit(parts)
        assert_same(own, found)
    assert found.score(parts) == own.score(lists())
    assert found.predict(parts).tobytes() == own.predict(lists()).tobytes()


def test_every_batch_preset_and_online_ranker_that_says_so_is_tested_here():
    tested = {type(make()).__name__ for make in RANKERS.values()} | {"LossRanker", "MaxPairPerceptron"}
    on_parts = {name for name, kind in registered().items() if any(one.runs_on_parts for one in kind.examples())}
    assert on_parts <= tested | {"BinaryPerceptron"}


def test_files_that_do_not_end_with_chunks_change_nothing(tmp_path, monkeypatch, in_memory):
    monkeypatch.setattr(parallel, "CHUNK", 170)
    write_parts(lists(), tmp_path / "lists", part_bytes=1)
    monkeypatch.setattr(parallel, "CHUNK", 300)
    for name in ("committee", "listnet", "squared pairs"):
        assert_same(in_memory(name), RANKERS[name]().fit(Parts(tmp_path / "lists")))


@pytest.mark.parametrize("name", ["ridge", "ridge, global", "committee", "listnet", "smoothrank", "squared pairs"])
def test_scattered_rows_in_memory_have_the_bits_of_parts(name, folders):
    whole = lists()
    shuffled = np.random.default_rng(5).permutation(whole.n_documents)
    # first appearances must keep the order of queries, and each query the order of its rows
    order = sorted(shuffled.tolist(), key=lambda row: (row % 7 == 3, row))
    head = [int(whole.start[q]) for q in range(len(whole)) if whole.sizes[q]]
    order = head + [row for row in order if row not in set(head)]
    scattered = rw.Queries.from_arrays(
        whole.X[order], whole.y[order], qid=whole.query_of_row[order], feature_names=whole.feature_names
    )
    filled = whole[np.flatnonzero(whole.sizes)]
    assert not scattered.is_grouped
    assert RANKERS[name]().fit(scattered).coef_.shape == (6,)
    grouped = scattered[np.arange(len(scattered))]
    assert len(grouped) == len(filled)
    assert RANKERS[name]().fit(grouped).coef_.tobytes() == RANKERS[name]().fit(scattered).coef_.tobytes()


@pytest.mark.parametrize("name", ["ridge", "ridge, global", "committee", "listnet", "ranksvm", "ranksvm, sums"])
def test_weights_of_queries_and_documents_are_those_of_memory(name, tmp_path):
    weighted = lists(3, weights=True, document_weights=True)
    write_parts(weighted, tmp_path / "lists", part_bytes=30_000)
    assert_same(RANKERS[name]().fit(weighted), RANKERS[name]().fit(Parts(tmp_path / "lists")))


@pytest.mark.parametrize("name", ["ridge", "committee", "listnet", "smoothrank", "slam", "trees"])
@pytest.mark.parametrize("where", ["parts", "memory"])
def test_validation_in_parts_or_in_memory(name, where, folders, tmp_path):
    validation = lists(9, 40)
    write_parts(validation, tmp_path / "vali")
    own = RANKERS[name]().fit(lists(), validation=validation)
    found = RANKERS[name]().fit(
        Parts(folders[40_000]), validation=Parts(tmp_path / "vali") if where == "parts" else validation
    )
    assert_same(own, found)


def test_a_choice_of_queries_is_a_data_set_of_its_own(folders):
    chosen = np.array([3, 9, 4, 7, 60, 20, 21, 22, 23, 80, 5])
    own, parts = lists()[chosen], Parts(folders[40_000])[chosen]
    for name in ("ridge", "smoothrank", "perceptron"):
        assert_same(RANKERS[name]().fit(own), RANKERS[name]().fit(parts))


def test_what_does_not_fit_into_the_memory_limit_is_computed_again(folders, in_memory):
    parts = Parts(folders[40_000], memory_limit=4000)
    for name in ("listnet", "squared pairs"):
        assert_same(in_memory(name), RANKERS[name]().fit(parts))
    assert parts.executor.kept.bytes <= 4000


def test_partial_fit_streams_over_parts(folders):
    own, found = rw.SLAMPerceptron(), rw.SLAMPerceptron()
    assert own.fit(lists()).coef_.tobytes() == found.partial_fit(Parts(folders[1])).coef_.tobytes()


def test_a_scaler_learns_the_same_from_parts(folders, tmp_path):
    for how in ("standard", "minmax", "log", "normal"):
        own, found = rw.Scaler(how).fit(lists()), rw.Scaler(how).fit(Parts(folders[1]))
        learned, same = own.to_state()[1], found.to_state()[1]
        assert [array.tobytes() for array in learned.values()] == [array.tobytes() for array in same.values()]
        scaled = own.transform(lists())
        write_parts(scaled, tmp_path / how, part_bytes=1)
        assert_same(rw.ListNet(solver="lbfgs", alpha=0.1, steps=3).fit(scaled), _listnet(Parts(tmp_path / how)))


def _listnet(parts):
    return rw.ListNet(solver="lbfgs", alpha=0.1, steps=3).fit(parts)


@pytest.mark.parametrize(
    "kind", [one for one in registered().values() if not any(x.runs_on_parts for x in one.examples())]
)
def test_rankers_that_need_everything_in_memory_say_so_by_name(kind, folders):
    ranker = kind.examples()[0]
    with pytest.raises(RankwiseError, match=f"^{ranker.name} does not run on Parts: "):
        ranker.fit(Parts(folders[1]))


def test_the_papers_smoothrank_says_which_protocol_runs_on_parts(folders):
    with pytest.raises(RankwiseError, match="SmoothRank does not run on Parts: protocol='paper' needs"):
        rw.SmoothRank(protocol="paper").fit(Parts(folders[1]))


def test_parts_without_labels_are_refused(tmp_path):
    write_parts(lists().with_labels(None), tmp_path / "lists")
    with pytest.raises(RankwiseError, match="no labels"):
        rw.RidgeRanker().fit(Parts(tmp_path / "lists"))


def test_missing_values_are_named(tmp_path):
    whole = lists()
    X = np.array(whole.X)
    X[int(whole.start[50]), 2] = np.nan
    kept = rw.Queries.from_arrays(X, whole.y, qid=whole.query_of_row, missing="keep")
    write_parts(kept, tmp_path / "lists", part_bytes=1)
    with pytest.raises(RankwiseError, match="query 48 has no finite feature 2, and RidgeRanker"):
        rw.RidgeRanker().fit(Parts(tmp_path / "lists"))


def test_arguments_that_parts_hold_themselves_are_refused(folders):
    parts = Parts(folders[1])
    for wrong in ({"y": [1.0]}, {"qid": [1]}, {"sample_weight": [1.0]}):
        with pytest.raises(RankwiseError, match="Parts hold their own"):
            rw.RidgeRanker().fit(parts, **wrong)
    with pytest.raises(RankwiseError, match="checkpoint= records passes over Parts"):
        rw.RidgeRanker().fit(lists(), checkpoint="somewhere")


# ------------------------------------------------------------------------------------------------------- processes


@pytest.fixture(scope="module")
def processes(folders):
    parts = Parts(folders[40_000], executor="processes", workers=2)
    yield parts
    parts.executor.close()


@pytest.mark.parametrize("name", ["smoothrank", "squared pairs", "trees"])
def test_processes_give_the_bits_of_memory(name, processes, in_memory):
    assert_same(in_memory(name), RANKERS[name]().fit(processes))
    assert len(processes.executor.pids()) == 2


@pytest.mark.parametrize("name", ["listnet", "trees", pytest.param("auto", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.thorough)])
def test_a_worker_killed_in_the_middle_of_a_pass(kills, name, processes, in_memory):
    executor, killed = processes.executor, []
    results = executor.results

    def ending(work, numbers, arguments, n_jobs):
        for place, result in enumerate(results(work, numbers, arguments, n_jobs)):
            if place == 1 and len(killed) < kills and executor.pids():
                killed.append(executor.pids()[len(killed) % len(executor.pids())])
                os.kill(killed[-1], signal.SIGKILL)
            yield result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor, "results", ending)
        assert_same(in_memory(name), RANKERS[name]().fit(processes))
    assert len(killed) == kills
    assert not set(killed) & set(executor.pids())


@pytest.mark.thorough
@pytest.mark.parametrize("workers", [1, 4])
def test_every_ranker_on_processes(workers, folders, in_memory):
    for cut in CUTS:
        parts = Parts(folders[cut], executor="processes", workers=workers)
        for name in RANKERS:
            assert_same(in_memory(name), RANKERS[name]().fit(parts))
        parts.executor.close()


def test_a_loss_that_other_processes_cannot_import_is_named(processes):
    class Local(rw.losses.PairHinge):
        name = "Local"

    loss = replace(rw.losses.PairHinge())
    object.__setattr__(loss, "__class__", Local)
    with pytest.raises(RankwiseError, match="cannot be sent to other processes"):
        rw.LossRanker(loss, alpha=0.1).fit(processes)


def test_executors_are_named(folders):
    with pytest.raises(RankwiseError, match="'threads', 'processes' or a Dask client, got 'magic'"):
        Parts(folders[1], executor="magic")
    with pytest.raises(RankwiseError, match="workers must be a positive integer, got 0"):
        Parts(folders[1]).on("processes", 0)
    with pytest.raises(RankwiseError, match="got 'much'"):
        Parts(folders[1], memory_limit="much")


# ------------------------------------------------------------------------------------------------------- certificates


def test_a_hold_out_in_parts_certifies_as_in_memory(folders, tmp_path):
    model = rw.RidgeRanker(alpha=1.0).fit(Parts(folders[40_000]))
    fresh = lists(17, 80)
    held = rw.Queries.concat([lists()[10:20], fresh, fresh[3:5]], rename=True)  # seen ones, and repeats
    write_parts(held, tmp_path / "held", part_bytes=1)
    own, found = model.certificate(None, held), model.certificate(None, Parts(tmp_path / "held"))
    assert own.to_dict() == found.to_dict()
    assert own.to_dict()["headline"] is not None
    assert any("the features and labels of training queries" in note for note in own.to_dict()["notes"])
    with pytest.raises(RankwiseError, match=r"which this does not take in parts: to_queries\(\) reads all"):
        model.certificate(Parts(folders[40_000]), held)


# ------------------------------------------------------------------------------------------------------- estimates


@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker_on_parts_can_be_estimated(name, folders):
    parts, ranker = Parts(folders[40_000]), RANKERS[name]()
    found = parts.estimate(ranker)
    assert 1 < found.passes <= found.most
    depth = {"trees": 3, "auto": 6}.get(name)
    read = parts.n_documents * 6 * depth if depth else parts.bytes  # a byte per value and level
    assert (found.documents, found.bytes) == (parts.n_documents, read)
    assert found.seconds > 0
    assert "threads are fastest" in str(found)  # a pass of milliseconds
    assert ("passes each" in str(found)) == (depth is not None)
    assert found.passes_of_unit == (1 if depth is None else depth + 2)


def test_a_verbose_fit_logs_one_line_per_pass(folders, caplog):
    with caplog.at_level("INFO", logger="rankwise"):
        rw.ListNet(solver="lbfgs", alpha=0.1, steps=2, verbose=True).fit(Parts(folders[40_000]))
    lines = [one.getMessage() for one in caplog.records if one.getMessage().startswith("pass ")]
    assert [line.split(":")[0] for line in lines] == [f"pass {number}" for number in range(1, len(lines) + 1)]
    assert all("documents in" in line and "rows/s" in line and "MB/s" in line for line in lines)
