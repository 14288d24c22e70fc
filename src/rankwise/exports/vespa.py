"""A Vespa rank profile whose second phase is the ranker."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankwise._parameters import PositiveInt
from rankwise.errors import DataError, RankwiseError
from rankwise.exports._base import Content, Target, Written
from rankwise.exports.columns import Chain, ColumnFeatures, ColumnStep, compute_features, read_step, step_patterns
from rankwise.exports.curves import CurveSum, refuse_periods
from rankwise.exports.formula import MEDIAN, Formula, StepSum, TreeSum, WeightedSum, fills_gaps
from rankwise.exports.single import refuse_rules
from rankwise.exports.tree_nodes import CurveLeaf, Leaf, Node, TreeSplit, nest, score_trees
from rankwise.measures._base import Vector
from rankwise.queries.checks import Floats

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROFILES = ("default", "unranked")  # what every schema has
_WORD = r"[A-Za-z_][A-Za-z0-9_.\-]*"
# bm25(title), attribute(age), fieldMatch(title).completeness, query(weight)
_RANK_FEATURE = re.compile(rf"{_WORD}\(({_WORD}(,{_WORD})*)?\)(\.{_WORD})?")
_NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_TERM = re.compile(rf"^({_NUMBER}) \* (\S+)$")
_VALUE = re.compile(_NUMBER)
_CONDITION = re.compile(
    rf"if \((?:(\S+) < ({_NUMBER})|!\((\S+) >= ({_NUMBER})\)|(\S+) in \[([0-9, ]+)\]|isNan\((\S+)\)), "
)
# a polynomial by Horner's rule, and what it is multiplied by in every step
_POWER = re.compile(rf"\)? \* \((\S+) ([-+]) ({_NUMBER})\)(?: \+ ({_NUMBER}))?")
_POLYNOMIAL = re.compile(rf"\(*({_NUMBER})((?:{_POWER.pattern})+)")
# a step from a column to a feature, for the feature v that came before it
_COLUMN_STEPS = {
    "fill": "if (isNan({v}), {value}, {v})",
    "missing": "if (isNan({v}), 1.0, 0.0)",
    "before": "{value} - {v}",
    "log": "if ({v} < 0.0, -log(1.0 - {v}), log(1.0 + {v}))",
    "subtract": "{v} - ({value})",
    "divide": "{v} / ({value})",
    "multiply": "{v} * ({value})",
    "add": "{v} + ({value})",
}
_COLUMN_PATTERNS = step_patterns(_COLUMN_STEPS)
_FUNCTION = re.compile(r"function (\w+)\(\) \{\n +expression: (.+)\n")
_LEVEL = re.compile(rf' \+ if \((\S+) == ("(?:[^"\\]|\\.)*"), ({_NUMBER}), 0\)')
_STEP = re.compile(rf"^if \((\S+) > ({_NUMBER}), ({_NUMBER}), 0\)$")


@dataclass(frozen=True, kw_only=True)
class Vespa(Target):
    """``NAME.profile``, to be put beside the schema (or into it).

    A feature called ``bm25(title)`` is that rank feature; one called ``age`` is ``attribute(age)``.

    Parameters
    ----------
    rerank : int, default=100
        How many documents per node the second phase scores.
    """

    name = "vespa"
    title = "Vespa"
    arithmetic = "float64, term after term (Vespa's expressions)"
    takes = (*Target.takes, CurveSum)
    holds_columns = True

    rerank: PositiveInt = 100

    def write(self, formula: Formula | CurveSum, called: str, columns: ColumnFeatures | None = None) -> Written:
        """Write the rank profile."""
        # names become part of an expression, so they are checked one by one
        plain = [rank_feature(name) for name in formula.names] if columns is None else []
        features, functions = plain, list[str]()
        if columns is not None:
            features, functions = _column_functions(columns, called)
        elif formula.missing == "zero":
            zero, used = (ColumnStep("fill", 0.0),), _used(formula)
            chains = tuple((place, zero if place in used else ()) for place in range(len(plain)))
            features, functions = _column_functions(
                ColumnFeatures(formula.names, (False,) * len(plain), chains, ()), called
            )
        terms, constant, used = _terms(formula, features)
        lines = [*terms, _number(constant)] if constant or not terms else terms
        shown = [plain[place] for place in used] if plain else []
        if columns is not None:
            shown = [rank_feature(name) for name, text in zip(columns.names, columns.is_text, strict=True) if not text]
        text = write_profile(called, "second", self.rerank, lines, shown, functions)
        missing = (
            "an attribute without a value is NaN for float and double, and the score with it: give fields a default"
        )
        filled = fills_gaps(formula)
        if isinstance(formula, TreeSum) and formula.linear is None and (filled or formula.curves is None):
            missing = "an attribute without a value is NaN for float and double, and goes where the trees send it"
            missing += f"; beside the trees it {MEDIAN}" * filled
        elif filled:
            missing = f"an attribute without a value is NaN for float and double, and {MEDIAN}"
        if isinstance(formula, TreeSum) and formula.trees.categorical.any():
            missing += "; categories are compared as whole numbers"
        if columns is None and formula.missing == "zero":
            missing = "an attribute without a value is NaN for float and double, and counts 0; use these types"
        if columns is not None and columns.uses("fill"):
            missing = "an attribute without a value is NaN for float and double, which is filled; use these types"
        notes = (
            "Vespa computes expressions in float64, with attributes as they are stored; scores below 0 are allowed",
            missing,
            "only the documents of the second phase are scored so: a document behind them keeps its first score, "
            "lowered below all of them",
        )
        return Written({f"{called}.profile": text}, notes)

    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Score as Vespa does, term after term."""
        (text,) = files.values()
        place_of = {rank_feature(name): place for place, name in enumerate(names)}
        if X.dtype == object or _FUNCTION.search(str(text)):
            place_of, rows = _read_functions(str(text), X.astype(object), place_of)
        else:
            rows = np.asarray(X, dtype=np.float64)
        total = np.zeros(len(X))
        for term in read_terms(files):
            if found := _TERM.fullmatch(term):
                total += float(found[1]) * rows[:, place_of[found[2]]]
            elif (tree := _read_tree(term, place_of)) is not None:
                total += score_trees([tree], rows, _goes_left)
            elif found := _STEP.fullmatch(term):
                total += np.where(rows[:, place_of[found[1]]] > float(found[2]), float(found[3]), 0.0)
            else:
                total += float(term)
        return total


def _used(formula: Formula | CurveSum) -> list[int]:
    """The features that the formula looks at."""
    return sorted(set(formula.feature.tolist())) if isinstance(formula, StepSum) else formula.used


def _column_functions(columns: ColumnFeatures, called: str) -> tuple[list[str], list[str]]:
    """The features in terms of functions of the profile, and the lines of these: one function per step."""
    features, lines = [], []
    for number, (place, steps) in enumerate(columns.chains):
        feature = rank_feature(columns.names[place])
        for step_number, step in enumerate(steps):
            if step.kind == "level":
                # a sum of whole numbers, so nothing is nested
                cases = (
                    f" + if ({feature} == {json.dumps(level, ensure_ascii=False)}, {_number(value - step.value)}, 0)"
                    for level, value in step.levels
                )
                expression = _number(step.value) + "".join(cases)
            else:
                expression = _COLUMN_STEPS[step.kind].format(v=feature, value=_number(step.value))
            own = f"{called}_{number}_{step_number}"
            lines += [f"    function {own}() {{", f"        expression: {expression}", "    }"]
            feature = f"{own}()"
        features.append(feature)
    return features, lines


def _read_functions(text: str, rows: NDArray[np.object_], place_of: dict[str, int]) -> tuple[dict[str, int], Vector]:
    """The place of every rank feature and function in the second value, which has their numbers for the rows."""
    texts = {place for place, one in enumerate(rows[0]) if isinstance(one, str)}
    chains: dict[str, Chain] = {name: (place, ()) for name, place in place_of.items()}
    for name, expression in _FUNCTION.findall(text):
        found = read_step(_COLUMN_PATTERNS, expression)
        if found is None:
            other, cases = float(expression.split(" + ", 1)[0]), _LEVEL.findall(expression)
            levels = tuple((json.loads(level), other + float(value)) for _, level, value in cases)
            found = cases[0][0], ColumnStep("level", other, levels)
        place, steps = chains[found[0]]
        chains[f"{name}()"] = (place, (*steps, found[1]))
    used = {name: chain for name, chain in chains.items() if chain[1] or chain[0] not in texts}
    return {name: place for place, name in enumerate(used)}, compute_features(list(used.values()), rows)


def _terms(formula: Formula | CurveSum, features: list[str]) -> tuple[list[str], float, list[int]]:
    """An expression per tree or step and a product per weight, the constant of the sum, and the features in use."""
    if isinstance(formula, WeightedSum):
        formula = formula.raw()
        weights = [f"{_number(formula.weight[place])} * {features[place]}" for place in formula.used]
        return weights, formula.constant, formula.used
    if isinstance(formula, StepSum):
        steps = zip(formula.feature.tolist(), formula.threshold, formula.alpha, strict=True)
        terms = [f"if ({features[one]} > {_number(cut)}, {_number(alpha)}, 0)" for one, cut, alpha in steps]
        return terms, formula.constant, _used(formula)
    if isinstance(formula, CurveSum):
        return _curves(formula, features), formula.constant, formula.used or [0]
    refuse_rules(formula, "Vespa", "sql, python or c", categories=False)
    # x <= t is x < t' with the next float64 after t: Vespa recognizes trees by this form
    above = np.nextafter(formula.trees.threshold, np.finfo(np.float64).max)
    terms = [_draw(tree, features) for tree in nest(formula.trees, above)]
    linear, constant = formula.raw_linear()
    terms += [] if formula.curves is None else _curves(formula.curves, features)
    return [*terms, *(f"{_number(weight)} * {features[one]}" for one, weight in linear)], constant, formula.used


def _curves(formula: CurveSum, features: list[str]) -> list[str]:
    """An expression per feature, nested as a binary search."""
    refuse_periods(formula, "Vespa")
    terms = []
    for place, tree, missing in formula.trees():
        expression = _draw(tree, features)
        if missing is not None:
            expression = f"if (isNan({features[place]}), {_number(missing)}, {expression})"
        terms.append(expression)
    return terms


def _draw(node: Node, features: list[str]) -> str:
    """A tree or a curve as an expression."""
    if isinstance(node, CurveLeaf):
        return node.text(features[node.feature], _number)
    if isinstance(node, Leaf):
        return _number(node.value)
    feature = features[node.feature]
    if node.categories:
        condition = f"{feature} in [{', '.join(map(str, node.categories))}]"
    elif node.nan_left:
        condition = f"!({feature} >= {_number(node.threshold)})"
    else:
        condition = f"{feature} < {_number(node.threshold)}"
    return f"if ({condition}, {_draw(node.left, features)}, {_draw(node.right, features)})"


def _read_tree(text: str, place_of: Mapping[str, int]) -> Node | None:
    """A tree from its expression; None for another term."""
    at = 0

    def node() -> Node:
        nonlocal at
        if found := _POLYNOMIAL.match(text, at):
            at = found.end()
            steps = _POWER.findall(found[2])
            feature, sign, origin, _ = steps[0]
            *higher, value = [float(found[1]), *(float(step[-1] or 0) for step in steps)]
            return CurveLeaf(value, place_of[feature], float(origin) * (-1 if sign == "+" else 1), tuple(higher))
        if found := _VALUE.match(text, at):
            at = found.end()
            return Leaf(float(found[0]))
        found = _CONDITION.match(text, at)
        if found is None:
            raise ValueError(f"no tree: {text[at : at + 60]}")
        at = found.end()
        left = node()
        at += 2  # a comma and a blank
        right = node()
        at += 1  # the bracket
        feature, threshold, other, limit, chosen, several, lacking = found.groups()
        if lacking is not None:
            return TreeSplit(place_of[lacking], -np.inf, left, right, nan_left=True)
        if several is not None:
            return TreeSplit(place_of[chosen], 0.0, left, right, False, tuple(map(int, several.split(", "))))
        if other is not None:
            return TreeSplit(place_of[other], float(limit), left, right, nan_left=True)
        return TreeSplit(place_of[feature], float(threshold), left, right)

    return node() if _CONDITION.match(text) or _POLYNOMIAL.match(text) else None


def _goes_left(values: NDArray[np.float64], split: TreeSplit) -> NDArray[np.bool_]:
    """What goes left in Vespa."""
    if split.categories:
        return np.isin(values, split.categories)
    below = values < split.threshold
    return below | np.isnan(values) if split.nan_left else below


def write_profile(
    called: str, phase: str, rerank: int, terms: Sequence[str], features: Sequence[str], functions: Sequence[str] = ()
) -> str:
    """A rank profile that adds terms in a phase; a name that no profile can have raises an error."""
    if not _PLAIN.fullmatch(called):
        raise RankwiseError(f"the name of a rank profile must consist of letters, digits and _, got {called!r:.60}")
    if called in _PROFILES:
        raise RankwiseError(f"{called!r} cannot be the name of a rank profile: Vespa has one of that name")
    lines = [
        f"rank-profile {called} inherits default {{",
        *functions,
        f"    {phase}-phase {{",
        f"        rerank-count: {rerank}",
        "        expression {",
        *(f"            {'+ ' if number else ''}{term}" for number, term in enumerate(terms)),
        "        }",
        "    }",
        "    match-features {",
        *(f"        {feature}" for feature in features),
        "    }",
        "}",
    ]
    return "\n".join(lines) + "\n"


def read_terms(files: Mapping[str, Content]) -> list[str]:
    """The terms of a rank profile that :func:`write_profile` wrote."""
    (text,) = files.values()
    body = str(text).split("expression {\n")[1].split("\n        }")[0]
    return [line.strip().removeprefix("+ ") for line in body.splitlines()]


def rank_feature(name: str) -> str:
    """The name of a feature in Vespa; an invalid one raises an error, since it becomes part of an expression."""
    if _PLAIN.fullmatch(name):
        return f"attribute({name})"
    if _RANK_FEATURE.fullmatch(name):
        return name
    raise DataError(
        f"the feature name {name!r:.60} is not valid in Vespa: expected an attribute such as age, or a rank feature "
        "such as bm25(title); pass feature_names="
    )


def _number(value: float) -> str:
    """A number with all digits."""
    return repr(float(value))
