"""LETOR text to arrays: ``label qid:id feature:value ... # comment``, a range of whole lines at a time.

Ranges are independent of each other, so threads can share a file; every range writes its own rows of the final
arrays. A range notes what it cannot decide alone: ids beyond the expected width, values that need Python's ``float``,
the first byte that cannot be read and why.

A first pass over the lines counts rows (:func:`count_rows`), so every range knows its own.

Features are read at two speeds. In dense data each id is one more than the last and each value is a short decimal:
`_steady` compares eight bytes with the expected announcement, and reads a number in two words without looking at single
bytes. Everything else (gaps, more blanks, exponents, long numbers, the last bytes of the text) is read by
`read_features`, byte by byte and with every bound checked.
"""

import numpy as np

from rankwise._kernels.machine.jit import kernel
from rankwise._kernels.text import letor_lines as code
from rankwise._kernels.text.decimal import (
    FINITE,
    MALFORMED,
    NOT_FINITE,
    TENS,
    UNDECIDED,
    WHOLE_TENS,
    is_break,
    read_decimal,
)
from rankwise._kernels.text.words import byte, digit_bits, digits, word

U = np.uint64

REACH = 32  # bytes within which an announcement, a short value and the words that are read for them end


# ------------------------------------------------------------------------------------------------------- lines

_NEWLINES = U(0x0A0A0A0A0A0A0A0A)


@kernel
def after_newline(text, place, end):
    """Where the next line begins, or ``end`` if this is the last one."""
    return min(code.find_byte(text, place, end, _NEWLINES, 10) + 1, end)


@kernel
def count_rows(text, begin, end):
    """The number of rows between two line ends."""
    rows = 0
    place = begin
    while place < end:
        place = code.skip_blanks(text, place, end)
        if place < end:
            letter = byte(text, place)
            rows += letter != code.NEWLINE and letter != code.HASH
            place = after_newline(text, place, end)
    return rows


@kernel
def find_last_run(text, end, skip_negative, state):
    """Continue from ``state`` over whole lines up to ``end``: the number of rows, and where the last run of one qid
    begins.

    ``state`` is (place, rows, rows before the last run, first byte of the last run's first line, place of its qid,
    length of its qid). Rows with a negative label count as absent if ``skip_negative``. A row without a qid begins a
    run of its own, so that a malformed file is not gathered as a whole.
    """
    place, rows, rows_before, line, known_at, known_length = state
    while place < end:
        begin = place
        place = code.skip_blanks(text, place, end)
        if place < end and byte(text, place) != code.NEWLINE and byte(text, place) != code.HASH:
            absent = skip_negative and byte(text, place) == code.MINUS and read_decimal(text, place, end)[0] < 0
            at = code.skip_blanks(text, code.skip_token(text, place, end), end)
            length = code.NO_TOKEN
            if code.has_qid(text, at, end):
                at += 4
                length = code.skip_token(text, at, end) - at
            known = length != code.NO_TOKEN and length == known_length and code.same_bytes(text, at, known_at, length)
            if not absent and not known:
                rows_before, line, known_at, known_length = rows, begin, at, length
            rows += not absent
        place = after_newline(text, place, end)
    return place, rows, rows_before, line, known_at, known_length


@kernel
def gather(text, at, offset, data):
    """Copy piece i, which begins at ``at[i]``, to ``data[offset[i]:offset[i+1]]``."""
    for piece in range(len(at)):
        for number in range(offset[piece + 1] - offset[piece]):
            data[offset[piece] + number] = text[at[piece] + number]


@kernel
def read_integers(text, at, length, numbers):
    """Whether every token is an integer of 64 bits as it would be written back; then ``numbers`` holds them."""
    for token in range(len(at)):
        place = at[token]
        end = place + length[token]
        negative = place < end and byte(text, place) == code.MINUS
        place += negative
        count = end - place
        if count < 1 or count > 19 or (byte(text, place) == 48 and (count > 1 or negative)):
            return False
        magnitude = np.uint64(0)
        while place < end:
            if not 48 <= byte(text, place) <= 57:
                return False
            magnitude = magnitude * np.uint64(10) + np.uint64(byte(text, place) - 48)
            place += 1
        if magnitude > np.uint64(2**63 - 1):
            return False
        numbers[token] = -np.int64(magnitude) if negative else np.int64(magnitude)
    return True


# -------------------------------------------------------------------------------------------------------- rows


def expected_ids(base: int, width: int, most: int = 1 << 14) -> code.Expected:
    """The announcements of columns 0, 1, ...; of wide sparse data at most ``most`` are worth a table."""
    texts = [f"\0{base + column}:".encode() for column in range(min(width, most))]
    return code.Expected(
        np.array([int.from_bytes(text, "little") for text in texts], dtype=np.uint64),
        np.array([256 ** len(text) - 256 for text in texts], dtype=np.uint64),
        np.array([len(text) for text in texts], dtype=np.int64),
    )


@kernel(inline="always")
def _short_value(text, place):
    """``(value, where it ends)`` of ``[-]digits[.digits]`` with at most 7 digits a side; ends at -1 if it is longer.

    What follows is not checked: the number may continue, for example with an exponent.
    """
    eight = word(text, place)
    negative = eight & U(0xFF) == U(45)
    if negative:
        place += 1
        eight = word(text, place)
    bits = digit_bits(eight)
    if bits > U(56):
        return 0.0, -1
    place += np.int64(bits >> U(3))
    w = digits(eight, bits)
    if (eight >> bits) & U(0xFF) == U(46):
        eight = word(text, place + 1)
        more = digit_bits(eight)
        if more > U(56) or bits + more == U(0):
            return 0.0, -1
        count = np.int64(more >> U(3))
        place += count + 1
        value = np.float64(np.int64(w * WHOLE_TENS[count] + digits(eight, more))) / TENS[count]
    elif bits == U(0):
        return 0.0, -1
    else:
        value = np.float64(np.int64(w))
    return (-value if negative else value), place


@kernel(inline="always")
def _steady(text, place, column, expected, X, offset):
    """Read features while each one is the next column, after a blank or a tab, and its value is short.

    Returns ``(place, column, pending)``: pending means that the value of ``column`` stands at ``place`` and is of
    another kind; otherwise something other than the announcement of that column stands there.
    """
    value_at = -1
    stop = len(text) - REACH
    while column < len(expected.letters) and place < stop:
        eight = word(text, place)
        before = eight & U(0xFF)
        if (before != U(32) and before != U(9)) or (eight ^ expected.letters[column]) & expected.mask[column] != U(0):
            break
        value_at = place + expected.length[column]
        value, after = _short_value(text, value_at)
        if after < 0:
            return value_at, column, True
        X[offset + column] = value
        column += 1
        place = after
    if value_at >= 0 and not is_break(byte(text, place)):
        return value_at, column - 1, True
    return place, column, False


@kernel
def _read_id(text, place, end):
    """``(id, first byte of its value)``; the id is -1 if no ``digits:`` stands here."""
    first = place
    identity = 0
    while place < end and 48 <= byte(text, place) <= 57:
        identity = min(code.LARGEST_ID, identity * 10 + byte(text, place) - 48)
        place += 1
    if place in (first, end) or byte(text, place) != 58:
        return -1, first
    return identity, place + 1


@kernel
def _repeats_an_id(text, place, end):
    """Whether any id stands twice among the features from ``place`` to ``end``."""
    ids = np.empty((end - place) // 3 + 1, dtype=np.int64)  # no feature is shorter than "1:0"
    count = 0
    place = code.skip_blanks(text, place, end)
    while place < end:
        ids[count], _ = _read_id(text, place, end)
        count += 1
        place = code.skip_blanks(text, code.skip_token(text, place, end), end)
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:  # Shell's sort: small to compile, and no order of ids makes it slow
        for number in range(gap, count):
            moved = ids[number]
            slot = number
            while slot >= gap and ids[slot - gap] > moved:
                ids[slot] = ids[slot - gap]
                slot -= gap
            ids[slot] = moved
        gap //= 3
    distinct = 1
    while distinct < count and ids[distinct] != ids[distinct - 1]:
        distinct += 1
    return distinct < count


@kernel
def leave_open(undecided, notes, row, column, place, end):
    """Request Python's ``float`` for ``text[place:end]``; beyond the capacity it is only counted."""
    if notes[code.LEFT_OPEN] < len(undecided):
        undecided[notes[code.LEFT_OPEN], 0] = row
        undecided[notes[code.LEFT_OPEN], 1] = column
        undecided[notes[code.LEFT_OPEN], 2] = place
        undecided[notes[code.LEFT_OPEN], 3] = end
    notes[code.LEFT_OPEN] += 1


@kernel
def read_features(text, place, end, row, dropping, rules, expected, table, undecided, notes):
    """Read the features of one row: ``(where they end, 0)``, or ``(where the problem is, which)``."""
    offset = row * rules.width
    first = place
    column = 0
    previous = -1
    ascending = True
    while True:
        started = column
        place, column, pending = _steady(text, place, column, expected, table.X, offset)
        if column > started:
            previous = column - 1 + rules.base
        if not pending:
            place = code.skip_blanks(text, place, end)
            if place == end or byte(text, place) == code.NEWLINE or byte(text, place) == code.HASH:
                break
            identity, value_at = _read_id(text, place, end)
            if identity < 0:
                return place, code.BAD_FEATURE
            column = identity - rules.base
            if column < 0:
                if rules.fixed_base:
                    return place, code.ID_ZERO
                notes[code.ZERO_SEEN] = 1
            if column >= rules.width and rules.fixed_width:
                return place, code.ID_TOO_LARGE
            notes[code.LARGEST] = max(notes[code.LARGEST], identity)
            ascending = ascending and identity > previous
            place = value_at
        kind = MALFORMED
        if not pending and place < len(text) - REACH:
            value, stop = _short_value(text, place)
            if stop >= 0 and is_break(byte(text, stop)):
                kind = FINITE
        if kind != FINITE:
            value, stop, kind = read_decimal(text, place, end)
        if kind == MALFORMED:
            return place, code.BAD_VALUE
        if 0 <= column < rules.width:
            table.X[offset + column] = value
            if kind == FINITE and np.isinf(table.X[offset + column]):  # too large for float32
                kind = NOT_FINITE
                table.X[offset + column] = np.nan
            if kind == UNDECIDED and not dropping:
                leave_open(undecided, notes, row, column, place, stop)
        if kind == NOT_FINITE and not dropping:
            if rules.refuse_missing:
                return place, code.VALUE_NOT_FINITE
            notes[code.MISSING] += 1
        previous = column + rules.base
        column += 1
        place = stop
    if not ascending and _repeats_an_id(text, first, place):
        return first, code.ID_REPEATED
    return place, 0


@kernel
def _next_line(text, place, end):
    """``(where the next line begins, 0)``, or ``(where a stray carriage return stands, which problem that is)``."""
    after = after_newline(text, place, end)
    stray = code.stray_return(text, place, after)
    return (stray, code.STRAY_RETURN) if stray < after else (after, 0)


@kernel
def read_rows(text, begin, end, row, rules, expected, table, runs, undecided, notes):
    """Read the lines from ``begin`` to ``end`` into rows ``row``, ``row + 1``, ... of ``table``.

    Parameters
    ----------
    text : ndarray of uint8
        The bytes.
    begin, end : int
        The range of bytes.
    row : int
        The first row.
    rules : LetorRules
        How to read.
    expected : Expected
        The announcements of the columns.
    table : LetorRows
        The arrays to fill.
    runs : ndarray of int64, shape (n_rows, 3)
        Receives (row, place, length) of the qid at the first row of every run of one qid, rows counted from 0.
    undecided : ndarray of int64, shape (capacity, 4)
        Receives (row, column, begin, end) of the texts left to Python's ``float``; column -1 is a label.
    notes : ndarray of int64
        Receives the rest, in the order of ``Notes``.
    """
    first_row = row
    line = row
    place = begin
    problem = 0
    known_at = 0
    known_length = -1
    while place < end:
        place = code.skip_blanks(text, place, end)
        if place == end or byte(text, place) == code.NEWLINE or byte(text, place) == code.HASH:
            place, problem = _next_line(text, place, end)
            if problem != 0:
                break
            continue
        label, stop, kind = read_decimal(text, place, end)
        if kind in (MALFORMED, NOT_FINITE):
            problem = code.BAD_LABEL
            break
        if label < 0 and rules.unjudged == code.REFUSE:
            problem = code.LABEL_NEGATIVE
            break
        dropping = label < 0 and rules.unjudged == code.DROP
        if kind == UNDECIDED and not label < 0:
            leave_open(undecided, notes, row, -1, place, stop)
        table.y[row] = 0.0 if label < 0 else label

        place = code.skip_blanks(text, stop, end)
        with_qid = code.has_qid(text, place, end)
        if notes[code.QID] == code.EITHER:
            notes[code.QID] = with_qid
        if with_qid != rules.qid and rules.qid != code.EITHER:
            problem = code.QID_UNEXPECTED if with_qid else code.QID_LACKING
            break
        if with_qid:
            at = place + 4
            length = code.skip_token(text, at, end) - at
            if length == 0:
                problem = code.EMPTY_QID
                break
            place = at + length
            if not dropping and (length != known_length or not code.same_bytes(text, at, known_at, length)):
                runs[notes[code.RUNS], 0] = row - first_row
                runs[notes[code.RUNS], 1] = at
                runs[notes[code.RUNS], 2] = length
                notes[code.RUNS] += 1
                known_at = at
                known_length = length

        place, problem = read_features(text, place, end, row, dropping, rules, expected, table, undecided, notes)
        if problem != 0:
            break
        if place < end and byte(text, place) == code.HASH and not dropping:
            at, length = code.find_docid(text, place + 1, end)
            if length > 0:
                table.docid_at[row - first_row] = at
                table.docid_length[row - first_row] = length
                notes[code.DOCIDS] += 1
        place, problem = _next_line(text, place, end)
        if problem != 0:
            break
        if dropping:
            for cell in range(row * rules.width, (row + 1) * rules.width):
                table.X[cell] = 0
            if len(table.dropped) > 0:
                table.dropped[line] = True
        else:
            row += 1
        line += 1
    notes[code.PROBLEM] = problem
    notes[code.PLACE] = place
    notes[code.ROWS] = row - first_row
