"""A score as one SQL expression over columns, by which ``ORDER BY`` ranks."""

import math
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankwise._kernels.trees import ZERO
from rankwise.errors import RankwiseError
from rankwise.exports._base import Content, Cut, Target, Written
from rankwise.exports.columns import ColumnFeatures, ColumnStep
from rankwise.exports.curves import CurveSum, refuse_periods
from rankwise.exports.formula import MEDIAN, Formula, StepSum, TreeSum, fills_gaps
from rankwise.exports.tree_nodes import CurveLeaf, Leaf, Node, categories_of, place_leaves
from rankwise.measures._base import Vector
from rankwise.queries.checks import Floats

# how identifiers are quoted: the sign, which is doubled inside
_QUOTES = {"standard": '"', "mysql": "`"}
# a step from a column to a feature, for the expression of what came before it
_STEPS = {
    "fill": "COALESCE({v}, {value})",
    "missing": "CASE WHEN {v} IS NULL THEN 1e0 ELSE 0e0 END",
    "before": "({value} - {v})",
    "log": "CASE WHEN {v} < 0e0 THEN -LN(1e0 - {v}) ELSE LN(1e0 + {v}) END",
    "subtract": "({v} - {value})",
    "divide": "({v} / {value})",
    "multiply": "({v} * {value})",
    "add": "({v} + {value})",
}
_FLAT = 100  # longer sums are taken in halves: databases limit how deep an expression may be


@dataclass(frozen=True, kw_only=True)
class SQL(Target):
    """``score.sql``: ``SELECT *, (...) AS "NAME" FROM documents``.

    Names of features are names of columns, always quoted.

    Parameters
    ----------
    dialect : {"standard", "mysql"}, default="standard"
        "standard" quotes names as "a" (PostgreSQL, SQLite, DuckDB, Oracle, BigQuery's ANSI mode), "mysql" as `a`.
    table : str, default="documents"
        The table in the ``FROM`` clause.
    """

    name = "sql"
    title = "SQL"
    arithmetic = "float64, run by SQLite"
    takes = (*Target.takes, CurveSum)
    holds_columns = True

    dialect: Literal["standard", "mysql"] = "standard"
    table: str = "documents"

    def write(self, formula: Formula | CurveSum, called: str, columns: ColumnFeatures | None = None) -> Written:
        """Write the query."""
        given = formula.names if columns is None else columns.names
        taken = next((name for name in given if name.casefold() == called.casefold()), None)
        if taken is not None:  # ORDER BY would sort by the feature
            raise RankwiseError(f"{called!r:.60} cannot be the name of the score: a column {taken!r:.60} is a feature")
        # column names are always quoted: a name cannot end the expression
        features = [self._quote(name) for name in formula.names] if columns is None else self._build(columns)
        terms, constant = self._terms(formula, features)
        score = _sum([*terms, number(constant)] if constant or not terms else terms)
        decides = isinstance(formula, TreeSum) and formula.decides_missing
        if isinstance(formula, TreeSum) and formula.missing != "zero" and not decides:
            lacking = " OR ".join(f"{features[place]} IS NULL" for place in formula.used)
            score = f"  CASE WHEN {lacking} THEN NULL ELSE\n{score}\n  END"
        select = f"SELECT *,\n{score}\n  AS {self._quote(called)}\nFROM {self._quote(self.table)}\n"
        filled = "is 0" if formula.missing == "zero" else "makes the score NULL"
        null = f"a column that is NULL {filled}, as the ranker's missing={formula.missing!r} has it"
        if decides and formula.missing != "zero":
            null = "a column that is NULL goes to the side of every tree that the ranker learned for missing values"
        if fills_gaps(formula):
            null = f"{f'{null}; beside the trees it' if decides else 'a column that is NULL'} {MEDIAN}"
        if columns is not None and columns.uses("fill"):
            null = "a column that is NULL is treated as the FeatureBuilder of the ranker treats gaps"
        notes = [
            "numbers are written with all digits of float64 and an exponent; DECIMAL columns may round otherwise",
            null,
        ]
        return Written({"score.sql": select}, tuple(notes))

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Run the query in SQLite, with the features in a table in memory."""
        raw = X.dtype == object  # columns, some of which may be texts
        rows = X.tolist() if raw else np.asarray(X, dtype=np.float64).tolist()
        texts = {place for place, one in enumerate(rows[0]) if isinstance(one, str)} if raw else set()
        columns = ", ".join(
            f"{self._quote(name)} {'TEXT' if place in texts else 'REAL'}" for place, name in enumerate(names)
        )
        values = ", ".join("?" * len(names))
        base = sqlite3.connect(":memory:")
        try:
            base.execute(f"CREATE TABLE {self._quote(self.table)} ({columns})")
            base.create_function("LN", 1, _ln, deterministic=True)  # SQLite may be built without it
            base.executemany(f"INSERT INTO {self._quote(self.table)} VALUES ({values})", rows)
            scores = [row[-1] for row in base.execute(str(files["score.sql"]))]
        except sqlite3.Error as error:  # names that differ by case alone, more columns than it takes
            raise RankwiseError(f"SQLite cannot run the expression on the sample: {error}") from error
        finally:
            base.close()
        return np.array([np.nan if score is None else score for score in scores], dtype=np.float64)

    def write_cut(self, cut: Cut, written: Written) -> Written:
        """``cut.sql``: the query with a ``WHERE`` on the score, or a ``LIMIT`` where the table has one query's rows."""
        name, inner = self._quote(cut.called), str(written.files["score.sql"])
        order = f"ORDER BY {name} DESC"
        if cut.score is None:
            tail = f"{order}\nLIMIT {cut.documents}\n"
            note = "cut-off: cut.sql is for a table that holds the documents of one query"
        else:
            tail = f"WHERE {name} >= {number(cut.score)}\n{order}\n"
            note = "cut-off: cut.sql keeps the documents with at least the score of the cut-off"
        return Written({"cut.sql": f"SELECT * FROM (\n{inner}) {self._quote('scored')}\n{tail}"}, (note,))

    def _quote(self, name: str) -> str:
        """A name in quotes."""
        sign = _QUOTES[self.dialect]
        if not name or not name.isprintable():
            raise RankwiseError(f"names in SQL must be printable and not empty, got {name!r:.60}")
        return sign + name.replace(sign, 2 * sign) + sign

    def _build(self, columns: ColumnFeatures) -> list[str]:
        """The expression of every feature that is made of columns."""
        found = []
        for place, steps in columns.chains:
            text = quoted = self._quote(columns.names[place])
            for step in steps:
                if step.kind == "level":
                    text = self._levels(quoted, step)
                else:
                    text = _STEPS[step.kind].format(v=text, value=number(step.value))
            found.append(text)
        return found

    def _levels(self, quoted: str, step: ColumnStep) -> str:
        """What a text counts: one CASE, with the levels of one number together."""
        groups: dict[float, list[str]] = {}
        for level, value in step.levels:
            groups.setdefault(value, []).append(level)
        cases = []
        for value, levels in groups.items():
            listed = ", ".join(map(self._text, levels))
            null = f"{quoted} IS NULL OR " if "" in levels else ""  # a missing text is an empty one
            cases.append(f"WHEN {null}{quoted} IN ({listed}) THEN {number(value)}")
        return f"CASE {' '.join(cases)} ELSE {number(step.value)} END" if cases else number(step.value)

    def _text(self, level: str) -> str:
        """A text as a literal."""
        escaped = level.replace("\\", "\\\\") if self.dialect == "mysql" else level
        return "'" + escaped.replace("'", "''") + "'"

    def _column(self, formula: Formula | CurveSum, features: Sequence[str], place: int) -> str:
        """A feature, with 0 for NULL where the ranker treats missing values so."""
        return f"COALESCE({features[place]}, 0)" if formula.missing == "zero" else features[place]

    def _terms(self, formula: Formula | CurveSum, features: Sequence[str]) -> tuple[list[str], float]:
        """The terms of the sum, and its constant."""
        if isinstance(formula, StepSum):
            return self._steps(formula, features), formula.constant
        if isinstance(formula, CurveSum):
            return self._curves(formula, features), formula.constant
        if isinstance(formula, TreeSum):
            terms, (weights, constant) = self._trees(formula, features), formula.raw_linear()
            terms += [] if formula.curves is None else self._curves(formula.curves, features)
        else:
            raw = formula.raw()
            terms, weights, constant = [], [(place, float(raw.weight[place])) for place in raw.used], raw.constant
        products = (f"{number(weight)} * {self._column(formula, features, place)}" for place, weight in weights)
        return [*terms, *products], constant

    def _steps(self, formula: StepSum, features: Sequence[str]) -> list[str]:
        """One CASE per feature, from the highest threshold down."""
        terms = []
        for place, cuts, worth in formula.trees():
            column = self._column(formula, features, place)
            missing = "" if formula.missing == "zero" else f"WHEN {column} IS NULL THEN NULL "
            # from the top down: the first threshold that is exceeded decides
            cases = " ".join(
                f"WHEN {column} > {number(cut)} THEN {number(value)}"
                for cut, value in zip(cuts[::-1], worth[:0:-1], strict=True)
            )
            terms.append(f"CASE {missing}{cases} ELSE {number(worth[0])} END")
        return terms

    def _curves(self, formula: CurveSum, features: Sequence[str]) -> list[str]:
        """One CASE per feature, nested as a binary search: eight levels for 256 pieces."""
        refuse_periods(formula, self.title)
        terms = []
        for place, tree, missing in formula.trees():
            null = "NULL" if missing is None else number(missing)
            terms.append(f"CASE WHEN {features[place]} IS NULL THEN {null} ELSE {_nest(tree, features[place])} END")
        return terms

    def _trees(self, formula: TreeSum, features: Sequence[str]) -> list[str]:
        """One CASE per tree.

        A CASE asks the nodes on the way from a node to the larger part of each, and holds the smaller parts: as many
        are nested as a tree has halvings, eight for 256 leaves. Parsers limit that (SQLite's to about 20 before 3.46).
        """
        trees, places = formula.trees, place_leaves(formula.trees)
        left, right = trees.left.tolist(), trees.right.tolist()

        def draw(tree: int, child: int) -> str:
            first = int(trees.start[tree])
            cases = []
            while child >= 0:
                node = first + child
                is_left = 2 * places.middle[node] <= places.first[node] + places.last[node]
                aside, child = (left[node], right[node]) if is_left else (right[node], left[node])
                cases.append(f"WHEN {self._condition(formula, features, node, is_left)} THEN {draw(tree, aside)}")
            value = number(trees.value[first + tree - 1 - child])
            return f"CASE {' '.join(cases)} ELSE {value} END" if cases else value

        return [draw(tree, 0 if size else -1) for tree, size in enumerate(np.diff(trees.start).tolist())]

    def _condition(self, formula: TreeSum, features: Sequence[str], node: int, is_left: bool) -> str:
        """What is true for the rows that go left at a node, or right, and false or NULL for the others."""
        trees = formula.trees
        column = self._column(formula, features, int(trees.feature[node]))
        threshold = number(trees.threshold[node])
        if trees.categorical[node]:  # a category holds all values with its whole part, and 0 those above -1, too
            found = np.array(categories_of(trees, node))
            runs = np.split(found, np.flatnonzero(np.diff(found) > 1) + 1)
            least = (f"> {number(-1)}" if run[0] == 0 else f">= {number(run[0])}" for run in runs)
            between = (
                f"{column} {low} AND {column} < {number(run[-1] + 1)}" for low, run in zip(least, runs, strict=True)
            )
            condition = f"({' OR '.join(between)})"
            condition = condition if is_left else f"NOT {condition}"
        elif trees.flips_zero[node]:
            zero = f"{column} BETWEEN {number(-ZERO)} AND {number(ZERO)}"
            if trees.nan_left[node] == is_left:
                condition = f"{column} {'<=' if is_left else '>'} {threshold} OR {zero}"
            else:
                condition = f"{column} {'<=' if is_left else '>'} {threshold} AND NOT {zero}"
        else:
            condition = f"{column} {'<=' if is_left else '>'} {threshold}"
        if trees.nan_left[node] == is_left and formula.decides_missing and formula.missing != "zero":
            condition = f"{condition} OR {column} IS NULL"
        return condition


def _nest(node: Node, column: str) -> str:
    """A curve of a column."""
    if isinstance(node, CurveLeaf):
        return node.text(column, number)
    if isinstance(node, Leaf):
        return number(node.value)
    left, right = (_nest(child, column) for child in (node.left, node.right))
    return f"CASE WHEN {column} <= {number(node.threshold)} THEN {left} ELSE {right} END"


def _ln(value: float | None) -> float | None:
    """LN as databases have it."""
    return None if value is None else math.log(value)


def number(value: float) -> str:
    """A number with all digits, and an exponent, which makes it a floating point number in every dialect."""
    digits, _, exponent = f"{float(value)!r}".partition("e")
    digits = re.sub(r"\.0$", "", digits)
    text = f"{digits}e{int(exponent or 0)}"
    return f"({text})" if value < 0 else text


def _sum(terms: Sequence[str]) -> str:
    """The sum of the terms, one on each line; a long one as the sum of two halves."""
    if len(terms) <= _FLAT:
        return "  (" + "\n   + ".join(terms) + ")"
    middle = len(terms) // 2
    return f"  (\n{_sum(terms[:middle])}\n  +\n{_sum(terms[middle:])}\n  )"
