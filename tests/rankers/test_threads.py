"""The same bits on every number of threads: of OpenBLAS and MKL, of OpenMP, and of rankwise's own pool.

A count of threads is fixed before NumPy is imported, so every count is a process of its own, which runs this module and
prints hashes. OpenBLAS does not take more threads than there are cores from its variable; the child sets them itself.
"""

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

import rankwise as rw
from rankwise._kernels import parallel
from rankwise.queries.concat import concat
from rankwise.queries.queries import Queries
from rankwise.rankers._base import LinearRanker, registered
from rankwise.rankers.linear import ridge
from rankwise.rankers.online.learner import OnlineLearner
from tests.strategies import THOROUGH

ROOT = Path(__file__).parents[2]
THREADS = (1, 2, 4) if THOROUGH else (1, 4)


def lists(kind, seed):
    """Long lists, whose products OpenBLAS divides among threads; or so many features that it divides single vectors."""
    rng = np.random.default_rng(seed)
    sizes, features = (rng.integers(1, 60, 25), 64) if kind == "long" else ([9, 2, 6, 7], 10_500)
    X = rng.normal(size=(sum(sizes), features)).astype(np.float32)
    y = np.clip(np.rint(X[:, :4].sum(axis=1) + rng.normal(size=len(X))), 0, 3)
    return Queries.from_arrays(X, y, group=sizes)


def rankers(kind):
    """The variants that all common tests run on, and those that begin with another ranker or descend by L-BFGS.

    Wide lists are for products of long vectors: they leave out stumps on single features, and balls, whose linear
    programmes (no BLAS in them) would take minutes.
    """
    every = [ranker for one in registered().values() for ranker in one.examples()]
    if kind == "wide":
        every = [one for one in every if isinstance(one, LinearRanker) and not one.get_params().get("max_norm")]
    yield from every
    yield rw.ListNet(solver="lbfgs")
    yield rw.RankSVM(prior_coef="ridge", alpha=0.1)


def hashed(*things):
    digest = hashlib.sha256()
    for thing in things:
        array = isinstance(thing, np.ndarray) and thing.dtype != object
        digest.update(f"{thing.shape}{thing.dtype}".encode() + thing.tobytes() if array else repr(thing).encode())
    return digest.hexdigest()[:16]


def without_threads(facts):
    """The same without the numbers of threads that members of a committee were given."""
    if isinstance(facts, dict):
        return {name: without_threads(value) for name, value in facts.items() if name != "n_jobs"}
    return [without_threads(value) for value in facts] if isinstance(facts, (list, tuple)) else facts


def bits_of(model, train, held):
    """Hashes of everything that a fit leaves behind, of scores, and of the certificate."""
    facts, arrays = model._state()
    found = {f"array {name}": hashed(np.asarray(array)) for name, array in arrays.items()}
    found["facts"] = hashed(json.dumps(without_threads(facts), sort_keys=True, default=repr))
    found["scores"] = hashed(model.predict(held), model.score(held))
    found["certificate"] = hashed(model.certificate(train, held).to_json())
    for name in ("history_", "path_"):
        table = getattr(model, name, None)
        if table is not None:
            found[name] = hashed(*(np.asarray(table[column]) for column in table.columns))
    return found


def shorter(given, kind):
    """Settings for fewer rounds, whose programmes take most of the time; the bits of a short search are no others."""
    found = {"max_calls": 40 if kind == "long" else 5} if "max_calls" in given else {}
    if isinstance(given.get("alpha"), tuple):
        found["alpha"] = (1.0, 10.0)
    return found


def bits_of_all(kind, n_jobs):
    train, other, held = (lists(kind, seed) for seed in range(3))
    found = {}
    for ranker in rankers(kind):
        name, ranker = " ".join(repr(ranker).split()), clone(ranker).set_params(n_jobs=n_jobs)
        ranker.set_params(**shorter(ranker.get_params(), kind))
        found[name] = bits_of(ranker.fit(train), train, held)
        if ranker.takes_validation and kind == "long":
            model = clone(ranker).fit(train, validation=other)
            found[f"{name} with validation"] = bits_of(model, train, held)
        if isinstance(ranker, OnlineLearner) and getattr(ranker, "solver", "sgd") == "sgd":
            found[f"{name} in parts"] = bits_of(clone(ranker).partial_fit(train).partial_fit(other), train, held)
    return found


def bits_of_the_rest(kind, n_jobs):
    """What is made of rankers: scaling, measuring, comparing, testing, asking for causes."""
    train, held = lists(kind, 0), lists(kind, 2)
    scaled = rw.Scaler("standard").fit_transform(train)
    model = rw.RidgeRanker(alpha=1.0, n_jobs=n_jobs).fit(scaled)
    one, other = (rw.evaluate(held, held.X[:, column], ["nDCG@5", "AP"], n_jobs=n_jobs) for column in (0, 1))
    pair = {"ridge": rw.RidgeRanker(alpha=1.0), "slam": rw.SLAMPerceptron()}
    found = {
        "scaling": hashed(np.asarray(scaled.X), model.coef_),
        "evaluate": hashed(one.mean, other.mean),
        "compare": hashed(rw.compare(pair, train, ["AP"], folds=3, n_jobs=n_jobs).scores),
        "significance": hashed(repr(rw.significance({"one": one, "other": other}, resamples=1_000))),
        "diagnose": hashed(str(rw.diagnose(train))),
    }
    if kind == "long":
        ridge = rw.RidgeRanker(alpha=1.0).fit(train)
        found["importance"] = hashed(repr(rw.analysis.permutation_importance(ridge, held, n_jobs=n_jobs)))
    return {"everything else": found}


def of_ohsumed(folder, n_jobs):
    """SmoothRank on the first fold, where last bits of the start once decided between .4506 and .4268."""
    parts = [rw.read_letor(Path(folder) / "ohsumed" / f"S{part}.txt.gz") for part in range(1, 6)]
    train, other, held = concat(parts[:3]), parts[3], parts[4]
    model = rw.SmoothRank("nDCG@10", n_jobs=n_jobs).fit(train, validation=other)
    return {"SmoothRank on OHSUMED": bits_of(model, train, held)}


def blas_threads():
    return sorted({library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"})


def child(folder, threads):
    """Print the hashes, under so many threads of everything; for the real lists of a folder where one is named."""
    with threadpool_limits(threads):
        before = blas_threads()
        if folder:
            found = of_ohsumed(folder, threads)
        else:  # few rows make several chunks
            parallel.query_chunks.__defaults__, parallel.CHUNK, ridge._CHUNK = (256,), 256, 256
            found = {kind: bits_of_all(kind, threads) | bits_of_the_rest(kind, threads) for kind in ("long", "wide")}
            found = {f"{kind}: {name}": bits for kind, own in found.items() for name, bits in own.items()}
        after = blas_threads()
    print(json.dumps({"before": before, "after": after, "bits": found}))


def from_child(threads, folder=""):
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, str(threads))}
    command = [sys.executable, "-W", "ignore", "-m", "tests.rankers.test_threads", str(folder), str(threads)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["before"] == [threads], "BLAS does run on that many threads"
    assert found["after"] == [threads], "what the user has set is left as it was"
    return found["bits"]


def assert_the_same_bits(folder=""):
    one = from_child(THREADS[0], folder)  # first, so that kernels are compiled once and found by the others
    with ThreadPoolExecutor(len(THREADS)) as pool:  # side by side: this is the longest test of all
        others = pool.map(lambda threads: from_child(threads, folder), THREADS[1:])
    for threads, other in zip(THREADS[1:], others, strict=True):
        assert one.keys() == other.keys()
        differ = {name: sorted(part for part in one[name] if one[name][part] != other[name].get(part)) for name in one}
        assert {name: parts for name, parts in differ.items() if parts} == {}, f"1 and {threads} threads"


def test_d8_no_bit_of_any_ranker_depends_on_threads():
    assert_the_same_bits()


@pytest.mark.thorough
def test_d8_no_bit_of_a_fold_of_real_lists_depends_on_threads(data_folder):
    assert_the_same_bits(data_folder)


if __name__ == "__main__":
    child(sys.argv[1], int(sys.argv[2]))
