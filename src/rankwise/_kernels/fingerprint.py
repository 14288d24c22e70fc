"""One 64-bit word for the content of a list: equal lists have equal words, and different ones hardly ever.

A row is the sum over its values of (low half + key) (high half + key'), keys of the column, which the processor takes
four at a time (the NH hash of Black, Halevi, Krawczyk, Krovetz and Rogaway, UMAC, 1999: two rows have the same sum with
a chance of 2^-32 at most). Rows are then mixed and added up to the list; a sum does not know the order of what was
added, so neither does the word. Of a long list only the documents of the rarest labels are read, and all labels.
"""

import numpy as np

from rankwise._kernels.bits import to_bits
from rankwise._kernels.jit import kernel
from rankwise._kernels.levels import number_levels

# The word of a list whose documents are all alike: it tells nothing, since others are like it by chance.
TELLS_NOTHING = np.uint64(0)
# Documents of a list that are read whole, at least; a list of twice as many is read whole in any case.
FEW = 8


@kernel
def mix(word):
    """Spread the information of 64 bits over all of them: a bijection (Steele, Lea and Flood, SplitMix, 2014)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@kernel
def word_of(number):
    """The bits of a number as a float64; 0 and -0, which are equal, have the same."""
    return np.uint64(to_bits(np.float64(number) + 0.0))


@kernel
def product_of_halves(word, key):
    """(low half of the word + low half of the key) times the same of the high halves, each sum within 32 bits."""
    half = np.uint64(0xFFFFFFFF)
    low = ((word & half) + (key & half)) & half
    high = ((word >> np.uint64(32)) + (key >> np.uint64(32))) & half
    return low * high


@kernel
def row_word(x, keys):
    """The sum over the values of a row."""
    word = np.uint64(0)
    for j in range(len(x)):
        word += product_of_halves(word_of(x[j]), keys[j])
    return word


@kernel
def column_keys(count):
    """A key for each column: the sequence of SplitMix."""
    keys = np.empty(count, np.uint64)
    for j in range(count):
        keys[j] = mix(np.uint64(j + 1) * np.uint64(0x9E3779B97F4A7C15))
    return keys


@kernel
def _rarest(count, taken):
    """Take the rarest classes, the higher of equally rare ones first, until they have ``FEW`` documents."""
    documents = 0
    while documents < FEW:
        rarest = -1
        for c in range(len(count)):
            if not taken[c] and (rarest < 0 or count[c] <= count[rarest]):
                rarest = c
        taken[rarest] = True
        documents += count[rarest]


@kernel
def _labels_word(label, level, seed, taken):
    """The word of the labels, whosoever they are; ``level``: their classes, ``taken``: those that are read whole."""
    classes = number_levels(label, level)
    count, found = np.zeros(classes, np.int64), np.zeros(classes)
    for i in range(len(label)):
        count[level[i]] += 1
        found[level[i]] = label[i]
    total = np.uint64(0)
    for c in range(classes):
        total += np.uint64(count[c]) * mix(word_of(found[c]) + seed)
    taken[:classes] = len(label) <= 2 * FEW
    if len(label) > 2 * FEW:
        _rarest(count, taken)
    return total


@kernel
def _documents_word(own, X, label, level, taken, keys):
    """(sum over the documents of the classes that are read, whether these documents are all alike)."""
    total, before, read, alike = np.uint64(0), np.uint64(0), 0, True
    for i in range(len(own)):
        if taken[level[i]]:
            word = row_word(X[own[i]], keys)
            if len(label):
                word += mix(word_of(label[i]) + keys[X.shape[1]])
            alike = alike and (read == 0 or word == before)
            before = word
            read += 1
            total += mix(word)
    return total, alike


@kernel
def list_word(own, X, label, keys, level, taken):
    """The word of the list of the rows ``own``; no ``label``: without labels. The last two are room, overwritten."""
    total = np.uint64(len(own))
    if len(label):
        total += _labels_word(label, level, keys[X.shape[1]], taken)
    else:
        level[:], taken[:1] = 0, True
    documents, alike = _documents_word(own, X, label, level, taken, keys)
    if alike and len(label) > 2 * FEW:  # these tell nothing: perhaps the others do
        taken[:] = True
        documents, alike = _documents_word(own, X, label, level, taken, keys)
    return TELLS_NOTHING if alike else mix(total + documents)


@kernel
def fingerprint_lists(first, last, start, rows, X, y, keys, out):
    """The words of lists first..last-1 into ``out``; no ``rows``: lists stand together; no ``y``: without labels."""
    for q in range(first, last):
        size = start[q + 1] - start[q]
        own = rows[start[q] : start[q + 1]] if len(rows) else np.arange(start[q], start[q + 1])
        out[q] = list_word(own, X, y[own] if len(y) else y, keys, np.empty(size, np.int64), np.empty(size, np.bool_))
