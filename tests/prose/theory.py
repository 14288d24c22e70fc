"""Guarantees and losses: what certificates came to, and what bounds and costs are."""

import math
import re
from collections.abc import Iterator

from experiments.certificates import DECLARED, LONGEST
from rankwise.queries.fingerprints import FINGERPRINT, MOST, SKETCHED
from tests.prose.claims import claims, stated
from tests.prose.pages import printed, stored, written_part

# ------------------------------------------------------------------------------------------- guarantees

stated(
    "guarantees.md",
    "questions, an example of a row, and comparisons that the tables show or that define a gap",
    "The functions behind it",
    "Is it better than that one?",
    '"at most 4.3"',
    "Settings are quick ones",
    "although the measure itself is far better",
    "no solution of the same problem is better by more than the gap",
)
stated(
    "guarantees.md",
    "the setting of the figure",
    "at 100 documents per query and against the number of documents per query at 10,000 queries",
    "a training loss of 0.2, 45 features, delta = 0.05",
)
stated(
    "guarantees.md",
    "the size of a hash, and when two documents are the same",
    "a 64-bit hash",
    "four decimals or float16 with six features",
    "six digits with two to five",
    "two sketched documents",
)
stated("guarantees.md", "a level of confidence", "with probability 0.95")


@claims("guarantees.md")
def queries_without_a_relevant_document() -> Iterator[str]:
    counted = int(re.search(r"on (\d+) of 150 ", printed("guarantees.md", "print(certificate.summary())"))[1])
    yield f"({150 - counted} of the 150 queries have no relevant document"


@claims("guarantees.md")
def what_fingerprints_read_and_keep() -> Iterator[str]:
    assert SKETCHED == 4
    yield "sketches of four documents"
    yield f"{FINGERPRINT.itemsize} bytes per query"
    yield f"the first {MOST:,} queries ({FINGERPRINT.itemsize * MOST / 2**20:.0f} MB)"


@claims("guarantees.md")
def parts_of_the_fold() -> Iterator[str]:
    unseen, learned = re.findall(r"(\d+) (?:hold-out|training)\b", stored("certificates")["RidgeRanker"]["about"])
    queries = stored("set_facts")["ohsumed"]["queries"]
    yield f"{learned} training, {queries - int(unseen) - int(learned)} validation and {unseen} hold-out queries"
    yield f"(a radius of {DECLARED['row_radius']:.2f}), and no query has more than {LONGEST} documents"
    yield f"1 - measure on the {unseen} hold-out queries,"
    yield f"of the run over {learned} queries"
    yield f"and {learned} queries of up to {LONGEST} documents are too few"
    yield f"One pass over {learned} queries is very short"


@claims("guarantees.md")
def headlines() -> Iterator[str]:
    rows = [row for row in written_part("guarantees.md", "certificates") if row[1] == "nDCG@10"]
    small = [row for row in rows if float(row[3].strip("*")) <= 0.78]
    assert 2 * len(small) > len(rows)
    worst = max(float(row[3].strip("*")) for row in small)
    measured = [1 - float(row[2]) for row in small]
    yield "From 22 hold-out queries"
    yield f"is {1 - worst:.2f} or more** (a headline of {worst:.2f} or less), for most rankers here"
    yield f"on these 22 it is {min(measured):.2f} to {max(measured):.2f}"


@claims("guarantees.md")
def uniform_bounds() -> Iterator[str]:
    cells = [row[5] for row in written_part("guarantees.md", "certificates") if len(row) > 5 and row[5]]
    assert all("vacuous" in cell for cell in cells)
    least = min(float(cell.split()[0]) for cell in cells)
    yield f"Every uniform bound is vacuous, by a factor of {math.floor(least)} or more"
    learned = 63
    slope = math.sqrt(2 * math.pi) * 2 * math.sqrt(round(LONGEST / learned) / 2)
    yield f"which with m/n = {round(LONGEST / learned)} and G = 2 is below 1 for W R < {1 / slope:.1f} only"


@claims("guarantees.md")
def what_runs_lost() -> Iterator[str]:
    rows = written_part("guarantees.md", "fits")
    online = [float(row[3]) for row in rows if len(row) > 3 and row[3]]
    iterates = [float(row[4]) for row in rows if len(row) > 4 and row[4]]
    yield f"{max(online):.0f} of 63 at worst"
    yield f"have a mean risk of {max(iterates):.3g} at most"


# ------------------------------------------------------------------------------------------- losses

stated(
    "losses.md",
    "theorems: tests/losses",
    "the tightest of the bounds that cost O(m)",
    "looser than SLAM",
    "a smaller sum of weights is a tighter one",
    "Scores ten times as large need a sigma ten or a hundred times as large",
)
stated("losses.md", "what the figure shows", "The wider a smoothed measure, the longer its slopes")


@claims("losses.md")
def lengths_of_the_figure() -> Iterator[str]:
    curves = [curve for family in stored("loss_costs")["families"].values() for curve in family]
    lengths = [m for curve in curves for m in curve["m"]]
    yield f"from {min(lengths)} to {max(lengths):,} documents"
    assert len(stored("loss_costs")["families"]) == 6
    longest = [curve["s"][-1] for curve in curves if curve["m"][-1] < max(lengths)]
    assert min(longest) >= 0.3
    yield "a curve ends where one call takes 0.3 s"


# ------------------------------------------------------------------------------------------- coverage

stated(
    "coverage.md",
    "settings of the experiment, and the meaning of verdicts; the text of the figure is checked by test_coverage.py",
    "with probability 0.9 may be wrong for one sample in ten",
    "at delta = 0.1",
    "with 99 % intervals",
    "the bar at 10 %",
    "lie far below the bar at 10 %",
    "twice the allowed rate",
    "left of the line at 10 %",
    "at 99 %",
    "a reference sample of 40,000 queries",
    "at 1 % where none is allowed), or at 25 %",
    "at the larger of the two rates, reaches 0.8",
    "for the iterates before the rounds",
    "n is 30 and 100, for training and again for the hold-out; with coins it is 4,000",
    "are run with 30 alone",
    "fitted to 60 queries",
    "the same mistake among 50",
    "at any of 20,000 times",
    "a far more precise solution",
    "over means of 0.01, 0.02, ..., 0.99",
    "at any of 500 times",
)
