"""What every command that reads judged lists shares: its options, and the one way from a file to lists."""

import os
import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwise._errors import RankwiseError
from rankwise.data.plain_text import plain_number

if TYPE_CHECKING:
    from rankwise.data.queries import Queries

_TABLES = "Columns of a table (parquet, Arrow, CSV)"
_VALUES = "What the lists may hold"
OF_TABLES = ("qid", "label", "docid", "ignore", "grades", "features")


class Missing(StrEnum):
    """What to do with missing feature values."""

    error = "error"
    zero = "zero"
    min = "min"


class Unjudged(StrEnum):
    """What to do with negative labels."""

    error = "error"
    drop = "drop"
    zero = "zero"


class Base(StrEnum):
    """Where feature ids of a text begin."""

    auto = "auto"
    zero = "0"
    one = "1"


JudgedArgument = Annotated[
    Path,
    typer.Argument(help="Judged lists: LETOR text, CSV (either may be .gz; - is standard input), parquet, .rankwise."),
]
MissingOption = Annotated[
    Missing,
    typer.Option(help="NaN, NULL, empty cells: refuse, 0, or the smallest of the query.", rich_help_panel=_VALUES),
]
UnjudgedOption = Annotated[
    Unjudged,
    typer.Option(help="Negative or empty labels: refuse, drop the document, or label 0.", rich_help_panel=_VALUES),
]
BaseOption = Annotated[
    Base,
    typer.Option(
        "--first-id", help="First feature id of a LETOR text; auto: 0 if an id 0 occurs.", rich_help_panel=_VALUES
    ),
]
QidOption = Annotated[str, typer.Option("--qid", help="Column of query ids.", rich_help_panel=_TABLES)]
LabelOption = Annotated[str, typer.Option("--label", help="Column of labels.", rich_help_panel=_TABLES)]
DocidOption = Annotated[str | None, typer.Option("--docid", help="Column of document ids.", rich_help_panel=_TABLES)]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option("--ignore", help="Column that is no feature; may be repeated.", rich_help_panel=_TABLES),
]
GradesOption = Annotated[
    str | None,
    typer.Option(
        "--labels", help="What the words of the label column mean: bad=0,fair=1,good=2.", rich_help_panel=_TABLES
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table for people.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything that chance decides.")]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of :func:`options` as its last, in place of ``reads``, which is what they mean."""
    shared = signature(options).parameters
    own = [one for name, one in signature(command).parameters.items() if name != "reads"]

    @wraps(command)
    def called(**given: Any) -> None:
        reads = options(**{name: given.pop(name) for name in shared})
        command(**given, reads=reads)

    called.__signature__ = Signature([*own, *shared.values()])  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in (*own, *shared.values())}
    return called


def options(
    missing: MissingOption = Missing.error,
    unjudged: UnjudgedOption = Unjudged.error,
    base: BaseOption = Base.auto,
    qid: QidOption = "qid",
    label: LabelOption = "label",
    docid: DocidOption = None,
    ignore: IgnoreOption = None,
    grades: GradesOption = None,
) -> dict[str, Any]:
    """The keyword arguments of :func:`read_lists` that these options mean; those of tables alone where given."""
    found: dict[str, Any] = {
        "missing": missing.value,
        "unjudged": unjudged.value,
        "zero_based": "auto" if base is Base.auto else base is Base.zero,
        "qid": qid,
        "label": label or None,
    }
    given = {"docid": docid, "ignore": ignore, "grades": None if grades is None else as_grades(grades)}
    return found | {name: value for name, value in given.items() if value}


def for_rankers(settings: dict[str, Any], rankers: Iterable[Any]) -> dict[str, Any]:
    """The same, reading of a table the features that these rankers have learned from, where all of them have names."""
    known = [ranker._names() for ranker in rankers]
    if not known or None in known:
        return settings
    return {**settings, "features": list(dict.fromkeys(name for names in known for name in names or ()))}


def as_grades(text: str) -> dict[str, float]:
    """``bad=0,good=1`` as a dict."""
    found: dict[str, float] = {}
    for pair in text.split(","):
        word, equals, grade = pair.rpartition("=")
        value = plain_number(grade.strip())
        if value is None or not equals or not word.strip():
            raise RankwiseError(f"--labels takes WORD=GRADE pairs, such as bad=0,good=1: found {pair!r:.60}")
        found[word.strip()] = value
    return found


def read_lists(path: Path, settings: dict[str, Any]) -> "Queries":
    """Judged lists from whatever the file holds; ``-`` is standard input, LETOR text or CSV."""
    from rankwise.data.anyfile import read_any
    from rankwise.data.letor.read import read_letor
    from rankwise.data.sources import peeked
    from rankwise.data.tabular.frames import is_table, read_table

    of_tables = {name: value for name, value in settings.items() if name in (*OF_TABLES, "missing", "unjudged")}
    of_texts = {name: value for name, value in settings.items() if name not in OF_TABLES}
    refuse_what_cannot_be(path)
    if os.fspath(path) == "-" or (path.exists() and not path.is_file()):  # what can be read once
        with peeked(path) as source:
            return read_table(source, **of_tables) if source.kind == "csv" else read_letor(source, **of_texts)
    if is_table(path):
        return read_table(path, **of_tables)
    if looks_like_csv(path):
        with peeked(path) as source:
            return read_table(source, **of_tables)
    return read_any(path, **of_texts)


def is_csv(path: Path) -> bool:
    """Whether the name of a table says CSV."""
    from rankwise.data.tabular.frames import CSV, suffix_of

    return suffix_of(path) in CSV


def looks_like_csv(path: Path) -> bool:
    """Whether a file with any name begins with a line of names, and no number among them, as CSV does."""
    from rankwise.data.anyfile import kind_of
    from rankwise.data.sources import peeked

    if not path.is_file() or kind_of(path) != "text" or not path.stat().st_size:
        return False
    with peeked(path) as source:
        first = source.head.splitlines()[0]
        return source.kind == "csv" and not any(cell.strip().isdigit() for cell in re.split(rb"[,;|\t]", first))


def read_scored(judged: Path, scores: Path, settings: dict[str, Any], opened: dict[str, Any]) -> tuple["Queries", Any]:
    """Judged lists and the scores of their documents; ``opened`` keeps the lists for the next file of scores."""
    from rankwise.data.tabular.frames import is_table
    from rankwise.evaluation.files import open_pair, read_scores

    refuse_what_cannot_be(judged)
    if "queries" not in opened and (os.fspath(judged) == "-" or is_table(judged) or looks_like_csv(judged)):
        opened["queries"] = read_lists(judged, settings)
    if "queries" in opened:
        return opened["queries"], read_scores(scores, opened["queries"])
    return open_pair(judged, scores, opened, **{name: settings[name] for name in settings if name not in OF_TABLES})


def refuse_what_cannot_be(path: Path) -> None:
    """A folder, or a workbook, is told as such."""
    if path.suffix.lower() in (".xlsx", ".xls", ".ods"):
        raise RankwiseError(f"{path} is a workbook: save its sheet as CSV, and give that file")
    if path.is_dir():
        inside = sorted(one.name for one in path.iterdir() if one.is_file())
        held = f", such as {path / inside[0]}" if inside else ""
        raise RankwiseError(f"{path} is a folder: give a file{held} (compare takes a folder of folds)")
