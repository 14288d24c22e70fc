"""A bound as a value: its side, its kind, what it allows and when it says nothing."""

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.guarantees import Bound, Precondition
from rankwise.guarantees._bound import refuse_unless, refuse_unless_chance


def bound(**facts):
    return Bound(**({"name": "N", "bounds": "loss", "statement": "a", "value": 0.5, "terms": {"a": 0.5}} | facts))


@given(st.floats(-10, 10), st.floats(-10, 10))
def test_each_side_allows_what_is_on_it(value, found):
    above, below = bound(value=value, side="at least"), bound(value=value)
    assert below.allows(value)
    assert above.allows(value)
    if abs(found - value) > 1e-7:
        assert below.allows(found) is (found < value)
        assert above.allows(found) is (found > value)


def test_infinite_bounds_allow_everything():
    assert bound(value=math.inf).allows(math.inf)
    assert bound(value=-math.inf, side="at least").allows(-1e300)


def test_a_bound_says_nothing_at_its_ceiling_or_from_below_at_its_floor():
    assert bound(value=1.0, ceiling=1.0).vacuous
    assert not bound(value=0.99, ceiling=1.0).vacuous
    assert bound(value=0.0, floor=0.0, side="at least").vacuous
    assert not bound(value=0.01, floor=0.0, side="at least").vacuous
    assert not bound(value=1.0, floor=0.0, ceiling=1.0, side="at least").vacuous  # it says all there is to say
    assert not bound().vacuous


def test_side_and_kind_are_printed_kept_and_exported():
    one = bound(side="at least", kind="hold-out", preconditions=(Precondition("it rains", False),))
    assert repr(one) == "N: no bound on loss [DOES NOT APPLY: it rains; a; a=0.5; proved here]"
    assert pickle.loads(pickle.dumps(one)) == one
    assert one.to_dict()["side"] == "at least"
    assert one.to_dict()["kind"] == "hold-out"
    assert bound().to_dict()["kind"] is None


def test_refusals_are_one_sentence():
    with pytest.raises(RankwiseError, match=r"^f: x must be finite and above 0, got -1$"):
        refuse_unless("f", above=0, y=1, x=-1)
    with pytest.raises(RankwiseError, match=r"^f: delta must be between 0 and 1, got 1$"):
        refuse_unless_chance("f", power=0.5, delta=1)
