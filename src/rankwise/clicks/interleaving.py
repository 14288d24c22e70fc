"""Team-draft interleaving: one page of two rankings, on which every click is a vote.

In each round a coin decides which ranking picks first; each adds its best document that is not on the page yet, to its
team. A click is credited to the team of its document. If readers do not care about the order, both teams win equally
often, by the coin; a ranking that puts what is clicked higher wins more often.

References
----------
F. Radlinski, M. Kurup, T. Joachims (2008). How does clickthrough data reflect retrieval quality? CIKM.
doi:10.1145/1458082.1458092.
"""

from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._errors import DataError, RankwiseError

Ints = NDArray[np.int64]
Credit = Literal["sign", "share"]


class Page(NamedTuple):
    """An interleaved page.

    Attributes
    ----------
    rows : ndarray of int64, shape (n_shown,)
        The documents (rows of the query, or numbers in the given orders), in the order shown.
    team : ndarray of int64, shape (n_shown,)
        0 where the first ranking added the document, 1 where the second did.
    """

    rows: Ints
    team: Ints


def team_draft(a: ArrayLike, b: ArrayLike, k: int, random: np.random.Generator) -> Page:
    """Interleave two orders of the same documents, or many pairs of orders at once.

    Parameters
    ----------
    a, b : array-like of int, shape (m,) or (n, m)
        Documents best first; each row of both holds the same numbers.
    k : int
        Documents on a page.
    random : numpy.random.Generator
        The coins.

    Returns
    -------
    Page
        Rows and teams, of shape (k,) or (n, k); shorter if there are fewer documents.

    Raises
    ------
    DataError
        If a and b do not hold the same documents.

    Examples
    --------
    >>> page = team_draft([4, 2, 7], [7, 4, 2], 2, np.random.default_rng(0))
    >>> page.rows.tolist(), page.team.tolist()
    ([7, 4], [1, 0])
    """
    first, second = np.atleast_2d(np.asarray(a, dtype=np.int64)), np.atleast_2d(np.asarray(b, dtype=np.int64))
    if first.shape != second.shape or not (np.sort(first, axis=1) == np.sort(second, axis=1)).all():
        raise DataError("team_draft interleaves two orders of the same documents: found others")
    if k < 1:
        raise RankwiseError(f"team_draft: k is 1 or more: found {k!r}")
    n, m = first.shape
    # documents as 0 ... m - 1, by their places in the first order
    by_number = np.argsort(second, axis=1)
    in_first = np.empty_like(second)
    np.put_along_axis(in_first, by_number, np.argsort(first, axis=1), axis=1)
    orders = np.stack([np.broadcast_to(np.arange(m), (n, m)), in_first])
    shown = min(k, m)
    used = np.zeros((n, m), dtype=bool)
    rows, team = np.empty((n, shown), dtype=np.int64), np.empty((n, shown), dtype=np.int64)
    every = np.arange(n)
    coin = random.integers(0, 2, size=(n, -(-shown // 2)))
    for number in range(shown):
        # who picks second in a round is the other one
        turn = coin[:, number // 2] if number % 2 == 0 else 1 - coin[:, number // 2]
        order = orders[turn, every]
        free = ~used[every[:, None], order]
        pick = order[every, np.argmax(free, axis=1)]
        used[every, pick] = True
        rows[:, number], team[:, number] = first[every, pick], turn
    single = np.ndim(a) == 1
    return Page(rows[0], team[0]) if single else Page(rows, team)


class TeamDraft:
    """Interleaves the rankings of two rankers, page by page.

    The coins of a page depend on the seed and the id of its impression alone: a page can be made again when the clicks
    arrive, and nothing needs to be stored.

    Parameters
    ----------
    a, b : Ranker, or object with predict
        The rankers.
    k : int, default=10
        Documents on a page.
    seed : int, default=0
        Seed of the coins.

    Examples
    --------
    >>> import rankwise as rw
    >>> queries = rw.make_lists(20, documents=8, features=3, random_state=0)
    >>> draft = TeamDraft(rw.LinearModel.of([1.0, 0.0, 0.0]), rw.LinearModel.of([0.0, 1.0, 0.0]), k=4)
    >>> page = draft.page(queries[0], impression="i-17")
    >>> len(page.rows)
    4
    """

    def __init__(self, a: Any, b: Any, *, k: int = 10, seed: int = 0) -> None:
        for one in (a, b):
            if not hasattr(one, "predict"):
                raise RankwiseError(f"TeamDraft takes two fitted rankers: found {type(one).__name__} without predict")
        if not isinstance(k, (int, np.integer)) or k < 1:
            raise RankwiseError(f"TeamDraft: k is 1 or more: found {k!r}")
        self.a, self.b, self.k, self.seed = a, b, int(k), seed

    def page(self, query: Any, impression: Any) -> Page:
        """The page of one impression.

        Parameters
        ----------
        query : Query, or array of shape (n_documents, n_features)
            The candidates.
        impression : object
            The id of the impression; the same id (as text) has the same page.

        Returns
        -------
        Page
            Row numbers of the candidates in the order shown, and teams.
        """
        first, second = (np.argsort(-np.asarray(one.predict(query)), kind="stable") for one in (self.a, self.b))
        key = blake2b(f"{self.seed}/{impression}".encode(), digest_size=8).digest()
        random = np.random.default_rng(int.from_bytes(key, "little"))
        return team_draft(first, second, self.k, random)


def credits(team: ArrayLike, click: ArrayLike, *, how: Credit = "sign") -> Any:
    """The credit of impressions, from -1 (the second ranking wins) to 1 (the first wins).

    Parameters
    ----------
    team : array-like of int, shape (n_shown,) or (n, n_shown)
        0 for documents of the first ranking, 1 for those of the second.
    click : array-like of bool, same shape
        The clicks.
    how : {"sign", "share"}, default="sign"
        "sign": which team has more clicks, 0 for a tie; "share": the difference of clicks over their number.

    Returns
    -------
    float or ndarray, shape (n,)
        One credit per impression.

    Examples
    --------
    >>> credits([0, 1, 1], [True, True, True])
    -1.0
    """
    if how not in ("sign", "share"):
        raise RankwiseError(f"credits: how is 'sign' or 'share': found {how!r:.40}")
    teams, clicks = np.asarray(team), np.asarray(click, dtype=np.float64)
    if teams.shape != clicks.shape or not np.isin(teams, (0, 1)).all():
        raise DataError("credits: team has 0 or 1 for each click")
    difference = (clicks * (1 - 2 * teams)).sum(axis=-1)
    total = clicks.sum(axis=-1)
    found = np.sign(difference) if how == "sign" else difference / np.maximum(total, 1.0)
    return float(found) if np.ndim(found) == 0 else found
