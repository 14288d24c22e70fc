"""`make_hybrid`: simulated runs of hybrid search, with judgments, for demonstrations and tests."""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from rankwise._parameters import Int32, NonNegativeFloat, NumberRange, PositiveInt, Seed, as_random, validated
from rankwise.errors import RankwiseError
from rankwise.queries.queries import Queries

Floats = NDArray[np.float64]

# name -> (correlation with relevance, raw score from a standard normal number and the rarity of the query's words)
_COLUMNS: dict[str, tuple[float, Callable[[Floats, Floats], Floats]]] = {
    "bm25": (0.45, lambda z, rarity: rarity * np.logaddexp(0.0, 1.2 * z)),
    "vector": (0.70, lambda z, rarity: 0.5 + 0.5 * np.tanh(0.3 + 0.12 * z)),
    "sparse": (0.60, lambda z, rarity: 4.0 * np.exp(0.5 * z)),
    "bm25_title": (0.40, lambda z, rarity: 0.6 * rarity * np.logaddexp(0.0, 1.5 * z)),
    "late_interaction": (0.65, lambda z, rarity: 20.0 + 6.0 * np.tanh(z)),
    "popularity": (0.25, lambda z, rarity: np.asarray(np.round(np.exp(3.0 + 1.5 * z)))),
}
# Shares of the grades from 0 on: each is rarer than the one below by this factor.
_GRADE_RATIO = 0.35


@validated
def make_hybrid(
    queries: Int32 = 200,
    *,
    columns: Annotated[int, NumberRange(1, len(_COLUMNS), closed="both")] = 2,
    documents: Int32 = 50,
    depth: PositiveInt = 20,
    grades: Annotated[int, NumberRange(2, 2**20, closed="both")] = 4,
    noise: NonNegativeFloat = 0.5,
    random_state: Seed = 0,
) -> Queries:
    r"""Simulate judged queries with the scores of several sub-queries.

    A document has a hidden relevance r, and column j sees it through noise of its own,
    :math:`z_j = c_j r + \sqrt{1 - c_j^2}\, e_j`, and on a scale of its own: BM25 from 0 to some tens, larger for rare
    words, similarities of vectors in a narrow range, heavy tails. A sub-query returns its ``depth`` best documents; the
    others have NaN in its column, and documents that no sub-query returns are left out. The correlations c differ
    (BM25 0.45, vectors 0.70): equal weights are not the best. This is not a model of any real engine.

    Parameters
    ----------
    queries : int, default=200
        The number of queries.
    columns : int, default=2
        The number of sub-queries, up to 6: bm25, vector, sparse, bm25_title, late_interaction, popularity.
    documents : int, default=50
        Documents of the collection that compete for each query.
    depth : int, default=20
        Documents that each sub-query returns.
    grades : int, default=4
        Labels are 0 .. grades - 1, each rarer than the one below.
    noise : float, default=0.5
        How much of the label no column can explain, relative to the hidden relevance.
    random_state : int or numpy.random.Generator, default=0
        The seed or generator.

    Returns
    -------
    queries : Queries
        With query ids, document ids and the names of the columns; NaN where a sub-query did not return the document.

    Examples
    --------
    >>> make_hybrid(100, random_state=1)
    Queries(100 queries, 2,945 documents, 2 features, labels 0 to 3)
    """
    if depth > documents:
        raise RankwiseError(f"depth must be at most documents={documents}, got {depth}")
    random = as_random(random_state)
    shape = (queries, documents)
    relevance, rarity = random.standard_normal(shape), 1.0 + random.gamma(9.0, 0.5, size=(queries, 1))
    total = (relevance + noise * random.standard_normal(shape)) / math.hypot(1, noise)
    shares = _GRADE_RATIO ** np.arange(grades)
    cuts = [NormalDist().inv_cdf(share) for share in (np.cumsum(shares) / shares.sum())[:-1].tolist()]
    X = np.empty((*shape, columns))
    chosen = list(_COLUMNS.items())[:columns]
    for place, (_, (correlation, raw)) in enumerate(chosen):
        seen = correlation * relevance + math.sqrt(1 - correlation**2) * random.standard_normal(shape)
        X[:, :, place] = np.broadcast_to(raw(seen, rarity), shape)
        worst = np.argsort(-seen, axis=1)[:, depth:]
        np.put_along_axis(X[:, :, place], worst, np.nan, axis=1)
    returned = ~np.isnan(X).all(axis=2)
    number = np.nonzero(returned)[0]
    return Queries.from_arrays(
        X[returned],
        np.searchsorted(cuts, total[returned]).astype(np.float64),
        qid=[f"q{query}" for query in (number + 1).tolist()],
        docid=[f"d{place}" for place in range(1, len(number) + 1)],
        feature_names=[name for name, _ in chosen],
        missing="keep",
    )
