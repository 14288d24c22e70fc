"""Every text gives the judged lists that the plain reader gives, or a `RankwiseError`: no crash, no hang, no guess."""

import contextlib
import random
import re
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.io.letor import read as letor_read
from rankwise.io.letor.read import read_letor
from rankwise.io.letor.stream import iter_letor
from tests.io import reference_letor

pytestmark = pytest.mark.filterwarnings("ignore:.*Windows-1252:rankwise.errors.DataWarning")

WIDEST = 3_000  # the plain reader makes lists of lists
OTHER_KINDS = (b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")  # gzip, UTF-16, UTF-32

NUMBERS = [
    "0", "1", "2", "-1", "3.5", "0.056537", "-0", "1e400", "1e-400", "-1e3", "NULL", "nan", "inf", "-Infinity", "+7",
    ".5", "5.", ".", "", "e5", "1e", "1e+", "1_0", "0x1", "12345678", "1234567.1234567", "12345678.12345678",
    "9007199254740993", "0.1000000000000000055511151231257827", "2.4703282292062327e-324",
    "179769313486231580793728971405301e276", "1" * 30, "0." + "0" * 30 + "1", "1e-5", "4.9e-324", "--1", "1.2.3", "1:2",
    "9" * 19 + "." + "9" * 19, "0000000000000000000001", "1e0000000000001", "8e99999999999999999999",
]  # fmt: skip
QIDS = [
    "1",
    "2",
    "3",
    "007",
    "-4",
    "-0",
    "+1",
    "a",
    "q:1",
    "",
    "9223372036854775807",
    "9223372036854775808",
    "é",
    "\udcff",
]
BLANKS = [" ", " ", " ", " ", "\t", "  ", " \t ", "\r", "\v"]
ENDS = ["\n", "\n", "\n", "\r\n", "\n\n", " \n", "\n#\n", "\n  # all comment\n", ""]
COMMENTS = [
    "",
    "",
    "#",
    "#d1",
    "# d2 x",
    "#docid = GX0-1 inc = 1",
    "# a docid=b",
    "#docid =",
    "#docid",
    "# xdocid = 3",
    "#docid = #",
]
NOISE = [b"\0", b"#", b":", b" ", b"\n", b"\r", b"qid:", b"-", b"\xff", b"9", b"e", b".", b"\xef\xbb\xbf", b"0:1 "]


@pytest.fixture(autouse=True, scope="module")
def little_memory():
    """Ids that ask for more than 64 MiB are refused: nothing here shall fill the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(letor_read, "available_memory", lambda: 1 << 26)
        yield


def make_text(rng: random.Random) -> bytes:
    """A text that is nearly right as a rule, so that all of the reader is reached."""
    text = "\ufeff" if rng.random() < 0.05 else ""
    honest = rng.random() < 0.6
    first_id = rng.random() < 0.2
    sparse = rng.random() < 0.3
    with_qid = rng.random() < 0.95
    for _ in range(rng.randrange(6)):
        text += rng.choice(["0", "1", "2", "4"]) if honest or rng.random() < 0.7 else rng.choice(NUMBERS)
        if with_qid if honest else rng.random() < 0.9:
            text += rng.choice(BLANKS) + "qid:" + rng.choice(QIDS[:3] if honest else QIDS)
        ids = [0 if first_id else 1]
        for _ in range(rng.choice([0, 1, 3, 12, 40])):
            ids.append(ids[-1] + (rng.randrange(1, 4) if sparse else 1))
        if not honest and rng.random() < 0.3:
            rng.shuffle(ids)
        if not honest and rng.random() < 0.1:
            ids.append(rng.choice([ids[0], 0, 2_000, 10**9, 10**11, 10**20]))
        for identity in ids:
            value = f"{rng.random():.6f}" if rng.random() < 0.7 else rng.choice(NUMBERS[:7] if honest else NUMBERS)
            text += (" " if honest else rng.choice(BLANKS)) + f"{identity}:{value}"
        text += rng.choice(COMMENTS) if rng.random() < 0.3 else ""
        text += rng.choice(ENDS)
    data = text.encode("utf-8", "surrogateescape")
    while not honest and rng.random() < 0.4:
        place = rng.randrange(len(data) + 1)
        data = data[:place] + rng.choice(NOISE) + data[place + rng.randrange(3) :]
    return data


def make_options(rng: random.Random) -> dict[str, Any]:
    return {
        "missing": rng.choice(["error", "zero", "min"]),
        "unjudged": rng.choice(["error", "drop", "zero"]),
        "zero_based": rng.choice(["auto", "auto", True, False]),
        "n_features": rng.choice([None, None, None, 3, 50]),
    }


class Dripping:
    """A stream that gives a few bytes at a time and cannot seek."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self._size = data, size

    def read(self, size: int) -> bytes:
        block, self._data = self._data[: min(size, self._size)], self._data[min(size, self._size) :]
        return block


def check(data: bytes, options: dict[str, Any], block: int = 1 << 20) -> None:
    """Read in both ways, and compare with the plain reader."""
    if data.startswith(OTHER_KINDS) or too_wide(data, options):
        with contextlib.suppress(RankwiseError):
            read_letor(Dripping(data, block), **options)
        return
    try:
        expected = reference_letor.read(data, **options)
    except reference_letor.RefusedError as refusal:
        line = refusal.line
        expected = None
    if expected is None:
        with pytest.raises(RankwiseError) as caught:
            read_letor(Dripping(data, block), **options)
        # where a width is given, an id 0 further down decides whether an id equal to it is a problem
        depends = options["zero_based"] == "auto" and options["n_features"] is not None
        binary = "expected text" in str(caught.value)
        assert line is None or depends or binary or f"line {line}," in str(caught.value), str(caught.value)
        return
    n_jobs = 1 + len(data) % 2
    queries = read_letor(Dripping(data, block), **options, n_jobs=n_jobs)
    assert_same(queries, expected)
    together = [qid for row, qid in enumerate(expected.qid) if row == 0 or expected.qid[row - 1] != qid]
    if len(set(together)) == len(together):
        known = {"n_features": queries.n_features or None, "zero_based": expected.base == 0}
        parts = list(iter_letor(Dripping(data, block), rows=1, **{**options, **known}, n_jobs=1))
        assert np.array_equal(np.concatenate([part.X for part in parts]), queries.X)
        assert [str(name) for part in parts for name in part.names()] == [str(name) for name in queries.names()]


def too_wide(data: bytes, options: dict[str, Any]) -> bool:
    """Whether an id asks for more memory than tests should touch."""
    return options["n_features"] is None and any(
        int(found) > WIDEST for found in re.findall(rb"(?<![0-9])([0-9]{4,}):", data)
    )


def assert_same(queries: Any, expected: reference_letor.Lists) -> None:
    assert queries.X.tobytes() == np.array(expected.X, dtype=float).reshape(len(expected.y), -1).tobytes()
    assert queries.y.tobytes() == np.array(expected.y).tobytes()
    assert [queries.names()[query] for query in queries.query_of_row] == expected.qid
    assert (None if queries.docid is None else list(queries.docid)) == expected.docid


def fuzz(count: int, seconds: float, seed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    end = time.monotonic() + seconds
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        monkeypatch.setattr(letor_read, "RANGE", rng.choice([1, 40, 200, 1 << 21]))
        data, options = make_text(rng), make_options(rng)
        try:
            check(data, options, rng.choice([7, 100, 1 << 20]))
        except BaseException:
            print(f"seed {seed}/{number}: {data!r} with {options}")
            raise
        if time.monotonic() > end:
            return number + 1
    return count


def test_texts_that_are_nearly_right(monkeypatch):
    assert fuzz(2_500, 60, seed=1, monkeypatch=monkeypatch) > 100


@pytest.mark.thorough
def test_half_a_million_texts_or_ten_minutes(monkeypatch):
    assert fuzz(500_000, 600, seed=random.SystemRandom().randrange(2**32), monkeypatch=monkeypatch) > 10_000


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes(data):
    check(data, {"missing": "error", "unjudged": "error", "zero_based": "auto", "n_features": None})


LETTERS = st.sampled_from([b"1", b"0", b"9", b" ", b":", b"qid:", b"\n", b"#", b".", b"-", b"e", b"\t", b"1:2", b"a"])


@settings(max_examples=300)
@given(st.lists(LETTERS, max_size=60).map(b"".join))
def test_any_letters_of_the_format(data):
    check(data, {"missing": "zero", "unjudged": "zero", "zero_based": "auto", "n_features": None})
