"""Lists as users have them and worse: ties, one document, one label, nothing relevant, constant scorers."""

from hypothesis import settings
from hypothesis import strategies as st

# A thorough run chooses its profile before the files of tests are imported.
THOROUGH = settings().max_examples >= 1_000
# For suites over dozens of instances: a quarter of the usual number of examples each.
few = settings(max_examples=settings().max_examples // 4)


def at_length(count: int, share: int = 10) -> int:
    """How often to repeat something: so many times in a thorough run, a share of that in a normal one."""
    return count if THOROUGH else count // share


def ends(*values: object) -> tuple[object, ...]:
    """All values in a thorough run, the first and the last in a normal one."""
    return values if THOROUGH else (values[0], values[-1])


# Few distinct values, so that ties are the rule; both zeros, because -0.0 == 0.0 is a tie.
tied_scores = st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0])
any_scores = st.floats(-1e6, 1e6, allow_nan=False)
grades = st.sampled_from([0, 0, 0, 1, 2, 3, 4])


@st.composite
def judged_lists(draw, min_size=1, max_size=7, labels=grades):
    """(scores, labels) of one list."""
    size = draw(st.integers(min_size, max_size))
    scores = draw(st.lists(st.one_of(tied_scores, any_scores), min_size=size, max_size=size))
    return scores, draw(st.lists(labels, min_size=size, max_size=size))


@st.composite
def many_lists(draw, max_lists=8, max_size=9, labels=grades):
    """Several lists, an empty query among them now and then."""
    return draw(st.lists(judged_lists(max_size=max_size, labels=labels), min_size=1, max_size=max_lists))
