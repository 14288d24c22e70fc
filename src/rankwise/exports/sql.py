"""A score as one SQL expression over columns, so that ``ORDER BY`` ranks."""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankwise._errors import RankwiseError
from rankwise._kernels.trees import ZERO
from rankwise.data.checks import Floats
from rankwise.exports._base import Content, Target, Written
from rankwise.exports.formula import Formula, StepSum, TreeSum, WeightedSum
from rankwise.exports.tree_nodes import categories_of
from rankwise.measures._base import Vector

# how identifiers are quoted: the sign, which is doubled inside
_QUOTES = {"standard": '"', "mysql": "`"}
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

    dialect: Literal["standard", "mysql"] = "standard"
    table: str = "documents"

    def write(self, formula: Formula, called: str) -> Written:
        """Write the query."""
        if self.dialect not in _QUOTES:
            raise RankwiseError(f"dialect is 'standard' or 'mysql': found {self.dialect!r:.40}")
        taken = next((name for name in formula.names if name.casefold() == called.casefold()), None)
        if taken is not None:  # ORDER BY would sort by the feature
            raise RankwiseError(f"{called!r:.60} cannot be the name of the score: a column {taken!r:.60} is a feature")
        # column names are always quoted: a name cannot end the expression
        if isinstance(formula, TreeSum):
            score = self._trees(formula)
        else:
            score = _sum(self._weights(formula.raw()) if isinstance(formula, WeightedSum) else self._steps(formula))
        select = f"SELECT *,\n{score}\n  AS {self._quoted(called)}\nFROM {self._quoted(self.table)}\n"
        filled = "is 0" if formula.missing == "zero" else "makes the score NULL"
        null = f"a column that is NULL {filled}, as the ranker's missing={formula.missing!r} has it"
        if isinstance(formula, TreeSum) and formula.missing != "zero" and formula.decides_missing:
            null = "a column that is NULL goes to the side of every tree that the ranker learned for missing values"
        notes = (
            "numbers are written with all digits of float64 and an exponent; DECIMAL columns may round otherwise",
            null,
        )
        return Written({"score.sql": select}, notes)

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Run the query in SQLite, with the features in a table in memory."""
        columns = ", ".join(f"{self._quoted(name)} REAL" for name in names)
        values = ", ".join("?" * len(names))
        base = sqlite3.connect(":memory:")
        try:
            base.execute(f"CREATE TABLE {self._quoted(self.table)} ({columns})")
            rows = np.asarray(X, dtype=np.float64).tolist()
            base.executemany(f"INSERT INTO {self._quoted(self.table)} VALUES ({values})", rows)
            found = [row[-1] for row in base.execute(str(files["score.sql"]))]
        except sqlite3.Error as error:  # names that differ by case alone, more columns than it takes
            raise RankwiseError(f"SQLite cannot run the expression on the sample: {error}") from error
        finally:
            base.close()
        return np.array([np.nan if one is None else one for one in found], dtype=np.float64)

    def _quoted(self, name: str) -> str:
        """A name in quotes."""
        sign = _QUOTES[self.dialect]
        if not name or not name.isprintable():
            raise RankwiseError(f"{name!r:.60} is no name that SQL knows: names are printable and not empty")
        return sign + name.replace(sign, 2 * sign) + sign

    def _column(self, formula: Formula, place: int) -> str:
        """A column, with 0 for NULL where the ranker treats missing values so."""
        quoted = self._quoted(formula.names[place])
        return f"COALESCE({quoted}, 0)" if formula.missing == "zero" else quoted

    def _weights(self, formula: WeightedSum) -> list[str]:
        """The terms of a weighted sum."""
        terms = [f"{number(formula.weight[place])} * {self._column(formula, place)}" for place in formula.used]
        return [*terms, number(formula.constant)] if formula.constant else terms

    def _steps(self, formula: StepSum) -> list[str]:
        """One CASE per feature, from the highest threshold down."""
        terms = []
        for place, cuts, worth in formula.trees():
            column = self._column(formula, place)
            missing = "" if formula.missing == "zero" else f"WHEN {column} IS NULL THEN NULL "
            # from the top down: the first threshold that is exceeded decides
            cases = " ".join(
                f"WHEN {column} > {number(cut)} THEN {number(value)}"
                for cut, value in zip(cuts[::-1], worth[:0:-1], strict=True)
            )
            terms.append(f"CASE {missing}{cases} ELSE {number(worth[0])} END")
        return [*terms, number(formula.constant)] if formula.constant or not terms else terms

    def _trees(self, formula: TreeSum) -> str:
        """One CASE per tree, with a condition for every leaf but the last, from left to right.

        The first leaf for which all nodes that it lies to the left of send the row left is the leaf of the row: what a
        leaf to the right has in common with it was asked before. So no CASE is nested, which parsers limit.
        """
        trees = formula.trees
        terms = []
        for tree in range(trees.n_trees):
            first, last = int(trees.start[tree]), int(trees.start[tree + 1])
            cases = []
            waiting: list[tuple[int, list[str]]] = [(0 if last > first else -1, [])]
            while waiting:
                child, way = waiting.pop()
                if child < 0:
                    cases.append((" AND ".join(way), number(trees.value[first + tree - 1 - child])))
                    continue
                node = first + child
                waiting.append((int(trees.right[node]), way))
                waiting.append((int(trees.left[node]), [*way, self._condition(formula, node)]))
            *some, (_, value) = cases
            whens = " ".join(f"WHEN {condition} THEN {own}" for condition, own in some)
            terms.append(f"CASE {whens} ELSE {value} END" if some else value)
        weights, constant = formula.raw_linear()
        terms += [f"{number(weight)} * {self._column(formula, place)}" for place, weight in weights]
        score = _sum([*terms, number(constant)] if constant or not terms else terms)
        if formula.missing == "zero" or formula.decides_missing:
            return score
        lacking = " OR ".join(f"{self._quoted(formula.names[place])} IS NULL" for place in formula.used)
        return f"  CASE WHEN {lacking} THEN NULL ELSE\n{score}\n  END"

    def _condition(self, formula: TreeSum, node: int) -> str:
        """What is true for the rows that go left at a node, and false or NULL for the others."""
        trees = formula.trees
        column = self._column(formula, int(trees.feature[node]))
        if trees.categorical[node]:  # a category holds all values with its whole part, and 0 those above -1, too
            found = np.array(categories_of(trees, node))
            runs = np.split(found, np.flatnonzero(np.diff(found) > 1) + 1)
            least = (f"> {number(-1)}" if run[0] == 0 else f">= {number(run[0])}" for run in runs)
            between = (
                f"{column} {low} AND {column} < {number(run[-1] + 1)}" for low, run in zip(least, runs, strict=True)
            )
            return f"({' OR '.join(between)})"
        condition = f"{column} <= {number(trees.threshold[node])}"
        if trees.flips_zero[node]:
            zero = f"{column} BETWEEN {number(-ZERO)} AND {number(ZERO)}"
            condition = f"{condition} OR {zero}" if trees.nan_left[node] else f"({condition} AND NOT {zero})"
        if trees.nan_left[node] and formula.missing != "zero":
            condition = f"{condition} OR {column} IS NULL"
        return f"({condition})" if " OR " in condition else condition


def number(value: float) -> str:
    """A number with all digits, and an exponent, which makes it a floating point number in every dialect."""
    digits, _, exponent = f"{float(value)!r}".partition("e")
    digits = re.sub(r"\.0$", "", digits)
    text = f"{digits}e{int(exponent or 0)}"
    return f"({text})" if value < 0 else text


def _sum(terms: Sequence[str], indent: str = "  ") -> str:
    """The sum of the terms; a long one as the sum of two halves."""
    if len(terms) <= _FLAT:
        return f"{indent}(" + f"\n{indent} + ".join(terms) + ")"
    middle = len(terms) // 2
    return f"{indent}(\n{_sum(terms[:middle], indent)}\n{indent}+\n{_sum(terms[middle:], indent)}\n{indent})"
