"""The bits of a float64 as an integer, and back, and the lowest of 64 bits."""

from typing import Any

import numba.extending
from llvmlite import ir
from numba import types

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
