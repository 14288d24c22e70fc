"""Every parameter of every ranker is checked by its declaration, before fit touches the data."""

import dataclasses
import math
import re
from typing import Any, Literal

import numpy as np
import pytest
from sklearn.base import clone

import rankwise as rw
from rankwise._parameters import NumberRange, _constraints_of_class, check_parameters, validated
from rankwise.errors import FileFormatError, MeasureError, RankwiseError
from rankwise.rankers._base import registered

RANKERS = sorted(registered().items())
EXAMPLES = [
    pytest.param(example, id=f"{name}-{number}")
    for name, kind in RANKERS
    for number, example in enumerate(kind.examples())
]
NUMBER_OF_WRONG_VALUES = 500


class Untouchable:
    """Stands for X, and fails whatever is done with it."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"X was touched: {name}")

    def _touch(self, *arguments: Any) -> Any:
        raise AssertionError("X was touched")

    __len__ = __iter__ = __getitem__ = __bool__ = __array__ = __eq__ = _touch
    __hash__ = None  # type: ignore[assignment]


class Odd:
    """An object that no parameter accepts."""

    def __repr__(self) -> str:
        return "Odd()"


WRONG = (
    Odd(),
    math.nan,
    -math.inf,
    -7,
    -0.5,
    "no such word",
    b"bytes",
    [],
    [None],
    {"a": "b"},
    1 + 1j,
    np.datetime64(0, "s"),
)


def accepted(ranker: Any, name: str, value: Any) -> bool:
    return any(accepts(option, value) for option in _constraints_of_class(type(ranker))[name])


def accepts(option: Any, value: Any) -> bool:
    try:
        return bool(option.accepts(value))
    except RankwiseError:
        return False


def wrong_values() -> list[Any]:
    random, found = np.random.default_rng(0), []
    examples = [example for _, kind in RANKERS for example in kind.examples()]
    while len(found) < NUMBER_OF_WRONG_VALUES:
        example = examples[random.integers(len(examples))]
        names = list(_constraints_of_class(type(example)))
        name, value = names[random.integers(len(names))], WRONG[random.integers(len(WRONG))]
        if not accepted(example, name, value):
            found.append((example, name, value))
    return found


@pytest.mark.parametrize("part", range(10))
def test_wrong_values_raise_the_declared_message_before_x_is_touched(part):
    for example, name, value in wrong_values()[part::10]:
        ranker = clone(example).set_params(**{name: value})
        kind = type(ranker).__name__
        with pytest.raises(RankwiseError) as raised:
            ranker.fit(Untouchable())
        form = rf"The '{name}' parameter of {kind} must be .+\. Got {re.escape(repr(value)[:60])} instead( \(.+\))?\."
        assert re.fullmatch(form, str(raised.value), re.DOTALL), str(raised.value)


@pytest.mark.parametrize("example", [case for case in EXAMPLES if hasattr(case.values[0], "partial_fit")])
def test_partial_fit_checks_as_well(example):
    ranker = clone(example).set_params(verbose="yes")
    with pytest.raises(RankwiseError, match=r"The 'verbose' parameter of .* must be a bool\. Got 'yes' instead"):
        ranker.partial_fit(Untouchable())


@pytest.mark.parametrize(("name", "kind"), RANKERS)
def test_every_parameter_is_constrained(name, kind):
    free = {field.name for field in dataclasses.fields(kind)} - set(_constraints_of_class(kind))
    assert free <= {"ranker", "transformer"}, "MappedRanker checks these by itself"


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_and_defaults_are_accepted(example):
    example._check_parameters()
    for name, options in _constraints_of_class(type(example)).items():
        default = type(example)().get_params(deep=False)[name]
        assert any(accepts(option, default) for option in options), name


@pytest.mark.parametrize("example", EXAMPLES)
def test_numpy_scalars_are_accepted(example):
    types = {bool: np.bool_, int: np.int32, float: np.float64}
    given = example.get_params(deep=False)
    scalars = {name: types[type(value)](value) for name, value in given.items() if type(value) in types}
    clone(example).set_params(**scalars)._check_parameters()


@pytest.mark.parametrize(("name", "kind"), RANKERS)
def test_the_constructor_checks_nothing(name, kind):
    ranker = kind(verbose="yes", n_jobs="many")
    assert ranker.get_params(deep=False)["verbose"] == "yes"
    assert clone(ranker).set_params(n_jobs=1.5).n_jobs == 1.5


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (
            rw.RidgeRanker(alpha=-1),
            "The 'alpha' parameter of RidgeRanker must be a float in [0, inf), a sequence of such floats or None. "
            "Got -1 instead.",
        ),
        (
            rw.RidgeRanker(target="x"),
            "The 'target' parameter of RidgeRanker must be 'gains' or 'labels'. Got 'x' instead.",
        ),
        (rw.RidgeRanker(balanced="yes"), "The 'balanced' parameter of RidgeRanker must be a bool. Got 'yes' instead."),
        (rw.RidgeRanker(balanced=1), "The 'balanced' parameter of RidgeRanker must be a bool. Got 1 instead."),
        (
            rw.RidgeRanker(folds=2.0),
            "The 'folds' parameter of RidgeRanker must be an int in [2, inf). Got 2.0 instead.",
        ),
        (
            rw.RidgeRanker(folds=True),
            "The 'folds' parameter of RidgeRanker must be an int in [2, inf). Got True instead.",
        ),
        (
            rw.RidgeRanker(n_jobs=0),
            "The 'n_jobs' parameter of RidgeRanker must be an int in [1, inf), -1 or None. Got 0 instead.",
        ),
    ],
)
def test_messages(ranker, message):
    with pytest.raises(RankwiseError) as raised:
        ranker.fit(Untouchable())
    assert str(raised.value) == message


def test_a_measure_that_cannot_be_parsed_is_named_with_the_reason():
    with pytest.raises(
        MeasureError, match=r"The 'measure' parameter of RidgeRanker must be .* Got 'nDGC@10' instead \("
    ):
        rw.RidgeRanker("nDGC@10").fit(Untouchable())


def test_long_values_are_cut():
    with pytest.raises(RankwiseError) as raised:
        rw.RidgeRanker(target="x" * 1000).fit(Untouchable())
    assert len(str(raised.value)) < 200


def test_a_file_with_a_wrong_parameter_is_damaged(tmp_path):
    path = tmp_path / "model.rankwise"
    model = rw.RidgeRanker(alpha=1.0).fit(rw.make_lists(20, random_state=0))
    model.save(path)
    path.write_bytes(re.sub(rb'(balanced[\\]*": *)true', rb"\g<1>1234", path.read_bytes()))
    with pytest.raises(FileFormatError, match="'balanced' parameter of RidgeRanker must be a bool"):
        rw.load(path)


@pytest.mark.parametrize(("closed", "inside"), [("both", (0, 1)), ("left", (0,)), ("right", (1,)), ("neither", ())])
def test_intervals(closed, inside):
    interval = NumberRange(0, 1, closed=closed)
    assert [value for value in (-1, 0, 1, 2) if value in interval] == list(inside)
    assert 0.5 in interval
    assert math.nan not in interval
    assert math.inf not in NumberRange(0)


def test_functions_are_checked_by_their_annotations():
    @validated
    def cut(text: str, length: int = 3, side: Literal["left", "right"] = "left", rest: Any = None) -> str:
        return text[:length] if side == "left" else text[-length:]

    assert cut("abcdef") == "abc"
    assert cut("abcdef", side="right") == "def"
    with pytest.raises(
        RankwiseError, match=r"The 'side' parameter of cut must be 'left' or 'right'\. Got 'up' instead"
    ):
        cut("abcdef", side="up")
    with pytest.raises(RankwiseError, match=r"The 'text' parameter of cut must be a str\. Got 1 instead"):
        cut(1)
    with pytest.raises(TypeError):
        cut()


def test_annotations_may_be_strings():
    @dataclasses.dataclass
    class Quoted:
        size: "int" = 1
        other: "NotImported" = None  # noqa: F821

    check_parameters(Quoted(other=Odd()), "Quoted")
    with pytest.raises(RankwiseError, match="The 'size' parameter of Quoted must be an int"):
        check_parameters(Quoted(size=None), "Quoted")
