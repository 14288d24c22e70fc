"""Errors are sentences: where it happened, what was found, what was expected. Warnings are sentences, too."""

import sys
import warnings


class RankwiseError(ValueError):
    """Anything that rankwise refuses; its text is one sentence for the person who called."""


class DataError(RankwiseError):
    """Arrays, labels, identities or scores that cannot mean what they are said to mean."""


class DataWarning(UserWarning):
    """Data that can be used, but that most likely do not mean what the caller intended."""


class FileFormatError(RankwiseError):
    """A file that does not hold what its format promises; names the file, the line and the column."""


class MeasureError(RankwiseError):
    """A measure that cannot be parsed, or that cannot be computed on these labels."""


class MissingExtraError(RankwiseError, ImportError):
    """An optional package is needed; the text names the extra that installs it."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in the middle of learning, after a first round: the ranker ``kept_by`` holds what it had learned."""

    def __init__(self, sentence: str, kept_by: object) -> None:
        super().__init__(sentence)
        self.kept_by = kept_by


def in_one_line(error: BaseException) -> str:
    """What a foreign error says, as a part of a sentence: its kind where it says nothing, and never two lines."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def warn(sentence: str, category: type[Warning] = DataWarning) -> None:
    """Warn at the line of the caller that is outside of this package, however deep the call is.

    Python shows a warning once for each line, and a filter by module names the caller's module.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "rankwise":
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, category, stacklevel=level + 1)
