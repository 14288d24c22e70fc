"""The manifest of a data set in parts: ``manifest.json``, which says what the folder holds.

The manifest is written last, so a folder without one is not a data set. It lists the files with their sizes and
checksums, and it holds what is known of the data set as a whole (counts, labels, features). What there is one of per
query is in the *index*, a file of :mod:`rankwise._store` with these arrays:

=================== ====== =====================================================================
array               type   content
=================== ====== =====================================================================
start               I64    the offsets of all queries, in the order of the parts
weight              F64    one per query, if there are any
content             U64    a hash of every query's content, see :mod:`rankwise.queries.fingerprints`
sketches            U32    the sketches of four of its documents
=================== ====== =====================================================================

Nothing in a manifest is trusted: it may come from a stranger or from a damaged disk. Names of files are plain names
inside the folder.

What it says of the values, their labels, ranges and sums, is collected by :class:`Summary`. Sums are exact sums of the
values (and of their squares, each of which is rounded to float64; those of float32 are exact), rounded once. So they
depend neither on the order of the rows nor on the cut into blocks and parts.

References
----------
S. M. Rump, T. Ogita and S. Oishi (2008). Accurate floating-point summation part I: faithful rounding. SIAM Journal on
Scientific Computing 31(1), 189-224. doi:10.1137/050645671
"""

import json
import math
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankwise._files import writing
from rankwise._version import __version__
from rankwise.errors import FileFormatError, in_one_line
from rankwise.queries.checks import Floats
from rankwise.queries.queries import Queries

NAME = "manifest.json"
INDEX = "index.rankwise"
KIND = "rankwise parts"
INDEX_KIND = "index of parts"
FORMAT = 1

_LARGEST = 1 << 28  # bytes: a longer manifest is not one of ours
_PLAIN = re.compile(r"[^/\\\0]{1,255}")
_SHA256 = re.compile(r"[0-9a-f]{64}")

Ids = Literal["none", "numbers", "texts"]


@dataclass(frozen=True)
class PartFile:
    """One file of the folder.

    Attributes
    ----------
    file : str
        Its name inside the folder.
    queries : int
        The number of its queries.
    documents : int
        The number of its documents.
    bytes : int
        Its size.
    sha256 : str
        The checksum of its content.
    """

    file: str
    queries: int
    documents: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The description of a data set in parts.

    Attributes
    ----------
    parts : tuple of PartFile
        The files with the queries, in order.
    index : PartFile
        The file with what there is one of per query.
    features : int
        The number of features.
    dtype : {"float32", "float64"}
        The type of the features.
    labelled : bool
        Whether there are labels.
    ids : {"none", "numbers", "texts"}
        The kind of the query ids.
    docids : bool
        Whether any part has document ids.
    document_weights : bool
        Whether any part has document weights.
    feature_names : tuple of str, or None
        The names of the features.
    facts : dict
        What is known of the values; see :class:`Summary`.
    """

    parts: tuple[PartFile, ...]
    index: PartFile
    features: int
    dtype: str
    labelled: bool
    ids: Ids
    docids: bool
    document_weights: bool
    feature_names: tuple[str, ...] | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def queries(self) -> int:
        """The number of queries of all parts."""
        return sum(part.queries for part in self.parts)

    @property
    def documents(self) -> int:
        """The number of documents of all parts."""
        return sum(part.documents for part in self.parts)

    @property
    def bytes(self) -> int:
        """The size of all parts."""
        return sum(part.bytes for part in self.parts)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write the manifest into a folder, as a whole.

        Parameters
        ----------
        folder : path
            The folder of the parts.
        """
        content = {"kind": KIND, "format": FORMAT, "version": __version__}
        content |= {"queries": self.queries, "documents": self.documents}  # for people; the parts have them, too
        content |= asdict(self)
        with writing(Path(folder) / NAME) as file:
            file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """Read and check the manifest of a folder.

    Parameters
    ----------
    folder : path
        The folder.

    Returns
    -------
    manifest : Manifest
        What it says.

    Raises
    ------
    FileFormatError
        If the folder has no manifest, or one that cannot be read or contradicts itself.
    """
    path = Path(folder) / NAME
    try:
        if not path.is_file():
            raise FileFormatError(
                f"{os.fspath(folder)} is a folder without {NAME}, so it is not a finished data set in parts, as "
                "rankwise convert writes it"
            )
        if path.stat().st_size > _LARGEST:
            raise FileFormatError(f"{path} is damaged: it has {path.stat().st_size:,} bytes")
        content = json.loads(path.read_bytes())
    except FileFormatError:
        raise
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path} is damaged: {in_one_line(error)}") from error
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise FileFormatError(f"{path} is not the manifest of a data set in parts")
    number = content.get("format")
    if isinstance(number, int) and number > FORMAT:
        raise FileFormatError(
            f"{path} has format {number!s:.20}, written by rankwise {content.get('version')!s:.20}; this is rankwise "
            f"{__version__}, which reads formats up to {FORMAT}: install a newer one"
        )
    return _check(content, str(path))


def _check(content: dict[str, Any], path: str) -> Manifest:
    """The manifest from its JSON."""

    def fact(holder: Any, name: str, kind: type | tuple[type, ...], least: int | None = None) -> Any:
        value: Any = holder.get(name) if isinstance(holder, dict) else None
        good = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not good or (least is not None and not least <= value < 2**62):
            raise FileFormatError(f"{path} is damaged: its {name!r} is {value!r:.60}")
        return value

    def file(entry: Any) -> PartFile:
        name, checksum = fact(entry, "file", str), fact(entry, "sha256", str)
        if not _PLAIN.fullmatch(name) or name in (".", "..", NAME):
            raise FileFormatError(f"{path} is damaged: it names the file {name!r:.60}, expected a name in its folder")
        if not _SHA256.fullmatch(checksum):
            raise FileFormatError(f"{path} is damaged: its 'sha256' is {checksum!r:.60}")
        queries, documents, size = (fact(entry, count, int, 0) for count in ("queries", "documents", "bytes"))
        return PartFile(name, queries, documents, size, checksum)

    parts = tuple(map(file, fact(content, "parts", list)))
    index = file(content.get("index"))
    used = [part.file for part in (*parts, index)]
    if len(set(used)) < len(used):
        raise FileFormatError(f"{path} is damaged: it names a file twice")
    names, width = content.get("feature_names"), fact(content, "features", int, 0)
    if names is not None:
        names = tuple(fact(content, "feature_names", list))
        if not all(isinstance(name, str) for name in names) or not len(set(names)) == len(names) == width:
            raise FileFormatError(f"{path} is damaged: its feature names are not {width} different texts")
    manifest = Manifest(
        parts,
        index,
        width,
        fact(content, "dtype", str),
        fact(content, "labelled", bool),
        fact(content, "ids", str),
        fact(content, "docids", bool),
        fact(content, "document_weights", bool),
        names,
        fact(content, "facts", dict),
    )
    if manifest.dtype not in ("float32", "float64") or manifest.ids not in get_args(Ids):
        raise FileFormatError(f"{path} is damaged: it says dtype {manifest.dtype!r:.40} and ids {manifest.ids!r:.40}")
    for name, count in (("queries", manifest.queries), ("documents", manifest.documents)):
        if fact(content, name, int, 0) != count or (count >= 2**62):
            raise FileFormatError(f"{path} is damaged: its parts hold {count:,} {name}, and it says {content[name]:,}")
    if (index.queries, index.documents) != (manifest.queries, manifest.documents):
        raise FileFormatError(f"{path} is damaged: its index is not that of its parts")
    return manifest


# ----------------------------------------------------------------------------------------------------------- the values

Matrix = NDArray[np.float64]

# More different labels than this are not counted one by one.
_MOST_LABELS = 1000
# Values of a strip of rows, which stay in the cache while they are extracted.
_STRIP = 1 << 16
# Rows of pending sums that are reduced together.
_PENDING = 512


class ExactSums:
    """Exact sums of the columns of matrices.

    Columns are summed by error-free extraction. With sigma a power of two, at least 2 n times the largest of n numbers
    x, q = (sigma + x) - sigma is x rounded to a multiple of ulp(sigma) / 2, x - q is computed without error, and all
    partial sums of the q are multiples of the same unit below 2^53 of them: exact in any order. What is left is smaller
    by 2^53 / 4n, and is extracted again until nothing is left.

    Parameters
    ----------
    n_columns : int
        The number of columns.

    Examples
    --------
    >>> sums = ExactSums(1)
    >>> sums.add(np.array([[1e200], [1.0], [-1e200]]))
    >>> sums.round()
    [1.0]
    """

    def __init__(self, n_columns: int) -> None:
        self._pending: list[Matrix] = []
        self._rows, self._n_columns = 0, n_columns

    def add(self, values: Matrix) -> None:
        """Add the rows of a matrix.

        Parameters
        ----------
        values : ndarray of float64, shape (n_rows, n_columns)
            The values; columns with one that is not finite have no sum from now on.
        """
        for strip in _strips(values):
            self._keep(_extract(strip))

    def _keep(self, sums: Matrix) -> None:
        """Keep rows with the same exact sum; many of them are reduced to few."""
        self._pending.append(sums)
        self._rows += len(sums)
        if self._rows > _PENDING:
            reduced = _extract(np.concatenate(self._pending))
            self._pending, self._rows = [reduced], len(reduced)

    def round(self) -> list[float | None]:
        """The sums, rounded once; None where a column held a value that is not finite, or where a sum overflows.

        Returns
        -------
        sums : list of float or None
            One per column.
        """
        pending = np.concatenate(self._pending) if self._pending else np.zeros((0, self._n_columns))
        return [_fsum(column) for column in pending.T]


def _fsum(values: Matrix) -> float | None:
    """The exact sum, rounded once, or None."""
    if not np.isfinite(values).all():
        return None
    try:
        return math.fsum(values.tolist())
    except OverflowError:
        return None


def _extract(values: Matrix) -> Matrix:
    """Few rows whose exact column sums are those of the values."""
    count = len(values)
    scale = 2.0 ** (2 + math.ceil(math.log2(max(2, count))))
    found = []
    rest = np.array(values)
    largest = np.abs(rest).max(axis=0, initial=0.0)
    # beyond 2^900 sigma may overflow: such columns have no sum
    fine = largest < 2.0**900
    rest[:, ~fine] = 0.0
    if not fine.all():
        found.append(np.where(fine, 0.0, np.inf)[np.newaxis])
    while largest[fine].any():
        largest[~fine] = 0.0
        # a power of two; below the normal numbers addition is exact, and nothing is left after one extraction
        sigma = np.ldexp(scale, np.frexp(largest)[1])
        high = rest + sigma
        high -= sigma
        rest -= high
        found.append(high.sum(axis=0)[np.newaxis])
        largest = np.abs(rest).max(axis=0, initial=0.0)
    return np.concatenate(found) if found else np.zeros((0, values.shape[1]))


def _strips(values: Matrix) -> Iterator[Matrix]:
    """Some rows at a time."""
    step = max(64, _STRIP // max(1, values.shape[1]))
    return (values[first : first + step] for first in range(0, len(values), step))


class Summary:
    """Statistics of all blocks: ``facts`` of the manifest.

    Parameters
    ----------
    n_features : int
        The number of features.
    """

    def __init__(self, n_features: int) -> None:
        self._labels: dict[float, int] | None = {}
        self._least, self._most = np.full(n_features, np.inf), np.full(n_features, -np.inf)
        self._missing = np.zeros(n_features, np.int64)
        self._sum, self._squares = ExactSums(n_features), ExactSums(n_features)
        self._labelled = False

    def add(self, block: Queries) -> None:
        """Count a block."""
        if block.y is not None:
            self._labelled = True
            self._count(block.y)
        for rows in _strips(block.X):  # type: ignore[arg-type]
            self._add_rows(rows)

    def _count(self, y: NDArray[np.float64]) -> None:
        """Count the labels, while there are not too many different ones."""
        if self._labels is None:
            return
        for label, count in zip(*(part.tolist() for part in np.unique(y, return_counts=True)), strict=True):
            self._labels[label] = self._labels.get(label, 0) + count
        if len(self._labels) > _MOST_LABELS:
            self._labels = None

    def _add_rows(self, X: Floats) -> None:
        """Add some rows to ranges and sums; missing values, which rankers may give a meaning to, are counted."""
        values = X.astype(np.float64)
        missing = np.isnan(values)
        if missing.any():
            self._missing += missing.sum(axis=0)
            np.minimum(self._least, np.where(missing, np.inf, values).min(axis=0, initial=np.inf), out=self._least)
            np.maximum(self._most, np.where(missing, -np.inf, values).max(axis=0, initial=-np.inf), out=self._most)
            values[missing] = 0.0
        else:
            np.minimum(self._least, values.min(axis=0, initial=np.inf), out=self._least)
            np.maximum(self._most, values.max(axis=0, initial=-np.inf), out=self._most)
        self._sum.add(values)
        with np.errstate(over="ignore", under="ignore"):
            self._squares.add(values * values)

    def facts(self) -> dict[str, Any]:
        """The facts, as JSON can hold them.

        Returns
        -------
        facts : dict
            ``labels``: (label, count) pairs, None where there are no labels or too many different ones; ``min``,
            ``max``, ``sum``, ``sum_of_squares`` and ``missing``: one number per feature, None where there is none.
        """
        labels = sorted(self._labels.items()) if self._labelled and self._labels is not None else None
        return {
            "labels": None if labels is None else [list(pair) for pair in labels],
            "min": _numbers(self._least),
            "max": _numbers(self._most),
            "sum": self._sum.round(),
            "sum_of_squares": self._squares.round(),
            "missing": self._missing.tolist(),
        }


def _numbers(values: Matrix) -> list[float | None]:
    """Numbers for JSON, which knows no infinity."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
