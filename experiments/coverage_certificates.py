"""Certificates of fitted rankers, again and again: how often each row and the headline are below the truth.

A cell is one ranker on one population with n training queries and n held-out ones. Every repetition draws both, fits,
certifies at delta and compares every row with the true value of what it says it bounds.
"""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

import numpy as np

from experiments.coverage_cases import CASES
from experiments.coverage_counts import Average, Count, check, is_false
from experiments.coverage_populations import POPULATIONS, Mean
from experiments.coverage_rows import ON_AVERAGE, Truths, is_costly, label_of, smallest_risk
from rankwise.guarantees import Bound, Certificate

HEADLINE = "Headline"
Alter = Callable[[Certificate], Certificate]


class Cell(NamedTuple):
    """One ranker on one population, with n training and n held-out queries."""

    case: str
    population: str
    n: int


@dataclass
class Found:
    """What the repetitions of a cell came to.

    Attributes
    ----------
    counts : checks of every row, by its label
    averages : rows that are bounded on average over samples, by label and loss
    certain : labels of rows that do not depend on chance
    unchecked : (label, what it bounds, ranker) of rows that were not checked, and why
    headline_by : which bound the headline was, and how often
    refused : certificates without a hold-out bound, because queries of the hold-out may have been used in training
    """

    counts: dict[str, Count] = field(default_factory=dict)
    averages: dict[str, Average] = field(default_factory=dict)
    certain: set[str] = field(default_factory=set)
    unchecked: dict[tuple[str, str, str], str] = field(default_factory=dict)
    headline_by: dict[str, int] = field(default_factory=dict)
    refused: int = 0

    def add(self, other: "Found") -> None:
        for label, count in other.counts.items():
            self.counts.setdefault(label, Count()).add(count)
        for label, average in other.averages.items():
            self.averages.setdefault(label, Average()).add(average)
        for name, count in other.headline_by.items():
            self.headline_by[name] = self.headline_by.get(name, 0) + count
        self.certain |= other.certain
        self.unchecked |= other.unchecked
        self.refused += other.refused


def run_cell(
    cell: Cell, first: int, last: int, seed: int, delta: float, alter: Alter = lambda certificate: certificate
) -> Found:
    """Repetitions ``first`` to ``last - 1`` of a cell; each has random numbers of its own.

    ``alter`` may change a certificate before it is checked, to see that a false one is found out.
    """
    found = Found()
    for repetition in range(first, last):
        random = np.random.default_rng([seed, crc32(repr(cell).encode()), repetition])
        found.add(one_repetition(cell, random, delta, alter))
    return found


def one_repetition(cell: Cell, random: np.random.Generator, delta: float, alter: Alter) -> Found:
    """Draw, fit, certify, compare."""
    population, case = POPULATIONS[cell.population], CASES[cell.case]
    train, held = population.draw(cell.n, random), population.draw(cell.n, random)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some learn nothing from ten queries, and say so
        model = case.make(train.n_features).fit(train)
        certificate = alter(
            model.certificate(
                train,
                held,
                delta,
                # a map has a radius of its own, or none is known
                row_radius=None if case.mapped else population.radius,
                longest=population.longest,
                first_ball=population.first_ball,
            )
        )
        steps = [row.terms["eta"] for row in certificate.rows if row.kind == "online" and "eta" in row.terms]
        truths, found = Truths.behind(case, cell.population, model, train, steps[0] if steps else None), Found()
        found.refused = int(all(row.kind != "hold-out" for row in certificate.rows))
        for row in certificate.rows:
            _check_row(found, truths, row, label_of(row))
        if certificate.headline is not None:
            _check_row(found, truths, certificate.headline, HEADLINE)
            found.headline_by[label_of(certificate.headline)] = 1
    return found


def _check_row(found: Found, truths: Truths, row: Bound, label: str) -> None:
    on_average = re.fullmatch(ON_AVERAGE, row.bounds)
    if row.applies is False or (row.vacuous and is_costly(row)):
        truth: Mean | str | None = None
    elif on_average and truths.case.mapped and truths.case.map is None:
        truth = "the best function in the space of the kernel is not known here"
    elif on_average:
        truth = truths.risk(row, on_average[1])
    else:
        truth = truths.of(row)
    if isinstance(truth, str):
        found.unchecked[label, row.bounds, truths.case.name] = truth
    elif on_average and truth is not None:
        found.averages.setdefault(f"{label}: {on_average[1]}", Average()).add(Average.once(row, truth))
    else:
        found.counts.setdefault(label, Count()).add(check(row, truth))
        if "delta" not in row.terms and not on_average:
            found.certain.add(label)


def settle_averages(cell: Cell, averages: dict[str, Average]) -> dict[str, Count]:
    """One check per cell of every row that is promised on average: the mean excess against the mean bound."""
    counts: dict[str, Count] = {}
    for name, average in averages.items():
        label, _, loss = name.rpartition(": ")
        case = CASES[cell.case]
        best = smallest_risk(case.losses[loss], cell.population, average.norm, case.map)
        failed = int(is_false(average, best))
        vacuous = int(average.vacuous == average.count)
        counts.setdefault(label, Count()).add(Count.of(failed=failed, checked=1, vacuous=vacuous))
    return counts
