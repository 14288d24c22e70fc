"""LETOR text read slowly and plainly: the oracle of the tests, written from the rules and not from the reader."""

import math
import re
from dataclasses import dataclass, field

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NOT_FINITE = re.compile(rb"[+-]?(null|nan|inf|infinity)", re.IGNORECASE)
WHOLE = re.compile(r"0|-?[1-9][0-9]*")
BLANKS = rb"[ \t\r\v\f]+"
DOCID = re.compile(rb"(?:^|[ \t\r\v\f])docid[ \t\r\v\f]*=[ \t\r\v\f]*([^ \t\r\v\f]+)")


class RefusedError(Exception):
    """The number of the line that cannot be read, or None where the text as a whole cannot."""

    def __init__(self, line: int | None) -> None:
        super().__init__(line)
        self.line = line


@dataclass
class Document:
    """One row as it is written."""

    line: int
    label: float
    qid: str | None
    features: dict[int, float]
    docid: str
    dropped: bool


@dataclass
class Lists:
    """What the text means; ``base`` is the id of the first column."""

    base: int
    X: list[list[float]] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    qid: list = field(default_factory=list)
    docid: list[str] | None = None


def read(text: bytes, missing="error", unjudged="error", zero_based="auto", n_features=None) -> Lists:
    """The judged lists of a text in which every row has a qid."""
    rows = documents(text, missing, unjudged, zero_based, n_features)
    ids = [identity for row in rows for identity in row.features]
    base = 1
    if zero_based is True or (zero_based == "auto" and 0 in ids):
        base = 0
    if n_features is not None:
        for row in rows:
            if any(identity >= base + n_features for identity in row.features):
                raise RefusedError(row.line)
    width = n_features if n_features is not None else max(ids, default=base - 1) - base + 1
    rows = [row for row in rows if not row.dropped]
    if not rows or rows[0].qid is None:
        raise RefusedError(None)
    result = Lists(base)
    for row in rows:
        result.X.append([row.features.get(base + column, 0.0) for column in range(width)])
        result.y.append(row.label)
        result.qid.append(row.qid)
    fill(result, missing)
    if all(WHOLE.fullmatch(qid) and -(2**63) < int(qid) < 2**63 for qid in result.qid):
        result.qid = [int(qid) for qid in result.qid]
    if any(row.docid for row in rows):
        result.docid = [row.docid for row in rows]
    return result


def documents(text: bytes, missing, unjudged, zero_based, n_features) -> list[Document]:
    """The rows of the text, one after the other; the first that cannot be read is refused."""
    found: list[Document] = []
    for number, line in enumerate(as_utf8(text).split(b"\n"), start=1):
        content, _, comment = line.partition(b"#")
        tokens = [token for token in re.split(BLANKS, content) if token]
        stray = re.search(rb"\r[ \t\r\v\f]*[^ \t\r\v\f]", comment)  # a line of a text with other line ends is hidden
        if not tokens and stray:
            raise RefusedError(number)
        if not tokens:
            continue
        label = as_number(tokens[0], number)
        if not math.isfinite(label) or (label < 0 and unjudged == "error"):
            raise RefusedError(number)
        dropped = label < 0 and unjudged == "drop"
        qid = None
        rest = tokens[1:]
        if rest and rest[0].startswith(b"qid:"):
            qid = rest.pop(0)[4:].decode("utf-8", "surrogateescape")
        if qid == "" or (found and (qid is None) != (found[0].qid is None)):
            raise RefusedError(number)
        features: dict[int, float] = {}
        for token in rest:
            name, colon, value = token.partition(b":")
            if not colon or not re.fullmatch(rb"[0-9]+", name) or int(name) in features:
                raise RefusedError(number)
            if int(name) == 0 and zero_based is False:
                raise RefusedError(number)
            if n_features is not None and int(name) > n_features - (zero_based is True):
                raise RefusedError(number)
            features[int(name)] = as_number(value, number)
            if not math.isfinite(features[int(name)]) and missing == "error" and not dropped:
                raise RefusedError(number)
        if stray:
            raise RefusedError(number)
        found.append(Document(number, max(label, 0.0) if label else label, qid, features, docid_of(comment), dropped))
    return found


def as_utf8(text: bytes) -> bytes:
    """The text in UTF-8, letter by letter: Windows-1252 if its first letter beyond ASCII is not UTF-8."""
    marked = text.startswith(b"\xef\xbb\xbf")
    text, found, encoding, place = text[3 * marked :], bytearray(), "utf-8" if marked else None, 0
    while place < len(text):
        length = 1 if text[place] < 128 else next((n for n in (2, 3, 4) if is_letter(text[place : place + n])), 0)
        if text[place] >= 128:
            encoding = encoding or ("utf-8" if length else "cp1252")
        if length == 0 or encoding == "cp1252":
            byte, length = text[place : place + 1], 1
            found += (byte.decode("cp1252", "ignore") or byte.decode("latin-1")).encode()
        else:
            found += text[place : place + length]
        place += length
    return bytes(found)


def is_letter(sequence: bytes) -> bool:
    try:
        return len(sequence.decode()) == 1
    except UnicodeDecodeError:
        return False


def as_number(token: bytes, line: int) -> float:
    if NUMBER.fullmatch(token):
        return float(token)
    if NOT_FINITE.fullmatch(token):
        return math.nan
    raise RefusedError(line)


def docid_of(comment: bytes) -> str:
    named = DOCID.search(comment)
    words = [word for word in re.split(BLANKS, comment) if word]
    found = named[1] if named else words[0] if words else b""
    return found.decode("utf-8", "surrogateescape")


def fill(lists: Lists, missing: str) -> None:
    for qid in set(lists.qid):
        rows = [row for row, owner in zip(lists.X, lists.qid, strict=True) if owner == qid]
        for column in range(len(rows[0])):
            finite = [row[column] for row in rows if math.isfinite(row[column])]
            for row in rows:
                if not math.isfinite(row[column]):
                    row[column] = min(finite, default=0.0) if missing == "min" else 0.0
