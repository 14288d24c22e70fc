"""Text by the machine word: eight bytes are examined in one step.

Byte 0 of the text is the lowest byte of the word on every machine, so "how many digits lead" is a count of
trailing zero bits. None of these functions checks a bound: the caller keeps ``place + 8 <= len(text)``.
"""

import sys

import numpy as np
from llvmlite import ir
from numba import types

from rankwise._kernels.bits import intrinsic, trailing_zeros
from rankwise._kernels.machine.jit import kernel

U = np.uint64

ONES = U(0x0101010101010101)
HIGH = U(0x8080808080808080)
ZEROS = U(0x3030303030303030)  # "00000000"
BEYOND_NINE = U(0x7676767676767676)  # 0x76 + 10 = 0x80: a tenth value lifts the high bit


@intrinsic
def word(context, text, place):
    """Eight bytes of ``text`` from ``place`` on, as an unsigned number, first byte lowest."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        first = builder.gep(data, [arguments[1]])
        loaded = builder.load(builder.bitcast(first, ir.IntType(64).as_pointer()))
        loaded.align = 1
        return loaded if sys.byteorder == "little" else builder.bswap(loaded)

    return types.uint64(text, types.int64), generate


@intrinsic
def byte(context, text, place):
    """One byte of ``text``; unlike ``text[place]`` it does not check for places below zero."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load(builder.gep(data, [arguments[1]]))

    return types.uint8(text, types.int64), generate


@intrinsic
def leading_zeros(context, number):
    """Zero bits above the highest one bit; 64 for zero."""

    def generate(context, builder, signature, arguments):
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@intrinsic
def multiply_high(context, left, right):
    """The upper 64 bits of the 128-bit product; ``left * right`` gives the lower ones."""

    def generate(context, builder, signature, arguments):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@kernel(inline="always")
def digit_bits(eight):
    """Eight times the number of leading digits of the word: 0, 8, ... 64.

    A carry out of a byte that is not a digit can spoil the marks above it, never the lowest one.
    """
    apart = eight ^ ZEROS
    return trailing_zeros(((apart + BEYOND_NINE) | apart) & HIGH) & U(0x78)


@kernel(inline="always")
def digits(eight, bits):
    """The number written by the ``bits / 8`` digits that lead the word, 0 to 7 of them.

    The digits are shifted to the end of the word, so that zeros lead; then pairs, fours and eights are joined by
    one multiplication each: (10 a + b), (100 a + b), (10000 a + b).
    """
    return eight_digits((eight << (U(56) - bits)) << U(8))


@kernel(inline="always")
def eight_digits(eight):
    """The number written by a word of eight digits (zero bytes count as the digit 0)."""
    pairs = ((eight & U(0x0F0F0F0F0F0F0F0F)) * U(10 * 2**8 + 1)) >> U(8)
    fours = ((pairs & U(0x00FF00FF00FF00FF)) * U(100 * 2**16 + 1)) >> U(16)
    return ((fours & U(0x0000FFFF0000FFFF)) * U(10000 * 2**32 + 1)) >> U(32)
