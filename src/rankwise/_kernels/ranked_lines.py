"""Lines of ranked documents: query, document, rank and score, with given letters behind each of them."""

import numpy as np

from rankwise._kernels.jit import kernel
from rankwise._kernels.letor_format import put, put_whole
from rankwise._kernels.shortest import LONGEST, put_shortest

_LONGEST_WHOLE = 20


@kernel
def put_scores(scores, text, length):
    """The shortest text of every score into a row of ``text``; a length of -1 where Python has to write it."""
    for i in range(len(scores)):
        length[i] = put_shortest(text[i], 0, scores[i])


@kernel
def put_column(text, length):
    """One score a line."""
    out, at = np.empty(length.sum() + len(length), np.uint8), 0
    for i in range(len(length)):
        at = put(out, at, text[i, : length[i]])
        out[at] = 10
        at += 1
    return out


@kernel
def put_lines(query, qid, qid_offset, document, docid, docid_offset, rank, text, length, row, behind, behind_offset):
    """One line for each place of ``query``; no ``docid``: documents are called by their numbers."""
    size, letters = 0, behind_offset[4] + 2 * _LONGEST_WHOLE + LONGEST
    for i in range(len(query)):
        size += qid_offset[query[i] + 1] - qid_offset[query[i]] + letters
        if len(docid_offset):
            size += docid_offset[document[i] + 1] - docid_offset[document[i]]
    out, at = np.empty(size, np.uint8), 0
    for i in range(len(query)):
        at = put(out, at, qid[qid_offset[query[i]] : qid_offset[query[i] + 1]])
        at = put(out, at, behind[behind_offset[0] : behind_offset[1]])
        if len(docid_offset):
            at = put(out, at, docid[docid_offset[document[i]] : docid_offset[document[i] + 1]])
        else:
            at = put_whole(out, at, document[i], 1)
        at = put(out, at, behind[behind_offset[1] : behind_offset[2]])
        at = put_whole(out, at, rank[i], 1)
        at = put(out, at, behind[behind_offset[2] : behind_offset[3]])
        at = put(out, at, text[row[i], : length[row[i]]])
        at = put(out, at, behind[behind_offset[3] : behind_offset[4]])
    return out[:at]
