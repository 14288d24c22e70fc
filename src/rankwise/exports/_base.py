"""A target is an engine or a language that a model is written for; an export is what was written, with its proof."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankwise._atomic_write import refusing, writing
from rankwise._errors import RankwiseError
from rankwise._paths import path_of
from rankwise._registry import discover
from rankwise.data.checks import Floats
from rankwise.exports.formula import Formula
from rankwise.exports.parity import Parity

Vector = NDArray[np.float64]
Content = str | bytes


@dataclass(frozen=True)
class Written:
    """Files by name, the most important one first; what is to be said; and the part of the score that is not in them.

    ``dropped`` is the constant that the format cannot hold; no ranking sees it. ``arithmetic`` is how the engine
    computes this very model, where that is not how it computes others.
    """

    files: Mapping[str, Content]
    notes: tuple[str, ...] = ()
    dropped: float = 0.0
    arithmetic: str = ""


@dataclass(frozen=True, kw_only=True)
class Target(ABC):
    """One engine or language: how a formula is written for it, and how it would score what was written.

    Options of a target are its fields. A class with a ``name`` in a module of this package, or declared under the
    entry-point group ``rankwise.exports``, is found by :func:`targets`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    arithmetic: ClassVar[str]  # how the engine computes a score

    @abstractmethod
    def write(self, formula: Formula, called: str) -> Written:
        """The files for a formula; ``called`` is the name of the model there."""

    @abstractmethod
    def score(self, files: Mapping[str, Content], X: Floats, names: tuple[str, ...]) -> Vector:
        """One score a row of raw features, read off the files and computed as the engine does, to the bit."""


@dataclass(frozen=True)
class Export:
    """A model written for an engine.

    Attributes
    ----------
    target : the name of the engine or language
    files : content by file name; texts, or bytes for ONNX
    notes : what the engine does with missing values, constants, negative scores and single precision
    parity : the engine's arithmetic on a sample against the ranker's, or None without a sample
    dropped : the constant that the format cannot hold; no ranking sees it
    """

    target: str
    files: Mapping[str, Content] = field(repr=False)
    notes: tuple[str, ...]
    parity: Parity | None = None
    dropped: float = 0.0

    @property
    def content(self) -> Content:
        """The most important file: the model."""
        return next(iter(self.files.values()))

    @property
    def text(self) -> str:
        """The model as a text."""
        content = self.content
        if isinstance(content, bytes):
            raise RankwiseError(f"a model for {self.target} is no text: it has {len(content):,} bytes, see .content")
        return content

    def write(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the one file to ``path``, or several (or one, if it is a folder) into the folder ``path``.

        Every file is written beside its target and renamed. A folder that is not there is made.
        """
        place = Path(path_of(path))
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

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON; a file of bytes is told by its length."""
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
        }


def targets() -> dict[str, type[Target]]:
    """Every target by name: those of this package and those that installed packages declare."""
    return discover("rankwise.exports", Target, "rankwise.exports")
