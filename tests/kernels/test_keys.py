"""What a kernel's digest depends on: everything that is compiled in, wherever it is written, and nothing else."""

import sys
from types import ModuleType
from typing import NamedTuple

import pytest
from numba import types

from rankwise._kernels.machine.keys import kernel_digest, type_text

HELPERS = '''
"""Helpers."""
import numpy as np
from rankwise._kernels.machine.jit import kernel

SCALE = 2.0
SHIFT = 1
NAMES = ("a", "b")
TABLE = np.array([1.0, 2.0])
UNUSED = 7.0


@kernel
def inner(x):
    """Inner."""
    return x * SCALE + TABLE[1]


@kernel(fastmath={"contract"})
def helper(x, y=3.0):
    """Helper."""
    return inner(x) + y


@kernel
def unrelated(x):
    return x - 1.0
'''

MAIN = '''
"""The kernel."""
import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from rankwise._kernels.machine.jit import kernel
import HELPERS as h
from HELPERS import helper

LIMIT = 10


@intrinsic
def negated(context, number):
    """Intrinsic."""

    def generate(context, builder, signature, arguments):
        return builder.fneg(arguments[0])

    return types.float64(types.float64), generate


@kernel
def main(x, top=5):
    """Main."""
    total = 0.0
    for i in range(LIMIT):
        total += helper(x) + h.SHIFT
    return negated(total) + top


def plain(x):
    return x
'''


@pytest.fixture
def digest_of(monkeypatch):
    """The digest of ``main`` after edits of the two modules: pairs (old, new)."""

    def module(name, text):
        made = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, made)
        exec(compile(text, f"{name}.py", "exec"), vars(made))
        return made

    def digest(*edits, name="main", options=None):
        helpers, main = HELPERS, MAIN
        for old, new in edits:
            assert old in helpers + main
            helpers, main = helpers.replace(old, new), main.replace(old, new)
        module("HELPERS", helpers)
        function = getattr(module("MAIN", main), name)
        found = kernel_digest(getattr(function, "py_func", function), {"nogil": True} if options is None else options)
        assert found.exact
        return found.hex

    return digest


COUNTING = {
    "the body": ("total = 0.0", "total = 1.0"),
    "an operator": ("total += helper(x)", "total -= helper(x)"),
    "a constant of the module": ("LIMIT = 10", "LIMIT = 11"),
    "the type of a constant": ("LIMIT = 10", "LIMIT = 10.0"),
    "the sign of a zero": ("SCALE = 2.0", "SCALE = -0.0"),
    "a default argument": ("top=5", "top=6"),
    "a helper's body": ("inner(x) + y", "inner(x) - y"),
    "a helper's default argument": ("y=3.0", "y=4.0"),
    "a helper's options": ('{"contract"}', '{"contract", "reassoc"}'),
    "a nested helper's body": ("x * SCALE", "x / SCALE"),
    "a nested helper's constant": ("SCALE = 2.0", "SCALE = 2.5"),
    "an array that a nested helper names": ("[1.0, 2.0]", "[1.0, 2.5]"),
    "the type of that array": ("[1.0, 2.0])", "[1.0, 2.0], dtype=np.float32)"),
    "a constant read through its module": ("SHIFT = 1", "SHIFT = 2"),
    "an intrinsic's code": ("fneg", "fadd"),
    "an intrinsic's type": ("types.float64(types.float64)", "types.float64(types.float32)"),
    "the order of arguments": ("main(x, top=5)", "main(top=5, x=1.0)"),
}


@pytest.mark.parametrize("edit", COUNTING.values(), ids=COUNTING)
def test_what_changes_the_code_changes_the_digest(digest_of, edit):
    assert digest_of(edit) != digest_of()


IGNORED = {
    "the docstring": ('"""Main."""', '"""Something else, on\n    several lines."""'),
    "a helper's docstring": ('"""Helper."""', '"""Other."""'),
    "an intrinsic's docstring": ('"""Intrinsic."""', '"""Other."""'),
    "the docstring of a module": ('"""The kernel."""', '"""Other."""'),
    "a comment": ("total = 0.0", "total = 0.0  # a comment"),
    "line numbers": ("LIMIT = 10", "LIMIT = 10\n\n\n"),
    "spaces": ("top=5", "top =  5"),
    "a constant that nothing names": ("UNUSED = 7.0", "UNUSED = 8.0"),
    "a kernel that nothing calls": ("x - 1.0", "x - 2.0"),
    "a plain function beside it": ("    return x\n", "    return 2 * x\n"),
    "how a number is written": ("SCALE = 2.0", "SCALE = 4 / 2"),
}


@pytest.mark.parametrize("edit", IGNORED.values(), ids=IGNORED)
def test_what_leaves_the_code_alone_leaves_the_digest_alone(digest_of, edit):
    assert digest_of(edit) == digest_of()


def test_a_docstring_that_is_also_returned_counts(digest_of):
    returned = ("    return x\n", '    "one"\n    return "one"\n')
    other = ("    return x\n", '    "two"\n    return "two"\n')
    assert digest_of(returned, name="plain") != digest_of(other, name="plain")


def test_options_count(digest_of):
    one = digest_of(options={"nogil": True, "fastmath": {"reassoc", "contract"}})
    assert one == digest_of(options={"fastmath": {"contract", "reassoc"}, "nogil": True})
    assert one != digest_of(options={"nogil": True, "fastmath": {"contract"}})


def test_closures_count_by_what_they_hold():
    def made(factor):
        def function(x):
            return x * factor

        return kernel_digest(function, {}).hex

    assert made(2.0) == made(2.0)
    assert made(2.0) != made(3.0)


def test_functions_that_call_each_other_have_a_digest():
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    assert kernel_digest(even, {}).hex != kernel_digest(odd, {}).hex


class Strange:
    """An object of which nothing is known."""


STRANGE = Strange()


def names_something_strange():
    return STRANGE


def test_what_is_not_understood_is_represented_by_its_file():
    found = kernel_digest(names_something_strange, {})
    assert not found.exact
    assert found.hex == kernel_digest(names_something_strange, {}).hex
    typed_at_a_prompt = {}
    exec("def f():\n    return STRANGE", {"STRANGE": STRANGE}, typed_at_a_prompt)
    with pytest.raises(OSError, match="No such file"):
        kernel_digest(typed_at_a_prompt["f"], {})


class One(NamedTuple):
    a: int
    b: int


class Other(NamedTuple):
    b: int
    a: int


def test_the_order_of_a_named_tuples_fields_counts():
    of = {kind: type_text(types.NamedUniTuple(types.int64, 2, kind)) for kind in (One, Other)}
    assert "('a', 'b')" in of[One]
    assert of[One] != of[Other]
    assert type_text(types.Array(types.float64, 1, "C")) != type_text(types.Array(types.float64, 1, "C", readonly=True))
