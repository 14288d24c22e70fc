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

What it says of the values, their labels and ranges, is collected by :class:`Summary`.
"""

import json
import math
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankwise._files import writing
from rankwise._version import __version__
from rankwise.errors import FileFormatError, in_one_line
from rankwise.queries.checks import blocks_of_rows
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

# More different labels than this are not counted one by one.
_MOST_LABELS = 1000


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
        self._labelled = False

    def add(self, block: Queries) -> None:
        """Count a block."""
        if block.y is not None:
            self._labelled = True
            self._count(block.y)
        for rows in blocks_of_rows(*block.X.shape):
            X = block.X[rows]
            self._missing += np.isnan(X).sum(axis=0)  # missing values, which rankers may give a meaning to
            self._least = np.fmin(self._least, np.fmin.reduce(X, axis=0, initial=np.inf))
            self._most = np.fmax(self._most, np.fmax.reduce(X, axis=0, initial=-np.inf))

    def _count(self, y: NDArray[np.float64]) -> None:
        """Count the labels, while there are not too many different ones."""
        if self._labels is None:
            return
        for label, count in zip(*(part.tolist() for part in np.unique(y, return_counts=True)), strict=True):
            self._labels[label] = self._labels.get(label, 0) + count
        if len(self._labels) > _MOST_LABELS:
            self._labels = None

    def facts(self) -> dict[str, Any]:
        """The facts, as JSON can hold them.

        Returns
        -------
        facts : dict
            ``labels``: (label, count) pairs, None where there are no labels or too many different ones; ``min``,
            ``max`` and ``missing``: one number per feature, None where there is none.
        """
        labels = sorted(self._labels.items()) if self._labelled and self._labels is not None else None
        return {
            "labels": None if labels is None else [list(pair) for pair in labels],
            "min": _numbers(self._least),
            "max": _numbers(self._most),
            "missing": self._missing.tolist(),
        }


def _numbers(values: NDArray[np.float64]) -> list[float | None]:
    """Numbers for JSON, which knows no infinity."""
    return [value if math.isfinite(value) else None for value in values.tolist()]
