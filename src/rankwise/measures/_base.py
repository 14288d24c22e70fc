"""The contract of a measure.

A measure is a value: hashable, comparable, printed in ir-measures' spelling, and called on the scores and labels of one
query. A measure file holds the class with its parameters, how labels become the numbers that are ranked
(:meth:`Measure.row_values`), and a kernel compiled for one ranked list. The four ways to break ties come for free:
under "expected" the kernel sees blocks of equal scores; under the other three it sees every block already sorted and
cut into blocks of one. The kernel is therefore written once, for blocks.

:mod:`rankwise.measures.compute` runs measures over many queries. It is imported by the first call, because it imports
numba and this module is imported by nearly everything.

The grammar of spellings is that of ir-measures: :func:`parse` reads ``nDCG(dcg='exp-log2')@10``, ``AP(rel=2)`` or
``RR@10``. Names are those of the registry (:func:`registered`), in upper or lower case, with their aliases;
:mod:`rankwise.measures.conventions` parses under the conventions of other tools.
"""

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._parameters import PositiveFloat, PositiveInt, check_parameters
from rankwise._registry import discover
from rankwise._tables import ShownAsFacts
from rankwise.errors import MeasureError, RankwiseError, nearest
from rankwise.queries import checks

if TYPE_CHECKING:
    from rankwise.measures.conventions import Convention

Ties = Literal["expected", "pessimistic", "optimistic", "stable"]
Empty = Literal["skip", "zero", "one"]
Vector = NDArray[np.float64]

# Codes of the ways to break ties in compiled code.
TIES: dict[str, int] = {"expected": 0, "pessimistic": 1, "optimistic": 2, "stable": 3}


@dataclass(frozen=True, kw_only=True, repr=False)
class Measure(ShownAsFacts):
    """Base class of all measures.

    Parameters
    ----------
    cutoff : int, default=None
        Only the first ``cutoff`` positions count; None means the whole list. ``measure @ 10`` sets it.

    Attributes
    ----------
    name : str
        The name in the registry and in the printed form.
    aliases : tuple of str
        Other names that :func:`rankwise.measures.parse` accepts.
    takes_cutoff, needs_cutoff : bool
        Whether a cut-off is allowed, and whether it is required.
    needs_ideal : bool
        Whether the kernel takes the largest row values, in decreasing order, as ``best``.
    at_most_one : bool
        Whether 1 is the value of a perfect ranking, and no value is larger.
    binary : bool
        Whether documents are only relevant or not, so row values are 0 and 1.
    depends_on_labels : bool
        Whether labels decide the value. No ranker can be trained for a measure where they do not.
    grows_to_one : bool
        Whether M@k never falls as k grows, and is 1 at the end of the list.
    kernel : compiled function
        The measure of one ranked list; see Notes.

    Notes
    -----
    The kernel is called as ``kernel(value, end, retrieved, best, table, params)`` for one query: ``value`` holds the
    row values by decreasing score (sorted in ascending order inside a tie block), ``end[t]`` the end of the block that
    begins at t, ``retrieved`` the number of documents that take a position, ``best`` all row values (if
    ``needs_ideal``: the largest ones up to the cut-off, in decreasing order), ``table`` what :meth:`table` returned and
    ``params`` the numbers of :meth:`all_params`. It returns NaN for a query on which the measure is 0/0.
    """

    cutoff: PositiveInt | None = None

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    takes_cutoff: ClassVar[bool] = True
    needs_cutoff: ClassVar[bool] = False
    needs_ideal: ClassVar[bool] = False
    at_most_one: ClassVar[bool] = True
    binary: ClassVar[bool] = False
    depends_on_labels: ClassVar[bool] = True
    grows_to_one: ClassVar[bool] = False
    kernel: ClassVar[Any]

    def __post_init__(self) -> None:
        if self.cutoff is not None and not self.takes_cutoff:
            raise MeasureError(f"{self.name} looks at the whole list and takes no cut-off, got @{self.cutoff}")
        check_parameters(self, self.name, MeasureError)
        if self.cutoff is not None:
            object.__setattr__(self, "cutoff", int(self.cutoff))

    def __matmul__(self, cutoff: int) -> Self:
        return replace(self, cutoff=cutoff)

    # ------------------------------------------------------------------------------------- facts, and for the kernel

    @property
    def linear_in_labels(self) -> bool:
        """Whether the measure is sum_d label_d f_d(ranking): unbiased estimates may then take the place of labels."""
        return False

    @property
    def decisive_positions(self) -> float:
        """How many of the first positions decide whether a ranking is perfect; infinite for the whole list."""
        return math.inf if self.cutoff is None else float(self.cutoff)

    def row_values(self, labels: Vector) -> Vector:
        """The numbers that the kernel ranks: gains, 0/1 relevance, or the labels themselves.

        Parameters
        ----------
        labels : ndarray, shape (n_documents,)
            Labels of the documents.

        Returns
        -------
        ndarray, shape (n_documents,)
            One number per document.
        """
        return labels

    def row_values_judged(self, labels: Vector, judged: NDArray[np.bool_]) -> Vector:
        """As :meth:`row_values` where not all documents were judged; for most measures the others have label 0.

        Parameters
        ----------
        labels : ndarray, shape (n_documents,)
            Labels of the documents, 0 for those that were not judged.
        judged : ndarray of bool, shape (n_documents,)
            Whether each document was judged.

        Returns
        -------
        ndarray, shape (n_documents,)
            One number per document.
        """
        return self.row_values(labels)

    def table(self, longest: int) -> Vector:
        """Numbers by position, such as discounts.

        Parameters
        ----------
        longest : int
            Number of documents of the longest query.

        Returns
        -------
        ndarray
            By default empty.
        """
        return np.zeros(0)

    def at_each_cutoff(self, value: Vector) -> Vector | None:
        """M@1, M@2, ... of one ranked list without ties, where there is a formula for all of them; otherwise None.

        Parameters
        ----------
        value : ndarray, shape (n_documents,)
            The row values by decreasing score; at least one is above 0.

        Returns
        -------
        ndarray of shape (n_documents,) or None
            The measure at every cut-off.
        """
        return None

    def params(self) -> tuple[float, ...]:
        """What the kernel needs besides the cut-off, which is always its first parameter."""
        return ()

    def all_params(self) -> Vector:
        """The cut-off (infinite if there is none), followed by :meth:`params`."""
        if self.needs_cutoff and self.cutoff is None:
            raise MeasureError(f"{self.name} needs a cut-off, for example {self.name}@10")
        return np.array([np.inf if self.cutoff is None else self.cutoff, *self.params()], dtype=np.float64)

    # ------------------------------------------------------------------------------------- spelling

    def spelling(self) -> dict[str, Any]:
        """Parameters as they are printed; only those that differ from the default of the printed form."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "cutoff" and getattr(self, field.name) != field.default
        }

    @classmethod
    def from_spelling(cls, cutoff: int | None, parameters: Mapping[str, Any]) -> Self:
        """Make the measure that printed parameters stand for.

        Parameters
        ----------
        cutoff : int or None
            The cut-off.
        parameters : mapping of str to object
            As :meth:`spelling` returns them.

        Returns
        -------
        Measure
            The measure.

        Raises
        ------
        MeasureError
            If a parameter is unknown or not valid.
        """
        known = [field.name for field in fields(cls) if field.name != "cutoff"]
        unknown = next((name for name in parameters if name not in known), None)
        if unknown is not None:
            offered = ", ".join(known) if known else "none"
            raise MeasureError(f"{cls.name} has no parameter {unknown!r}; it knows: {offered}")
        return cls(cutoff=cutoff, **parameters)

    def __repr__(self) -> str:
        return self._print(self.spelling())

    @property
    def title(self) -> str:
        """The shortest spelling that is parsed as this measure; the title of its column in tables."""
        return self._print(self._short_spelling())

    def _short_spelling(self) -> dict[str, Any]:
        return self.spelling()

    def _print(self, parameters: Mapping[str, Any]) -> str:
        inside = ",".join(f"{name}={_literal(value)}" for name, value in parameters.items())
        cut = "" if self.cutoff is None else f"@{self.cutoff}"
        return f"{self.name}{f'({inside})' if inside else ''}{cut}"

    # ------------------------------------------------------------------------------------- for users

    def __call__(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        ties: Ties = "expected",
        empty: Empty = "skip",
        judged: ArrayLike | None = None,
    ) -> float:
        """Measure one query.

        Parameters
        ----------
        scores : array-like, shape (n_documents,)
            A higher score is ranked first; -inf marks a document that was not retrieved.
        labels : array-like, shape (n_documents,)
            Labels, 0 or more.
        ties : {"expected", "pessimistic", "optimistic", "stable"}, default="expected"
            How equal scores are ordered. "expected" averages over all orders.
        empty : {"skip", "zero", "one"}, default="skip"
            The value where the measure is 0/0; "skip" gives NaN.
        judged : array-like of bool, shape (n_documents,), default=None
            Whether each document was judged; None: all were.

        Returns
        -------
        float
            The measure.

        Examples
        --------
        >>> from rankwise.measures import NDCG
        >>> (NDCG() @ 3)([0.3, 0.1, 0.9], [2, 0, 1])
        0.7967075809905066
        """
        from rankwise.measures.compute import ScoredLists, fill_empty, measure_lists_by_ties

        y = checks.as_one_list(labels, "labels")
        y = checks.as_labels(y, len(y))
        s = checks.as_scores(checks.as_one_list(scores, "scores"), len(y))
        known = None if judged is None else checks.as_judged(judged, y)
        lists = ScoredLists(s, y, np.array([0, len(y)]), judged=known)
        values = measure_lists_by_ties([self], lists, [ties], n_jobs=1)
        return float(fill_empty(values, empty)[0, 0, 0])


@dataclass(frozen=True, kw_only=True, repr=False)
class BinaryMeasure(Measure):
    """Base class of the measures that only tell relevant documents from others.

    Parameters
    ----------
    cutoff : int, default=None
        Only the first ``cutoff`` positions count; None means the whole list.
    rel : float, default=1
        A document is relevant if its label is at least this.
    """

    rel: PositiveFloat = 1

    binary = True

    def row_values(self, labels: Vector) -> Vector:
        """1 for relevant documents, 0 for others."""
        return (labels >= self.rel).astype(np.float64)


def _literal(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_literal(key)}:{_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return repr(value)


# ----------------------------------------------------------------------------------------------------------- spelling


# Where a parameter that is left out has another default in ir-measures than in rankwise.
IR_MEASURES_DEFAULTS: Mapping[str, Mapping[str, Any]] = {"nDCG": {"dcg": "log2"}}


# Names that only trec_eval uses, and what they mean there.
TREC_EVAL_NAMES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "map_cut": ("AP", {}),
    "ndcg_cut": ("nDCG", {"dcg": "log2"}),
    "P": ("P", {}),
    "recall": ("R", {}),
    "recip_rank": ("RR", {}),
    "success": ("Success", {}),
}
_TREC_EVAL = re.compile(r"\s*(map_cut|ndcg_cut|P|recall|success)[_.]([0-9]{1,9})\s*|\s*(recip_rank)\s*")


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

    Notes
    -----
    Names of trec_eval that nothing else is called by, such as ``ndcg_cut_10``, ``P_5``, ``recall_100``, ``map_cut_10``,
    ``recip_rank`` and ``success_1``, mean what they mean there; pytrec_eval's ``ndcg_cut.10`` is the same.

    Examples
    --------
    >>> parse("nDCG@10")
    nDCG(dcg='exp-log2')@10
    >>> parse("ndcg_cut_10")
    nDCG(dcg='log2')@10
    >>> parse("MAP(rel=2)")
    AP(rel=2)
    """
    if isinstance(spelling, Measure):
        return spelling
    if type(spelling).__module__.partition(".")[0] == "ir_measures":
        return _from_ir_measures(spelling)
    if not isinstance(spelling, str):
        raise MeasureError(f"a measure must be a string such as 'nDCG@10' or a measure object, got {spelling!r}")
    return _parse_text(spelling) if defaults is None and rel is None else _parse_with(spelling, defaults or {}, rel)


def _parse_with(spelling: str, defaults: Mapping[str, Mapping[str, Any]], rel: float | None) -> Measure:
    """Read a measure from a text, with values for what the text leaves out."""
    name, parameters, cutoff = _read(spelling)
    kind = _find_kind(name, spelling)
    given = dict(defaults.get(kind.name, {}))
    if rel is not None and issubclass(kind, BinaryMeasure):
        given["rel"] = rel
    if "gains" in parameters:
        given.pop("dcg", None)  # a table replaces the gain of the convention
    return kind.from_spelling(cutoff, {**given, **parameters})


@lru_cache(maxsize=256)  # rankers parse their measure in every round, the service with every event: 70 us
def _parse_text(spelling: str) -> Measure:
    return _parse_with(spelling, {}, None)


def _read(spelling: str) -> tuple[str, Mapping[str, Any], int | None]:
    """Split a text into name, parameters and cut-off."""
    if found := _TREC_EVAL.fullmatch(spelling):
        name, own = TREC_EVAL_NAMES[found[1] or found[3]]
        return name, own, int(found[2]) if found[2] else None
    problem = MeasureError(f"a measure must be spelled name(parameter=value,...)@cutoff, got {spelling!r}")
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


def _find_kind(name: str, spelling: str) -> type[Measure]:
    """The registered class of this name or alias."""
    kinds = registered()
    by_name = {alias.lower(): kind for kind in kinds.values() for alias in (kind.name, *kind.aliases)}
    kind = by_name.get(name.lower())
    if kind is None:
        meant = nearest(name, by_name)
        # under the name that it has in tables, with the cut-off and the parameters of the text
        whole = None if meant is None else spelling.replace(name, by_name[meant].name, 1)
        question = "" if whole is None else f" (did you mean {whole!r}?)"
        raise MeasureError(f"no measure is called {name!r}{question}; known: {', '.join(sorted(kinds))}")
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
    return _find_kind(name, repr(measure)).from_spelling(cutoff, {**IR_MEASURES_DEFAULTS.get(name, {}), **parameters})


def settle(
    measures: str | Measure | Sequence[str | Measure], like: str | None = None, rel: float | None = None
) -> "tuple[Convention | None, list[Measure], list[str]]":
    """Read the measures of a call under the convention that it names.

    Parameters
    ----------
    measures : str, Measure or sequence of these
        What the user asked for.
    like : str, default=None
        The tool whose conventions apply; None for rankwise's own.
    rel : float, default=None
        The smallest relevant label for binary measures that do not state their own.

    Returns
    -------
    tool : Convention or None
        The convention.
    parsed : list of Measure
        The measures.
    titles : list of str
        The titles of their columns.

    Raises
    ------
    RankwiseError
        If there is no measure, or two have the same title.
    """
    wanted = (
        [measures] if isinstance(measures, (str, Measure)) or not isinstance(measures, Sequence) else list(measures)
    )
    if not wanted:
        raise RankwiseError("measures must name at least one measure, got none")
    tool = None
    if like is not None:
        from rankwise.measures.conventions import convention

        tool = convention(like)
    parsed = [parse(spelling, rel=rel) if tool is None else tool.parse(spelling, rel) for spelling in wanted]
    titles = [measure.title if tool is None else tool.title(measure) for measure in parsed]
    if len(set(titles)) != len(titles):
        raise RankwiseError(f"measures must differ, got {', '.join(titles)}")
    return tool, parsed, titles
