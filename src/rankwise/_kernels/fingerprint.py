"""One 64-bit word for the content of a list: equal lists have equal words, and different ones hardly ever.

A row is the sum over its values of (low half + key) (high half + key'), keys of the column, which the processor takes
four at a time (the NH hash of Black, Halevi, Krawczyk, Krovetz and Rogaway, UMAC, 1999: two rows have the same sum with
a chance of 2^-32 at most). Every row is then mixed and added up to the list; a sum does not know the order of what was
added, so neither does the word.
"""

import numpy as np

from rankwise._kernels.bits import to_bits
from rankwise._kernels.jit import kernel

# The word of a list whose documents are all alike: it tells nothing, since others are like it by chance.
TELLS_NOTHING = np.uint64(0)


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
def fingerprint_lists(first, last, start, rows, X, y, keys, out):
    """The words of lists first..last-1 into ``out``; no ``rows``: they stand together; no ``y``: without labels."""
    features = X.shape[1]
    for q in range(first, last):
        total, before, alike = np.uint64(start[q + 1] - start[q]), np.uint64(0), True
        for p in range(start[q], start[q + 1]):
            row = rows[p] if len(rows) else p
            word = row_word(X[row], keys)
            if len(y):
                word += mix(word_of(y[row]) + keys[features])
            alike = alike and (p == start[q] or word == before)
            before = word
            total += mix(word)
        out[q] = TELLS_NOTHING if alike else mix(total)
