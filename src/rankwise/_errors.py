"""Errors are sentences: where it happened, what was found, what was expected."""


class RankwiseError(ValueError):
    """Anything that rankwise refuses; its text is one sentence for the person who called."""


class DataError(RankwiseError):
    """Arrays, labels, identities or scores that cannot mean what they are said to mean."""


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
