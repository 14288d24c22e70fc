"""What holds for every measure, over whatever the registry finds: a new file comes under all of it."""

import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.errors import MeasureError, RankwiseError
from rankwise.evaluation.evaluation import evaluate
from rankwise.measures import Measure, parse, registered
from rankwise.queries.queries import Queries
from tests.oracles.measures import DEFINITIONS, stable_order, tie_orders
from tests.strategies import judged_lists, many_lists

NAMES = sorted(registered())
MODES = ("expected", "pessimistic", "optimistic", "stable")


def at(name: str, cutoff: int | None) -> Measure:
    """The measure with this cut-off, or as it is when it takes none."""
    kind = registered()[name]
    if not kind.takes_cutoff:
        return kind()
    return kind(cutoff=cutoff or 3) if kind.needs_cutoff else kind(cutoff=cutoff)


def close(found: float, expected: float) -> bool:
    return found == pytest.approx(expected, rel=1e-12, abs=1e-13)


CUTOFFS = [None, 1, 2, 3, 5, 20]
cutoffs = st.sampled_from(CUTOFFS)
over_all_measures = pytest.mark.parametrize("name", NAMES)


def test_every_measure_of_the_package_has_a_definition_to_be_held_against():
    assert set(DEFINITIONS) == {name for name, kind in registered().items() if kind.__module__.startswith("rankwise.")}


@over_all_measures
@given(judged_lists(max_size=6), cutoffs)
def test_ties_are_the_mean_the_minimum_and_the_maximum_over_all_orders(name, judged, cutoff):
    scores, labels = judged
    measure = at(name, cutoff)
    if math.isnan(measure(scores, labels)):
        return
    values = [DEFINITIONS[name](order, measure.cutoff) for order in tie_orders(scores, labels)]
    assert close(measure(scores, labels, ties="expected"), math.fsum(values) / len(values))
    assert close(measure(scores, labels, ties="pessimistic"), min(values))
    assert close(measure(scores, labels, ties="optimistic"), max(values))
    stable = DEFINITIONS[name](stable_order(scores, labels), measure.cutoff)
    assert close(measure(scores, labels, ties="stable"), stable)


@over_all_measures
@given(judged_lists(max_size=30), cutoffs)
def test_a_constant_scorer_is_seen_through(name, judged, cutoff):
    _, labels = judged
    measure = at(name, cutoff)
    constant = np.full(len(labels), 0.5)
    low, middle, high = (measure(constant, labels, ties=ties) for ties in ("pessimistic", "expected", "optimistic"))
    if not math.isnan(middle):
        assert low <= middle + 1e-12
        assert middle <= high + 1e-12


@over_all_measures
@pytest.mark.parametrize("labels", [[0], [0, 0, 0], []])
def test_a_list_without_a_relevant_document_is_empty_in_every_measure(name, labels):
    measure = at(name, None)
    scores = list(range(len(labels)))
    if not measure.depends_on_labels and labels:
        assert all(measure(scores, labels, ties=ties) == 1 for ties in MODES)  # every document was judged
        return
    for ties in MODES:
        assert math.isnan(measure(scores, labels, ties=ties))
        assert measure(scores, labels, ties=ties, empty="zero") == 0
        assert measure(scores, labels, ties=ties, empty="one") == 1


@over_all_measures
@pytest.mark.parametrize("labels", [[1], [2, 2], [4] * 5])
def test_every_order_of_equal_labels_has_the_same_value(name, labels):
    measure = at(name, None)
    values = {measure(np.random.default_rng(seed).normal(size=len(labels)), labels) for seed in range(4)}
    if name == "Pairs":
        assert all(math.isnan(value) for value in values)  # no pair has different labels
    else:
        assert len(values) == 1
        assert values.pop() > 0


@over_all_measures
@pytest.mark.parametrize("cutoff", CUTOFFS)
def test_the_spelling_is_read_back(name, cutoff):
    measure = at(name, cutoff)
    assert parse(repr(measure)) == measure
    assert parse(measure.title) == measure
    assert hash(parse(repr(measure))) == hash(measure)
    assert pickle.loads(pickle.dumps(measure)) == measure


@given(many_lists(), st.randoms(use_true_random=False))
def test_no_order_of_rows_changes_a_bit_in_the_order_free_modes(lists, random):
    scores = np.concatenate([scores for scores, _ in lists])
    labels = np.concatenate([labels for _, labels in lists]).astype(float)
    qid = np.repeat(np.arange(len(lists)), [len(labels) for _, labels in lists])
    shuffle = np.array(random.sample(range(len(labels)), len(labels)))
    measures = [at(name, 3) for name in NAMES]
    for ties in ("expected", "pessimistic", "optimistic"):
        plain = evaluate(labels, scores, measures, qid=qid, ties=ties)
        mixed = evaluate(labels[shuffle], scores[shuffle], measures, qid=qid[shuffle], ties=ties)
        for name, plain_values, mixed_values in zip(NAMES, plain.values, mixed.values, strict=True):
            plain_by_query = dict(zip(plain.qid, plain_values.tolist(), strict=True))
            mixed_by_query = dict(zip(mixed.qid, mixed_values.tolist(), strict=True))
            assert repr(sorted(plain_by_query.items())) == repr(sorted(mixed_by_query.items())), name
        assert repr(plain.mean) == repr(mixed.mean)


@given(many_lists(), st.randoms(use_true_random=False))
def test_stable_keeps_every_bit_while_the_order_inside_each_query_is_kept(lists, random):
    scores = np.concatenate([scores for scores, _ in lists])
    labels = np.concatenate([labels for _, labels in lists]).astype(float)
    qid = np.repeat(np.arange(len(lists)), [len(labels) for _, labels in lists])
    # shuffle the queries' turns, not the rows of a query
    turns = np.array(random.sample(qid.tolist(), len(qid)))
    place = np.argsort(np.argsort(turns, kind="stable"), kind="stable")
    measures = [at(name, 3) for name in NAMES]
    plain = evaluate(labels, scores, measures, qid=qid, ties="stable")
    mixed = evaluate(labels[place], scores[place], measures, qid=qid[place], ties="stable")
    assert repr(plain.mean) == repr(mixed.mean)


@over_all_measures
def test_threads_and_chunks_do_not_change_a_bit(name):
    rng = np.random.default_rng(5)
    queries = Queries.from_arrays(
        np.zeros((80_000, 1)), rng.integers(0, 4, 80_000), qid=np.sort(rng.integers(0, 900, 80_000))
    )
    scores = rng.normal(size=80_000).round(1)
    one, two = (evaluate(queries, scores, [at(name, 10)], n_jobs=jobs).values for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


@over_all_measures
def test_documents_that_were_not_retrieved_take_no_position_but_count_in_what_could_be_found(name):
    # four documents, the last relevant one not retrieved: as if it stood infinitely far down
    measure = at(name, 3)
    scores, labels = [3.0, 2.0, 1.0, -np.inf], [0, 2, 1, 1]
    far = [0, 2, 1] + [0] * 100_000 + [1]
    far_scores = -np.arange(len(far), dtype=float)
    if measure.takes_cutoff:
        assert measure(scores, labels) == pytest.approx(measure(far_scores, far), rel=1e-12)
    elif name == "MeanNDCG":
        assert measure(scores, labels) < measure([3.0, 2.0, 1.0, 0.0], labels)
    else:
        assert measure(scores, labels) == measure([3.0, 2.0, 1.0, 0.0], labels)


@over_all_measures
def test_nothing_retrieved_is_worth_nothing(name):
    if name != "Pairs":
        assert at(name, 3)([-np.inf, -np.inf], [1, 0]) == 0.0


@over_all_measures
@given(judged_lists(min_size=2, max_size=8, labels=st.sampled_from([0, 1, 2, 3])), cutoffs)
def test_putting_a_better_document_higher_never_hurts(name, judged, cutoff):
    scores, labels = judged
    measure = at(name, cutoff)
    order = sorted(range(len(labels)), key=lambda i: -scores[i])
    for upper, lower in pairwise(order):
        if labels[lower] > labels[upper]:
            better = list(scores)
            better[upper], better[lower] = better[lower], better[upper]
            if not math.isnan(measure(scores, labels)):
                assert measure(better, labels) >= measure(scores, labels) - 1e-12


@over_all_measures
@pytest.mark.parametrize(
    ("scores", "labels"),
    [([1.0, math.nan], [1, 0]), ([1.0], [1, 0]), ([1.0, 2.0], [1, -1]), ([1.0, 2.0], [1, math.inf])],
)
def test_what_cannot_be_ranked_is_refused_in_a_sentence(name, scores, labels):
    with pytest.raises(RankwiseError, match=r"scores|labels"):
        at(name, 3)(scores, labels)


@over_all_measures
@pytest.mark.parametrize("cutoff", [0, -1, 1.5, "ten", True])
def test_a_cut_off_is_a_whole_number_from_one_on(name, cutoff):
    with pytest.raises(MeasureError, match=r"'cutoff' parameter of .* must be|takes no cut-off"):
        at(name, 3) @ cutoff
