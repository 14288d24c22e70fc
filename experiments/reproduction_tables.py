"""The tables of docs/reproduction.md, from the numbers that the experiments have left in docs/*.json."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import (
    annealing,
    boosting_rounds,
    bounds_by_angle,
    cutoffs,
    direct,
    direct_on_map,
    online,
    paper_rows,
    set_facts,
    smoothrank,
)
from experiments.inventory import ITEMS, VERDICTS
from experiments.online_figures import spread
from experiments.pages import markdown_table
from experiments.published import DIRECT_TABLES_2_AND_3, ONLINE_MSLR, SMOOTHRANK_TABLE_1, SMOOTHRANK_TABLE_2

SIGMAS = (64.0, 16.0, 4.0, 1.0, 0.25, 0.0625, 0.015625)  # of thirteen
BASELINES = ("RankSVM", "RankBoost")


def verdicts() -> str:
    """How many items of the inventory there are of each verdict."""
    count = Counter(item.close.partition(":")[0] for item in ITEMS.values())
    return f"The table has {len(ITEMS)} rows: {', '.join(f'{count[verdict]} {verdict}' for verdict in VERDICTS)}."


def inventory() -> str:
    rows = []
    for item in ITEMS.values():
        where = re.sub(r"`([\w/]+\.py)::test_(\w+)`", _in_words, item.where)
        place = f"`experiments.{item.module}`, {where}" if item.module else where
        rows.append([f"{item.paper}, {item.number}", item.shows, place, item.close])
    return markdown_table(["paper, number", "what it is", "where it is here", "how close"], rows)


def _in_words(test: re.Match[str]) -> str:
    """The name of a test as the statement that it is, and its file."""
    return f"tested: {test[2].replace('_', ' ')} (`{test[1]}`)"


def set_table() -> str:
    found = read(set_facts.NUMBERS)
    forms = {"queries": "{:d}", "levels": "{:d}", "features": "{:d}", "documents": "{:.0f}", "relevant": "{:.0f}%"}
    printed = {name: forms[name].format(value) for name, value in SMOOTHRANK_TABLE_1.items()}
    rows = [["OHSUMED, published", *printed.values()]]
    rows += [
        [f"{name.upper()}, here", *(forms[key].format(facts[key]) for key in forms)] for name, facts in found.items()
    ]
    return markdown_table(["", "queries", "levels", "features", "documents per query", "relevant"], rows)


def letor_table() -> str:
    numbers = read(cutoffs.NUMBERS)
    rows = []
    for name, line in numbers["rankers"].items():
        ndcg, ap = SMOOTHRANK_TABLE_2[name]
        low, high = line["interval"]["nDCG@10"]
        cells = [
            name,
            with_published(line["mean"]["nDCG@10"], ndcg),
            f"{low:.3f} to {high:.3f}",
            with_published(line["mean"]["AP"], ap),
        ]
        test = numbers["tests"].get(name)
        against = [f"{test['difference']:+.4f}", f"{test['p']:.2f}, {test['p_corrected']:.2f}"] if test else ["", ""]
        rows.append(cells + against)
    titles = ["ranker", "NDCG@10 (published)", "95%", "MAP (published)", "NDCG@10 minus SmoothRank's", "p, corrected"]
    return markdown_table(titles, rows)


def cut_table() -> str:
    means = read(smoothrank.RESULTS)["ohsumed"]["mean"]
    rows = [
        [
            f"k = {k}",
            *(
                with_published(means[f"SmoothRank k={k}"][f"nDCG@{at}"], value, 4)
                for at, value in zip((1, 5, 10), printed, strict=True)
            ),
        ]
        for k, printed in smoothrank.PAPER_TABLE_3.items()
    ]
    return markdown_table(["trained at", "NDCG@1 (published)", "NDCG@5 (published)", "NDCG@10 (published)"], rows)


def annealing_table() -> str:
    found = read(annealing.NUMBERS)
    other = found["at once"]
    rows = [["start", f"{found['train'][0]:.4f}", f"{found['test'][0]:.4f}", ""]]
    for sigma in SIGMAS:
        at = found["sigma"].index(sigma)
        gain = with_interval(found["gain"][at], found["interval"][at])
        rows.append([sigma_name(sigma), f"{found['train'][at + 1]:.4f}", f"{found['test'][at + 1]:.4f}", gain])
    less = f"{with_interval(other['less annealed'], other['interval'])} against annealed"
    rows.append([f"{sigma_name(SIGMAS[-1])} at once", f"{other['train']:.4f}", f"{other['test']:.4f}", less])
    return markdown_table(["sigma", "training", "test", "test, gain over the start (95%)"], rows)


def sigma_name(sigma: float) -> str:
    return f"{sigma:g}" if sigma >= 1 else f"1/{1 / sigma:g}"


def angle_table() -> str:
    rows = []
    for title, lists in read(bounds_by_angle.NUMBERS)["lists"].items():
        for bound, name in (("type two, pairs", "all pairs, as printed"), ("type two, relevant", "SVMmap's pairs")):
            each = [next(line for line in one["bounds"] if line["bound"] == bound) for one in lists]
            rows.append(
                [
                    title,
                    name,
                    bounds_by_angle.span([one["at 45 degrees"]["type one"] for one in lists], "{:.2f}"),
                    bounds_by_angle.span([one["at 45 degrees"][bound] for one in lists], "{:.2f}"),
                    bounds_by_angle.span([line["tighter"] for line in each], "{:d}"),
                    bounds_by_angle.span([line["degrees"] for line in each], "{:.0f}"),
                ]
            )
    titles = [
        "query",
        "F compares",
        "type one at 45 degrees",
        "type two at 45",
        "tighter at, of 72",
        "smallest at degrees",
    ]
    return markdown_table(titles, rows)


def map_table() -> str:
    rows = []
    for name, line in read(direct_on_map.NUMBERS)["rankers"].items():
        (ap, ndcg), mean = DIRECT_TABLES_2_AND_3[name], line["mean"]
        others = [f"{mean[title]:.4f}" for title in ("nDCG@1", "nDCG@5", "nDCG@10")]
        rows.append([name, with_published(mean["AP"], ap, 4), with_published(mean["nDCG@3"], ndcg, 4), *others])
    titles = ["ranker", "MAP (published)", "NDCG@3 (published)", "NDCG@1", "NDCG@5", "NDCG@10"]
    return markdown_table(titles, rows)


def first_table() -> str:
    """NDCG@1 of the direct methods against the baselines: differences with p-values."""
    tested = {(one["ranker"], one["baseline"]): one for one in read(direct_on_map.NUMBERS)["tests"]}
    rows = []
    for name in DIRECT_TABLES_2_AND_3:
        if name in BASELINES:
            continue
        cells = [name]
        for baseline in BASELINES:
            one = tested.get((name, baseline)) or tested[(baseline, name)]
            sign = 1 if one["ranker"] == name else -1
            cells.append(f"{sign * one['difference']:+.3f} (p = {one['p']:.2f}, {one['p_corrected']:.2f})")
        rows.append(cells)
    return markdown_table(["NDCG@1 of", *(f"minus {name}'s" for name in BASELINES)], rows)


def cost_table() -> str:
    """The paper's words on the time of the direct methods, and the seconds of a fit on a fold, choices included."""
    found = read(direct.RESULTS)["ohsumed"]
    words = {"AdaRank, AP": "low", "PermuRank": "high", "SVMMap": "high"}
    rows = [[name, said, f"{found[name]['seconds']:.1f}"] for name, said in words.items()]
    return markdown_table(["ranker", "time, published", "seconds per fold"], rows)


def rounds_table() -> str:
    rows = []
    for name, found in read(boosting_rounds.NUMBERS).items():
        train, validation = found["train"], found["validation"]
        if "printed" in found:
            pi = np.concatenate([[1.0], 1 - np.array(found["printed"])])  # the factors of Theorem 4, multiplied
            said = (
                f"features: {found['features'][-1]}; factor below 1 in {int((np.diff(pi) < 0).sum())} of {len(train)}"
            )
        else:
            said = f"orders per query: {found['largest'][-1]} at most; {'' if found['converged'] else 'not '}converged"
        rows.append(
            [
                name,
                str(len(train)),
                f"{train[0]:.4f}",
                f"{max(train):.4f} ({int(np.argmax(train)) + 1})",
                f"{train[-1]:.4f}",
                f"{max(validation):.4f} ({int(np.argmax(validation)) + 1})",
                said,
            ]
        )
    titles = ["ranker", "rounds", "first", "best (round)", "last", "best on validation (round)", "at the end"]
    return markdown_table(titles, rows)


def pairs_table() -> str:
    numbers = read(direct_on_map.NUMBERS)
    found = numbers["label_pairs"]
    share = dict(zip(zip(found["pair"], found["ranker"], strict=True), found["share"], strict=True))
    pairs = dict(zip(found["pair"], found["pairs"], strict=True))
    rows = []
    for pair, (difference, low, high) in numbers["fewer inverted"].items():
        inverted = [f"{100 * share[pair, name]:.1f}%" for name in ("AdaRank", "RankBoost")]
        less = f"{100 * difference:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
        rows.append([pair, f"{int(pairs[pair]):,}", *inverted, less])
    titles = ["relevant", "pairs", "AdaRank inverts", "RankBoost inverts", "difference in points (95%)"]
    return markdown_table(titles, rows)


def gains_table() -> str:
    found = read(direct_on_map.NUMBERS)["gains"]
    keys = ("group", "queries", "first", "second", "gain", "low", "high")
    rows = [
        [group, str(queries), f"{second:.4f}", f"{first:.4f}", with_interval(gain, (low, high))]
        for group, queries, first, second, gain, low, high in zip(*(found[key] for key in keys), strict=True)
    ]
    return markdown_table(["pairs per query", "queries", "AdaRank", "RankBoost", "AdaRank's gain in MAP (95%)"], rows)


def methods_table() -> str:
    """Methods that no table of the papers has."""
    return paper_rows.table(read(paper_rows.NUMBERS))


def online_table() -> str:
    """One pass: Algorithms 2 and 3 and ListNet, running measures; what the paper says of MSLR-WEB10K beside them."""
    found = read(online.NUMBERS)["data"]
    # the paper's name -> ours, and the place of its number in the paper's sentence
    rankers = {
        "Algorithm 2": ("SLAMPerceptron, papers' weights, margin 1", 0),
        "Algorithm 3": ("MaxPairPerceptron", None),
        "ListNet": ("ListNet", 1),
    }
    rows = []
    for theirs, (name, place) in rankers.items():
        cells = [theirs]
        for measure, printed in ONLINE_MSLR.items():
            cells += [spread(found[data]["rows"][name][measure]) for data in ("ohsumed", "mq2008")]
            cells.append("" if place is None else f"{printed[place]:g}")
        rows.append(cells)
    titles = ["", "NDCG@10, OHSUMED", "MQ2008", "MSLR, published", "AP, OHSUMED", "MQ2008", "MSLR, published"]
    return markdown_table(titles, rows)


def with_published(ours: float, theirs: float, digits: int = 3) -> str:
    """Our value, and in brackets the printed one, in the digits of the print."""
    return f"{ours:.4f} ({theirs:.{digits}f})"


def with_interval(difference: float, ends: Sequence[float]) -> str:
    return f"{difference:+.4f} ({ends[0]:+.3f} to {ends[1]:+.3f})"


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


BLOCKS: dict[str, Callable[[], str]] = {
    "verdicts": verdicts,
    "inventory": inventory,
    "set": set_table,
    "letor": letor_table,
    "cut": cut_table,
    "annealing": annealing_table,
    "angles": angle_table,
    "map": map_table,
    "first": first_table,
    "cost": cost_table,
    "rounds": rounds_table,
    "pairs": pairs_table,
    "gains": gains_table,
    "methods": methods_table,
    "online": online_table,
}
