"""Small uses of everything public that runs compiled code, by name.

One list serves three purposes: ``python3 run.py pack`` compiles what these calls reach, ``rankwise warm`` makes them so
that a later process finds everything compiled, and a test counts that a process with a pack compiles nothing in any of
them. A workload calls the public interface alone, on a few generated queries: what it reaches is what users reach.

A kernel is compiled for the types that it is called with. The workloads of rankers therefore run on features of float64
and of float32, on queries whose rows are grouped or scattered, and on data that came from arrays and from a file.
"""

import io
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np

import rankwise as rw
from rankwise.errors import MissingExtraError


def workloads() -> dict[str, Callable[[], None]]:
    """Every declared workload.

    Returns
    -------
    workloads : dict of str to callable
        Functions without arguments by name: the name of a public function or ranker, or of a family such as
        ``"losses"``. Each runs alone, in any order, and writes only to a temporary folder.
    """
    from rankwise.rankers._base import registered

    found: dict[str, Callable[[], None]] = {
        "evaluate": _evaluate,
        "read_letor": _read_letor,
        "write_letor": _write_letor,
        "read_table": _read_table,
        **{kind.name: partial(_fit_and_use, kind) for kind in _own(registered)},
        "losses": _losses,
        "permutation losses": _permutation_losses,
        "objective": _objective,
        "Scaler": _scaler,
        "Scorer": _scorer,
        "trees": _trees,
        "rank": _rank,
        "diagnose": _diagnose,
        "compare": _compare,
        "analysis": _analysis,
        "export": _export,
        "streams": _streams,
        "kernel maps": _kernel_maps,
    }
    return {name: partial(_quietly, work) for name, work in found.items()}


def _own(registered: Callable[[], Mapping[str, Any]]) -> list[Any]:
    """The registered classes of this package; those of other packages compile their own code."""
    return [kind for kind in registered().values() if kind.__module__.startswith("rankwise.")]


def _quietly(work: Callable[[], None]) -> None:
    """Run a workload without the warnings that its tiny data cause, as far as the installed packages go."""
    with warnings.catch_warnings(), suppress(MissingExtraError):
        warnings.simplefilter("ignore")
        work()


# ---------------------------------------------------------------------------------------------------------------- data


@cache
def _queries(dtype: str = "float64", scattered: bool = False, weighted: bool = False) -> "rw.Queries":
    """A dozen judged queries; ``scattered`` rows are not grouped by query."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 9, 12)
    X = rng.uniform(-1.0, 1.0, size=(int(sizes.sum()), 3)).astype(dtype)
    X[:, 2] *= 20.0  # outside of [-1, 1], so that features are scaled
    y = np.clip(np.rint(X[:, 0] * 2.0 + rng.normal(size=len(X))), 0.0, 3.0)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(len(X)) if scattered else np.arange(len(X))
    weight = rng.integers(1, 4, len(sizes)).astype(np.float64) if weighted else None
    return rw.Queries.from_arrays(X[order], y[order], qid=qid[order], weight=weight)


@cache
def _weighted_documents(dtype: str = "float64") -> "rw.Queries":
    """The same queries with document weights, for the losses and rankers that take them."""
    queries = _queries(dtype)
    return queries._replace(document_weight=np.random.default_rng(1).uniform(0.5, 2.0, queries.n_documents))


def _forms() -> "list[rw.Queries]":
    """Queries of every form that reaches other compiled code."""
    return [_queries(), _queries("float32"), _queries(scattered=True), _queries("float32", True, True)]


# ------------------------------------------------------------------------------------------------------------ measures


def _evaluate() -> None:
    """Every measure under every rule for ties, with intervals, ranges over ties and other tools' conventions."""
    from rankwise.measures._base import Ties, registered
    from rankwise.measures.conventions import CONVENTIONS

    measures = [kind() @ 3 if kind.needs_cutoff else kind() for kind in _own(registered)]
    for queries in (_queries(), _queries(scattered=True)):
        scores = np.round(queries.X[:, 0], 1)
        for ties in get_args(Ties):
            rw.evaluate(queries, scores, [*measures, "nDCG@3", "ERR@2"], ties=ties).interval()
        _ = rw.evaluate(queries, scores, "AP").tie_range
    labels = np.array([1.0, 0.0, 0.0, 1.0])
    named = rw.Queries.from_arrays(np.zeros((4, 1)), labels, qid=[0, 0, 1, 1], docid=["a", "b", "c", "d"])
    for like in CONVENTIONS:
        rw.evaluate(named, np.ones(4), "nDCG@3", like=like)
    rw.evaluate(labels, labels, "AP", group=[2, 2])
    for measure in measures:
        measure([0.5, 0.5, 0.1], [1, 0, 1])


# --------------------------------------------------------------------------------------------------------------- files

_LETOR = (
    b"2 qid:7 1:0.5 2:1e-3 3:3 # docid = a1\n0 qid:7 1:123456789.123456789 3:.25 # docid = b\n\n1 qid:x 2:NULL # c\n"
)


def _in_folder(work: Callable[..., None]) -> Callable[..., None]:
    """Give a temporary folder to what writes files."""

    def run(*given: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            work(Path(folder), *given)

    return run


@_in_folder
def _read_letor(folder: Path) -> None:
    """Text as a whole and as a stream, as float64 and float32, from a file and from memory, with and without qids."""
    (folder / "text").write_bytes(_LETOR)
    for dtype in ("float64", "float32"):
        for source in (lambda: folder / "text", lambda: io.BytesIO(_LETOR)):
            rw.read_letor(source(), dtype=dtype, missing="min", unjudged="drop")
            list(rw.iter_letor(source(), dtype=dtype, missing="zero", unjudged="drop"))
    plain = _LETOR.replace(b" qid:7", b"").replace(b" qid:x", b"")
    rw.read_letor(io.BytesIO(plain), missing="zero", query_file=io.BytesIO(b"2\n1\n"))
    rw.read_letor(io.BytesIO(_LETOR.replace(b"qid:x", b"qid:8")), missing="zero")
    for broken in (b"1 qid:1 1:a\n", b"1 qid:1 1:1 1:2\n", b"1 qid:1 1:1\r2 qid:1 1:1\n"):
        try:
            rw.read_letor(io.BytesIO(broken))
        except rw.errors.FileFormatError:
            continue


@_in_folder
def _write_letor(folder: Path) -> None:
    """Every form of queries as text, dense and sparse."""
    (folder / "text").write_bytes(_LETOR)
    read = rw.read_letor(folder / "text", missing="zero")
    for queries in (*_forms(), read, read.map_features(lambda X: X.astype("float32"))):
        for sparse in (False, True):
            rw.write_letor(queries, folder / "written", sparse=sparse)


@_in_folder
def _read_table(folder: Path) -> None:
    """A CSV file of judged queries, converted to the package's own format and to text."""
    from rankwise.io.any_file import convert_any

    rw.io.write_table(_queries(), folder / "a.csv")
    rw.read_table(folder / "a.csv")
    for dtype in ("float64", "float32"):
        convert_any(folder / "a.csv", folder / "b.rankwise", dtype=dtype)
        convert_any(folder / "b.rankwise", folder / "b.txt", dtype=dtype)
        convert_any(folder / "b.txt", folder / "c.rankwise", dtype=dtype)
    rw.load(folder / "c.rankwise")


# ------------------------------------------------------------------------------------------------------------- rankers


# Settings that reach other code than the examples that a ranker declares.
_MORE: dict[str, list[dict[str, Any]]] = {
    # numbers of leaves of two bytes, and fewer bins than values
    "BoostedRanker": [{"trees": 2, "patience": None, "depth": 9, "bins": 8}],
    "ListNet": [{"solver": "lbfgs", "alpha": 0.1, "steps": 3}, {"target": "gains", "averaging": "uniform"}],
    "RankSVM": [{"alpha": 0.1, "loss": "squared", "penalty": "l1"}],
    "SmoothRank": [
        {"measure": measure, "alpha": 1.0, "sigmas": (1.0,), "steps": 2} for measure in ("P@3", "RR", "nDCG")
    ],
}


@_in_folder
def _fit_and_use(folder: Path, kind: Any) -> None:
    """Fit the declared examples of a ranker on every form of queries; predict, rank, certify, save and load."""
    from sklearn.base import clone

    _queries().save(folder / "q.rankwise")
    stored = rw.load(folder / "q.rankwise")
    held = _queries(scattered=True)[:6]
    for number, example in enumerate([*kind.examples(), *(kind(**more) for more in _MORE.get(kind.name, ()))]):
        forms = [*_forms(), stored] if number == 0 else _forms()[::3]
        for queries in forms:
            model = clone(example).fit(queries)
            for X in (queries, queries[0]):
                model.predict(X)
            for X in (queries.X, np.asfortranarray(queries.X)):
                with suppress(rw.errors.DataError):  # some rankers need to know the queries of the rows
                    model.predict(X)
            model.rank(queries)
            model.score(queries)
        model.certificate(queries, held)
        if model.takes_validation:
            clone(example).fit(_queries(), validation=held)
        if model.takes_document_weights:
            for dtype in ("float64", "float32"):
                clone(example).fit(_weighted_documents(dtype))
        if hasattr(model, "state_"):
            model.partial_fit(queries)
            model.certificate()
        model.save(folder / "m.rankwise")
        rw.load(folder / "m.rankwise").predict(stored)


# -------------------------------------------------------------------------------------------------------------- losses


def _loss_kinds() -> list[Any]:
    """The classes of losses."""
    from rankwise.losses._base import registered

    return _own(registered)


def _losses() -> None:
    """Every loss in every declared variant: alone on one query, in batch learning and online."""
    for loss in (loss for kind in _loss_kinds() for loss in kind.examples()):
        loss([0.3, 0.1, 0.1, -0.5], [2, 0, 1, 0])
        loss(np.linspace(0.0, 9.0, 400), np.arange(400) % 3)  # long lists take other ways
        if loss.document_weights:
            loss([0.3, 0.1, -0.5], [2, 0, 1], document_weight=[1.0, 2.0, 0.5])
    for kind, queries in product(_loss_kinds(), _forms()):
        if not kind.noisy:
            rw.OnlineRanker(kind.examples()[0], averaging="uniform").fit(queries)
        sums = [loss for loss in kind.examples() if loss.labels_per_term is not None]
        for scale in ("none", "standard") if sums else ():
            model = rw.OnlineRanker(sums[0], feedback_depth=2, scale=scale).fit(queries)
            shown = model.show(queries[0].X)
            model.partial_fit(shown.labeled(np.zeros(len(shown.seen))))
        if kind.convex:
            rw.LossRanker(kind.examples()[0], alpha=0.1).fit(queries)


def _objective() -> None:
    """Derivatives of every loss for a booster, with and without document weights."""
    weight = np.linspace(0.5, 2.0, _queries().n_documents)
    for queries in (*_forms(), _queries().with_document_weight(weight)):
        scores = np.linspace(-1.0, 1.0, queries.n_documents)
        for loss in (loss for kind in _loss_kinds() for loss in kind.examples()):
            rw.boosting.objective(loss, queries)(queries.y, scores)
    rw.boosting.eval_metric("nDCG@3", _queries())(_queries().y, scores)


def _permutation_losses() -> None:
    """The losses over permutations, and the orders that attain them."""
    scores, labels = np.array([0.3, 0.1, 0.2, -0.5]), np.array([2.0, 0.0, 1.0, 0.0])
    for loss in (rw.losses.TypeOne("nDCG@3"), rw.losses.TypeTwo("AP")):
        loss(scores, labels)
    for find in (rw.losses.best_imperfect, rw.losses.worst_perfect):
        find(scores, labels)


# ------------------------------------------------------------------------------------------------- what rankers are for


def _scorer() -> None:
    """One query at a time, by a linear ranker and by a sum of steps."""
    queries = _queries()
    for model in (rw.RidgeRanker(alpha=1.0).fit(queries), rw.RankBoost(rounds=3).fit(queries)):
        scorer = rw.Scorer(model)
        for dtype in ("float64", "float32"):
            X = np.zeros((5, queries.n_features), dtype)
            scorer.rank(X)
            X.flags.writeable = False
            scorer.rank(X)


_STUMP = """tree
version=v4
num_class=1
num_tree_per_iteration=1
max_feature_idx=2

Tree=0
num_leaves=2
split_feature=0
split_gain=1
threshold=0.5
decision_type=8
left_child=-1
right_child=-2
leaf_value=0 1
leaf_count=1 1
internal_count=2

end of trees
"""


def _trees() -> None:
    """Trees with a feature whose sign is given, scores of a sum of trees, and the contributions of its features."""
    from rankwise.rankers.boosting.tree_ensemble import TreeEnsemble

    trees = TreeEnsemble.from_lightgbm(_STUMP)
    for queries in _forms():
        trees.predict(queries.X)
        trees.contributions(queries.X)
    rw.BoostedRanker(trees=2, patience=None, monotone={0: 1}).fit(_queries())


def _rank() -> None:
    """Ranked documents in every text format, with and without document ids."""
    from rankwise.cli.rank_output import Ranked, lines, score_lines

    with_ids = rw.read_letor(io.BytesIO(_LETOR), missing="zero")
    for queries in (*_forms(), with_ids):
        scores = np.linspace(-1e-9, 1e9, queries.n_documents)
        block = Ranked(queries, scores, 0)
        for top in (None, 1):
            lines(block, top, (",", ",", ",", "\n"))
        score_lines(scores)


def _diagnose() -> None:
    """Problems of a set, and queries that two sets share."""
    for queries in _forms():
        rw.diagnose(queries, queries[:5])


def _compare() -> None:
    """Rankers over folds."""
    rankers = {"ridge": rw.RidgeRanker(alpha=1.0), "perceptron": rw.SLAMPerceptron()}
    rw.compare(rankers, _queries(), ["nDCG@3", "AP"], folds=3)


def _analysis() -> None:
    """Where rankers differ: pairs of labels, groups of queries, features."""
    for queries in _forms():
        scores = np.asarray(queries.X[:, 0], np.float64)
        rw.analysis.label_pairs(queries, scores)
        rw.analysis.label_pair_errors(queries, {"a": scores, "b": -scores})
        rw.analysis.queries_by_size(queries)
    model = rw.RidgeRanker(alpha=1.0).fit(_queries())
    rw.analysis.permutation_importance(model, _queries(), repeats=2)


def _export() -> None:
    """A linear ranker and a sum of steps for an engine, with the parity check."""
    queries = _queries()
    for model in (rw.RidgeRanker(alpha=1.0).fit(queries), rw.RankBoost(rounds=3).fit(queries)):
        rw.export(model, "python", sample=queries)


def _scaler() -> None:
    """Normal scores, and thresholds on them."""
    for queries in _forms():
        scaled = rw.Scaler("normal").fit_transform(queries)
    rw.export(rw.RankBoost(rounds=3).fit(scaled), "python", sample=queries)


def _streams() -> None:
    """Synthetic streams, and the three online learners over them."""
    from rankwise.evaluation.simulation import simulate

    simulate(rw.synthetic.separable_stream(20, documents=5, features=3))
    for make in (rw.synthetic.noisy_stream, rw.synthetic.drifting_stream):
        stream = make(20, documents=5, features=3)
        for learner in (rw.SLAMPerceptron(), rw.ListNet()):
            for queries in stream.blocks():
                learner.partial_fit(queries)


def _kernel_maps() -> None:
    """Maps of kernels on their own, and a stream with a comparator in the space of the kernel."""
    maps = rw.features.FourierFeatures(n_features=8), rw.features.KernelPCAMap(), rw.features.KernelPCAMap("poly")
    for map_, queries in product(maps, _forms()):
        map_.fit_transform(queries.X)
    for model in (rw.KernelPerceptron(map=16), rw.KernelPerceptron(budget=8)):
        model.partial_fit(rw.synthetic.kernel_stream(20, documents=4)).certificate()
