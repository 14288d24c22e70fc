"""One 64-bit word for the content of a list: equal lists have equal words, and different ones hardly ever.

Every value is mixed with a key of its column and added up to a row; every row is mixed and added up to the list. A sum
does not know the order of what was added, so neither does the word.
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
            word = np.uint64(0)
            for j in range(features):
                word += mix(word_of(X[row, j]) + keys[j])
            if len(y):
                word += mix(word_of(y[row]) + keys[features])
            alike = alike and (p == start[q] or word == before)
            before = word
            total += mix(word)
        out[q] = TELLS_NOTHING if alike else mix(total)
