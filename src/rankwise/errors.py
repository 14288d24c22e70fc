"""Errors and warnings of the package.

Every error that the package raises on purpose is a :class:`RankwiseError`, and so a ``ValueError``. Its message is one
sentence: where it happened, what was found, and what was expected.
"""

import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "DataError",
    "DataWarning",
    "FileFormatError",
    "MeasureError",
    "MissingExtraError",
    "NothingLearnedWarning",
    "RankwiseError",
    "ReportWarning",
]


class RankwiseError(ValueError):
    """Any input that rankwise rejects; the message is one sentence for the caller."""


class DataError(RankwiseError):
    """Arrays, labels, ids or scores that are inconsistent or not valid."""


class DataWarning(UserWarning):
    """Data that can be used, but most likely do not mean what the caller intended."""


class ReportWarning(UserWarning):
    """A report, or a part of it, that could not be drawn; the numbers are not affected."""


class NothingLearnedWarning(UserWarning):
    """Nothing was learned: all documents get the same score, or all orders of the documents are equally good."""


class FileFormatError(RankwiseError):
    """A file that does not hold what its format promises; the message names the file, the line and the column."""


class MeasureError(RankwiseError):
    """A measure that cannot be parsed, or that cannot be computed on these labels."""


class MissingExtraError(RankwiseError, ImportError):
    """An optional package is needed; the message names the extra that installs it."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a fit, after its first round: the ranker keeps what it has learned.

    Parameters
    ----------
    sentence : str
        The message.
    kept_by : object
        The ranker.

    Attributes
    ----------
    kept_by : object
        The ranker, in the state after the last finished round.
    """

    def __init__(self, sentence: str, kept_by: object) -> None:
        super().__init__(sentence)
        self.kept_by = kept_by


def in_one_line(error: BaseException) -> str:
    """Shorten the message of a foreign error to one line for use inside a sentence; an empty one becomes its type."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question in parentheses about the known word that is nearest to an unknown one, empty where none is near.

    Parameters
    ----------
    word : str
        The unknown word.
    known : iterable of str
        The known ones.

    Returns
    -------
    question : str
        Such as " (did you mean 'nDCG'?)", with a space before it.

    Examples
    --------
    >>> did_you_mean("ndgc", ["AP", "nDCG"])
    " (did you mean 'nDCG'?)"
    """
    meant = nearest(word, known)
    return "" if meant is None else f" (did you mean {meant!r}?)"


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that is nearest to an unknown one, whatever their case; None where none is near."""
    names = {name.lower(): name for name in known}
    near = get_close_matches(str(word).lower(), names, n=1, cutoff=cutoff)
    return names[near[0]] if near else None


def warn(sentence: str, category: type[Warning] = DataWarning) -> None:
    """Warn at the first line of the call stack that is outside this package.

    Python shows a warning once for each line, and a filter by module names the caller's module.

    Parameters
    ----------
    sentence : str
        The message.
    category : type of Warning, default=DataWarning
        The class of the warning.
    """
    level, frame = 1, sys._getframe(1)
    # skip the frames of this package, so that the line shown is one that the user can change; contextlib enters files
    ours = ("rankwise", "contextlib")
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in ours:
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, category, stacklevel=level + 1)
