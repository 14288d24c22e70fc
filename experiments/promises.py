"""The figure of the front page: what certificates promised, by the number of held-out queries, and what came true.

``python3 run.py python -m experiments.promises`` trains one ranker on simulated queries, certifies it by many separate
sets of held-out queries, and measures it on many future ones. It writes docs/promises.json, from which ``--draw`` draws
docs/figures/promises.png.
"""

import json
import sys
from typing import TYPE_CHECKING, Any

from experiments.pages import DOCS
from rankwise._figures import COLORS, INK, house_style, new_figure, save_png
from rankwise._files import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS, FIGURE = DOCS / "promises.json", DOCS / "figures" / "promises.png"
SIZES = (25, 50, 100, 200, 400, 800)  # held-out queries of a certificate
REPEATS = 40  # certificates of each size, from separate queries
TRAINING, FUTURE = 200, 20_000
MEASURE, DELTA = "nDCG@10", 0.05


def measured() -> dict[str, Any]:
    """The promised value of every certificate, and the mean of the future queries."""
    import rankwise as rw

    held_out = REPEATS * sum(SIZES)
    queries = rw.make_lists(TRAINING + FUTURE + held_out, documents=(5, 30), features=8, random_state=11)
    model = rw.RankSVM(MEASURE, alpha=0.01).fit(queries[:TRAINING])
    truth = rw.evaluate(queries[TRAINING : TRAINING + FUTURE], model, [MEASURE]).mean[MEASURE]
    promised: dict[str, list[float]] = {}
    first = TRAINING + FUTURE
    for size in SIZES:
        own = promised[str(size)] = []
        for _ in range(REPEATS):
            found = model.certificate(holdout=queries[first : first + size], delta=DELTA).headline
            own.append(round(1 - found.value, 6))
            first += size
    return {"measure": MEASURE, "delta": DELTA, "future": FUTURE, "truth": round(truth, 6), "promised": promised}


def broken(found: dict[str, Any]) -> tuple[int, int]:
    """How many certificates promised more than came true, and how many there are."""
    every = [value for values in found["promised"].values() for value in values]
    return sum(value > found["truth"] for value in every), len(every)


def draw(found: dict[str, Any]) -> "Figure":
    """One dot per certificate, and the truth as a line."""
    with house_style():
        figure = new_figure(width=5.2, height=3.1)
        axes = figure.subplots()
        for size, values in found["promised"].items():
            places = [int(size) * 1.012 ** (number - len(values) / 2) for number in range(len(values))]
            colors = [COLORS[1] if value > found["truth"] else COLORS[0] for value in values]
            axes.scatter(places, values, s=5, c=colors, linewidths=0)
        axes.axhline(found["truth"], color=INK, linewidth=1.2)
        label = f"the mean of {found['future']:,} future queries: {found['truth']:.3f}"
        axes.annotate(label, (0.02, found["truth"]), (0, 4), ("axes fraction", "data"), textcoords="offset points")
        sizes = [int(size) for size in found["promised"]]
        axes.set(xscale="log", xlabel="judged queries held out for the certificate", ylabel=found["measure"])
        axes.set_ylim(None, found["truth"] + 0.06)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
        over, every = broken(found)
        axes.set_title(f"{every} certificates: {every - over} lower bounds hold, {over} too high")
    return figure


def main(arguments: list[str]) -> int:
    if arguments != ["--draw"]:
        with writing(NUMBERS) as part:
            part.write_text(json.dumps(measured(), indent=1) + "\n", encoding="utf-8")
    save_png(draw(json.loads(NUMBERS.read_text(encoding="utf-8"))), FIGURE)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
