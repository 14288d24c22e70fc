"""``rankwise split``: divide a file of judged queries into parts or folds, by query.

A table keeps its rows as they are, with every column; other files are read and written again. All files are written
into a new folder under a temporary name, which is renamed when everything is complete.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._files import new_folder
from rankwise.cli import reading
from rankwise.cli.options import option
from rankwise.errors import RankwiseError
from rankwise.io.sources import plain_number
from rankwise.queries.queries import Queries

if TYPE_CHECKING:
    from rankwise.queries.parts.parts import Parts

_PARTS = "train=0.6,vali=0.2,test=0.2"
_FOLD_FILES = ("train", "vali", "test")


@reading.with_options
def split(
    data: reading.JudgedArgument,
    parts: str | None = option(None, f"NAME=SHARE of queries, adding up to 1 (default {_PARTS})."),
    folds: int | None = option(None, "Instead of --parts: this many folds, each with train, vali and test.", min=3),
    out: Path | None = option(None, "The folder, which must be new (default: named after the file).", "-o"),
    to: Literal["csv", "txt", "parquet", "rankwise"] | None = option(
        None, "Output format (default: that of the file)."
    ),
    seed: reading.SeedOption = 0,
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Split a file of judged queries into parts or folds; a query is never split.

    The same seed gives the same split. CSV, parquet and Arrow files keep all columns and require only --qid; --to
    another format reads the features. A folder of parts is split into folders of parts. Folds are folders Fold1,
    Fold2 ... which compare reads as .txt.

    Example: rankwise split my.csv --parts train=0.6,vali=0.2,test=0.2 --qid query

    Example: rankwise split judged.txt --folds 5 --out folds
    """
    if parts is not None and folds is not None:
        raise RankwiseError("--parts and --folds cannot be combined")
    shares = as_shares(parts or _PARTS)
    target = _folder(data, out)
    opened = _open(data, to, reads)
    written: dict[str, Any] = {}
    with new_folder(target, "train") as folder:
        for name, numbers in _draw_parts(len(opened.queries), shares, folds, seed).items():
            rows = np.zeros(0, np.int64)
            if isinstance(opened.queries, Queries):
                rows = np.flatnonzero(np.isin(opened.queries.query_of_row, numbers))
            file = folder / f"{name}{opened.ending}"
            file.parent.mkdir(exist_ok=True)
            opened.write(numbers, rows, file)
            counts = {"queries": len(numbers), "documents": int(opened.queries.sizes[numbers].sum())}
            written[name] = {"file": str(target / f"{name}{opened.ending}"), **counts}
    if as_json:
        print(json.dumps({"out": str(target), "seed": seed, "parts": written}))
        return
    for one in written.values():
        print(f"{one['file']}: {one['queries']:,} queries, {one['documents']:,} documents")


def as_shares(text: str) -> dict[str, float]:
    """Parse ``train=0.8,test=0.2``.

    Parameters
    ----------
    text : str
        NAME=SHARE pairs; names become names of files.

    Returns
    -------
    dict of str to float
        The share of each part.
    """
    shares: dict[str, float] = {}
    for pair in text.split(","):
        name, equals, share = (one.strip() for one in pair.partition("="))
        value = plain_number(share)
        if not equals or value is None or not re.fullmatch(r"\w[\w-]*", name):
            raise RankwiseError(f"--parts must be NAME=SHARE pairs, such as {_PARTS}, got {pair!r:.60}")
        if name in shares:
            raise RankwiseError(f"--parts must have unique names, got {name!r} twice")
        shares[name] = value
    return shares


class _Opened(NamedTuple):
    """A file that was read, and how some of its queries are written."""

    queries: "Queries | Parts"
    ending: str
    write: Callable[[NDArray[np.int64], NDArray[np.int64], Path], Any]  # numbers of queries, rows, file


def _open(data: Path, to: str | None, reads: dict[str, Any]) -> _Opened:
    """Open the file: a table that stays one keeps its rows, anything else is read as queries."""
    from rankwise.io.any_file import keep_rows, kind_of
    from rankwise.io.sources import open_text
    from rankwise.io.tables.rows import ARROW_ENDINGS, is_arrow, suffix_of

    if reading.is_parts(data):
        return _as_parts(data, to)
    reading.refuse_folders(data)
    own, qid = suffix_of(data), reading.with_defaults(reads)["qid"]
    kept = None
    if is_arrow(str(data)) and to in (None, own[1:]):
        kept, own = keep_rows(data, qid), own if own in ARROW_ENDINGS else ".parquet"
    elif to in (None, "csv") and not is_arrow(str(data)):
        from_stream = str(data) == "-" or (data.exists() and not data.is_file())
        if from_stream or kind_of(data) == "table":
            with open_text(data) as source:
                if source.is_table:
                    kept = keep_rows(source, qid)
                    own = ".csv" if source.kind == "records" or from_stream else own
                elif from_stream:
                    from rankwise.io.letor.read import read_letor

                    return _as_queries(read_letor(source, **reading.of_letor(data, reads)), f".{to or 'txt'}")
    if kept is not None:
        packed = ".gz" if data.name.lower().endswith(".gz") else ""
        ending = f"{own or '.csv'}{packed}"
        table = kept
        return _Opened(kept.queries, ending, lambda _, rows, file: table.write(rows, file))
    queries = reading.read_queries(data, reads)
    text = own in (".txt", ".letor", ".dat", ".svm")
    ending = f".{to}" if to else own if text or own in (".rankwise", ".safetensors") else ".txt"
    packed = ".gz" if to is None and text and data.name.endswith(".gz") else ""
    return _as_queries(queries, ending + packed)


def _as_queries(queries: "Queries", ending: str) -> _Opened:
    """Queries that are written again in the format of the ending."""
    from rankwise.io.any_file import write_any

    return _Opened(queries, ending, lambda numbers, _, file: write_any(queries[numbers], file))


def _as_parts(data: Path, to: str | None) -> _Opened:
    """A data set in parts, whose division is written as data sets in parts."""
    from rankwise.io.convert import write_parts
    from rankwise.queries.parts.parts import Parts

    if to is not None:
        raise RankwiseError("--to does not apply to a data set in parts, which is divided into data sets in parts")
    whole = Parts(data)
    return _Opened(whole, "", lambda numbers, _, folder: write_parts(whole[numbers], folder))


def _draw_parts(count: int, shares: dict[str, float], folds: int | None, seed: int) -> dict[str, NDArray[np.int64]]:
    """The numbers of the queries of each file; the division is that of ``rankwise.split`` and ``rankwise.kfold``."""
    from rankwise.queries import folds as dividing

    every = Queries.from_arrays(np.arange(count, dtype=np.float64).reshape(-1, 1), None, group=[1] * count)

    def numbers(part: "Queries") -> NDArray[np.int64]:
        return np.asarray(part.X[:, 0], dtype=np.int64)

    if folds is None:
        found = dividing.split(every, list(shares.values()), random_state=seed)
        return {name: numbers(part) for name, part in zip(shares, found, strict=True)}
    return {
        f"Fold{number}/{name}": numbers(part)
        for number, fold in enumerate(dividing.kfold(every, folds, random_state=seed), start=1)
        for name, part in zip(_FOLD_FILES, fold, strict=True)
    }


def _folder(data: Path, out: Path | None) -> Path:
    """Choose the folder, and check before anything is read that it is new and can be made."""
    if out is None and str(data) == "-":
        raise RankwiseError("reading from standard input requires --out FOLDER")
    stem = re.split(r"(?<=.)\.", data.name, maxsplit=1)[0]
    target = out or Path(stem if stem != data.name else f"{stem}-parts")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise RankwiseError(f"{target} already exists: choose a new folder with --out")
    reading.check_writable(target)
    return target
