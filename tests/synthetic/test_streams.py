"""Streams keep their promises to the last bit: the margin, the radius, the comparator, and one stream a seed."""

from fractions import Fraction
from itertools import chain, islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import RankwiseError
from rankwise.queries.queries import Queries
from rankwise.synthetic.streams import Stream, drifting_stream, noisy_stream, separable_stream
from tests.strategies import few


def exactly(row):
    return [Fraction(float(number)) for number in row]


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


@st.composite
def shapes(draw):
    """Streams of every shape, margins from tiny to almost as large as the ball allows."""
    grades, radius = draw(st.integers(2, 6)), draw(st.sampled_from([1.0, 0.01, 7.3]))
    share = draw(st.sampled_from([1e-6, 0.05, 0.3, 0.7, 0.99, 1 - 1e-6]))
    fewest = draw(st.integers(1, 6))
    return {
        "documents": (fewest, fewest + draw(st.integers(0, 4))),
        "features": draw(st.sampled_from([1, 2, 3, 20])),
        "grades": grades,
        "margin": share * 2 * radius / (grades - 1),
        "radius": radius,
        "random_state": draw(st.integers(0, 1000)),
    }


@few
@given(shape=shapes(), angle=st.sampled_from([0.0, 0.01, 1.0]))
def test_every_round_is_separated_by_its_margin_in_exact_arithmetic(shape, angle):
    angle = angle if shape["features"] > 1 else 0.0
    stream = drifting_stream(8, angle=angle, **shape)
    for t, query in enumerate(stream):
        u = exactly(stream.comparator(t))
        assert (1 - Fraction(1, 10**13)) ** 2 <= dot(u, u) <= 1
        rows = [exactly(row) for row in query.X]
        assert all(dot(row, row) <= Fraction(stream.radius) ** 2 for row in rows)
        along = {}
        for row, grade in zip(rows, query.y, strict=True):
            along.setdefault(grade, []).append(dot(row, u))
        in_order = [along[grade] for grade in sorted(along)]
        for lower, upper in pairwise(in_order):
            assert min(upper) - max(lower) >= Fraction(stream.margin)


@few
@given(shape=shapes(), first=st.integers(0, 7), n_queries=st.integers(7, 30))
def test_a_stream_read_in_any_way_has_the_same_bits(shape, first, n_queries):
    stream = separable_stream(n_queries, **shape)
    whole = stream.queries()
    assert whole.names() == list(range(n_queries))
    assert len(stream) == n_queries
    rest = list(chain.from_iterable(stream.blocks(first=first)))
    assert [query.qid for query in rest] == list(range(first, n_queries))
    for one, two in zip(rest, whole[first:], strict=True):
        assert np.array_equal(one.X, two.X)
        assert np.array_equal(one.y, two.y)
    longer = separable_stream(n_queries + 5, **shape)
    assert all(np.array_equal(one.X, two.X) for one, two in zip(stream, islice(longer, n_queries), strict=True))


def test_blocks_hold_a_bounded_piece_of_the_stream_and_differ_from_each_other():
    stream = separable_stream(100_000, documents=100, features=50)
    first, second = islice(stream.blocks(), 2)
    assert isinstance(first, Queries)
    assert 1 < len(first) < 100
    assert first.X.nbytes <= 1 << 21
    assert second.qid[0] == len(first)
    assert not np.array_equal(first.X, second.X)
    huge = separable_stream(3, documents=2000, features=200)
    assert [len(block) for block in huge.blocks()] == [1, 1, 1]
    assert [block.qid[0] for block in stream.blocks(first=99_999)] == [99_999]
    assert list(stream.blocks(first=100_000)) == []


def test_the_defaults_are_those_of_the_simulation_in_the_paper():
    queries = separable_stream(500).queries()
    assert set(queries.sizes.tolist()) == {20}
    assert queries.n_features == 20
    shares = np.bincount(queries.y.astype(int)) / queries.n_documents
    assert len(shares) == 5
    assert np.abs(shares - 0.2).max() < 0.02


def test_lists_of_any_length_in_the_range_are_drawn():
    sizes = separable_stream(2000, documents=(1, 4), features=2).queries().sizes
    assert np.abs(np.bincount(sizes)[1:] / len(sizes) - 0.25).max() < 0.05


def test_documents_spread_across_the_comparator():
    """A stream that lay on the line of its comparator could be learned from one pair."""
    stream = separable_stream(300)
    X = stream.queries().X
    across = X - np.outer(X @ stream.comparator(), stream.comparator())
    spread = np.linalg.svd(across, compute_uv=False)
    assert spread[-2] > 0.5 * spread[0]  # all directions but the comparator's own, which is gone
    assert 0.4 < np.sqrt((across**2).sum(axis=1).mean()) < 0.55


@pytest.mark.parametrize("noise", [0.0, 0.2, 1.0])
def test_noise_gives_documents_another_grade_and_changes_nothing_else(noise):
    clean, noisy = separable_stream(400).queries(), noisy_stream(400, noise=noise).queries()
    assert np.array_equal(clean.X, noisy.X)
    assert abs((clean.y != noisy.y).mean() - noise) < 0.02
    assert noisy.y.min() == 0
    assert noisy.y.max() == 4
    moved = np.bincount(((noisy.y - clean.y) % 5).astype(int), minlength=5)[1:]
    assert np.allclose(moved, moved.mean(), rtol=0.2)


@pytest.mark.parametrize("noise", [0.0, 0.2, 1.0])
def test_flipped_queries_are_turned_around_as_a_whole(noise):
    clean, noisy = separable_stream(400).queries(), noisy_stream(400, noise=noise, flip="queries").queries()
    assert np.array_equal(clean.X, noisy.X)
    turned = [np.array_equal(two.y, 4 - one.y) for one, two in zip(clean, noisy, strict=True)]
    kept = [np.array_equal(two.y, one.y) for one, two in zip(clean, noisy, strict=True)]
    assert all(a or b for a, b in zip(turned, kept, strict=True))
    assert abs(np.mean(turned) - noise) < 0.06


def test_the_comparator_turns_by_the_same_angle_every_round():
    stream = drifting_stream(10, angle=0.1, features=5)
    for t in (0, 1, 7):
        assert stream.comparator(t) @ stream.comparator(t + 1) == pytest.approx(np.cos(0.1))
    assert stream.comparator(0) @ stream.comparator(31) == pytest.approx(np.cos(3.1))
    # in a plane: three comparators span two dimensions
    assert np.linalg.matrix_rank([stream.comparator(t) for t in (0, 3, 9)], tol=1e-9) == 2


def test_a_world_that_stands_still_is_the_separable_one():
    still, plain = drifting_stream(50, angle=0.0).queries(), separable_stream(50).queries()
    assert np.array_equal(still.X, plain.X)
    assert np.array_equal(still.y, plain.y)


def test_seeds_and_generators():
    one, two, other = (
        separable_stream(5, random_state=np.random.default_rng(3)),
        separable_stream(5, random_state=np.random.default_rng(3)),
        separable_stream(5, random_state=4),
    )
    assert one == two
    assert np.array_equal(one.queries().X, two.queries().X)
    assert not np.array_equal(one.queries().X, other.queries().X)
    assert abs(one.comparator() @ other.comparator()) < 0.99


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"n_queries": 0}, r"'n_queries' parameter of Stream must be an int in \[1, inf\). Got 0 instead"),
        ({"features": 0}, r"'features' parameter of Stream must be an int in \[1, inf\). Got 0"),
        ({"documents": (0, 3)}, r"documents must be at least 1 per query, the fewest first, got \(0, 3\)"),
        ({"documents": (5, 2)}, r"documents must be at least 1 per query, the fewest first, got \(5, 2\)"),
        ({"grades": 1}, r"'grades' parameter of Stream must be an int in \[2, inf\). Got 1"),
        ({"seed": -1}, r"'seed' parameter of Stream must be an int in \[0, inf\). Got -1"),
        ({"margin": 0.0}, "margin must be above 0 and below .*, got margin=0.0, radius=1.0, grades=5"),
        ({"margin": 0.5}, "margin must be .*, got margin=0.5, radius=1.0, grades=5"),  # five grades need four gaps
        ({"margin": float("nan")}, r"'margin' parameter of Stream must be a float in .*. Got nan"),
        ({"radius": 0.0}, r"'radius' parameter of Stream must be a float in \(0, 1e\+150\). Got 0.0"),
        ({"radius": float("inf")}, r"'radius' parameter of Stream must be a float in .*. Got inf"),
        ({"noise": -0.1}, r"'noise' parameter of Stream must be a float in \[0, 1\]. Got -0.1"),
        ({"noise": float("nan")}, r"'noise' parameter of Stream must be a float in .*. Got nan"),
        ({"flip": "documents"}, "'flip' parameter of Stream must be 'labels' or 'queries'. Got 'documents'"),
        ({"angle": float("inf")}, r"'angle' parameter of Stream must be a float in \(-inf, inf\). Got inf"),
        ({"angle": 0.1, "features": 1}, "features must be at least 2 if angle is not 0, got 1"),
    ],
)
def test_impossible_worlds_are_refused(wrong, sentence):
    fine = {"n_queries": 5, "documents": (2, 3), "features": 3, "grades": 5, "margin": 0.1, "radius": 1.0}
    Stream(**fine)
    with pytest.raises(RankwiseError, match=sentence):
        Stream(**fine | wrong)


def test_a_stream_does_not_begin_outside_of_itself():
    with pytest.raises(RankwiseError, match="first must be a round of this stream, 0 to 5, got 6"):
        separable_stream(5).blocks(first=6)
