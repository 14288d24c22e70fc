"""Compile on two cores what a demonstration will need: one process compiles one function at a time.

Machine code goes to the disk, where the other process finds it. Where all of it is there this takes a second or two.
"""

import subprocess
import sys
from collections.abc import Sequence

# Rankers that have little in common with the others, and take about as long to compile as all of these.
_APART = ("RankSVM", "RankBoost", "MaxPairRanker", "SLAMRanker")


def compile_for(names: Sequence[str]) -> None:
    """Compare rankers on a handful of tiny lists, some of them in a process of its own."""
    from rankwise._progress import progress

    apart = [name for name in names if name in _APART]
    code = f"from rankwise.cli.demo_compile import learn_tiny; learn_tiny({apart!r})"
    command = [sys.executable, "-c", code]
    with (
        progress("compiling what is not compiled yet"),
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other,
    ):
        try:
            learn_tiny([name for name in names if name not in _APART])
            other.wait()
        finally:
            other.kill()


def learn_tiny(names: Sequence[str]) -> None:
    """Every step of a comparison, on lists that take no time."""
    from rankwise.data.folds import split
    from rankwise.data.synthetic import make_lists
    from rankwise.evaluation.compare import compare

    parts = split(make_lists(15, documents=(2, 6)), (0.6, 0.2, 0.2), random_state=0)
    compare({name: name for name in names}, [tuple(parts)], ("nDCG@10", "AP"), grids={}, n_jobs=1)
