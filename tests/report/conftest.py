"""Small comparisons that reports are made of."""

import base64
import gzip
import json

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from rankwise import AdaRank, Queries, RankBoost, RidgeRanker, compare, make_lists

# What strangers may call a query, a document or a feature.
HOSTILE = (
    "</script><script>window.broken = 1</script>",
    "<img src=x onerror='window.broken = 2'>",
    "\"quotes' & <b>tags</b> %{y} @0",
    "<!-- <script> -->",
    "\u2028\u202e Straße 東京 ${1+1} {{ 7*7 }}",
    "&lt;a href='javascript:window.broken=3'&gt;",
    "<a href='javascript:window.broken=4'>here</a>",
    "https://example.org/picture.png",
)


def unpacked(text: str):
    """The numbers of a page, as its own script unpacks them."""
    return json.loads(gzip.decompress(base64.b64decode(text)))


def named_lists(queries: int = 24, names=HOSTILE) -> Queries:
    """Lists whose queries, documents and features are called like that."""
    lists = make_lists(queries, documents=6, features=4, random_state=3)
    called = [f"{names[place % len(names)]} {place}" for place in range(len(lists))]
    return Queries.from_arrays(
        lists.X,
        lists.y,
        qid=np.array(called, dtype=object)[lists.query_of_row],
        docid=[f"{names[row % len(names)]} {row}" for row in range(lists.n_documents)],
        feature_names=[f"{name} {place}" for place, name in enumerate(names[:4])],
    )


def rankers_for(lists: Queries) -> dict:
    """One of every kind: linear, boosted, a foreign object, and scores from anywhere."""
    return {
        "ridge": RidgeRanker(),
        HOSTILE[0]: AdaRank(),
        "boosted": RankBoost(rounds=8),
        "regression": LinearRegression(),
        "first feature": lists.X[:, 0],
    }


@pytest.fixture(scope="session")
def lists() -> Queries:
    return named_lists()


@pytest.fixture(scope="session")
def comparison(lists):
    return compare(rankers_for(lists), lists, ["nDCG@5", "AP"], folds=3)
