r"""Simulated sessions over judged queries: who is shown what, and what is clicked, by four models of readers.

A document of attractiveness a at position k of the page is clicked

- ``"position"``: with probability theta_k a, independently of the others (the position-based model);
- ``"dependent"``: if it is examined and attractive, where a reader who examines position k examines all positions of
  larger theta, too: the same theta_k a for each document, but clicks of one session depend on each other;
- ``"trust"``: with probability theta_k (a + e_k (1 - a)): readers who trust the ranker click also what is not
  attractive, e_k = trust theta_k;
- ``"cascade"``: with probability a if the reader arrives, who reads from the top and leaves after the first click.

The first two meet the precondition of values and gains, E[click] = theta_k a. The others do not.
"""

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._parameters import NumberRange, PositiveInt, validated
from rankwise.clicks.log import ClickLog
from rankwise.clicks.rankings import discounts, ranks_of, scores_of
from rankwise.errors import DataError, RankwiseError
from rankwise.queries.queries import Queries, as_queries

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Model = Literal["position", "dependent", "trust", "cascade"]


def attractiveness(queries: Queries, least: float = 0.05, most: float = 0.95) -> Floats:
    """Probability of a click on an examined document, linear in its label.

    Parameters
    ----------
    queries : Queries
        Judged queries.
    least, most : float, default=0.05 and 0.95
        Attractiveness of label 0 and of the largest label.

    Returns
    -------
    ndarray, shape (n_documents,)
        One probability per document.
    """
    labels = queries.labels()
    return np.asarray(least + (most - least) * labels / max(float(labels.max(initial=0.0)), 1e-300))


def true_value(queries: Queries, ranker: Any, attractive: Floats, *, k: int) -> float:
    """Mean DCG@k of attractiveness of a ranking, the truth that values from logs estimate.

    Parameters
    ----------
    queries : Queries
        The queries, each drawn with the same probability (or with its weight).
    ranker : Ranker, or array of shape (n_documents,)
        What ranks.
    attractive : ndarray, shape (n_documents,)
        Attractiveness.
    k : int
        The cut-off.

    Returns
    -------
    float
        The mean.
    """
    ranks = ranks_of(queries, scores_of(ranker, queries, "true_value"))
    gain = attractive * discounts(k)[np.minimum(ranks, k + 1)]
    per_query = np.bincount(queries.query_of_row, weights=gain, minlength=len(queries))
    return float(np.average(per_query, weights=queries.query_weight))


@validated
def simulate(
    queries: Queries,
    ranker: Any,
    sessions: PositiveInt,
    *,
    theta: ArrayLike | None = None,
    shown: PositiveInt = 10,
    model: Model = "position",
    attractive: Any = None,
    swaps: bool = False,
    exploration: Annotated[float, NumberRange(0, 1, closed="both")] = 0.0,
    trust: float = 0.6,
    repeats: PositiveInt = 1,
    random_state: int | np.random.Generator = 0,
) -> ClickLog:
    """Simulate a click log over judged queries.

    Parameters
    ----------
    queries : Queries
        Judged queries, drawn for each session with replacement, in proportion to their weights.
    ranker : Ranker, array of shape (n_documents,), or dict of these by name
        The logging ranker; of several one is drawn for each session, whose name is its ``version``.
    sessions : int
        Number of sessions.
    theta : array-like, shape (shown,), default=None
        Probability of examination by position; None: 1/position.
    shown : int, default=10
        Documents on a page.
    model : {"position", "dependent", "trust", "cascade"}, default="position"
        How readers click, see the module's text.
    attractive : ndarray, shape (n_documents,), or callable, default=None
        Attractiveness of the documents, or a function of the queries; None: :func:`attractiveness`.
    swaps : bool, default=False
        Whether each session swaps position 1 with a position drawn from 2 to ``shown``, or does not, by a fair coin.
    exploration : float, default=0.0
        Probability of a shuffled page, see :class:`ClickLog`.
    trust : float, default=0.6
        e_1 of the model "trust".
    repeats : int, default=1
        Number of sessions that are copies of each other: above 1 they are not independent.
    random_state : int or Generator, default=0
        Seed.

    Returns
    -------
    ClickLog
        The log, joined with ``queries``.

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_lists(20, documents=12, features=3, random_state=0)
    >>> log = simulate(queries, queries.X[:, 0], 500)
    >>> len(log), log.depth
    (500, 10)
    """
    queries = as_queries(queries, "simulate")
    examined = 1 / np.arange(1, shown + 1) if theta is None else np.asarray(theta, dtype=np.float64)
    if examined.shape != (shown,) or ((examined < 0) | (examined > 1)).any():
        raise RankwiseError(
            f"simulate: theta must have one probability for each of {shown} positions, got {theta!r:.60}"
        )
    if not queries.n_documents or (queries.sizes == 0).any():
        raise DataError("simulate: every query must have a document")
    random = np.random.default_rng(random_state)
    rankers = ranker if isinstance(ranker, dict) else {"": ranker}
    pages = np.stack([_page_rows(queries, scores_of(one, queries, "simulate"), shown) for one in rankers.values()])
    different = -(-sessions // repeats)
    if queries.weight is None:
        query = random.integers(len(queries), size=different)
    else:
        query = random.choice(len(queries), different, p=queries.query_weight / queries.query_weight.sum())
    version = random.integers(len(rankers), size=different)
    logged = pages[version, query]  # rows, -1 beyond short lists
    page = logged.copy()
    swap = np.zeros(different, dtype=np.int64)
    swapped = np.zeros(different, dtype=bool)
    if swaps:
        swap, swapped = _swap(page, random)
    shuffled = random.random(different) < exploration
    if shuffled.any():
        page[shuffled] = _shuffle(queries, query[shuffled], shown, random)
    how = attractive(queries) if callable(attractive) else attractive
    a = attractiveness(queries) if how is None else np.asarray(how, dtype=np.float64)
    if a.shape != (queries.n_documents,) or ((a < 0) | (a > 1)).any():
        raise RankwiseError("simulate: attractive must have one probability per document")
    click = _draw_clicks(model, a[np.maximum(page, 0)], examined, trust, random)
    # copies of a session share their page and clicks
    copies = np.repeat(np.arange(different), repeats)[:sessions]
    query, page, logged, click = query[copies], page[copies], logged[copies], click[copies]
    names = random.integers(0, 2**62, sessions)
    here, place = page >= 0, np.arange(1, shown + 1)
    docid = np.array(np.arange(queries.n_documents) if queries.docid is None else list(queries.docid), dtype=object)
    rank = None
    if exploration:  # position on the logging ranker's own page
        rank = ((page[:, :, None] == logged[:, None, :]) * place).sum(axis=2)[here]
    return ClickLog(
        start=np.concatenate([np.zeros(1, np.int64), np.cumsum(here.sum(axis=1))]),
        session=names,
        qid=np.array(queries.names(), dtype=object)[query],
        docid=docid[page[here]],
        position=np.broadcast_to(place, page.shape)[here],
        click=click[here],
        version=np.array(tuple(rankers), dtype=object)[version[copies]] if len(rankers) > 1 else None,
        swap=swap[copies] if swaps else None,
        swapped=swapped[copies] if swaps else None,
        exploration=np.full(sessions, exploration) if exploration else None,
        pool=queries.sizes[query] if exploration else None,
        logged_rank=rank,
        row=page[here],
        query=query,
        documents=queries,
    )


def _page_rows(queries: Queries, scores: Floats, shown: int) -> Ints:
    """The rows of every query's first ``shown`` documents, -1 beyond its last."""
    ranks = ranks_of(queries, scores)
    found = np.full((len(queries), shown), -1, dtype=np.int64)
    on_page = np.flatnonzero(ranks <= shown)
    found[queries.query_of_row[on_page], ranks[on_page] - 1] = on_page
    return found


def _swap(page: Ints, random: np.random.Generator) -> tuple[Ints, NDArray[np.bool_]]:
    """Swap position 1 with a random other one in about half of the pages, in place."""
    n, shown = page.shape
    swap = random.integers(2, shown + 1, n) if shown > 1 else np.zeros(n, dtype=np.int64)
    possible = (swap > 1) & (page[np.arange(n), np.maximum(swap, 1) - 1] >= 0)
    swap = np.where(possible, swap, 0)
    swapped = possible & (random.random(n) < 0.5)
    rows, places = np.flatnonzero(swapped), swap[swapped] - 1
    page[rows, 0], page[rows, places] = page[rows, places].copy(), page[rows, 0].copy()
    return swap, swapped


def _shuffle(queries: Queries, query: Ints, shown: int, random: np.random.Generator) -> Ints:
    """Uniformly random pages from all candidates of each query."""
    sizes = queries.sizes[query]
    longest = int(sizes.max())
    keys = random.random((len(query), longest))
    keys[np.arange(longest) >= sizes[:, None]] = 2.0  # beyond the list: last
    order = np.argsort(keys, axis=1)[:, :shown]
    inside = order < sizes[:, None]
    rows = queries.rows[np.minimum(queries.start[query][:, None] + order, queries.n_documents - 1)]
    found = np.full((len(query), shown), -1, dtype=np.int64)
    found[:, : order.shape[1]] = np.where(inside, rows, -1)
    return found


def _draw_clicks(model: Model, a: Floats, theta: Floats, trust: float, random: np.random.Generator) -> Any:
    """Whether each of the shown documents, attractive with probability ``a``, is clicked."""
    if model == "dependent":
        patience = random.random((len(a), 1))
        taste = random.random((len(a), 1))  # one draw decides about all documents
        return (patience < theta) & (taste < a)
    drawn = random.random(a.shape)
    if model == "cascade":
        return (drawn < a) & (np.cumsum(drawn < a, axis=1) == 1)
    return drawn < theta * (a if model == "position" else a + trust * theta * (1 - a))
