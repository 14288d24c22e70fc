"""The page of benchmarks, docs/benchmarks.md, and its figure, made of stored results alone.

``python3 run.py bench --render`` writes them again without measuring anything. Quality, the service and data sets in
parts have results and pages of their own.
"""

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.sent import Sent, read_all
from experiments.pages import markdown_table
from rankwise._figures import COLORS, FAINT, INK, house_style, new_figure, save_png
from rankwise._files import writing

DOCS = Path(__file__).parents[1] / "docs"
STORED = DOCS / "benchmarks.json"
PAGE, FIGURE = DOCS / "benchmarks.md", DOCS / "figures" / "benchmarks.png"

GAP = "\N{NO-BREAK SPACE}"  # between a number and its unit, which a narrow cell would divide

Row = dict[str, Any]
Results = dict[str, list[Row]]

# What a reader asks first: benchmark, words of the task, of the way, of the peer, and the words of the table.
SPEED = (
    ("read_letor", "136 features", "2 threads", "XGBoost", "read 200 MB of LETOR text"),
    ("read_letor", "136 features", "2 threads", "scikit-learn", "read 200 MB of LETOR text"),
    ("measure_lists", "nDCG@10 and AP", "evaluate()", "pytrec_eval", "nDCG@10 and AP of 10,000 lists"),
    ("measure_lists", "nDCG@10 and AP", "evaluate()", "ir-measures", "nDCG@10 and AP of 10,000 lists"),
    ("symmetric_trees", "1,200,000 x 136 float32", "processor seconds", "LightGBM", "100 trees on 1,200,000 documents"),
    ("symmetric_trees", "300,000 x 136 float32", "processor seconds", "XGBoost", "100 trees on 300,000 documents"),
    ("symmetric_trees", "300,000 x 136 float32", "processor seconds", "CatBoost", "100 trees on 300,000 documents"),
    ("scorer", "1,000 x 136 float32 by 500", "predict", "LightGBM", "scores of 1,000 documents by 500 trees"),
    ("scorer", "20 x 136 float32 by 500", "Scorer", "LightGBM", "scores of 20 documents by 500 trees"),
    ("tree_scores", " 100 x 136 float32 by 500 trees of 64", "", "LightGBM", "100 documents by 500 trees of 64 leaves"),
    ("tree_scores", "10,000 x 136 float32 by 500 trees of 64", "", "LightGBM", "10,000 documents by the same trees"),
    ("tree_scores", "10,000 x 136 float32 by 500 trees of XG", "", "XGBoost", "10,000 documents by XGBoost's trees"),
    ("tree_scores", "10,000 x 136 float32 by 500 trees of Cat", "", "CatBoost", "10,000 documents by CatBoost's trees"),
    ("ranksvm", "squared hinge", "", "LinearSVC", "RankSVM on 10,000 documents"),
    ("adarank", "nDCG@10, 50 rounds, 33,000", "", "RankLib", "AdaRank, 50 rounds"),
    ("boosting", "RankBoost, 300 rounds on an", "", "RankLib", "RankBoost, 300 rounds"),
    ("listnet", "ListNet on a fold", "L-BFGS", "RankLib", "ListNet to its minimum"),
    ("smooth_ndcg", "300 lists of 120", "1 thread", "plain NumPy", "smooth NDCG and its gradient"),
    ("online", "float64, random labels, 1 thread", "SLAMPerceptron.fit", "X @ w", "2,400 online rounds"),
    ("scorer", "float64, a linear ranker", "", "np.argsort", "rank one list of 200 documents"),
)

COLD = ("evaluate", "read_letor", "RidgeRanker.fit", "SmoothRank.fit", "BoostedRanker.fit", "AutoRanker.fit")
COLD += ("rankwise train",)


def pick(results: Results, name: str, work: str, how: str, peer: str) -> Row:
    """The one row of a benchmark with these words in it; the first where several have them."""
    rows = results.get(name, [])
    found = [row for row in rows if work in row["work"] and how in row["how"] and peer in row["peer"]]
    if not found:
        raise LookupError(f"benchmark {name!r} has no row of {work!r}, {how!r} against {peer!r}")
    return found[0]


# ------------------------------------------------------------------------------------------------------------ targets


def reached(row: Row) -> bool | None:
    """Whether a row meets its target; None where it has none.

    Targets are a ratio (``10 x``, ``at least 0.5 x``), a time (``at most 3 s``) or a slope of times in the length of a
    list (``slope at most 1.25``, which stands in ``how``).
    """
    target = row["target"]
    if target == "-":
        return None
    if found := re.fullmatch(r"(?:at least )?([\d.]+) x", target):
        return bool(row["ratio"] >= float(found[1]))
    if found := re.fullmatch(r"at most ([\d.]+) s", target):
        return bool(row["rankwise_seconds"] <= float(found[1]))
    if found := re.fullmatch(r"slope at most ([\d.]+)", target):
        return float(re.fullmatch(r"slope ([\d.]+)", row["how"])[1]) <= float(found[1])  # type: ignore[index]
    raise ValueError(f"target {target!r} of {row['work']!r} is neither a ratio, a time nor a slope")


def amount(row: Row, whose: str) -> str:
    """Seconds or memory, in the unit that fits."""
    if f"{whose}_mib" in row:
        return f"{row[f'{whose}_mib']:.0f}{GAP}MiB"
    seconds = row[f"{whose}_seconds"]
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f}{GAP}us"
    return f"{seconds:.2f}{GAP}s" if seconds >= 1 else f"{seconds * 1e3:.0f}{GAP}ms"


def times(ratio: float) -> str:
    """A ratio as readers say it: whole above 10."""
    return f"{ratio:.0f}{GAP}x" if ratio >= 10 else f"{ratio:.1f}{GAP}x" if ratio >= 0.95 else f"{ratio:.2f}{GAP}x"


# ----------------------------------------------------------------------------------------------------------- sections


def speed(results: Results) -> str:
    """What rankwise needs beside another tool for the same task."""
    rows = []
    for name, work, how, peer, title in SPEED:
        row = pick(results, name, work, how, peer)
        cells = [title, row["peer"], amount(row, "peer"), amount(row, "rankwise")]
        rows.append([*cells, f"**{times(row['ratio'])}**", row["target"]])
    return markdown_table(["task", "against", "needs", "rankwise needs", "ratio", "target"], rows)


def cold_start(results: Results) -> str:
    """Processor seconds of a first call: compiling, from a warm cache, and with the pack of a wheel."""
    rows = []
    for call in COLD:
        warm, packed = (
            pick(results, "cold", f"first {call} on", how, "the same, compiling") for how in ("warm cache", "pack,")
        )
        cells = [f"`{call}`", amount(packed, "peer"), amount(warm, "rankwise"), amount(packed, "rankwise")]
        rows.append([*cells, packed["target"]])
    titles = ["first call", "compiling", "warm cache", "with a pack", "target with a pack"]
    return markdown_table(titles, rows)


def memory(results: Results) -> str:
    """Every row that counts bytes."""
    rows = [
        [row["work"], amount(row, "rankwise"), row["peer"], amount(row, "peer"), times(row["ratio"]), row["target"]]
        for rows in results.values()
        for row in rows
        if "rankwise_mib" in row
    ]
    return markdown_table(["task", "rankwise needs", "against", "", "ratio", "target"], rows)


def missed(results: Results) -> str:
    """The rows that do not meet their target."""
    rows = [
        [row["work"], row["how"], row["peer"], times(row["ratio"]), amount(row, "rankwise"), row["target"]]
        for rows in results.values()
        for row in rows
        if reached(row) is False
    ]
    return markdown_table(["task", "rankwise", "against", "ratio", "needs", "target"], rows)


def described(where: dict[str, Any]) -> str:
    """The machine and the versions, in a sentence."""
    memory = f" and {where['memory_gib']:.0f} GiB of memory" if "memory_gib" in where else ""
    system = f", {where['system']}" if "system" in where else ""
    versions = [
        f"{name} {value}"
        for name, value in where.items()
        if name not in ("processor", "cores", "memory_gib", "system", "python", "rankwise")
    ]
    return (
        f"{where['processor']} with {where['cores']} cores{memory}{system}; rankwise {where['rankwise']}, "
        f"Python {where['python']}, {', '.join(versions)}"
    )


def machines(sent: list[Sent]) -> str:
    """The results that others sent, beside each other: the ratios of the first table."""
    if not sent:
        return "Nobody has sent theirs yet."
    rows = []
    for one in sent:
        cells = []
        for name, work, how, peer, _ in SPEED:
            try:
                cells.append(times(pick(one.results, name, work, how, peer)["ratio"]))
            except LookupError:
                cells.append("")
        rows.append([f"{one.machine['processor']}, {one.machine['cores']} cores, {one.measured}", *cells])
    titles = ["machine", *(f"{title}: {peer}" for _, _, _, peer, title in SPEED)]
    return markdown_table(titles, rows)


# --------------------------------------------------------------------------------------------------------------- page


def as_markdown(stored: dict[str, Any], sent: list[Sent]) -> str:
    """The page: what matters first, then every row, and how to send results of another machine.

    Parameters
    ----------
    stored : dict
        docs/benchmarks.json.
    sent : list of Sent
        Results of other machines.

    Returns
    -------
    str
        The text of docs/benchmarks.md.
    """
    results = stored["results"]
    judged = [verdict for rows in results.values() for row in rows if (verdict := reached(row)) is not None]
    return PAGE_TEXT.format(
        machine=described(stored["machine"]),
        reached=sum(judged),
        targets=len(judged),
        speed=speed(results),
        alt=alternative(results),
        cold=cold_start(results),
        memory=memory(results),
        missed=missed(results),
        machines=machines(sent),
        every=every_row(results),
    )


def every_row(results: Results) -> str:
    """All rows, one table per benchmark, each in a part that opens."""
    parts = []
    marks = {True: "yes", False: "**no**", None: ""}
    for name, rows in results.items():
        cells = [
            [
                *(row["work"], row["how"], row["peer"], amount(row, "peer"), amount(row, "rankwise")),
                *(f"{row['ratio']:.2f}{GAP}x", row["target"], marks[reached(row)]),
            ]
            for row in rows
        ]
        titles = ["task", "rankwise", "peer", "peer needs", "rankwise needs", "ratio", "target", "reached"]
        parts.append(f":::{{dropdown}} {name}\n\n{markdown_table(titles, cells)}\n\n:::")
    return "\n\n".join(parts)


PAGE_TEXT = """# Benchmarks: speed and memory

How fast, and how much memory: one section each, with the command that measures it. `python3 run.py bench` measures
speed, cold start and memory and writes this page; nothing on it is typed by hand. A ratio is what the peer
needs divided by what rankwise needs: above 1, rankwise needs less. Peers are other tools, the same work without checks,
or a limit that was set before. {reached} of {targets} targets are reached; [the others](#targets-that-are-missed) have
a table of their own, and [every row](#every-row) is there to read.

The machine: {machine}. [Send yours](#send-yours).

Three kinds of results stand with what they are about: [how good is it](quality.md) compares the rankings with those of
LightGBM, XGBoost and CatBoost (`python3 run.py bench quality`), [a service](serve.md#how-much-load-one-process-takes)
has requests per second (`python3 run.py python -m benchmarks.serve`), and [larger than memory](scale.md) has what fits
on data sets in parts cost (`python3 run.py python -m benchmarks.out_of_core`, `python3 run.py python -m
experiments.growth FOLDER`).

## Speed

```{{figure}} figures/benchmarks.png
:alt: {alt}

Ratios of the table below on a logarithmic axis, with a mark at each target; `python3 run.py bench --render` draws it.
```

{speed}

Times of RankLib were recorded before; everything else ran beside rankwise.

```console
$ python3 run.py bench                      # speed, cold start and memory
$ python3 run.py bench read_letor scorer    # some of it
```

## Cold start

Processor seconds of the first call in a fresh process, less those of a second one: imports, loading, and compiling
unless kernels are in the cache or in the pack that a wheel carries ([the first
call](install.md#the-first-call-compiles)). On 200 queries.

{cold}

```console
$ python3 run.py bench cold
```

## Memory

The peak beside the data, or of the process where the task reads a file.

{memory}

```console
$ python3 run.py bench linear_large symmetric_trees read_letor
```

## Targets that are missed

{missed}

## Every row

One part per benchmark; `python3 run.py bench NAME` measures it.

{every}

## Send yours

Ratios depend on processors, memory and versions. Results of other machines are welcome, above all where a ratio is
below 1 or a target is missed. In a checkout, on a machine that does nothing else:

```console
$ python3 run.py bench --save mine.json                    # all of it
$ python3 run.py bench --save mine.json read_letor cold    # or some of it
$ python3 run.py bench --check mine.json                   # whether a file is complete and consistent
```

Rows on OHSUMED and MQ2008 need these sets in the folder that `RANKWISE_DATA` names; without it they are left out, or a
generated set of the same size stands in. The file holds the figures, the processor, the system, the memory and the
versions, and nothing else about you or the machine. Send it with a pull request: `python3 run.py bench --add mine.json`
checks it, puts it into `docs/sent/` and writes this page with it. Or attach it to an issue.

{machines}
"""

# ------------------------------------------------------------------------------------------------------------- figure


def alternative(results: Results) -> str:
    """The figure in words, for those who cannot see it."""
    shown = [(title, pick(results, *words)) for *words, title in SPEED]
    said = "; ".join(f"{title} against {row['peer']} {times(row['ratio'])}" for title, row in shown)
    return f"Bars of how many times as much the peer needs, with a mark at each target. {said}."


def draw(results: Results, path: Path = FIGURE) -> None:
    """Draw the ratios of the table of speed as bars, with their targets."""
    shown = [(title, pick(results, *words)) for *words, title in SPEED][::-1]
    figure = new_figure(7.2, 0.32 * len(shown) + 0.9)
    with house_style():
        axes = figure.subplots()
        places = range(len(shown))
        colors = [COLORS[1] if reached(row) is False else COLORS[0] for _, row in shown]
        ratios = [row["ratio"] for _, row in shown]
        axes.barh(places, [ratio - 1 for ratio in ratios], left=1, height=0.6, color=colors)
        for place, (_, row) in zip(places, shown, strict=True):
            if found := re.fullmatch(r"(?:at least )?([\d.]+) x", row["target"]):
                axes.plot([float(found[1])] * 2, [place - 0.42, place + 0.42], color=INK, linewidth=1.6)
            right = max(row["ratio"], 1.0)
            axes.annotate(times(row["ratio"]), (right, place), (4, 0), textcoords="offset points", va="center")
        axes.axvline(1, color=FAINT, linewidth=1)
        axes.set(xscale="log", xlim=(min(0.2, *ratios), 3 * max(ratios)), yticks=list(places))
        axes.set_yticklabels([f"{title}\nagainst {row['peer']}" for title, row in shown], fontsize=6.5)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} x")
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("peer / rankwise; black marks are targets, orange bars miss theirs")
    save_png(figure, path)


def write() -> None:
    """Write the page and the figure from the stored results."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    with writing(PAGE) as part:
        part.write_text(as_markdown(stored, read_all()), encoding="utf-8")
    draw(stored["results"])
