"""How the time of every loss grows with the list: ``python3 run.py python -m experiments.loss_costs``.

Writes docs/loss_costs.json (the numbers), docs/figures/loss_costs.png and the table of costs in docs/losses.md;
``--redraw`` makes the figure and the table from the stored numbers, ``--missing`` measures what they lack. A full run
takes about two minutes.

One point is the value and the gradient of one list, on one thread, inside the compiled loop over lists: as many lists
of m documents as make 20,000 documents or take 0.05 s, divided by their number. What a loss prepares once from the
labels (classes, weights, ideal gains) is not counted, because training pays it once for thousands of score vectors.
Scores are standard normal, labels geometric in 0 to 4. Functions of one list that run in NumPy are called as users call
them, checks included.
"""

import json
import math
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.__main__ import machine
from experiments.pages import DOCS, code_pieces, markdown_table, write_block
from rankwise._figures import COLORS, FAINT, house_style, new_figure, save_png
from rankwise._files import writing
from rankwise._progress import track
from rankwise.losses import (
    SLAM,
    GivenSoftmax,
    ListNet,
    Loss,
    MaxPair,
    NDCGHinge,
    PairHinge,
    PropensityHinge,
    SmoothAP,
    SmoothDCG1,
    SmoothNDCG,
    SmoothPrecision,
    SmoothRR,
    SoftRank,
    SoftRankNDCG,
    SVMMapHinge,
    TypeOne,
    TypeTwo,
    TypeTwoBound,
    best_imperfect,
    registered,
    worst_perfect,
)

NUMBERS, FIGURE, PAGE = DOCS / "loss_costs.json", DOCS / "figures" / "loss_costs.png", DOCS / "losses.md"
LENGTHS = tuple(round(10 ** (third / 3)) for third in range(3, 16))  # 10 to 100,000, three a decade
DOCUMENTS = 20_000
ENOUGH = 0.3  # seconds of one call after which longer lists are not tried
FITTED = 10**1.5  # the slope is that of the last decade and a half


@dataclass(frozen=True)
class Case:
    """Something to be timed, with the cost that its documentation states."""

    work: Any
    stated: str
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or repr(self.work)


def stated_cost(loss: Loss) -> str:
    """The first cost in the docstring of a loss."""
    found = re.search(r"O\((?:[^()]|\([^()]*\))*\)", str(type(loss).__doc__))
    return found[0] if found else ""


# the name of a panel -> its curves
FAMILIES: dict[str, tuple[Case, ...]] = {
    "SLAM, worst pair, all pairs": (
        Case(SLAM(), "O(m)"),
        Case(SLAM(weights="ap_sym"), "O(m)"),
        Case(MaxPair(), "O(m)"),
        Case(PairHinge(), "O(m log m)"),
        Case(PairHinge(squared=True), "O(m log m)"),
    ),
    "ListNet and DCG@1": (
        Case(ListNet(), "O(m)"),
        Case(SmoothDCG1(), "O(m)"),
        Case(GivenSoftmax(), "O(m)"),
        Case(PropensityHinge(), "O(m log m)"),
    ),
    "Structured hinges": (
        Case(SVMMapHinge(), "O(m log m)"),
        Case(SVMMapHinge(search="scan"), "O(N1 N0)"),
        Case(NDCGHinge(), "O(m^2)"),
        Case(NDCGHinge(normalized=True), "O(m^3)"),
        Case(NDCGHinge(k=10), "O(k^2 m)"),
        Case(TypeTwoBound(measure="nDCG@2", map="pairs"), "O(m log m)", "TypeTwoBound(measure='nDCG@2', map='pairs')"),
    ),
    "Smoothed NDCG, P and RR": (
        Case(SmoothNDCG(sigma=2.0**-6), "O(m log m)", "SmoothNDCG(sigma=1/64)"),
        Case(SmoothNDCG(), "O(m log m)"),
        Case(SmoothNDCG(sigma=2.0**6), "O(m log m)", "SmoothNDCG(sigma=64)"),
        Case(SmoothNDCG(k=10), "O(m k)"),
        Case(SmoothPrecision(k=10), "as SmoothNDCG"),
        Case(SmoothRR(), "as SmoothNDCG"),
    ),
    "Smooth AP and soft ranks": (
        Case(SmoothAP(), "O(r m)"),
        Case(SmoothAP(form="indicator"), "O(m^2)"),
        Case(SoftRankNDCG(), "O(n m)"),
        Case(SoftRankNDCG(noise="gaussian"), "O(n m)"),
        Case(SoftRank(), "O(m^3)"),
        Case(SoftRank(k=10), "O(n m min(k, m))"),
    ),
    "Orders (values only)": (
        Case(worst_perfect, "O(m log m)", "worst_perfect"),
        Case(best_imperfect, "O(m log m)", "best_imperfect"),
        Case(TypeOne("nDCG"), "that of the measure", "TypeOne('nDCG')"),
        Case(TypeTwo("nDCG", by="oracles"), "O(n log n)", "TypeTwo('nDCG', by='oracles')"),
    ),
}
# Losses without a case of their own join the first panel, with the cost that their docstring states.
_TIMED = {type(case.work) for family in FAMILIES.values() for case in family}
_FIRST = next(iter(FAMILIES))
FAMILIES[_FIRST] += tuple(
    Case(kind.examples()[0], stated_cost(kind.examples()[0]))
    for kind in registered().values()
    if kind not in _TIMED and kind.__module__.startswith("rankwise.")
)


def cases() -> list[Case]:
    """All of them, in the order of the panels."""
    return [case for family in FAMILIES.values() for case in family]


# ------------------------------------------------------------------------------------------------------- measuring


def fastest(work: Callable[[], Any]) -> float:
    """Processor seconds of the fastest of at least three runs, and of as many as fit in 0.1 s.

    On one thread that is the time on an idle machine, and nearly so on a busy one.
    """
    best, spent, runs = math.inf, 0.0, 0
    while runs < 3 or (spent < 0.1 and runs < 50):
        begin = time.process_time()
        work()
        took = time.process_time() - begin
        best, spent, runs = min(best, took), spent + took, runs + 1
    return best


def seconds_of_one_list(work: Any, m: int) -> float:
    """Time of many lists by their number, so that the call itself does not count; of one where one takes long."""
    once = time_lists(work, m, 1)
    lists = int(min(DOCUMENTS / m, 0.05 / once)) if isinstance(work, Loss) else 1
    return time_lists(work, m, lists) if lists > 1 else once


def time_lists(work: Any, m: int, lists: int) -> float:
    from rankwise.losses.compute import PreparedLists, loss_lists

    rng = np.random.default_rng(0)
    labels = np.clip(rng.geometric(0.5, lists * m) - 1, 0, 4).astype(float)
    scores = rng.normal(size=lists * m)
    if not isinstance(work, Loss):
        return fastest(lambda: work(scores, labels))
    prepared = PreparedLists.of(work, labels, np.arange(0, lists * m + 1, m))
    return fastest(lambda: loss_lists(prepared, scores, n_jobs=1)) / lists


def slope(lengths: list[int], seconds: list[float]) -> float:
    """Of log time against log length, over the longest lists."""
    last = [at for at, m in enumerate(lengths) if m * FITTED >= 0.99 * lengths[-1]]
    return float(np.polyfit(np.log([lengths[at] for at in last]), np.log([seconds[at] for at in last]), 1)[0])


def measure(case: Case) -> dict[str, Any]:
    lengths, seconds = [], []
    for m in LENGTHS:
        lengths.append(m)
        seconds.append(seconds_of_one_list(case.work, m))
        if seconds[-1] > ENOUGH:
            break
    return {"name": case.label, "stated": case.stated, "m": lengths, "s": seconds, "slope": slope(lengths, seconds)}


def measure_all(known: dict[str, Any] | None = None) -> dict[str, Any]:
    """All cases; those of ``known`` results are kept."""
    done = {curve["name"]: curve for curves in (known or {"families": {}})["families"].values() for curve in curves}
    every = [(family, case) for family, cases in FAMILIES.items() for case in cases]
    families: dict[str, list[dict[str, Any]]] = {family: [] for family in FAMILIES}
    for family, case in track(every, "measuring"):
        families[family].append(done.get(case.label) or measure(case))
    where = {name: value for name, value in machine().items() if name in ("processor", "python", "numpy", "numba")}
    return {"machine": known["machine"] if known else where, "families": families}


# ------------------------------------------------------------------------------------------------------- showing


def draw(numbers: dict[str, Any]) -> Any:
    """One panel per family, all on the same axes, the slope of every curve in the legend."""
    with house_style():
        figure = new_figure(8.0, 9.4)
        panels = figure.subplots(3, 2, sharex=True, sharey=True)
        for panel, (family, curves) in zip(panels.flat, numbers["families"].items(), strict=True):
            for steep in (1, 2):
                guide = [1e-7 * (m / 10) ** steep for m in LENGTHS]
                panel.plot(LENGTHS, guide, color=FAINT, linewidth=0.7, linestyle=(0, (4, 3)))
                panel.text(1.2e5, guide[-1] / 4, f"slope {steep}", color=FAINT, fontsize=6.5, ha="right", va="top")
            for curve, color, marker in zip(curves, COLORS, "osD^vP*X", strict=False):
                label = f"{curve['slope']:.2f}  {curve['name']}"
                panel.plot(curve["m"], curve["s"], color=color, marker=marker, label=label)
            panel.set(xscale="log", yscale="log", xlim=(8, 1.3e5), ylim=(6e-9, 20), title=family)
            slow = any(s > 1e-2 for curve in curves for m, s in zip(curve["m"], curve["s"], strict=True) if m < 2_000)
            corner = "lower right" if slow else "upper left"  # where no curve runs
            panel.legend(loc=corner, title="slope", alignment="left", title_fontsize=7, borderaxespad=0.2)
        for panel in panels[:, 0]:
            panel.set_ylabel("seconds for one query")
        for panel in panels[-1]:
            panel.set_xlabel("documents, m")
    return figure


def table(numbers: dict[str, Any]) -> str:
    shown = (100, 1_000, 10_000, 100_000)
    rows = []
    for curves in numbers["families"].values():
        for curve in curves:
            took = dict(zip(curve["m"], curve["s"], strict=True))
            times = [_time(took[m]) if m in took else "" for m in shown]
            rows.append([code_pieces(curve["name"]), curve["stated"], f"{curve['slope']:.2f}", *times])
    return markdown_table(["loss", "stated", "slope", *(f"m = {m:,}" for m in shown)], rows)


def _time(seconds: float) -> str:
    unit, size = ("s", 1.0) if seconds >= 0.995 else ("ms", 1e-3) if seconds >= 0.995e-3 else ("us", 1e-6)
    return (
        f"{seconds / size:#.2g} {unit}".replace(". ", " ") if seconds < 99.5 * size else f"{seconds / size:.0f} {unit}"
    )


def block(numbers: dict[str, Any]) -> str:
    """The part of the page that is written here."""
    where = ", ".join(f"{name} {value}" for name, value in numbers["machine"].items())
    return f"{table(numbers)}\n\nMeasured on: {where}; one thread."


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--missing"], ["--redraw"]):
        print(f"--missing and --redraw are the only arguments: found {' '.join(arguments)}", file=sys.stderr)
        return 2
    if arguments != ["--redraw"]:
        known = json.loads(NUMBERS.read_text(encoding="utf-8")) if arguments else None
        with writing(NUMBERS) as part:
            part.write_text(json.dumps(measure_all(known), indent=1) + "\n", encoding="utf-8")
    numbers = json.loads(NUMBERS.read_text(encoding="utf-8"))
    save_png(draw(numbers), FIGURE)
    write_block(PAGE, "costs", block(numbers))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
