"""The options of reading a LETOR text, and the messages for what cannot be read.

The compiled reader notes a reason and a byte. :func:`problem` turns them into an error that names the file, the line,
the column, what was found and what was expected.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._kernels.text import letor_lines as code
from rankwise.errors import FileFormatError
from rankwise.queries.checks import Missing

_BLANKS = b" \t\r\v\f"
_RETURN = (
    "a carriage return (\\r) inside a line, with text behind it: lines end with \\n or \\r\\n, so convert the file, "
    "for example by tr '\\r' '\\n'"
)
_SHOWN = 40  # letters of what was found
_BLOCK = 1 << 22  # bytes that are scanned together


@dataclass(frozen=True)
class Reading:
    """The options of reading a text.

    Attributes
    ----------
    dtype : numpy.dtype
        The type of the features.
    missing : {"error", "zero", "min", "keep"}
        What to do with values that are not finite.
    names : tuple of str, or None
        The feature names.
    rules : LetorRules
        The input of the compiled reader. Base and width may be left open: they are then taken from the text, and a
        stream fixes them after its first block.
    streaming : bool
        Whether the text is read block by block.
    width_given : bool
        Whether the caller has given the number of features.
    base_given : bool
        Whether the caller has given the first feature id.
    n_jobs : int or None
        The number of threads.
    """

    dtype: np.dtype[Any]
    missing: Missing
    names: tuple[str, ...] | None
    rules: code.LetorRules
    streaming: bool
    width_given: bool
    base_given: bool
    n_jobs: int | None

    def with_known_shape(self, rules: code.LetorRules) -> "Reading":
        """The same with the base and the width of a block that has been read."""
        return replace(self, rules=rules._replace(fixed_base=True, fixed_width=True))


@dataclass(frozen=True)
class SourceLocation:
    """Places in a text, and how messages call them.

    Attributes
    ----------
    name : str
        The name of the source.
    text : ndarray of uint8
        The bytes.
    first_line : int, default=1
        The number of the line at byte 0.
    """

    name: str
    text: NDArray[np.uint8]
    first_line: int = 1

    def line(self, place: int) -> int:
        """The number of the line of this byte."""
        blocks = (self.text[first : min(place, first + _BLOCK)] for first in range(0, place, _BLOCK))
        return self.first_line + sum(int(np.count_nonzero(block == ord("\n"))) for block in blocks)

    def of(self, place: int) -> str:
        """``train.txt, line 12, column 34``, with columns counted in letters."""
        before = self.text[self._line_begin(place) : place].tobytes()
        return f"{self.name}, line {self.line(place):,}, column {len(before.decode('utf-8', 'replace')) + 1:,}"

    def token(self, place: int) -> bytes:
        """The token that begins at this byte, or its first letters if it is long."""
        token = self.text[place : place + 4 * _SHOWN + 4].tobytes()
        for stop in b"\n#" + _BLANKS:
            token = token.split(bytes([stop]), 1)[0]
        return token

    def quote(self, place: int) -> str:
        """The token that begins at this byte, quoted."""
        token = self.token(place).decode("utf-8", "replace")
        return repr(token if len(token) <= _SHOWN else token[:_SHOWN] + "...") if token else "nothing"

    def feature(self, place: int) -> int:
        """The id of the ``id:value`` that this byte belongs to."""
        while place > 0 and self.text[place - 1] not in b"\n" + _BLANKS:
            place -= 1
        return _identity(self.token(place))

    def find_repeated(self, place: int) -> int:
        """The place of the first repeated feature of a line, from this byte on."""
        end = place
        while end < len(self.text) and self.text[end] not in b"\n#":
            end += 1
        line = self.text[place:end].tobytes()
        seen: set[int] = set()
        offset = 0
        for token in line.split():
            offset = line.index(token, offset)
            if _identity(token) in seen:
                return place + offset
            seen.add(_identity(token))
            offset += len(token)
        return place

    def find_feature(self, feature: int) -> int:
        """The place of the first ``id:`` of this feature; ids beyond the largest known one are the same."""
        digits = rb"[1-9][0-9]{17,}" if feature >= code.LARGEST_ID else b"0*%d" % feature
        found = re.search(rb"[ \t\r\v\f]" + digits + rb":", self.text.data)
        return found.start() + 1 if found else 0

    def stray_return(self) -> int | None:
        """The place in a comment of a carriage return with more than blanks behind it in its line, or None."""
        found = re.compile(rb"#[^\n\r]*(\r)[ \t\r\v\f]*[^ \t\r\v\f\n]").search(self.text.data)
        return found.start(1) if found else None

    def _line_begin(self, place: int) -> int:
        """The place at which the line of this byte begins."""
        last = place
        while last > 0:
            first = max(0, last - _BLOCK)
            found = self.text[first:last].tobytes().rfind(b"\n")
            if found >= 0:
                return first + found + 1
            last = first
        return 0


def _identity(token: bytes) -> int:
    """The id at the beginning of a feature as the compiled reader takes it, with its upper limit."""
    digits = token.split(b":", 1)[0].lstrip(b"0") or b"0"
    return min(int(digits), code.LARGEST_ID) if len(digits) < 20 else code.LARGEST_ID


def problem(where: SourceLocation, reason: int, place: int, rules: code.LetorRules, how: Reading) -> FileFormatError:
    """The error for what the reader, following ``rules``, noted at this byte."""
    if reason == code.ID_REPEATED:
        place = where.find_repeated(place)
    return FileFormatError(f"{where.of(place)}: {_sentence(where, reason, place, rules, how)}")


def _sentence(where: SourceLocation, reason: int, place: int, rules: code.LetorRules, how: Reading) -> str:
    """The message for a reason, without the place."""
    found = where.quote(place)
    match reason:
        case code.BAD_LABEL:
            return f"expected a label (a finite number), got {found}"
        case code.BAD_FEATURE:
            # a text of an old editor, in which a carriage return ends a line
            ended = place > 0 and where.text[place - 1] == ord("\r")
            return f"expected feature:value, got {found}" + (f" after {_RETURN}" if ended else "")
        case code.STRAY_RETURN:
            return f"found {_RETURN}"
        case code.BAD_VALUE:
            return f"expected a number after '{where.feature(place)}:', got {found}"
        case code.EMPTY_QID:
            return f"expected an id after {found}, got nothing"
        case code.QID_LACKING:
            why = "a stream is cut between queries" if how.streaming else "the lines before have one"
            return f"expected qid: because {why}, got {found}"
        case code.QID_UNEXPECTED:
            return f"got {found}, but the lines before have no qid"
        case code.LABEL_NEGATIVE:
            return f"labels must be 0 or more, got {found}: pass unjudged='drop' or unjudged='zero'"
        case code.VALUE_NOT_FINITE:
            feature = where.feature(place)
            called = f"{feature} ({how.names[feature - rules.base]})" if how.names else f"{feature}"
            return f"feature {called} must be finite, got {found}: pass missing='zero' or missing='min', or replace it"
        case code.ID_TOO_LARGE:
            feature = where.feature(place)
            if how.width_given:
                return f"feature {feature} is beyond n_features={rules.width} (ids begin at {rules.base})"
            return f"feature {feature} is beyond the {rules.width} features of the first block: pass n_features="
        case code.ID_ZERO:
            why = "zero_based=False says that ids begin" if how.base_given else "the ids of the first block begin"
            return f"got feature 0, but {why} at 1: pass zero_based=True"
    return f"feature {where.feature(place)} occurs twice in this line"
