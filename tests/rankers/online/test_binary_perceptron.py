"""The classification perceptron, the textbook case: a plain loop, and at most as many mistakes as proved."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rankwise.errors import DataError, RankwiseError
from rankwise.rankers.online.binary_perceptron import BinaryPerceptron
from tests.oracles.perceptrons import perceptron

steps = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])


@st.composite
def judged_rows(draw):
    d, n = draw(st.integers(1, 4)), draw(st.integers(1, 25))
    rows = draw(st.lists(st.lists(steps, min_size=d, max_size=d), min_size=n, max_size=n))
    return np.array(rows), np.array(draw(st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n)))


def fitted(rows, signs):
    return BinaryPerceptron().partial_fit(rows, signs, classes=[-1, 1])


@given(judged_rows())
def test_it_is_the_plain_loop(judged):
    """Halves and ones: every sum is exact, and so are ties."""
    rows, signs = judged
    w, mistakes = perceptron(rows, signs)
    model = fitted(rows, signs)
    np.testing.assert_array_equal(model.coef_, w)
    assert model.mistakes_ == len(mistakes)
    assert model.rounds_ == len(rows)
    assert model.radius_ == pytest.approx(max((np.linalg.norm(rows[row]) for row in mistakes), default=0.0))
    np.testing.assert_array_equal(model.decision_function(rows), rows @ w)
    np.testing.assert_array_equal(model.predict(rows), np.where(rows @ w > 0, 1, -1))


@given(judged_rows(), st.integers(0, 99))
def test_it_makes_no_more_mistakes_than_proved_against_any_comparator(judged, seed):
    rows, signs = judged
    model = fitted(rows, signs)
    w, mistakes = perceptron(rows, signs)
    chance = np.random.default_rng(seed).standard_normal(rows.shape[1])
    for u in (0 * w, chance, 10 * chance, w, 0.3 * w):
        F = sum(max(0.0, 1 - signs[row] * (rows[row] @ u)) for row in mistakes)
        b = np.linalg.norm(u) * model.radius_
        on_mistakes = F + b * math.sqrt(F) + b**2
        assert len(mistakes) <= on_mistakes + 1e-9
        assert on_mistakes <= model.mistake_bound(rows, signs, u) + 1e-9


@pytest.mark.parametrize("gamma", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("features", [2, 20])
def test_rows_that_a_vector_separates_are_learned_and_the_mistakes_stop(gamma, features):
    rng = np.random.default_rng(features)
    u = rng.standard_normal(features)
    u /= np.linalg.norm(u)
    rows = rng.standard_normal((4000, features))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    rows = rows[np.abs(rows @ u) >= gamma][:500]
    signs = np.sign(rows @ u)
    model = BinaryPerceptron()
    for epoch in range(200):
        before = model.mistakes_ if epoch else 0
        model.partial_fit(rows, signs)
        if epoch and model.mistakes_ == before:
            break
    assert model.mistakes_ == before, "the mistakes did not stop"
    assert model.mistakes_ <= model.radius_**2 / gamma**2
    assert (model.predict(rows) == signs).all()
    assert model.score(rows, signs) == 1


def test_the_bound_is_attained_by_orthogonal_rows():
    """Every new direction is a mistake: d mistakes, and a unit vector of margin 1/sqrt(d)."""
    model = fitted(np.eye(9), np.ones(9))
    assert model.mistakes_ == 9
    assert model.mistake_bound(np.eye(9), np.ones(9), np.full(9, 1.0)) == pytest.approx(9)


def test_calls_may_be_divided_and_fit_begins_again():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(60, 4)), rng.choice(["no", "yes"], 60)
    whole = BinaryPerceptron().fit(rows, labels)
    parts = BinaryPerceptron()
    for part in np.split(np.arange(60), [1, 2, 30]):
        parts.partial_fit(rows[part], labels[part], classes=["yes", "no"])
    np.testing.assert_array_equal(parts.coef_, whole.coef_)
    assert parts.mistakes_ == whole.mistakes_
    assert whole.classes_.tolist() == ["no", "yes"]
    assert set(whole.predict(rows)) <= {"no", "yes"}
    before = whole.coef_.copy()
    np.testing.assert_array_equal(whole.fit(rows, labels).coef_, before)
    assert whole.rounds_ == 60
    assert not hasattr(clone(whole), "coef_")


@pytest.mark.parametrize(
    ("X", "y", "found"),
    [
        ([[1.0], [2.0]], [1, 1], "two classes, got 1"),
        ([[1.0], [2.0], [3.0]], [0, 1, 2], "two classes, got 3"),
        ([[1.0], [2.0]], [0, 1, 1], "one label per row"),
        ([[1.0], [np.nan]], [0, 1], "row 1, feature 0"),
        ([1.0, 2.0], [0, 1], "two dimensions"),
    ],
)
def test_what_is_no_set_of_two_classes_is_refused_in_a_sentence(X, y, found):
    model = BinaryPerceptron()
    with pytest.raises(DataError, match=found):
        model.fit(X, y)
    with pytest.raises(RankwiseError, match="not fitted yet"):
        model.predict([[1.0]])


def test_after_the_first_rows_features_and_classes_are_fixed():
    model = BinaryPerceptron().fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    with pytest.raises(DataError, match="got another one in y"):
        model.partial_fit([[1.0, 0.0]], [2])
    with pytest.raises(DataError, match="fitted on 2 features, got 3"):
        model.predict([[1.0, 0.0, 0.0]])
    with pytest.raises(DataError, match="fitted on 2 features, got 3"):
        model.partial_fit([[1.0, 0.0, 0.0]], [0])
    with pytest.raises(NotFittedError):
        BinaryPerceptron().decision_function([[1.0]])
    with pytest.raises(NotFittedError):
        BinaryPerceptron().mistake_bound([[1.0]], [0], [1.0])


def test_a_fit_that_fails_leaves_what_was_learned():
    model = BinaryPerceptron().fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    before = model.coef_.copy()
    with pytest.raises(DataError):
        model.fit([[1.0]], [0])
    np.testing.assert_array_equal(model.coef_, before)
    assert model.n_features_in_ == 2
