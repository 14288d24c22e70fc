""":class:`Comparison`, what :func:`rankwise.compare` returns: every number with its uncertainty, origin and cost."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankwise._figures import COLORS, FAINT, PAPER, house_style, new_figure
from rankwise._files import writing
from rankwise._tables import Table
from rankwise.errors import RankwiseError
from rankwise.evaluation.certificates import DELTA, certify, holdout_certificate
from rankwise.evaluation.comparison.cells import Cell
from rankwise.evaluation.evaluation import Evaluation, evaluate, none_if_nan, plain_ids
from rankwise.guarantees._bound import HOLDOUT, Scope, refuse_unless_chance
from rankwise.guarantees.certificate import Certificate
from rankwise.guarantees.holdout.testing import level_of_each
from rankwise.measures._base import Measure
from rankwise.queries.fingerprints import Seen, fingerprints
from rankwise.queries.folds import Fold
from rankwise.queries.queries import Queries
from rankwise.rankers._base import Ranker

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BETTER, WORSE, EQUAL, BASE = "+", "-", "=", "base"
_FIRST_FOLD = replace(HOLDOUT, population=f"{HOLDOUT.population}; the hold-out is the test part of the first fold")
_INCHES_A_LINE, _INCHES_AROUND, _INCHES_A_PANEL, _MOST_INCHES = 0.24, 0.9, 3.4, 20.0


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Rankers side by side on the same test queries, none of which a ranker saw before it was scored once.

    Attributes
    ----------
    queries : Queries
        The test queries of all folds, one after the other.
    scores : dict of str to ndarray
        For each ranker one score per document of ``queries``.
    results : dict of str to Evaluation
        For each ranker its evaluation over ``queries``.
    tests : Table
        A row for every measure and ranker: difference to the baseline, its interval, p, p corrected for the number of
        tests, wins, losses and ties in queries; see :func:`significance`.
    cells : tuple of Cell
        One for every ranker and fold: settings, scores, seconds, memory, and the fitted model.
    baseline : str
        The ranker that all others are tested against.
    level : float
        The confidence level of the intervals; 1 - level is the level of the tests.
    about : dict
        The configuration as plain values: versions, seed, data, rankers, conventions.
    first : Fold
        The parts of the first fold, for analyses that need training queries: certificates, the diagnosis of the data.
    folds : int or None
        The argument ``folds`` of :func:`compare`.
    """

    SCOPES: ClassVar[Mapping[str, Scope]] = {
        "certificate_of_the_winner": replace(
            _FIRST_FOLD, choices="the choice of the winner on the validation part; not a choice by the test results"
        ),
        "certificates": replace(
            _FIRST_FOLD, choices="any choice among the rankers, by the test results too: each is certified at delta / K"
        ),
    }

    queries: Queries
    scores: dict[str, NDArray[np.float64]]
    results: dict[str, Evaluation]
    tests: Table
    cells: tuple[Cell, ...]
    baseline: str
    level: float
    about: dict[str, Any]
    first: Fold
    folds: int | None = None

    @property
    def rankers(self) -> list[str]:
        """The names, in the order in which they were given."""
        return list(self.results)

    @property
    def titles(self) -> tuple[str, ...]:
        """The column titles of the measures."""
        return self.results[self.baseline].titles

    @property
    def means(self) -> dict[str, dict[str, float]]:
        """For each ranker and measure the mean over the test queries of all folds."""
        return {name: dict(result.mean) for name, result in self.results.items()}

    @cached_property
    def intervals(self) -> dict[str, dict[str, tuple[float, float]]]:
        """For each ranker and measure the confidence interval of the mean."""
        return {name: dict(result.interval(self.level)) for name, result in self.results.items()}

    @property
    def models(self) -> dict[str, list[Any]]:
        """For each ranker the fitted model of every fold; None where none is kept."""
        return {name: [cell.model for cell in self.cells if cell.ranker == name] for name in self.rankers}

    def table(self, measure: str | Measure | None = None) -> Table:
        """The table of results, best first by the first measure, or by ``measure`` and with more details about it.

        A mark behind an interval, and in the column ``mark``, says whether a ranker differs from the baseline after
        correction: ``+`` better, ``-`` worse, ``=`` not shown to differ.

        Parameters
        ----------
        measure : str or Measure, default=None
            The measure to sort by and to show in detail; None shows all measures.

        Returns
        -------
        Table
            One row per ranker.
        """
        if measure is not None:
            return self._results_table(self.results[self.baseline].title_of(measure))
        order = self._order(self.titles[0])
        columns: dict[str, Any] = {"ranker": order}
        for title in self.titles:
            columns[title] = [self.means[name][title] for name in order]
            columns[f"{title} {self.level:.0%}"] = [self._interval_text(name, title) for name in order]
        columns["seconds"] = [f"{self._seconds(name):.1f}" for name in order]
        return Table(columns)

    def _results_table(self, title: str) -> Table:
        """The detailed table of one measure."""
        untested = {"difference": math.nan, "p_corrected": math.nan, "wins": 0, "losses": 0}
        tests = {row["ranker"]: row for row in self.tests if row["measure"] == title}
        rows, means = [], self.means
        for name in self._order(title):
            test = tests.get(name, untested)
            compared = (test["difference"], test["p_corrected"], self.mark(name, title), test["wins"], test["losses"])
            rows.append((name, means[name][title], *self.intervals[name][title], *compared, self._seconds(name)))
        columns = ("ranker", title, "low", "high", "difference", "p_corrected", "mark", "wins", "losses", "seconds")
        return Table.of_rows(columns, rows)

    def per_query(self, measure: str | Measure | None = None) -> Table:
        """The values of one measure per query.

        Parameters
        ----------
        measure : str or Measure, default=None
            The measure; None takes the first.

        Returns
        -------
        Table
            One row per query: its id, its fold, and the value of every ranker (NaN where it does not count).
        """
        title = self.titles[0] if measure is None else self.results[self.baseline].title_of(measure)
        values = {name: result[title] for name, result in self.results.items()}
        return Table({"qid": self.queries.names(), "fold": self.fold_of_query, **values})

    @cached_property
    def per_fold(self) -> Table:
        """One row per ranker and fold: the mean of every measure there, seconds, and growth of memory in bytes."""
        rows = []
        for cell in self.cells:
            means = self.on_fold(self.results[cell.ranker], cell.fold).mean
            rows.append((cell.ranker, cell.fold, *means.values(), cell.seconds, cell.memory))
        return Table.of_rows(("ranker", "fold", *self.titles, "seconds", "memory"), rows)

    @property
    def chosen(self) -> Table:
        """One row per ranker and fold: settings selected from the grid, settings that the fit selected, measure,
        settings tried.
        """
        names = ("ranker", "fold", "settings", "settled", "validation", "tried")
        return Table.of_rows(names, ([getattr(cell, name) for name in names] for cell in self.cells))

    def mark(self, ranker: str, measure: str | Measure) -> str:
        """Whether a ranker differs from the baseline.

        Parameters
        ----------
        ranker : str
            The name of the ranker.
        measure : str or Measure
            The measure.

        Returns
        -------
        str
            "+" better, "-" worse, "=" not shown to differ, "base" for the baseline itself.
        """
        if ranker == self.baseline:
            return BASE
        title = self.results[self.baseline].title_of(measure)
        row = next(row for row in self.tests if row["measure"] == title and row["ranker"] == ranker)
        if not row["p_corrected"] <= 1 - self.level:  # NaN: nothing to compare
            return EQUAL
        return BETTER if row["difference"] > 0 else WORSE

    @cached_property
    def fold_of_query(self) -> NDArray[np.int64]:
        """For each of ``queries`` the fold that tested it, counted from 1."""
        bounds = self._bounds()
        return np.repeat(np.arange(1, len(bounds)), np.diff(bounds))

    def on_fold(self, result: Evaluation, fold: int) -> Evaluation:
        """Restrict an evaluation to the test part of one fold.

        Parameters
        ----------
        result : Evaluation
            One of ``results``.
        fold : int
            The fold, counted from 1.

        Returns
        -------
        Evaluation
            The evaluation on that part.
        """
        here = slice(*self._bounds()[fold - 1 : fold + 1])
        weight = None if result.weight is None else result.weight[here]
        return replace(
            result,
            values=result.values[:, here],
            empty=result.empty[:, here],
            qid=result.qid[here],
            weight=weight,
            # ties of one fold are not needed, and the scores would have to be cut
            lists=None,
        )

    # ------------------------------------------------------------------------------------------ the winner, certified

    @cached_property
    def validation(self) -> dict[str, Evaluation]:
        """For each ranker that was trained here its evaluation on the validation part of the first fold, fitted without
        these queries; empty without such a part. Models that came fitted, and scores, are not in it.
        """
        judged = self.first.validation
        if judged is None:
            return {}
        measures, conventions = self.results[self.baseline].measures, self.about["conventions"]
        return {
            cell.ranker: evaluate(judged, cell.validation_scores, measures, **conventions)
            for cell in self.cells
            if cell.fold == 1 and cell.validation_scores is not None
        }

    @property
    def winner(self) -> str | None:
        """The ranker that :meth:`choose` chooses among all; None if it cannot choose, such as among fitted models."""
        try:
            return self.choose()
        except RankwiseError:
            return None

    def choose(self, among: Sequence[str] | None = None) -> str:
        """The ranker with the largest mean of the first measure on the validation part of the first fold.

        The test queries have no part in this choice, so :meth:`certificate` may certify the winner by them at the whole
        delta. The first row of :meth:`table` is another choice, made on the test queries: :meth:`certificates` are for
        that one. Only the first fold is used, because the validation parts of the others hold its test queries.

        Parameters
        ----------
        among : sequence of str, default=None
            The rankers to choose from, fixed without a look at the test results; None takes all.

        Returns
        -------
        str
            Its name, the first of equals.

        Raises
        ------
        RankwiseError
            If a ranker has no validation value: models that came fitted and scores have none, and neither has any
            ranker if the folds have no validation part or the measure is undefined on all of it.
        """
        names, title = self._resolve_names("among", among), self.titles[0]
        for name in names:
            if name not in self.validation:
                lacking = (
                    "the folds have no validation part"
                    if self.first.validation is None
                    else f"{name!r} was not trained here and has no value on it"
                )
                raise RankwiseError(
                    f"a winner is chosen on the validation part, but {lacking}; the certificates of all rankers hold "
                    "together, so you may quote that of any of them"
                )
        means = {name: self.validation[name].mean[title] for name in names}
        if all(map(math.isnan, means.values())):
            raise RankwiseError(f"a winner is chosen by {title}, which is undefined on every validation query")
        return max(means, key=lambda name: -math.inf if math.isnan(means[name]) else means[name])

    def certificate(self, delta: float = DELTA, *, among: Sequence[str] | None = None) -> Certificate:
        """Certify the winner by the test part of the first fold.

        The winner is a function of the training and validation queries, so the test queries are as independent of it as
        of a ranker that was fixed beforehand: the choice costs no delta.

        Parameters
        ----------
        delta : float, default=0.05
            The probability with which the certificate may fail.
        among : sequence of str, default=None
            The rankers to choose from, see :meth:`choose`.

        Returns
        -------
        Certificate
            That of the model of the first fold, for the first measure of the comparison.
        """
        return self._certify(self.choose(among), delta)

    def certificates(self, delta: float = DELTA, *, of: Sequence[str] | None = None) -> dict[str, Certificate]:
        r"""Certify every ranker by the test part of the first fold, such that all certificates hold together.

        Each of the K certificates is computed at :math:`\delta / K`. The smallest may be quoted, or that of any ranker
        that was chosen by the test results.

        Proof. The model of each ranker is a function of the training and validation queries, so the test queries are
        independent of it, and the headline of its certificate is false with probability :math:`\delta / K` at most. By
        the union bound none is false with probability :math:`1 - \delta`, whoever is chosen
        (:func:`~rankwise.guarantees.holdout.testing.level_of_each`).

        Parameters
        ----------
        delta : float, default=0.05
            The probability with which any of the certificates may fail.
        of : sequence of str, default=None
            The rankers whose certificates are computed; None takes all. K is the number of all rankers in either case,
            because the test queries may have chosen these.

        Returns
        -------
        dict of str to Certificate
            By ranker, for the models of the first fold and the first measure of the comparison.

        Examples
        --------
        >>> import rankwise as rw
        >>> lists = rw.make_lists(60, documents=8, features=4, random_state=1)
        >>> found = rw.compare({"first": lists.X[:, 0], "second": lists.X[:, 1]}, lists)
        >>> [one.delta for one in found.certificates(0.1).values()]
        [0.05, 0.05]
        """
        refuse_unless_chance("certificates", delta=delta)
        level = level_of_each(delta, len(self.results))
        return {name: self._certify(name, level) for name in self._resolve_names("of", of)}

    def _resolve_names(self, argument: str, names: Sequence[str] | None) -> list[str]:
        """The rankers that an argument names, all for None."""
        found = self.rankers if names is None else [names] if isinstance(names, str) else list(names)
        for name in found:
            if name not in self.results:
                known = ", ".join(map(repr, self.rankers))
                raise RankwiseError(f"{argument} must name rankers of this comparison ({known}), got {name!r}")
        if not found:
            raise RankwiseError(f"{argument} must name at least one ranker, got none")
        return found

    def _certify(self, name: str, delta: float) -> Certificate:
        """The certificate of one ranker for the first fold: its own, or that of its scores where it has none."""
        model, test = self.models[name][0], self.first.test
        learned_here = self.about["rankers"][name]["kind"] == "learned"
        if isinstance(model, Ranker):
            # the training part is only given where it is known to be the one of the fit
            train = self.first.train if learned_here else None
            return certify(test, model, self.results[name].measures[0], train=train, delta=delta)
        seen = None
        if learned_here and self.first.train is not None:
            held, seen = self.first.validation, Seen().with_training(fingerprints(self.first.train))
            seen = seen if held is None else seen.with_validation(fingerprints(held))
        result = self.on_fold(self.results[name], 1)
        return holdout_certificate(name, result, test, delta, seen=seen, learned_here=learned_here)

    # ------------------------------------------------------------------------------------------------- other forms

    def to_dict(self) -> dict[str, Any]:
        """Convert everything but the scores to plain values, which repeat at every run but for seconds and memory.

        Returns
        -------
        dict
            The configuration, results, tests, cells and values per query.
        """
        folds = range(1, len(self._bounds()))
        results = {}
        for name, result in self.results.items():
            measures = result.to_dict(self.level)["measures"]
            for title, found in measures.items():
                found["per_fold"] = [none_if_nan(self.on_fold(result, fold).mean[title]) for fold in folds]
                found["mark"] = self.mark(name, title)
            results[name] = measures
        per_query = {
            name: {title: list(map(none_if_nan, result[title].tolist())) for title in self.titles}
            for name, result in self.results.items()
        }
        return {
            **self.about,
            "winner": self.winner,
            "results": results,
            "tests": [{name: none_if_nan(value) for name, value in row.items()} for row in self.tests],
            "cells": [cell.line() for cell in self.cells],
            "per_query": {
                "qid": plain_ids(self.queries.names()),
                "fold": self.fold_of_query.tolist(),
                "values": per_query,
            },
        }

    def to_markdown(self) -> str:
        """The results in Markdown: means, the best in bold, marks of significance, and intervals.

        Returns
        -------
        str
            The text, best ranker first, with a sentence on the marks.
        """
        table, how = self._for_papers()
        return table.to_markdown(**how)

    def to_latex(self) -> str:
        """The results in LaTeX: means, the best in bold, marks of significance, and intervals.

        Returns
        -------
        str
            A ``tabular`` that needs the package booktabs, best ranker first; a comment says what the marks are.
        """
        table, how = self._for_papers()
        return table.to_latex(**how)

    def _for_papers(self) -> tuple[Table, dict[str, Any]]:
        """The table of :meth:`to_markdown` and :meth:`to_latex`, and what of it is bold and marked."""
        order = self._order(self.titles[0])
        columns: dict[str, Any] = {"ranker": order}
        marks = {}
        for title in self.titles:
            columns[title] = [self.means[name][title] for name in order]
            ends = [self.intervals[name][title] for name in order]
            texts = ["" if math.isnan(low) else f"{low:.4f} to {high:.4f}" for low, high in ends]
            columns[f"{title} {self.level:.0%}"] = texts
            own = [self.mark(name, title) for name in order]
            marks[title] = [mark if mark in (BETTER, WORSE) else "" for mark in own]
        several = len(order) > 1
        how = {"bold": self.titles if several else (), "marks": marks, "note": self.legend() if several else ""}
        return Table(columns), how

    def legend(self) -> str:
        """What the marks mean, as a sentence.

        Returns
        -------
        str
            The sentence, with the test, the correction and the level.
        """
        how = {"holm": "Holm's correction", "bh": "Benjamini and Hochberg's correction", "none": "no correction"}
        return (
            f"Marks + and -: better and worse than {self.baseline} (paired {self.about['test']} test over queries, "
            f"{how[self.about['correction']]}, p at most {1 - self.level:.2g})"
        )

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """:meth:`to_dict` as JSON.

        Parameters
        ----------
        path : str or path-like, default=None
            A file to write the text to as well.

        Returns
        -------
        str
            The text.
        """
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        if path is not None:
            with writing(path) as part:
                part.write_text(text, encoding="utf-8")
        return text

    def plot(self, measure: str | Measure | None = None) -> "Figure":
        """Draw means with their intervals; needs the extra ``plot``.

        A full dot differs from the baseline after correction, a hollow one was not shown to.

        Parameters
        ----------
        measure : str or Measure, default=None
            The measure to draw; None draws one panel per measure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, best ranker on top, with the mean of the baseline as a line.
        """

        titles = self.titles if measure is None else (self.results[self.baseline].title_of(measure),)
        order = self._order(titles[0])[::-1]
        height = min(_MOST_INCHES, _INCHES_AROUND + _INCHES_A_LINE * len(order))
        figure = new_figure(min(_MOST_INCHES, 1.6 + _INCHES_A_PANEL * len(titles)), height)
        with house_style():
            panels = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
            for axes, title, color in zip(panels, titles, COLORS * len(titles), strict=False):
                base = self.means[self.baseline][title]
                axes.axvline(base, color=FAINT, linewidth=0.8, linestyle=(0, (3, 2)))
                for place, name in enumerate(order):
                    mean, (low, high) = self.means[name][title], self.intervals[name][title]
                    axes.plot([low, high], [place, place], color=color, linewidth=1.2)
                    full = self.mark(name, title) not in (EQUAL, BASE)
                    axes.plot([mean], [place], "o", color=color, markersize=5, markerfacecolor=color if full else PAPER)
                axes.set_title(title)
                axes.set_xlabel(f"mean and {self.level:.0%} interval")
                axes.set_ylim(-0.6, len(order) - 0.4)
                axes.grid(visible=False, axis="y")
            panels[0].set_yticks(range(len(order)), order)
        return figure

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def _order(self, title: str) -> list[str]:
        """The rankers, best first; those without a mean last, and equals as they were given."""
        # sorted is stable: equal means stay in the order of the caller
        means = {name: self.means[name][title] for name in self.rankers}
        return sorted(means, key=lambda name: math.inf if math.isnan(means[name]) else -means[name])

    def _interval_text(self, name: str, title: str) -> str:
        """The interval and the mark of a ranker as text."""
        low, high = self.intervals[name][title]
        mark = self.mark(name, title)
        return mark if math.isnan(low) else f"{low:.3f} to {high:.3f} {mark}"

    def _seconds(self, name: str) -> float:
        """The time of a ranker over all folds."""
        return math.fsum(cell.seconds for cell in self.cells if cell.ranker == name)

    def _bounds(self) -> list[int]:
        """The positions where the queries of each fold begin, and where the last ends."""
        sizes: list[int] = [fold["test"] for fold in self.about["data"]["folds"]]
        return [0, *accumulate(sizes)]
