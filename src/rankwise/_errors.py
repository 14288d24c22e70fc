"""Errors and warnings of the package.

Every error that the package raises on purpose is a :class:`RankwiseError`, and so a ``ValueError``. Its message is one
sentence: where it happened, what was found, and what was expected.
"""

import sys
import warnings


class RankwiseError(ValueError):
    """Any input that rankwise rejects; the message is one sentence for the caller."""


class DataError(RankwiseError):
    """Arrays, labels, ids or scores that are inconsistent or not valid."""


class DataWarning(UserWarning):
    """Data that can be used, but most likely do not mean what the caller intended."""


class ReportWarning(UserWarning):
    """A report, or a part of it, that could not be drawn; the numbers are not affected."""


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
