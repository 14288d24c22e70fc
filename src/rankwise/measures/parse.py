"""Read a measure from its spelling: ``nDCG(dcg='exp-log2')@10``, ``AP(rel=2)``, ``RR@10``.

The grammar is that of ir-measures. Names are those of the registry, in upper or lower case, with their aliases.
:func:`registered` lists the measures; :mod:`rankwise.measures.conventions` parses under the conventions of other tools.
"""

import ast
from collections.abc import Mapping
from typing import Any, cast

from rankwise._errors import MeasureError
from rankwise._registry import discover
from rankwise.measures._base import BinaryMeasure, Measure

# Where a parameter that is left out has another default in ir-measures than in rankwise.
IR_MEASURES_DEFAULTS: Mapping[str, Mapping[str, Any]] = {"nDCG": {"dcg": "log2"}}


def registered() -> dict[str, type[Measure]]:
    """Every measure by name: those of this package and those that installed packages declare."""
    return cast("dict[str, type[Measure]]", discover("rankwise.measures", Measure, "rankwise.measures"))


def parse(
    spelling: Any, *, defaults: Mapping[str, Mapping[str, Any]] | None = None, rel: float | None = None
) -> Measure:
    """Read a measure from its spelling.

    Parameters
    ----------
    spelling : str, Measure or ir_measures measure
        A text in ir-measures' grammar; a measure, which is returned as it is; or an ir-measures object, which keeps the
        meaning that it has in ir-measures (its short nDCG has linear gain).
    defaults : mapping of str to mapping, default=None
        Parameters by measure name for what the text leaves out, as the convention of another tool sets them.
    rel : float, default=None
        The smallest relevant label for binary measures that do not state their own.

    Returns
    -------
    Measure
        The measure.

    Raises
    ------
    MeasureError
        If the text does not follow the grammar, or names an unknown measure or parameter.

    Examples
    --------
    >>> parse("nDCG@10")
    nDCG(dcg='exp-log2')@10
    >>> parse("MAP(rel=2)")
    AP(rel=2)
    """
    if isinstance(spelling, Measure):
        return spelling
    if type(spelling).__module__.partition(".")[0] == "ir_measures":
        return _from_ir_measures(spelling)
    if not isinstance(spelling, str):
        raise MeasureError(f"a measure is a text such as 'nDCG@10' or a measure object: found {spelling!r}")
    name, parameters, cutoff = _read(spelling)
    kind = _named(name, spelling)
    given = dict((defaults or {}).get(kind.name, {}))
    if rel is not None and issubclass(kind, BinaryMeasure):
        given["rel"] = rel
    if "gains" in parameters:
        given.pop("dcg", None)  # a table replaces the gain of the convention
    return kind.from_spelling(cutoff, {**given, **parameters})


def _read(spelling: str) -> tuple[str, dict[str, Any], int | None]:
    """Split a text into name, parameters and cut-off."""
    problem = MeasureError(f"a measure is spelled name(parameter=value,...)@cutoff: found {spelling!r}")
    try:
        node = ast.parse(spelling.strip(), mode="eval").body
        cutoff = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            cutoff = ast.literal_eval(node.right)
            node = node.left
        parameters: dict[str, Any] = {}
        if isinstance(node, ast.Call):
            if node.args or any(word.arg is None for word in node.keywords):
                raise problem
            parameters = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
            node = node.func
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise problem from error
    if not isinstance(node, ast.Name):
        raise problem
    return node.id, parameters, cutoff


def _named(name: str, spelling: str) -> type[Measure]:
    """The registered class of this name or alias."""
    kinds = registered()
    by_name = {alias.lower(): kind for kind in kinds.values() for alias in (kind.name, *kind.aliases)}
    kind = by_name.get(name.lower())
    if kind is None:
        raise MeasureError(f"no measure is called {name!r} (in {spelling!r}); known: {', '.join(sorted(kinds))}")
    return kind


def _from_ir_measures(measure: Any) -> Measure:
    """The measure that an ir-measures object stands for."""
    name = str(measure.NAME)
    parameters = dict(measure.params)
    cutoff = parameters.pop("cutoff", None)
    if parameters.pop("judged_only", False):
        raise MeasureError(
            f"judged_only is not known here: leave unjudged documents out instead of asking for {measure!r}"
        )
    if name == "RBP" and "rel" not in parameters:
        raise MeasureError("ir-measures' RBP without rel= is the graded form, which rankwise does not have: give rel=")
    return _named(name, repr(measure)).from_spelling(cutoff, {**IR_MEASURES_DEFAULTS.get(name, {}), **parameters})
