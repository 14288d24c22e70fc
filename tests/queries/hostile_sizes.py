"""Throws sizes of queries that cannot be meant at every entry point; run as a program, so that a crash ends it alone.

``python -m tests.queries.hostile_sizes SEED COUNT`` prints how many were taken and how many were refused. A foreign
exception, or queries that do not cover their rows, end it with a traceback.
"""

import io
import sys
import warnings

import numpy as np

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.rankers.linear.ridge import RidgeRanker

ROWS = 60
LARGE = [2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**70, 10**40]
ODD = [None, True, False, 1.5, 30.0, float("nan"), float("inf"), "30", b"30", "", [30], (), {}, object(), 1j, np.nan]
KINDS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "bool", "object", "U5"]


def sizes_that_add_up(random):
    cuts = np.sort(random.integers(0, ROWS + 1, random.integers(0, 6)))
    return np.diff(np.concatenate([[0], cuts, [ROWS]])).tolist()


def wrapping(random):
    """Sizes whose sum is the number of rows modulo 2^64, or modulo 2^63."""
    modulus = 2 ** int(random.choice([8, 16, 31, 32, 63, 64]))
    some = [int(random.choice(LARGE)) for _ in range(random.integers(1, 4))]
    sizes = [*some, (ROWS - sum(some)) % modulus]
    random.shuffle(sizes)
    return sizes


def hostile(random):
    """Anything that somebody, or a broken file, might give as sizes."""
    way = random.integers(0, 9)
    if way == 0:
        return sizes_that_add_up(random)
    if way == 1:
        sizes = wrapping(random)
        try:
            return np.array(sizes, dtype=str(random.choice(["uint64", "int64", "object"])))
        except OverflowError:
            return sizes
    if way == 2:
        return [int(random.choice([*LARGE, *(-one for one in LARGE), 0, 30])) for _ in range(random.integers(0, 5))]
    if way == 3:
        return [ODD[random.integers(len(ODD))] if random.random() < 0.5 else 30 for _ in range(random.integers(1, 4))]
    if way == 4:
        return ODD[random.integers(1, len(ODD))]
    if way == 5:
        sizes = np.array(sizes_that_add_up(random)).astype(str(random.choice(KINDS)))
        return sizes if random.random() < 0.5 else sizes.reshape(1, -1)
    if way == 6:
        return np.array([30, 30, *random.integers(-200, 200, random.integers(0, 3))])
    if way == 7:
        return np.ma.masked_array(sizes_that_add_up(random), mask=bool(random.random() < 0.5))
    return [sizes_that_add_up(random), sizes_that_add_up(random)]


def lines(sizes):
    """The sizes as the lines of a file beside a text, whatever they are."""
    items = sizes if isinstance(sizes, (list, tuple)) else np.atleast_1d(np.asarray(sizes, dtype=object)).ravel()
    return "".join(f"{item}\n" for item in items).encode()


def covers(queries):
    """Every row belongs to one query, and can be read."""
    assert queries.start[0] == 0
    assert queries.start[-1] == ROWS
    assert (np.diff(queries.start) >= 0).all()
    assert sum(len(query.X) for query in queries) == ROWS


def main(seed, count):
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(ROWS, 2)), random.integers(0, 3, ROWS).astype(float)
    text = "".join(f"{label:g} 1:{a!r} 2:{b!r}\n" for label, (a, b) in zip(y, X.tolist(), strict=True)).encode()
    ranker = RidgeRanker(alpha=1.0)
    entries = {
        "from_arrays": lambda sizes: covers(rw.Queries.from_arrays(X, y, group=sizes)),
        "start": lambda sizes: covers(rw.Queries(X, y, sizes)),
        "rows": lambda sizes: covers(rw.Queries(X, y, [0, 30, ROWS], sizes)),
        "evaluate": lambda sizes: rw.evaluate(y, X[:, 0], ["AP"], group=sizes),
        "side file": lambda sizes: covers(rw.read_letor(io.BytesIO(text), query_file=io.BytesIO(lines(sizes)))),
        "fit": lambda sizes: ranker.fit(X, y, group=sizes),
        "eval_group": lambda sizes: ranker.fit(X, y, group=[30, 30], eval_set=[(X, y)], eval_group=[sizes]),
    }
    names = list(entries)
    taken, refused = 0, 0
    warnings.simplefilter("ignore")
    for number in range(count):
        sizes = hostile(random)
        # learning costs more than refusing: every tenth goes through a fit
        name = names[number % 5] if number % 10 else names[5 + number // 10 % 2]
        sentence = ""
        try:
            entries[name](sizes)
            taken += 1
        except RankwiseError as error:
            refused += 1
            sentence = str(error)
        except BaseException:
            print(f"{name} with {sizes!r}", file=sys.stderr)
            raise
        assert "\n" not in sentence, sentence
    print(taken, refused)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
