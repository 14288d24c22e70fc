"""A float64 and its bits."""

from typing import Any

import numba.extending
from llvmlite import ir
from numba import types

intrinsic: Any = numba.extending.intrinsic  # what it makes has other arguments than what it is given


@intrinsic
def from_bits(context, bits):
    """The float64 with these bits, given as a signed or unsigned number of 64 bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(bits), generate


@intrinsic
def to_bits(context, number):
    """The bits of a float64."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate
