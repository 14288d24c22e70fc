"""Everything on the pages that is made of stored results: ``python3 run.py docs --write`` and ``docs --check``.

Two forms stand in the Markdown sources, both invisible on a rendered page. A block is a table or a paragraph between
two comments that name it::

    <!-- gains: written by experiments/hybrid.py -->

    | ... |

    <!-- end of gains -->

A number inside a sentence stands between ``<!-- n: NAME -->`` and ``<!-- /n -->``, where NAME is a key of ``NUMBERS``.
Sentences are free: nothing looks at the words around a block or a number.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import page as benchmarks_page
from benchmarks import serve
from benchmarks.quality import page as quality_page
from benchmarks.sent import read_all
from experiments import (
    beyond_memory,
    boosted_annealing,
    boosted_categories,
    boosted_growth,
    bounds_by_angle,
    certificates,
    clicks,
    committee,
    coverage,
    cutoff_guarantees,
    direct,
    engines,
    exported,
    foreign_trees,
    gate,
    growth,
    holdout_widths,
    hybrid,
    kernels,
    loss_costs,
    loss_facts,
    neural,
    online,
    online_averaging,
    reproduction_tables,
    scopes,
    serve_guarantees,
    smoothrank,
    sql_trees,
    stack,
    stopping,
    top_k_feedback,
    trees,
)
from experiments.coverage_page import count_guarantees
from experiments.pages import DOCS, read_block, write_block
from rankwise._files import writing
from rankwise.guarantees import Certificate

ROOT = DOCS.parent
BLOCK = re.compile(r"^<!-- ([\w ]+): ", re.MULTILINE)
NUMBER = re.compile(r"(<!-- n: (\S+) -->)(.*?)(<!-- /n -->)", re.DOTALL)


@cache
def stored(name: str) -> Any:
    """The results that an experiment or the benchmarks left in docs/."""
    return json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8"))


# ------------------------------------------------------------------------------------------------------------- blocks


def blocks() -> dict[str, Mapping[str, str]]:
    """Page -> name of a block -> its text, as the stored results give it."""
    shown = {name: Certificate.from_dict(one) for name, one in stored("certificates").items()}
    results = stored("direct_results")
    return {
        "auto_ranker.md": stack.blocks(stored("stack")),
        "boosting.md": {
            **boosted_annealing.blocks(stored("boosted_annealing")),
            **boosted_growth.blocks(stored("boosted_growth")),
            "categories": boosted_categories.table(stored("boosted_categories")),
        },
        "bounds_holdout.md": {
            "ohsumed": holdout_widths.ohsumed_table(stored("holdout_widths")),
            "coins": holdout_widths.coins_table(stored("holdout_widths")),
        },
        "choose_ranker.md": {"trees": trees.table(stored("trees_results"))},
        "clicks.md": {name: part(stored("clicks")) for name, part in clicks.PARTS.items()},
        "coverage.md": {
            **coverage.tables(stored("coverage")),
            **gate.coverage_blocks(stored("gate")),
            "cutoffs": cutoff_guarantees.coverage_table(stored("cutoff_guarantees")),
        },
        "cutoffs.md": {"cutoffs": cutoff_guarantees.table(stored("cutoff_guarantees"))},
        "direct.md": {
            "ohsumed": direct.table(results["ohsumed"], "ohsumed"),
            "mq2008": direct.table(results["mq2008"], "mq2008"),
            "svm_rank": direct.svm_rank_table(results["svm_rank"]),
            "angles": bounds_by_angle.table(stored("bounds_by_angle")),
            **smoothrank.tables(stored("smoothrank_results")),
            "grid": smoothrank.grid_table(stored("smoothrank_results")["grid"]["halves"]),
            "stopping": stopping.table(stored("stopping")),
            "defaults": committee.table(stored("committee_results")),
        },
        "guarantees.md": {
            "scopes": scopes.table(),
            "certificates": certificates.table(shown),
            "fits": certificates.table_of_fits(shown),
            "one certificate": f"```text\n{shown['SVMMap']}\n```",
        },
        "hybrid.md": {
            "gains": hybrid.gains_table(stored("hybrid_results")),
            "parity": hybrid.parity_table(stored("hybrid_results")),
        },
        "losses.md": {
            "facts": loss_facts.words_table(),
            "constants": loss_facts.constants_table(),
            "costs": loss_costs.block(stored("loss_costs")),
        },
        "migrate.md": {"foreign trees": foreign_trees.table(stored("foreign_trees"))},
        "neural.md": {
            "results": neural.table(stored("neural_results")),
            **{name: table(stored("kernels")[name]) for name, table in kernels.TABLES.items()},
        },
        "online.md": {
            "averaging": online_averaging.table(stored("online_averaging")),
            **{
                name: table
                for part, tables in online.TABLES.items()
                for name, table in tables(stored("online_results")[part]).items()
            },
            **top_k_feedback.blocks(stored("top_k_feedback")),
        },
        "production.md": {
            "exported": exported.rankers_table(stored("exported_results")),
            "ridge": exported.ridge_table(stored("exported_results")),
            "ensembles": exported.trees_table(stored("exported_results")),
            "stacks": exported.stacks_table(stored("exported_results")),
            "engines": engines.table(stored("engines")),
            "sql trees": sql_trees.table(stored("sql_trees")),
        },
        "quality.md": quality_page.blocks(stored("quality")),
        "reproduction.md": {name: block() for name, block in reproduction_tables.BLOCKS.items()},
        "scale.md": {
            **growth.blocks(stored("growth"), stored("out_of_core"), stored("convert_parts"), stored("parted_trees")),
            **beyond_memory.blocks(stored("beyond_memory")),
        },
        "serve.md": {
            "splits": serve_guarantees.as_table(stored("serve_guarantees")),
            "loads": serve.as_table(stored("serve_results")),
        },
        "ship.md": gate.blocks(stored("gate")),
    }


def whole_pages() -> dict[Path, str]:
    """The pages that hold hardly more than tables."""
    return {benchmarks_page.PAGE: benchmarks_page.as_markdown(stored("benchmarks"), read_all())}


# ------------------------------------------------------------------------------------------------ numbers in sentences


def benchmark(name: str, work: str, how: str = "", peer: str = "") -> dict[str, Any]:
    """The first row of a benchmark with these words in it."""
    return benchmarks_page.pick(stored("benchmarks")["results"], name, work, how, peer)


def mean_online(data: str, ranker: str) -> float:
    """The mean running nDCG@10 of one pass."""
    return float(np.mean(stored("online_results")["data"][data]["rows"][ranker]["nDCG@10"]))


def gain_of_curved_rankers(least: bool) -> float:
    """The least or largest gain of landmarks and NeuralRanker over RidgeCommittee where features interact."""
    found = quality_page.intervals(stored("quality"))
    names = ("RidgeRanker on 200 landmarks", "SmoothRank on 200 landmarks", "NeuralRanker")
    sets = [f"interactions-{count}" for count in (200, 1_000, 5_000)]
    gains = [found[one, name, "RidgeCommittee"][0] for one in sets for name in names]
    return min(gains) if least else max(gains)


def gain_of_normal_scores(name: str, other: str) -> float:
    """What the committee gains on average over one set with normal scores of 255 knots, against other features."""
    forms = stored("normal_scores")[name]
    return float(np.mean(forms["knots"]) - np.mean(forms[other]))


def of_foreign_trees(name: str) -> str:
    """A number of the comparison with trees of other tools."""
    return foreign_trees.numbers(stored("foreign_trees"))[name]


NUMBERS: dict[str, Callable[[], str]] = {
    **{f"foreign-trees-{name}": partial(of_foreign_trees, name) for name in foreign_trees.NUMBERS},
    "adarank-seconds": lambda: f"{benchmark('adarank', 'nDCG@10, 50 rounds, 33,000 x 136')['rankwise_seconds']:.1f}",
    "smooth-gradient-seconds": lambda: (
        f"{benchmark('smoothrank', 'nDCG@50 and its gradient, 720,000 x 136', 'one pass')['rankwise_seconds']:.2f}"
    ),
    "online-ohsumed-listnet": lambda: f"{mean_online('ohsumed', 'ListNet'):.3f}",
    "online-ohsumed-maxpair": lambda: f"{mean_online('ohsumed', 'MaxPairPerceptron'):.3f}",
    "online-ohsumed-slam": lambda: f"{mean_online('ohsumed', 'SLAMPerceptron'):.3f}",
    "curved-gain-least": lambda: f"{gain_of_curved_rankers(least=True):.3f}",
    "curved-gain-most": lambda: f"{gain_of_curved_rankers(least=False):.3f}",
    "hybrid-intervals-inside": lambda: str(stored("hybrid_results")["intervals"]["inside"]),
    "hybrid-intervals-width": lambda: f"{stored('hybrid_results')['intervals']['width']:.2f}",
    "clicks-certified-1000": lambda: f"{100 * stored('clicks')['power']['1000 0.1']['certified']:.0f}",
    "clicks-null-decided": lambda: str(stored("clicks")["null"]["decided"]),
    "coverage-guarantees": lambda: str(count_guarantees(stored("coverage"))),
    "normal-loss": lambda: f"{max(abs(gain_of_normal_scores(name, 'tables')) for name in stored('normal_scores')):.4f}",
    "normal-gain-ohsumed": lambda: f"{gain_of_normal_scores('ohsumed', 'raw'):.3f}",
    "normal-gain-mq2008": lambda: f"{gain_of_normal_scores('mq2008', 'raw'):.3f}",
    "normal-gain-simulated": lambda: f"{gain_of_normal_scores('simulated', 'raw'):.3f}",
}


def fill_numbers(text: str, page: str) -> str:
    """The page with every number in a sentence as the stored results give it."""

    def fill(match: re.Match[str]) -> str:
        if match[2] not in NUMBERS:
            raise KeyError(f"{page} has the number {match[2]!r}, which experiments/written.py does not know")
        return match[1] + NUMBERS[match[2]]() + match[4]

    return NUMBER.sub(fill, text)


# -------------------------------------------------------------------------------------------------------- write, check


def outdated() -> list[str]:
    """What on the pages differs from the stored results."""
    places = []
    for page, named in blocks().items():
        places += [f"{page}: {name}" for name, body in named.items() if read_block(DOCS / page, name) != body]
    places += [page.name for page, text in whole_pages().items() if page.read_text(encoding="utf-8") != text]
    for page in (ROOT / "README.md", *sorted(DOCS.glob("*.md"))):
        text = page.read_text(encoding="utf-8")
        if fill_numbers(text, page.name) != text:
            places.append(f"{page.name}: numbers in sentences")
    return places


def write() -> None:
    """Write every block, page and number from the stored results."""
    for name, named in blocks().items():
        for block, body in named.items():
            if read_block(DOCS / name, block) != body:
                write_block(DOCS / name, block, body)
    texts = whole_pages()
    for page in (ROOT / "README.md", *DOCS.glob("*.md")):
        texts.setdefault(page, fill_numbers(page.read_text(encoding="utf-8"), page.name))
    for page, text in texts.items():
        if page.read_text(encoding="utf-8") != text:
            with writing(page) as part:
                part.write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    if arguments == ["--write"]:
        write()
    elif arguments != ["--check"]:
        print("usage: python3 run.py docs --write | --check", file=sys.stderr)
        return 2
    places = outdated()
    if places:
        print("not what the stored results say; python3 run.py docs --write mends it:", *places, sep="\n  ")
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
