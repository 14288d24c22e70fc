"""Digests of what every ranker computes: a change of the code that should change no result is checked by them.

``python3 run.py python -m experiments.bits --store FILE`` fits the examples of every ranker that the registry finds and
stores digests of the numbers: in memory, with query weights, with document weights, with a validation set, and in
parts of several chunks, wherever the ranker takes them. ``--check FILE`` computes them again, prints every difference
by name and returns 1 if there is one, or 2 if nothing could be compared.

``experiments/bits.json`` holds the digests of one machine and one set of versions, which it names: elsewhere BLAS,
LightGBM and compiled code may round otherwise, and ``--check`` says so instead of comparing.

weights
    The numbers and arrays of numbers among the fitted attributes, by name.
state
    All arrays and sequences of numbers below the fitted attributes, by value alone: histories, ledgers, trees.
scores
    ``predict`` and ``score`` of the training queries.
certificate, export to TARGET
    The digest has two halves, of the numbers and of the whole text, which tell a change of words from one of numbers.

Only names of the public interface are used, so that the same file runs before and after a restructuring.
"""

import argparse
import hashlib
import importlib.metadata
import json
import platform
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite.binding import get_host_cpu_name
from sklearn.base import clone

import rankwise as rw

# Names that may move: here and nowhere else.
Ranker = next(kind for kind in rw.RidgeRanker.__mro__ if kind.__name__ == "Ranker")
registered = sys.modules[Ranker.__module__].registered
write_parts = getattr(rw, "write_parts", None) or rw.io.write_parts
RankwiseError = getattr(rw, "RankwiseError", None) or rw.errors.RankwiseError
# what a fit remembers about its queries and parameters: not a result
RECORDS = {"seen_", "frozen_", "record_"}

_WHERE = "computed by"  # the entry of the file that names machine and versions
_WEIGHTS: dict[str, dict[str, bool]] = {
    "": {},
    ", with query weights": {"query_weights": True},
    ", with document weights": {"document_weights": True},
}
_NOT_FINITE = {"inf", "-inf", "nan"}  # how certificates write what JSON lacks


def digest(*values: bytes | str) -> str:
    """Eight hexadecimal digits."""
    found = hashlib.sha256()
    for value in values:
        data = value.encode() if isinstance(value, str) else value
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()[:8]


def environment() -> dict[str, str]:
    """What bits may depend on: the processor, the interpreter and the versions of the packages."""
    names = {re.split(r"[^\w.-]", one)[0].lower() for one in importlib.metadata.requires("rankwise") or ()}
    installed = {one.metadata["Name"].lower(): one.version for one in importlib.metadata.distributions()}
    versions = {name: installed[name] for name in sorted(names & installed.keys())}
    return {"cpu": f"{platform.system()} {get_host_cpu_name()}", "python": platform.python_version(), **versions}


# ------------------------------------------------------------------------------------------- what is fitted


def make_queries(seed: int, count: int, longest: int, *, query_weights: bool = False, document_weights: bool = False):
    """Judged queries of unequal sizes, some empty, and features of several scales, in float32."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest, count)
    sizes[5], sizes[11:13] = 3 * longest, 0
    total = int(sizes.sum())
    X = (rng.normal(size=(total, 6)) * [1, 30, 0.2, 5, 1, 400] + [0, 2, 0, 0, 0, 50]).astype(np.float32)
    X[:, 4] = X[:, 0] > 0.3
    y = np.clip(np.round(X[:, 0] + 0.4 * X[:, 2] + rng.normal(size=total)), 0, 3)
    return rw.Queries(
        X,
        y,
        np.concatenate([[0], np.cumsum(sizes)]),
        weight=rng.choice([0.0, 0.3, 1.0, 2.5], count) if query_weights else None,
        document_weight=rng.choice([0.1, 1.0, 3.0], total) if document_weights else None,
        feature_names=list("abcdef"),
    )


def cases(folder: Path) -> dict[str, dict[str, Any]]:
    """The data of a fit by name: to learn from, the same in memory, to choose by, and to certify with."""
    found: dict[str, dict[str, Any]] = {}
    validation, holdout = make_queries(3, 30, 20), make_queries(4, 40, 20)
    in_parts = write_parts(holdout, folder / "holdout")
    for name, weights in _WEIGHTS.items():
        few, many = make_queries(1, 60, 20, **weights), make_queries(2, 7_000, 20, **weights)  # a chunk has 65,536 rows
        parts = write_parts(many, folder / str(len(found)))
        found[f"in memory{name}"] = {"train": few, "in_memory": few, "holdout": holdout}
        found[f"in parts{name}"] = {"train": parts, "in_memory": many, "holdout": in_parts}
    found["in memory, with validation"] = {**found["in memory"], "validation": validation}
    return found


def examples() -> Iterator[tuple[str, Any]]:
    """The examples of every ranker, the first by the name of the ranker, others with a number."""
    for name, kind in sorted(registered().items()):
        for i, ranker in enumerate(kind.examples()):
            yield name if i == 0 else f"{name} #{i + 1}", ranker


# ------------------------------------------------------------------------------------------- digests


def is_number(value: Any) -> bool:
    """Whether it is a number, and not a truth value."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def of_array(value: Any) -> str | None:
    """The digest of an array or a sequence of numbers, None for anything else; hashes are unsigned, and left out."""
    if isinstance(value, (list, tuple)) and value and all(map(is_number, value)):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fi":
        return None
    kept = np.ascontiguousarray(value, dtype=np.float64 if value.dtype.kind == "i" else None)
    return digest(f"{kept.dtype} {kept.shape}", kept.tobytes())


def fitted(model: Any) -> dict[str, Any]:
    """What ``fit`` learned, by name."""
    names = [name for name in sorted(vars(model)) if name.endswith("_") and name[0] != "_" and name not in RECORDS]
    return {name: getattr(model, name) for name in names}


def arrays_below(value: Any, seen: set[int]) -> Iterator[str]:
    """The digests of all arrays that a value holds, at any depth."""
    if id(value) in seen:
        return
    seen.add(id(value))
    found = of_array(value)
    inside: Sequence[Any] = ()
    if found is not None:
        yield found
    elif isinstance(value, Mapping):
        inside = list(value.values())
    elif isinstance(value, (list, tuple)):
        inside = value
    elif hasattr(value, "columns"):  # a table
        inside = [value[name] for name in value.columns if name != "seconds"]
    elif type(value).__module__.partition(".")[0] == "rankwise":
        held = fitted(value) if isinstance(value, Ranker) else getattr(value, "__dict__", {})
        inside = list(held.values())
    for one in inside:
        yield from arrays_below(one, seen)


def of_text(text: bytes | str, numbers: Sequence[str]) -> str:
    """The digest of its numbers, and that of all of it."""
    return f"{digest(*numbers)} {digest(text)}"


def leaves(value: Any) -> Iterator[str]:
    """The numbers of a JSON document."""
    if isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from leaves(one)
    elif not isinstance(value, str) or value in _NOT_FINITE:
        yield json.dumps(value)


def of_files(files: Mapping[str, bytes | str]) -> str:
    """The digest of exported files; a binary one is a number as a whole."""
    numbers, whole = list[str](), list[str]()
    for name, content in sorted(files.items()):
        whole += [name, digest(content)]
        numbers += re.findall(r"\d[\w.+-]*", content) if isinstance(content, str) else [digest(content)]
    return of_text("\n".join(whole), numbers)


def digests(ranker: Any, train: Any, in_memory: Any, holdout: Any, validation: Any = None) -> dict[str, str]:
    """The digests of one fit; empty if the ranker does not take such data."""
    try:
        model = clone(ranker).fit(train, validation=validation)
    except RankwiseError:
        return {}
    learned = fitted(model)
    arrays = {name: of_array([value] if is_number(value) else value) for name, value in learned.items()}
    found = {
        "weights": digest(*(f"{name} {one}" for name, one in arrays.items() if one is not None)),
        "state": digest(*sorted(arrays_below(list(learned.values()), set()))),
        "scores": digest(str(of_array(model.predict(train))), float(model.score(train)).hex()),
    }
    text = model.certificate(in_memory, holdout).to_json()
    found["certificate"] = of_text(text, sorted(leaves(json.loads(text))))
    for target in sorted(rw.exports.targets()):
        # not every ranker can be written for every target
        with suppress(RankwiseError):
            found[f"export to {target}"] = of_files(rw.export(model, target).files)
    return found


def with_exports_joined(found: dict[str, str]) -> dict[str, str]:
    """The digests with one of all exports, which is enough where those of the same ranker are told apart elsewhere."""
    halves = zip(*(one.split() for name, one in found.items() if name.startswith("export")), strict=True)
    joined = " ".join(digest(*half) for half in halves)
    return {name: one for name, one in found.items() if not name.startswith("export")} | {"exports": joined}


def compute() -> dict[str, dict[str, str]]:
    """The digests of every example in every case, by name."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = cases(Path(folder))
        for name, ranker in examples():
            for case, used in data.items():
                if one := digests(ranker, **used):
                    found[f"{name}, {case}"] = one if case == "in memory" else with_exports_joined(one)
    return found


def differences(stored: Mapping[str, Mapping[str, str]], found: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Every difference as a sentence; what is new is none."""
    for name, before in stored.items():
        now = found.get(name, {})
        for kind, one in before.items():
            other = now.get(kind)
            missing, differing = ("are missing", "differ") if kind.endswith("s") else ("is missing", "differs")
            if other is None:
                yield f"{name}: {kind} {missing}"
            elif other != one:
                yield f"{name}: {kind} {differing}{' in words only' * (one.split()[0] == other.split()[0])}"


def main() -> int:
    """Store or check."""
    parser = argparse.ArgumentParser(prog="experiments.bits", description=__doc__.splitlines()[0])
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--store", type=Path, metavar="FILE")
    chosen.add_argument("--check", type=Path, metavar="FILE")
    given = parser.parse_args()
    if given.store is not None:
        entries = {_WHERE: environment(), **compute()}
        lines = (f"{json.dumps(name)}: {json.dumps(one)}" for name, one in entries.items())
        given.store.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return 0
    stored = json.loads(given.check.read_text(encoding="utf-8"))
    then, now = stored.pop(_WHERE), environment()
    if then != now:
        names = [name for name in then | now if then.get(name) != now.get(name)]
        other = [f"{name} {then.get(name)} then, {now.get(name)} now" for name in names]
        print(f"nothing was compared: {given.check} is of another machine or other versions: {'; '.join(other)}")
        return 2
    found = compute()
    lines = list(differences(stored, found))
    new = sum(name not in stored for name in found)
    print("\n".join([*lines, f"fits compared: {len(stored)}; differences: {len(lines)}; new fits: {new}"]))
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
