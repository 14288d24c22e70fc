"""RidgeCommittee against the SmoothRank of 0.1.0 (``protocol="paper"``), whole default fits in CPU seconds.

Each of the two is fitted twice in this process, and the second fit counts, so that neither compiles. The sets are those
of the folder that RANKWISE_DATA names, the first fold of OHSUMED and MQ2008, and LightGBM's example.
"""

import os
import time
from typing import Any

from benchmarks.clock import row
from benchmarks.quality.sets import SETS

NAMES = ("ohsumed", "mq2008", "lightgbm")


def cpu_seconds(make: Any, fold: Any) -> float:
    """CPU seconds of the second fit."""
    for _ in range(2):
        model, began = make(), time.process_time()
        model.fit(fold.train, validation=fold.validation)
        taken = time.process_time() - began
    return taken


def run() -> list[dict[str, Any]]:
    """A row per set; none without data."""
    import rankwise as rw

    if not os.environ.get("RANKWISE_DATA"):
        return []
    rows = []
    for one in (one for one in SETS if one.name in NAMES):
        fold = next(iter(one.folds()))
        ours = cpu_seconds(lambda: rw.RidgeCommittee("nDCG@10", n_jobs=1), fold)
        former = cpu_seconds(lambda: rw.SmoothRank("nDCG@10", protocol="paper", n_jobs=1), fold)
        work = f"RidgeCommittee, default fit, {one.title}"
        rows.append(row(work, "SmoothRank(protocol='paper'), as in 0.1.0", former, ours, "CPU seconds", "25 x"))
    return rows


if __name__ == "__main__":
    for line in run():
        print(line)
