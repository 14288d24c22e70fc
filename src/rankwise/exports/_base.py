"""The base classes of exports.

A :class:`Target` is an engine or a language that a model is written for; an :class:`Export` is what was written, with
the evidence that it ranks the same.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from rankwise._files import path_of, refusing, writing
from rankwise._parameters import check_parameters
from rankwise._registry import discover
from rankwise._tables import notebook_html, paragraph
from rankwise.errors import RankwiseError
from rankwise.exports.formula import StepSum, TreeSum, WeightedSum
from rankwise.exports.parity import Parity
from rankwise.measures._base import Vector
from rankwise.queries.checks import Floats

Content = str | bytes

# Trees that engines and databases read as nested text without trouble.
MOST_TREES = 2_000
_SHOWN = 600  # characters of a model in a notebook


@dataclass(frozen=True)
class UploadRequest:
    """One HTTP request that brings a file into an engine.

    Attributes
    ----------
    method : str
        GET, PUT or POST.
    path : str
        The path behind the address of the engine, quoted.
    file : str or None
        The file that is the body; None: no body.
    may_exist : bool
        Whether the request makes something that may be there already, which it then leaves as it is.
    """

    method: str
    path: str
    file: str | None = None
    may_exist: bool = False


@dataclass(frozen=True)
class Written:
    """The files that a target wrote.

    Attributes
    ----------
    files : dict of str to str or bytes
        Content by file name, the most important file first.
    notes : tuple of str
        What the user has to know.
    dropped : float
        The constant that the format cannot hold; it changes no ranking.
    arithmetic : str
        How the engine computes this model, where that differs from the target's usual arithmetic.
    requests : tuple of UploadRequest
        What uploads the files, in this order.
    """

    files: Mapping[str, Content]
    notes: tuple[str, ...] = ()
    dropped: float = 0.0
    arithmetic: str = ""
    requests: tuple[UploadRequest, ...] = ()


@dataclass(frozen=True)
class Cut:
    """A cut-off as an engine has to apply it.

    Attributes
    ----------
    called : str
        The name of the model.
    score : float or None
        The smallest score of the engine that is kept; None: a cut by rank.
    documents : int or None
        How many of the best documents are kept; None: a cut by score.
    """

    called: str
    score: float | None = None
    documents: int | None = None


@dataclass(frozen=True, kw_only=True)
class Target(ABC):
    """One engine or language: how a formula is written for it, and how it scores what was written.

    The options of a target are its fields. A class with a ``name`` in a module of this package, or declared under the
    entry-point group ``rankwise.exports``, is found by :func:`targets`.

    Attributes
    ----------
    name : str
        The name by which the target is chosen.
    title : str
        The name of the engine or language.
    arithmetic : str
        How the engine computes a score.
    takes : tuple of type
        The formulas that the engine can express; for a `FusionFormula`, :meth:`score` gets one query at a time.
    holds_columns : bool
        Whether a file can make features of columns: :meth:`write` then takes `ColumnFeatures` as a third argument,
        and :meth:`score` rows of numbers and texts.
    holds_tables : bool
        Whether trees are tables in the file; otherwise they are nested text, and more than `MOST_TREES` raise an error.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    arithmetic: ClassVar[str]  # how the engine computes a score
    takes: ClassVar[tuple[type, ...]] = (WeightedSum, StepSum, TreeSum)
    holds_columns: ClassVar[bool] = False
    holds_tables: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_parameters(self)

    @abstractmethod
    def write(self, formula: Any, called: str) -> Written:
        """Write the files for a formula.

        Parameters
        ----------
        formula : WeightedSum, StepSum, TreeSum or FusionFormula
            What the ranker computes, one of ``takes``.
        called : str
            The name of the model in the target.

        Returns
        -------
        Written
            The files and notes.
        """

    def write_cut(self, cut: Cut, written: Written) -> Written:
        """Write how the engine cuts lists; without a way of its own, a note says what the caller has to do.

        Parameters
        ----------
        cut : Cut
            The cut-off.
        written : Written
            The files of the model.

        Returns
        -------
        Written
            Files beside those of the model, and notes.
        """
        if cut.documents is not None:
            return Written({}, (f"cut-off: show the first {cut.documents:,} documents of every query",))
        return Written(
            {}, (f"cut-off: {self.title} has no threshold here; leave out documents with a score below {cut.score!r}",)
        )

    @abstractmethod
    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """Compute the scores of the files exactly as the engine does, to the bit.

        Parameters
        ----------
        files : dict of str to str or bytes
            What :meth:`write` returned.
        X : array of shape (n_documents, n_features)
            Raw features; for a file that makes features of columns an array of object, None for what is missing.
        names : tuple of str
            The names of the features, or of the columns.

        Returns
        -------
        ndarray of shape (n_documents,)
            The scores.
        """


@dataclass(frozen=True)
class Export:
    """A model written for an engine.

    Attributes
    ----------
    target : str
        The name of the engine or language.
    files : dict of str to str or bytes
        Content by file name; texts, or bytes for ONNX.
    notes : tuple of str
        What the engine does with missing values, constants, negative scores and single precision.
    parity : Parity or None
        The engine's arithmetic on a sample against the ranker's; None without a sample.
    dropped : float
        The constant that the format cannot hold; it changes no ranking.
    requests : tuple of UploadRequest
        What uploads the files to the engine, in this order; ``upload.sh`` among the files sends them by curl. Empty
        for targets without an upload.
    """

    target: str
    files: Mapping[str, Content] = field(repr=False)
    notes: tuple[str, ...]
    parity: Parity | None = None
    dropped: float = 0.0
    requests: tuple[UploadRequest, ...] = ()

    @property
    def content(self) -> Content:
        """The most important file: the model."""
        return next(iter(self.files.values()))

    @property
    def text(self) -> str:
        """The model as text; a binary format raises an error."""
        content = self.content
        if isinstance(content, bytes):
            raise RankwiseError(f"a model for {self.target} is not text: it has {len(content):,} bytes, see .content")
        return content

    def write(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the files, atomically.

        Parameters
        ----------
        path : str or path-like
            The file; or a folder, which is made if needed, where there are several files.

        Returns
        -------
        list of Path
            The files that were written.
        """
        place = Path(path_of(path))
        # one file takes the name that the user gave; several need a folder
        if len(self.files) == 1 and not place.is_dir():
            written = {place: self.content}
        else:
            if place.exists() and not place.is_dir():
                raise RankwiseError(
                    f"{place} cannot be written: a model for {self.target} is {len(self.files)} files "
                    f"({', '.join(self.files)}), which go into a folder"
                )
            with refusing(place):
                place.mkdir(exist_ok=True)
            written = {place / name: content for name, content in self.files.items()}
        for target, content in written.items():
            with writing(target) as part:
                part.write_bytes(content if isinstance(content, bytes) else content.encode())
        return list(written)

    def _repr_html_(self) -> str:
        """The HTML that notebooks show: the files, the evidence, the notes, and the beginning of the model."""
        sizes = {
            name: f"{len(one):,} {'bytes' if isinstance(one, bytes) else 'characters'}"
            for name, one in self.files.items()
        }
        files = ", ".join(f"{name} ({size})" for name, size in sizes.items())
        evidence = [] if self.parity is None else [str(self.parity)]
        lines = [f"Export for {self.target}: {files}", *evidence, *self.notes]
        said = map(paragraph, lines)
        if isinstance(self.content, bytes):
            return notebook_html(*said)
        cut = " ..." if len(self.content) > _SHOWN else ""
        return notebook_html(*said, f"<pre>{escape(self.content[:_SHOWN])}{cut}</pre>")

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values; of a binary file only the length is given.

        Returns
        -------
        dict
            Target, files, notes, dropped constant and parity.
        """
        shown = {
            name: content if isinstance(content, str) else {"bytes": len(content)}
            for name, content in self.files.items()
        }
        parity = None if self.parity is None else self.parity.to_dict()
        return {
            "target": self.target,
            "files": shown,
            "notes": list(self.notes),
            "dropped": self.dropped,
            "parity": parity,
            "requests": [asdict(request) for request in self.requests],
        }


def targets() -> dict[str, type[Target]]:
    """All targets by name: those of this package and those that installed packages declare.

    Returns
    -------
    dict of str to type
        The classes.
    """
    return discover("rankwise.exports", Target, "rankwise.exports")


def json_text(value: Any) -> str:
    """Write plain values as indented JSON with a final line feed."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
