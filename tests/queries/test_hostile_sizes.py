"""Sizes of queries come from outside: whatever they are, queries cover their rows or one sentence says why not (R1)."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rankwise as rw
from rankwise.errors import DataError, DataWarning, FileFormatError
from rankwise.queries.grouping import by_size
from tests.strategies import at_length

ROOT = Path(__file__).parents[2]
X, Y = np.linspace(0, 1, 120).reshape(60, 2), np.arange(60) % 3


def attacked(seed, count):
    command = [sys.executable, "-m", "tests.queries.hostile_sizes", str(seed), str(count)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_r1_ten_thousand_hostile_sizes_are_taken_or_refused_in_one_sentence():
    count = at_length(10_000, 4)
    run = attacked(1, count)
    assert run.returncode == 0, run.stderr[-2_000:]
    taken, refused = map(int, run.stdout.split())
    assert taken + refused == count
    assert taken > count / 20  # the attack reaches what lies behind the check
    assert refused > count / 2


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2, 6))
def test_r1_hostile_sizes_at_length(seed):
    run = attacked(seed, 100_000)
    assert run.returncode == 0, run.stderr[-2_000:]


@pytest.mark.parametrize(
    "sizes",
    [
        np.array([2**64 - 1, 61], dtype=np.uint64),
        [2**63 - 1, 2**63 - 1, 62],
        np.array([2**63, 2**63, 60], dtype=np.uint64),
        [2**64, 60 - 2**64],
        np.array([200, 116], dtype=np.uint8),
    ],
)
def test_r1_sizes_that_add_up_only_modulo_a_power_of_two_are_refused(sizes):
    with pytest.raises(DataError, match="group"):
        rw.Queries.from_arrays(X, Y, group=sizes)


def test_r1_a_sum_that_wraps_exactly_to_the_number_of_rows_is_refused():
    """Five times 2^62 is 2^62 modulo 2^64, and no size of these is above the number of rows."""
    with pytest.raises(DataError, match="add up to 23,058,430,092,136,939,520"):
        by_size([2**62] * 5, 2**62)


def test_r1_whole_numbers_of_python_are_sizes():
    assert rw.Queries.from_arrays(X, group=np.array([20, 40], dtype=object)).sizes.tolist() == [20, 40]
    assert len(rw.Queries.from_arrays(X[:0], group=[])) == 0


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("999999999999999999\n" * 30, "line 1: a query of 999,999,999,999,999,999 rows, but .* has 60 rows"),
        ("30\n31\n", "add up to 61, but .* has 60 rows"),
        ("30\n-30\n60\n", "line 2: expected the size of a query, got '-30'"),
    ],
)
def test_r1_a_file_of_sizes_is_checked_before_anything_is_added(tmp_path, lines, sentence):
    (tmp_path / "a.txt").write_text("".join(f"{y} 1:{x}\n" for y, x in zip(Y, X[:, 0], strict=True)))
    (tmp_path / "a.txt.query").write_text(lines)
    with pytest.raises(FileFormatError, match=sentence):
        rw.read_letor(tmp_path / "a.txt")


def test_n8_a_size_of_zero_is_kept_with_a_warning(tmp_path):
    with pytest.warns(DataWarning, match="group holds the size 0 at position 0: a query without documents") as seen:
        queries = rw.Queries.from_arrays(X, Y, group=[0, 30, 30])
    assert queries.sizes.tolist() == [0, 30, 30]
    assert seen[0].filename == __file__  # the warning is about the caller's line
    with pytest.warns(DataWarning, match="group holds the size 0 at position 1 and 1 more"):
        rw.evaluate(Y, X[:, 0], ["AP"], group=[30, 0, 0, 30])
    (tmp_path / "a.txt").write_text("1 1:1\n0 1:2\n")
    (tmp_path / "a.txt.group").write_text("0\n2\n")
    with pytest.warns(DataWarning, match=r"a.txt.group holds the size 0 at position 0"):
        rw.read_letor(tmp_path / "a.txt")
