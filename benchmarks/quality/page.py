"""The results of the quality benchmark from its cells, docs/quality.json, and the page docs/quality.md."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality import CURVED, MEASURES, file_of, on_maps, rankers
from benchmarks.quality.optional_peers import KNOWN
from benchmarks.quality.peers import PEERS
from benchmarks.quality.sets import SETS
from experiments.pages import write_block
from rankwise._files import writing

DOCS = Path(__file__).parents[2] / "docs"
RESULTS, PAGE = DOCS / "quality.json", DOCS / "quality.md"
LEVEL = 0.95
OURS = "AutoRanker"
BASELINES = (OURS, "RidgeCommittee")  # what kernels, maps and networks are compared with
FIRST = (*BASELINES, "BoostedRanker", "SmoothRank")  # rows of the first table, before the peers


# ------------------------------------------------------------------------------------------------------------ results


def collect() -> dict[str, Any]:
    """Means, seconds and paired intervals of all cells that are there, beside the stored ones of those that are not."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for one in SETS:
        names = [name for name in {**rankers(), **KNOWN} if file_of(one, name).exists()]
        cells = {name: json.loads(file_of(one, name).read_text()) for name in names}
        if not cells:
            continue
        means = {
            name: {
                **{measure: float(np.mean(values)) for measure, values in cell["values"].items()},
                "validation": cell["validation"],
                "seconds": cell["seconds"],
            }
            for name, cell in cells.items()
        }
        stored, own = found.get(one.name, {}), against(cells)
        means = stored.get("rankers", {}) | means
        peers = [name for name in PEERS if name in means]
        picked = max(peers, key=lambda name: means[name]["validation"]) if peers else None
        paired = picked in cells and OURS in cells  # a difference needs the values of every query
        found[one.name] = {
            "title": one.title,
            "training queries": one.queries,
            "test queries": len(next(iter(cells.values()))["values"]["nDCG@10"]),
            "picked": picked,
            "rankers": means,
            "differences": differences(cells, picked) if paired else stored.get("differences", {}),
            "against": {other: stored.get("against", {}).get(other, {}) | own.get(other, {}) for other in BASELINES},
        }
    return found


def differences(cells: dict[str, Any], picked: str) -> dict[str, dict[str, float]]:
    """The paired difference to the picked peer by measure, with an interval that is corrected over the sets."""
    found = {}
    for measure in MEASURES:
        one = difference(cells[OURS], cells[picked], measure)
        low, high = interval(one, len(cells[OURS]["values"][measure]), len(SETS))
        found[measure] = {"difference": one["difference"], "low": low, "high": high}
    return found


def against(cells: dict[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """Differences in nDCG@10 of kernels, maps and networks to the baselines, by baseline and ranker.

    Their intervals depend on how many are shown, so that errors are stored in place of ends.
    """
    curved = list(filter(is_curved, cells))
    return {
        other: {name: difference(cells[name], cells[other], "nDCG@10") for name in curved}
        for other in BASELINES
        if other in cells
    }


def difference(one: dict[str, Any], other: dict[str, Any], measure: str) -> dict[str, float]:
    """The mean difference of two cells over the test queries, and its standard error."""
    found = np.array(one["values"][measure]) - np.array(other["values"][measure])
    error = float(np.std(found, ddof=1)) / math.sqrt(len(found))
    return {"difference": float(found.mean()), "error": error}


def interval(found: dict[str, float], queries: int, comparisons: int) -> tuple[float, float]:
    """Student's interval of a difference over so many queries, corrected for so many comparisons (Bonferroni)."""
    from scipy.stats import t

    reach = float(t.ppf(1 - (1 - LEVEL) / 2 / comparisons, queries - 1)) * found["error"]
    return found["difference"] - reach, found["difference"] + reach


def is_curved(name: str) -> bool:
    """Whether a row belongs to kernels, maps, networks, and packages that the developers' environment lacks."""
    return name in CURVED or name in KNOWN or name in on_maps()


def intervals(results: dict[str, Any]) -> dict[tuple[str, str, str], tuple[float, float, float]]:
    """(set, ranker, baseline) -> the difference and its interval, corrected for all of them together."""
    shown = {
        (set_, name, other): found
        for set_, one in results.items()
        for other, own in one["against"].items()
        for name, found in own.items()
    }
    return {
        key: (found["difference"], *interval(found, results[key[0]]["test queries"], len(shown)))
        for key, found in shown.items()
    }


# --------------------------------------------------------------------------------------------------------------- page


def table(titles: list[str], rows: list[list[str]]) -> list[str]:
    """A table of Markdown."""
    return ["| " + " | ".join(cells) + " |" for cells in (titles, ["---"] * len(titles), *rows)]


def means(results: dict[str, Any], names: list[str], measure: str, digits: int = 4) -> list[str]:
    """One row per ranker and one column per set; the best of a set is bold."""
    rows = []
    for name in names:
        row = [_shown(name)]
        for one in results.values():
            shown = [own for own in names if own in one["rankers"]]
            best = max((one["rankers"][own][measure] for own in shown), default=math.nan)
            value = one["rankers"].get(name, {}).get(measure)
            text = "" if value is None else f"{value:.{digits}f}"
            row.append(f"**{text}**" if value is not None and value == best and measure != "seconds" else text)
        rows.append(row)
    return table(["", *(one["title"] for one in results.values())], rows)


def compared(results: dict[str, Any]) -> list[str]:
    """AutoRanker against the peer that the validation parts picked."""
    rows = []
    for one in results.values():
        if not one["differences"]:
            continue
        cells = [
            "{difference:+.4f} [{low:+.4f}, {high:+.4f}]".format(**one["differences"][measure]) for measure in MEASURES
        ]
        rows.append([one["title"], f"{one['test queries']:,}", one["picked"], *cells])
    return table(["", "test queries", "peer", *MEASURES], rows)


def verdicts(results: dict[str, Any]) -> list[str]:
    """On which sets the intervals exclude 0, in a sentence per measure."""
    lines = []
    for measure in MEASURES:
        found = {one["title"]: one["differences"][measure] for one in results.values() if one["differences"]}
        better = [title for title, one in found.items() if one["low"] > 0]
        worse = [title for title, one in found.items() if one["high"] < 0]
        lines.append(
            f"- {measure}: `AutoRanker` is better on {_listed(better)}, worse on {_listed(worse)}, and no difference "
            f"can be told on the other {len(found) - len(better) - len(worse)}."
        )
    return ["", *lines]


def against_baseline(results: dict[str, Any], names: list[str], other: str) -> list[str]:
    """The differences of kernels, maps and networks to a baseline; bold where the interval excludes 0."""
    found, rows = intervals(results), []
    known = {name for _, name, _ in found}
    for name in filter(known.__contains__, names):
        row = [_shown(name)]
        for set_ in results:
            one = found.get((set_, name, other))
            text = "" if one is None else "{:+.4f} [{:+.4f}, {:+.4f}]".format(*one)
            row.append(f"**{text}**" if one is not None and not one[1] <= 0 <= one[2] else text)
        rows.append(row)
    return table(["", *(one["title"] for one in results.values())], rows)


def _shown(name: str) -> str:
    return f"`{name}`" if name.isidentifier() and name not in KNOWN else name


def _listed(titles: list[str]) -> str:
    return f"{len(titles)} ({'; '.join(titles)})" if titles else "none"


def blocks(results: dict[str, Any]) -> dict[str, str]:
    """The blocks of the page that are made of the results; the sentences stand in the page itself."""
    known = {name for one in results.values() for name in one["rankers"]}
    first = [name for name in (*FIRST, *PEERS) if name in known]
    curved = sorted(filter(is_curved, known))
    others = sorted(known - set(first) - set(curved))
    lines = {
        "means": means(results, first, "nDCG@10"),
        "peers": [*compared(results), *verdicts(results)],
        "AP": means(results, first, "AP"),
        "seconds": means(results, first, "seconds", 1),
        "others": means(results, others, "nDCG@10"),
        "curved": means(results, curved, "nDCG@10"),
        **{f"against {other}": against_baseline(results, curved, other) for other in BASELINES},
        "curved seconds": means(results, curved, "seconds", 1),
    }
    return {name: "\n".join(block).strip("\n") for name, block in lines.items()}


def write() -> None:
    """Write the results and the blocks of the page."""
    results = collect()
    with writing(RESULTS) as part:
        part.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for name, body in blocks(results).items():
        write_block(PAGE, name, body)
