"""The bits of a float64 as an integer, and back, the lowest of 64 bits, and a hash that spreads them.

References
----------
G. L. Steele, D. Lea and C. H. Flood (2014). Fast splittable pseudorandom number generators. OOPSLA 2014, 453-472.
doi:10.1145/2660193.2660195
"""

from typing import Any

import numba  # the whole first: threads that import its parts side by side break each other's import
import numba.extending
import numpy as np
from llvmlite import ir
from numba import types

from rankwise._kernels.machine.jit import kernel

intrinsic: Any = numba.extending.intrinsic  # its result takes other arguments than the function that it decorates


@intrinsic
def from_bits(context, bits):
    """The float64 with these bits, given as a signed or unsigned integer of 64 bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(bits), generate


@intrinsic
def to_bits(context, number):
    """The bits of a float64 as a signed integer."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def trailing_zeros(context, bits):
    """The place of the lowest bit that is set in an unsigned integer of 64 bits; 64 if none is."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


def mixed(word: Any) -> Any:
    """Spread the information of 64 bits over all of them: a bijection (SplitMix)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


mix = kernel(mixed)


@kernel
def word_of(number):
    """The bits of a number as a float64; 0 and -0, which are equal, have the same."""
    return np.uint64(to_bits(np.float64(number) + 0.0))
