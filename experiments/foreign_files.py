"""Damaged model files of other tools: ``python3 run.py python -m experiments.foreign_files``.

Files of LightGBM (text), XGBoost (JSON and UBJSON) and CatBoost (JSON, symmetric and nested trees) are changed at
random: bytes are flipped, files cut, lines and values removed, numbers exchanged, counts made huge, thresholds made
NaN, children made their own ancestors, and values nested deeply. Every file has to be refused in one sentence, or to be
a ranker that scores all documents. Each is read within a limit of memory and time. ``--files 10000`` and ``--seed 0``;
prints what happened, and ends with 1 if anything else did.
"""

import argparse
import json
import resource
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import rankwise as rw
from experiments.foreign_trees import Cell, data_of, train
from rankwise._progress import track
from rankwise.errors import RankwiseError

FILES = 10_000
_SECONDS, _BYTES = 5, 4 << 30  # of one file; of the process, with the boosters that made the models
_HUGE = ["1e400", "-1", "99999999999", "9223372036854775808", "NaN", "nan", "inf", "-Infinity", "0x10", "", "1e308",
         "-0", "2147483647", "4294967296", "1_000", "null", "true", "[]", '"x"', "0.5"]  # fmt: skip
_VALUES: list[Any] = [None, -1, 0, 1, 2, 5, 2**31, 2**40, 2**63, 1e39, 1e308, float("nan"), float("inf"), "x", "", [],
                      {}, True, -0.5, [[[]]], "9" * 400]  # fmt: skip


def good_files() -> dict[str, bytes]:
    """A whole file of every form, with missing values and categories."""
    made = {}
    for name, cell in {
        "model.txt": Cell("LightGBM", "", {"num_leaves": 7, "max_cat_to_onehot": 1}, 4, categories=12),
        "forest.txt": Cell("LightGBM", "", {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}, 3),
        "model.json": Cell("XGBoost", "", {"max_depth": 3, "max_cat_to_onehot": 1}, 4, categories=12),
        "model.ubj": Cell("XGBoost", "", {"max_depth": 3, "max_cat_to_onehot": 1}, 4, categories=12),
        "dart.json": Cell("XGBoost", "", {"max_depth": 3, "booster": "dart", "rate_drop": 0.5}, 3),
        "symmetric.json": Cell("CatBoost", "", {"depth": 3}, 4, categories=12),
        "nested.json": Cell("CatBoost", "", {"depth": 3, "grow_policy": "Lossguide"}, 4, "none", 12),
    }.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            train(cell, *data_of(cell, 0)).save(str(path))
            made[name] = path.read_bytes()
    return made


# ---------------------------------------------------------------------------------------------------------- mutations


def mutated(data: bytes, name: str, random: np.random.Generator) -> tuple[str, bytes]:
    """The name of a mutation, and what it makes of a file; one of four has several."""
    kinds: list[Callable[[bytes, np.random.Generator], bytes]] = [_flip, _cut, _without, _doubled, _number]
    if name.endswith(".txt"):
        kinds += [_line, _line, _exchanged]
    if name.endswith(".json"):
        kinds += [_value, _value, _value, _removed, _nested, _cycle]
    if name.endswith(".ubj"):
        kinds += [_length, _bit, _bit, _bit]
    names = []
    for _ in range(1 + int(random.random() < 0.25) * int(random.integers(1, 4))):
        kind = kinds[int(random.integers(len(kinds)))]
        names.append(kind.__name__.strip("_"))
        try:
            data = kind(data, random)
        except (ValueError, IndexError, KeyError, TypeError, RecursionError):
            data = _flip(data or b" ", random)  # not a text of this form any more
    return "+".join(names), data


def _flip(data: bytes, random: np.random.Generator) -> bytes:
    found = bytearray(data)
    for _ in range(int(random.integers(1, 9))):
        found[int(random.integers(len(found)))] ^= 1 << int(random.integers(8))
    return bytes(found)


def _bit(data: bytes, random: np.random.Generator) -> bytes:
    at = int(random.integers(len(data)))
    return data[:at] + bytes([data[at] ^ 1 << int(random.integers(8))]) + data[at + 1 :]


def _cut(data: bytes, random: np.random.Generator) -> bytes:
    return data[: int(random.integers(len(data)))]


def _without(data: bytes, random: np.random.Generator) -> bytes:
    first = int(random.integers(len(data)))
    return data[:first] + data[first + int(random.integers(1, 200)) :]


def _doubled(data: bytes, random: np.random.Generator) -> bytes:
    first = int(random.integers(len(data)))
    last = first + int(random.integers(1, 2_000))
    return data[:last] + data[first:last] + data[last:]


def _spans(data: bytes, random: np.random.Generator) -> tuple[int, int]:
    """A number in a text: where it begins and ends."""
    begin = int(random.integers(len(data)))
    while begin < len(data) and data[begin : begin + 1] not in b"-0123456789":
        begin += 1
    end = begin
    while end < len(data) and data[end : end + 1] in b"-+.eE0123456789":
        end += 1
    return begin, end


def _number(data: bytes, random: np.random.Generator) -> bytes:
    begin, end = _spans(data, random)
    new = (
        _HUGE[int(random.integers(len(_HUGE)))].encode() if random.random() < 0.6 else str(random.integers(40)).encode()
    )
    return data[:begin] + new + data[end:]


def _exchanged(data: bytes, random: np.random.Generator) -> bytes:
    one, other = sorted((_spans(data, random), _spans(data, random)))
    if one[1] > other[0]:
        return _number(data, random)
    return data[: one[0]] + data[slice(*other)] + data[one[1] : other[0]] + data[slice(*one)] + data[other[1] :]


def _line(data: bytes, random: np.random.Generator) -> bytes:
    lines = data.split(b"\n")
    place = int(random.integers(len(lines)))
    key, mark, words = lines[place].partition(b"=")
    kind = int(random.integers(4))
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines.insert(int(random.integers(len(lines))), lines[place])
    elif mark:
        own = words.split()
        if own:
            own[int(random.integers(len(own)))] = _HUGE[int(random.integers(len(_HUGE)))].encode()
        lines[place] = key + mark + b" ".join(own if kind == 2 else own[:-1])
    return b"\n".join(lines)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every value in JSON."""
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else []
        for key in keys:
            found.append((one, key))
            waiting.append(one[key])
    return found


def _value(data: bytes, random: np.random.Generator) -> bytes:
    whole = json.loads(data)
    places = _places(whole)
    for _ in range(int(random.integers(1, 3))):
        container, key = places[int(random.integers(len(places)))]
        container[key] = _VALUES[int(random.integers(len(_VALUES)))]
    return json.dumps(whole).encode()


def _cycle(data: bytes, random: np.random.Generator) -> bytes:
    """Two values of one list of numbers exchanged: children of XGBoost, leaves and borders of CatBoost."""
    whole = json.loads(data)
    lists = [one[key] for one, key in _places(whole) if isinstance(one[key], list) and len(one[key]) > 1]
    chosen = lists[int(random.integers(len(lists)))]
    one, other = random.choice(len(chosen), size=2, replace=False).tolist()
    chosen[one], chosen[other] = chosen[other], chosen[one]
    return json.dumps(whole).encode()


def _removed(data: bytes, random: np.random.Generator) -> bytes:
    whole = json.loads(data)
    places = _places(whole)
    container, key = places[int(random.integers(len(places)))]
    del container[key]
    return json.dumps(whole).encode()


def _nested(data: bytes, random: np.random.Generator) -> bytes:
    whole = json.loads(data)
    places = _places(whole)
    container, key = places[int(random.integers(len(places)))]
    container[key] = "@"
    deep = int(random.choice([3, 50, 900, 5_000, 100_000]))
    inner = "[" * deep + "]" * deep if random.random() < 0.5 else '{"left":' * deep + "1" + "}" * deep
    return json.dumps(whole).replace('"@"', inner, 1).encode()


def _length(data: bytes, random: np.random.Generator) -> bytes:
    """A length of UBJSON that the file cannot hold, or that is below 0."""
    places = [at for at in range(len(data) - 9) if data[at : at + 4] == b"L\0\0\0"]
    at = places[int(random.integers(len(places)))]
    new = int(random.choice([-1, 0, 1, 1 << 20, 1 << 40, (1 << 63) - 1]))
    return data[: at + 1] + new.to_bytes(8, "big", signed=True) + data[at + 9 :]


# ------------------------------------------------------------------------------------------------------------ reading


def outcome(path: Path, rows: Any) -> str:
    """What reading a file and scoring some rows comes to: "refused", "ranker", or what went wrong."""
    read = {
        ".txt": rw.TreeRanker.from_lightgbm,
        ".json": rw.TreeRanker.from_catboost if path.name in ("symmetric.json", "nested.json") else
        rw.TreeRanker.from_xgboost,
        ".ubj": rw.TreeRanker.from_xgboost,
    }[path.suffix]  # fmt: skip
    try:
        model = read(path)
    except RankwiseError as error:
        text = str(error)
        return "refused" if "\n" not in text and 10 < len(text) < 400 else f"no sentence: {text:.200}"
    except BaseException as error:
        return f"{type(error).__name__}: {error!s:.200}"
    if model.n_features_in_ != rows.shape[1]:
        rows = np.zeros((2, model.n_features_in_)) if model.n_features_in_ < 100_000 else None
    if rows is None:
        return "ranker"
    try:
        scores = model.predict(rows)
        return "ranker" if np.isfinite(scores).all() else "scores that are not finite"
    except BaseException as error:
        return f"{type(error).__name__} while scoring: {error!s:.200}"


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("longer than the limit")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    good = good_files()
    rows = np.random.default_rng(0).normal(size=(50, 6))
    rows[0] = np.nan
    counts: Counter[tuple[str, str]] = Counter()
    wrong = []
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
    signal.signal(signal.SIGALRM, _too_long)
    with tempfile.TemporaryDirectory() as folder:
        for number in track(range(asked.files), "reading"):
            random = np.random.default_rng([asked.seed, number])
            name = list(good)[number % len(good)]
            kind, data = mutated(good[name], name, random)
            path = Path(folder, name)
            path.write_bytes(data)
            signal.alarm(_SECONDS)
            found = outcome(path, rows)
            signal.alarm(0)
            counts[name, found if found in ("refused", "ranker") else "wrong"] += 1
            if found not in ("refused", "ranker"):
                wrong.append(f"file {number} ({name}, {kind}): {found}")
    for name in good:
        print(f"{name}: {counts[name, 'refused']:,} refused, {counts[name, 'ranker']:,} rankers")
    print("\n".join(wrong) or f"{asked.files:,} files: each was refused in one sentence, or is a ranker")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
