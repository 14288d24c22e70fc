"""Simulated sessions click as their model says, over pages that the ranker, the coin or the shuffling made."""

import numpy as np
import pytest

import rankwise as rw
from rankwise import clicks
from rankwise.errors import RankwiseError

THETA = np.array([0.9, 0.6, 0.3, 0.2])


@pytest.fixture(scope="module")
def queries():
    return rw.make_lists(3, documents=6, features=2, random_state=0)


def rates(log, queries):
    """Click rate and times shown, by document and position."""
    shown, clicked = (np.zeros((queries.n_documents, 4)) for _ in range(2))
    np.add.at(shown, (log.row, log.position - 1), 1)
    np.add.at(clicked, (log.row, log.position - 1), log.click)
    return clicked / np.maximum(shown, 1), shown


def run(queries, sessions=40_000, **how):
    return clicks.simulate(queries, queries.X[:, 0], sessions, theta=THETA, shown=4, **how)


@pytest.mark.parametrize("model", ["position", "dependent"])
def test_documents_are_clicked_with_theta_times_attractiveness(queries, model):
    a = clicks.attractiveness(queries)
    rate, shown = rates(run(queries, model=model), queries)
    assert np.abs(rate - THETA * a[:, None])[shown > 1_000].max() < 0.03


def test_dependent_clicks_depend_on_each_other(queries):
    def pairs(model):
        log = run(queries, model=model)
        click = log.click.reshape(-1, 4)
        return (click[:, 0] & click[:, 1]).mean()

    assert pairs("dependent") > 1.2 * pairs("position")


def test_trust_adds_clicks_and_cascades_end_at_the_first(queries):
    a = clicks.attractiveness(queries)
    rate, shown = rates(run(queries, model="trust", trust=0.5), queries)
    expected = THETA * (a[:, None] + 0.5 * THETA * (1 - a[:, None]))
    assert np.abs(rate - expected)[shown > 1_000].max() < 0.03
    log = run(queries, model="cascade")
    assert np.bincount(log.session_of_row, weights=log.click).max() == 1


def test_pages_are_those_of_the_ranker(queries):
    log = run(queries, 50)
    ranking = rw.LinearModel.of([1.0, 0.0]).rank(queries)
    best = {q: [row["docid"] for row in ranking if row["qid"] == q][:4] for q in queries.names()}
    for number in range(50):
        own = log.docid[log.start[number] : log.start[number + 1]].tolist()
        assert [str(one) for one in own] == [str(one) for one in best[log.qid[number]]]


def test_a_coin_swaps_the_top_with_every_other_position(queries):
    log = run(queries, swaps=True)
    assert set(log.swap.tolist()) == {2, 3, 4}
    assert abs(log.swapped.mean() - 0.5) < 0.01
    plain = run(queries, 3_000)
    page = {q: plain.row[plain.start[i] : plain.start[i + 1]].tolist() for i, q in enumerate(plain.query.tolist())}
    for number in range(200):
        own = log.row[log.start[number] : log.start[number + 1]].tolist()
        if log.swapped[number]:
            k = log.swap[number] - 1
            own[0], own[k] = own[k], own[0]
        assert own == page[log.query[number]]


def test_shuffled_pages_show_every_candidate_alike(queries):
    log = run(queries, exploration=1.0)
    _, shown = rates(log, queries)
    assert np.abs(shown / shown.mean() - 1).max() < 0.1
    assert set(log.pool.tolist()) == {6}
    half = run(queries, exploration=0.5)
    on_page = half.logged_rank > 0
    assert 0.75 < on_page.mean() < 0.9  # 1/2 + 1/2 * 4/6


def test_short_lists_have_short_pages():
    lists = rw.make_lists(5, documents=(1, 3), features=2, random_state=0)
    log = clicks.simulate(lists, lists.X[:, 0], 200, shown=4, theta=THETA, swaps=True, exploration=0.5)
    assert (log.sizes == np.minimum(lists.sizes[log.query], 4)).all()


def test_copies_are_copies_with_names_of_their_own(queries):
    log = run(queries, 10, repeats=5)
    assert len(set(log.session.tolist())) == 10
    assert log.click[: log.start[1]].tolist() == log.click[log.start[1] : log.start[2]].tolist()


def test_the_same_seed_gives_the_same_log_and_another_one_other_sessions(queries):
    one, again, other = (run(queries, 100, random_state=seed) for seed in (1, 1, 2))
    assert (one.click == again.click).all()
    assert (one.session == again.session).all()
    assert not set(one.session.tolist()) & set(other.session.tolist())


def test_queries_are_drawn_by_their_weight(queries):
    log = run(queries.with_weight([0.0, 3.0, 1.0]), 4_000)
    share = np.bincount(log.query, minlength=3) / 4_000
    assert share[0] == 0
    assert abs(share[1] - 0.75) < 0.03


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"sessions": 0}, "'sessions' parameter of simulate must be an int in"),
        ({"model": "eager"}, "'model' parameter of simulate must be 'position', 'dependent'"),
        ({"exploration": 2.0}, "'exploration' parameter of simulate must be a float in"),
        ({"attractive": [0.5]}, "one probability per document"),
    ],
)
def test_wrong_arguments_are_named(queries, how, words):
    with pytest.raises(RankwiseError, match=words):
        run(queries, **{"sessions": 10, **how})
