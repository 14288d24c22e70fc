"""LETOR text to arrays: ``label qid:id feature:value ... # comment``, a range of whole lines at a time.

Ranges are independent of each other, so that threads can share a file; every range writes its own rows of the
final arrays. What a range cannot decide alone it notes: ids beyond the width that was foreseen, values that need
Python's ``float``, the first byte that cannot be read and why.
"""

from rankwise._kernels.decimal import MALFORMED, NOT_FINITE, UNDECIDED, read_decimal
from rankwise._kernels.jit import kernel
from rankwise._kernels.letor_features import leave_open, read_features
from rankwise._kernels.letor_lines import (
    HASH,
    NEWLINE,
    find_docid,
    has_qid,
    same_bytes,
    skip_blanks,
    skip_token,
    stray_return,
)
from rankwise._kernels.letor_rules import (
    BAD_LABEL,
    DOCIDS,
    DROP,
    EITHER,
    EMPTY_QID,
    LABEL_NEGATIVE,
    PLACE,
    PROBLEM,
    QID,
    QID_LACKING,
    QID_UNEXPECTED,
    REFUSE,
    ROWS,
    RUNS,
    STRAY_RETURN,
)
from rankwise._kernels.letor_words import after_newline, byte


@kernel
def read_rows(text, begin, end, row, rules, expected, table, runs, undecided, notes):
    """Read the lines from ``begin`` to ``end`` into rows ``row``, ``row + 1``, ... of ``table``.

    ``runs`` receives (row, place, length) of the qid at the first row of every run of one qid, rows counted from 0;
    ``undecided`` (row, column, begin, end) of the texts left to Python's ``float``, column -1 for a label; ``notes``
    the rest.
    """
    first_row = row
    line = row
    place = begin
    problem = 0
    known_at = 0
    known_length = -1
    while place < end:
        place = skip_blanks(text, place, end)
        if place == end or byte(text, place) == NEWLINE or byte(text, place) == HASH:
            rest = place
            place = after_newline(text, place, end)
            stray = stray_return(text, rest, place)
            if stray < place:
                place = stray
                problem = STRAY_RETURN
                break
            continue
        label, stop, kind = read_decimal(text, place, end)
        if kind in (MALFORMED, NOT_FINITE):
            problem = BAD_LABEL
            break
        if label < 0 and rules.unjudged == REFUSE:
            problem = LABEL_NEGATIVE
            break
        dropping = label < 0 and rules.unjudged == DROP
        if kind == UNDECIDED and not label < 0:
            leave_open(undecided, notes, row, -1, place, stop)
        table.y[row] = 0.0 if label < 0 else label

        place = skip_blanks(text, stop, end)
        with_qid = has_qid(text, place, end)
        if notes[QID] == EITHER:
            notes[QID] = with_qid
        if with_qid != rules.qid and rules.qid != EITHER:
            problem = QID_UNEXPECTED if with_qid else QID_LACKING
            break
        if with_qid:
            at = place + 4
            length = skip_token(text, at, end) - at
            if length == 0:
                problem = EMPTY_QID
                break
            place = at + length
            if not dropping and (length != known_length or not same_bytes(text, at, known_at, length)):
                runs[notes[RUNS], 0] = row - first_row
                runs[notes[RUNS], 1] = at
                runs[notes[RUNS], 2] = length
                notes[RUNS] += 1
                known_at = at
                known_length = length

        place, problem = read_features(text, place, end, row, dropping, rules, expected, table, undecided, notes)
        if problem != 0:
            break
        if place < end and byte(text, place) == HASH and not dropping:
            at, length = find_docid(text, place + 1, end)
            if length > 0:
                table.docid_at[row - first_row] = at
                table.docid_length[row - first_row] = length
                notes[DOCIDS] += 1
        rest = place
        place = after_newline(text, place, end)
        stray = stray_return(text, rest, place)
        if stray < place:
            place = stray
            problem = STRAY_RETURN
            break
        if dropping:
            for cell in range(row * rules.width, (row + 1) * rules.width):
                table.X[cell] = 0
            if len(table.dropped) > 0:
                table.dropped[line] = True
        else:
            row += 1
        line += 1
    notes[PROBLEM] = problem
    notes[PLACE] = place
    notes[ROWS] = row - first_row
