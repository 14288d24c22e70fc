"""The results of the quality benchmark from its cells, docs/quality.json, and the blocks of its page."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality import CURVED, MEASURES, file_of, on_maps, rankers
from benchmarks.quality.optional_peers import KNOWN
from benchmarks.quality.peers import BAGGED, PEERS
from benchmarks.quality.sets import SETS
from experiments.pages import write_block
from rankwise._files import writing

DOCS = Path(__file__).parents[2] / "docs"
RESULTS, PAGE = DOCS / "quality.json", DOCS / "quality.md"
LEVEL = 0.95
OURS, CATBOOST = "AutoRanker", "CatBoost YetiRank"
EARLIER = ("earlier AutoRanker", "earlier BoostedRanker")  # their values stay; nothing runs them again
BASELINES = (EARLIER[0], "RidgeCommittee")  # what kernels, maps and networks are compared with
FIRST = (OURS, "BoostedRanker", "RidgeCommittee")  # rows of the tables, before the peers
SHOWN = ("LightGBM lambdarank", "XGBoost rank:ndcg", CATBOOST)  # peers of the first table
PICKED, PICKED_BAGGED, CATBOOST_BAGGED = "the picked peer", "the picked peer, bagged", "bagged CatBoost"
ON_PAGE = (PICKED, CATBOOST_BAGGED)
ENOUGH = 5  # sets on which it was to be better than the picked peer

# ------------------------------------------------------------------------------------------------------------ results


def collect() -> dict[str, Any]:
    """Means, seconds and paired intervals of all cells that are there, beside the stored ones of those that are not."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for one in SETS:
        names = [name for name in (*rankers(), *KNOWN, *EARLIER) if file_of(one, name).exists()]
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
        picked = max(peers, key=lambda name: means[name]["validation"]) if peers else ""
        others = {PICKED: picked, PICKED_BAGGED: f"{picked}, bagged", CATBOOST_BAGGED: f"{CATBOOST}, bagged"}
        new = {role: differences(cells, name) for role, name in others.items() if {OURS, name} <= set(cells)}
        found[one.name] = {
            "title": one.title,
            "training queries": one.queries,
            "test queries": len(next(iter(cells.values()))["values"]["nDCG@10"]),
            "picked": picked,
            "rankers": means,
            "differences": stored.get("differences", {}) | new,  # those need the values of every query
            "against": {other: stored.get("against", {}).get(other, {}) | own.get(other, {}) for other in BASELINES},
        }
    return {one.name: found[one.name] for one in SETS if one.name in found}


def differences(cells: dict[str, Any], peer: str) -> dict[str, dict[str, float]]:
    """The paired difference to a peer by measure, with an interval that is corrected over the sets."""
    found = {}
    for measure in MEASURES:
        one = difference(cells[OURS], cells[peer], measure)
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


def means(
    results: dict[str, Any], names: list[str], measure: str, digits: int = 4, *, by_set: bool = False
) -> list[str]:
    """One row per ranker and one column per set, or the other way round; the best of a set is bold."""
    rows = [["", *(one["title"] for one in results.values())]]
    for name in names:
        row = [_shown(name)]
        for one in results.values():
            shown = [own for own in names if own in one["rankers"]]
            best = max((one["rankers"][own][measure] for own in shown), default=math.nan)
            value = one["rankers"].get(name, {}).get(measure)
            text = "" if value is None else f"{value:.{digits}f}"
            row.append(f"**{text}**" if value is not None and value == best and measure != "seconds" else text)
        rows.append(row)
    first, *others = [list(row) for row in zip(*rows, strict=True)] if by_set else rows
    return table(first, others)


def compared(results: dict[str, Any], *peers: str) -> list[str]:
    """How far AutoRanker is ahead of PICKED, PICKED_BAGGED or CATBOOST_BAGGED; bold where the interval excludes 0."""
    rows = []
    for one in results.values():
        if one["differences"]:
            cells = [_with_reach(one["differences"].get(peer), measure) for peer in peers for measure in MEASURES]
            rows.append([one["title"], f"{one['test queries']:,}", one["picked"], *cells])
    titles = [f"{measure} against {peer}" for peer in peers for measure in MEASURES]
    return table(["", "test queries", "picked peer", *titles], rows)


def _with_reach(found: dict[str, Any] | None, measure: str) -> str:
    if found is None:
        return ""
    one = found[measure]
    text = f"{one['difference']:+.4f} ± {(one['high'] - one['low']) / 2:.4f}"
    return text if one["low"] <= 0 <= one["high"] else f"**{text}**"


def verdicts(results: dict[str, Any], *peers: str) -> list[str]:
    """On which sets the intervals exclude 0, by peer and measure, and whether that is what was aimed at."""
    lines, missed = [], []
    for peer in peers:
        for measure in MEASURES:
            shown = [one for one in results.values() if peer in one["differences"]]
            found = {one["title"]: one["differences"][peer][measure] for one in shown}
            better = [title for title, one in found.items() if one["low"] > 0]
            worse = [title for title, one in found.items() if one["high"] < 0]
            lines.append(
                f"- {measure} against {peer}: `AutoRanker` is better on {_listed(better)}, worse on {_listed(worse)}, "
                f"and no difference can be told on the other {len(found) - len(better) - len(worse)}."
            )
            if worse or (peer == PICKED and len(better) < ENOUGH):
                missed.append(f"{measure} against {peer}")
    return ["", *lines, f"- What was aimed at is {'missed: ' + '; '.join(missed) if missed else 'reached'}."]


def costs(results: dict[str, Any]) -> list[str]:
    """CPU seconds of AutoRanker as multiples of others', over the sets."""
    lines = []
    for other, words in ((CATBOOST, "one fit of CatBoost"), (EARLIER[0], "the earlier `AutoRanker`")):
        ratios = {
            one["title"]: one["rankers"][OURS]["seconds"] / one["rankers"][other]["seconds"]
            for one in results.values()
            if {OURS, other} <= set(one["rankers"])
        }
        if ratios:
            above = [title for title, ratio in ratios.items() if ratio > 1]
            lines.append(
                f"- A fit of `AutoRanker` takes {np.median(list(ratios.values())):.2f} times the CPU of {words}: the "
                f"median of {len(ratios)} sets, from {min(ratios.values()):.2f} to {max(ratios.values()):.2f}. It "
                f"takes more on {_listed(above)}."
            )
    return lines


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
    """The blocks that are made of the results; the sentences stand in the page itself."""
    known = {name for one in results.values() for name in one["rankers"]}
    every = [name for name in (*FIRST, "SmoothRank", *EARLIER, *PEERS, *BAGGED) if name in known]
    shown = [*FIRST, *(name for peer in SHOWN for name in (peer, f"{peer}, bagged"))]
    curved = sorted(filter(is_curved, known))
    others = [name for name in every if name not in shown] + sorted(known - set(every) - set(curved))
    lines = {
        "means": means(results, shown, "nDCG@10", by_set=True),
        "peers": [*compared(results, *ON_PAGE), *verdicts(results, *ON_PAGE)],
        "costs": costs(results),
        "others": means(results, others, "nDCG@10"),
        "AP": means(results, every, "AP"),
        "bagged": compared(results, PICKED_BAGGED),
        "seconds": means(results, every, "seconds", 1),
        "curved": means(results, curved, "nDCG@10"),
        **{f"against {other}": against_baseline(results, curved, other) for other in BASELINES},
        "curved seconds": means(results, curved, "seconds", 1),
    }
    return {name: "\n".join(block).strip("\n") for name, block in lines.items()}


def write() -> None:
    """Write the results, the blocks of the page and the figures."""
    from experiments import quality_figures

    results = collect()
    with writing(RESULTS) as part:
        part.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for name, body in blocks(results).items():
        write_block(PAGE, name, body)
    quality_figures.main()
