"""`make_lists`: simulated judged queries like those of a web search engine, for demonstrations and tests."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankwise._parameters import NonNegativeFloat, NumberRange, Seed, as_random, validated
from rankwise.errors import RankwiseError
from rankwise.queries import checks
from rankwise.queries.queries import Queries

Floats = NDArray[np.float64]
Size = Annotated[int, NumberRange(1, 2**40, closed="both")]

# What makes a document useful: aspect -> (its coefficient, its correlation with what all aspects share).
# Text aspects go together, links and clicks less so; no feature observes more than one of them.
_ASPECTS = {
    "title": (1.0, 0.6),
    "body": (0.8, 0.7),
    "anchor": (0.6, 0.5),
    "authority": (0.8, 0.2),
    "clicks": (0.9, 0.4),
    "freshness": (0.3, 0.0),
    "spam": (-0.5, -0.1),
}
# The spread of the mean usefulness between queries, in units of the spread between documents.
_QUERY_SPREAD = 0.6
# Spam above this counts at once, if there are interactions.
_SPAM_CUT = 1.0
# Each grade is this much rarer than the one below: with 5 grades 59, 25, 10, 4 and 2% of the documents.
_GRADE_RATIO = 0.42


@validated
def make_lists(
    queries: Size = 200,
    *,
    documents: int | tuple[int, int] = (1, 200),
    features: Size = 20,
    grades: Annotated[int, NumberRange(2, 2**20, closed="both")] = 5,
    noise: NonNegativeFloat = 0.5,
    interactions: NonNegativeFloat = 0.0,
    random_state: Seed = 0,
    dtype: Literal["float64", "float32"] = "float64",
) -> Queries:
    r"""Simulate judged queries like those of a web search engine.

    Every document has seven hidden aspects (how well its title, body and anchor texts match, its authority, clicks,
    freshness and spam), correlated normal numbers a. Its label is the grade of

    .. math:: u = \sum_k c_k a_k + \text{interactions} + \text{quality of its query} + \text{noise},

    cut so that grades are skewed toward 0. Each feature observes one aspect through noise of its own and on a scale of
    its own, as in real logs: BM25 scores that grow with the rarity of the query's words, log-probabilities below 0,
    counts with many zeros, link counts with heavy tails, page ranks around 1e-3, ages in seconds up to 1e8, and two
    that are constant within a query. So no single feature ranks well, a linear combination of them ranks clearly
    better, better still after scaling, and the noise keeps any ranker from being perfect. Some queries have no relevant
    document, some a single document. This is not a model of any real engine or data set.

    Parameters
    ----------
    queries : int, default=200
        The number of queries.
    documents : int or (int, int), default=(1, 200)
        (fewest, most) documents per query, drawn so that short queries are as common as long ones on a logarithmic
        scale; or the same number for all.
    features : int, default=20
        The number of features; beyond 20 they observe the same aspects again, with other noise.
    grades : int, default=5
        Labels are 0 .. grades - 1.
    noise : float, default=0.5
        How much of the label no feature can explain, relative to what the aspects explain.
    interactions : float, default=0.0
        How much products of aspects and thresholds on them add to the label, relative to the weighted sum of the
        aspects: clicks count for documents whose title matches, anchor texts if the page has authority and against it
        if not, and spam above a threshold counts at once. No linear ranker learns them from the features; trees do. 0
        leaves them out.
    random_state : int or numpy.random.Generator, default=0
        The seed or generator.
    dtype : {"float64", "float32"}, default="float64"
        The type of X.

    Returns
    -------
    queries : Queries
        With query ids, document ids and feature names.

    Examples
    --------
    >>> make_lists(100, documents=(5, 50))
    Queries(100 queries, 2,190 documents, 20 features, labels 0 to 4)
    """
    fewest, most = checks.as_range(documents, "documents")
    if not 1 <= fewest <= most:
        raise RankwiseError(f"documents must be at least 1 per query, the fewest first, got {documents}")
    random = as_random(random_state)
    sizes = np.exp(random.uniform(math.log(fewest), math.log(most + 1), size=queries)).astype(np.int64)
    sizes = np.clip(sizes, fewest, most)
    pages = _Pages.draw(sizes, random)
    X = np.empty((len(pages.length), features), dtype=dtype)
    names = []
    for column in range(features):
        name, measured = _FEATURES[column % len(_FEATURES)]
        again = column // len(_FEATURES)
        names.append(f"{name}_{again + 1}" if again else name)
        X[:, column] = measured(pages)
    return Queries.from_arrays(
        X,
        _grades(pages, sizes, grades, noise, interactions),
        qid=np.repeat([f"q{number}" for number in range(1, queries + 1)], sizes),
        docid=[f"d{number}" for number in range(1, len(X) + 1)],
        feature_names=names,
    )


@dataclass(frozen=True, slots=True)
class _Pages:
    """The hidden state of all documents: their aspects, and the words of their queries."""

    aspect: dict[str, Floats]
    words: NDArray[np.int64]  # of the document's query
    rarity: Floats  # of these words: the mean of their inverse document frequencies
    length: Floats
    random: np.random.Generator

    @classmethod
    def draw(cls, sizes: NDArray[np.int64], random: np.random.Generator) -> "_Pages":
        """Documents of queries of these sizes."""
        n_documents = int(sizes.sum())
        common = random.standard_normal(n_documents)
        aspect = {}
        for name, (_, shared) in _ASPECTS.items():
            aspect[name] = shared * common + math.sqrt(1 - shared**2) * random.standard_normal(n_documents)
        words = np.repeat(1 + random.binomial(5, 0.3, size=len(sizes)), sizes)
        rarity = np.repeat(random.gamma(9.0, 0.5, size=len(sizes)), sizes)
        length = np.ceil(random.lognormal(6.0, 1.2, size=n_documents))
        return cls(aspect, words, rarity, length, random)

    def see(self, aspect: str, blur: float) -> Floats:
        """An aspect through noise, again of variance 1."""
        seen = self.aspect[aspect] + blur * self.random.standard_normal(len(self.length))
        return np.asarray(seen / math.hypot(1, blur))

    def bm25(self, aspect: str, blur: float, shift: float = 0.0) -> Floats:
        """A saturating score: 0 where nothing matches, larger for rare words and long queries."""
        return self.rarity * np.sqrt(self.words) * np.maximum(0, np.tanh((self.see(aspect, blur) + 1 + shift) / 2))

    def count(self, aspect: str, blur: float, level: float, tail: float) -> Floats:
        """A count whose logarithm follows the aspect."""
        mean = np.exp(np.minimum(level + tail * self.see(aspect, blur), 18.0))
        return np.asarray(self.random.poisson(mean), dtype=np.float64)


_FEATURES: tuple[tuple[str, Callable[[_Pages], NDArray[Any]]], ...] = (
    ("bm25_title", lambda page: page.bm25("title", 0.8)),
    ("bm25_body", lambda page: page.bm25("body", 0.8)),
    ("inlinks", lambda page: page.count("authority", 0.6, 4.0, 2.8)),
    ("clicks", lambda page: page.count("clicks", 0.7, 0.5, 1.4)),
    ("lm_body", lambda page: page.words * (page.see("body", 0.9) - 6)),
    ("bm25_anchor", lambda page: page.bm25("anchor", 0.9, shift=-1.0)),
    ("pagerank", lambda page: 1e-3 * np.exp(1.1 * page.see("authority", 0.8))),
    ("query_words", lambda page: page.words.astype(np.float64)),
    ("spam_score", lambda page: 100 / (1 + np.exp(2 - 1.5 * page.see("spam", 0.6)))),
    ("age_seconds", lambda page: np.round(np.exp(np.minimum(16.5 - 1.2 * page.see("freshness", 0.7), 19.0)))),
    ("lm_title", lambda page: page.words * (page.see("title", 1.0) - 5)),
    ("tf_body", lambda page: page.count("body", 1.0, 1.0, 0.8) * page.words),
    ("tf_title", lambda page: page.count("title", 1.0, -0.5, 0.7)),
    ("dwell_seconds", lambda page: np.exp(3.5 + 0.9 * page.see("clicks", 1.0))),
    ("idf_sum", lambda page: page.rarity * page.words),
    ("document_length", lambda page: page.length),
    ("bm25_url", lambda page: page.bm25("title", 1.6, shift=-0.5)),
    ("url_depth", lambda page: page.count("authority", 1.5, 0.7, -0.4)),
    ("url_length", lambda page: 15 + page.count("spam", 1.5, 3.2, 0.4)),
    ("words_covered", lambda page: page.random.binomial(page.words, 1 / (1 + np.exp(-0.5 - page.see("body", 0.8))))),
)


def _grades(pages: _Pages, sizes: NDArray[np.int64], grades: int, noise: float, interactions: float) -> Floats:
    """Labels: the usefulness, which is normal of known variance without interactions, cut at fixed quantiles."""
    random = pages.random
    useful = sum((weight * pages.aspect[name] for name, (weight, _) in _ASPECTS.items()), np.zeros(len(pages.length)))
    own = sum(weight**2 * (1 - shared**2) for weight, shared in _ASPECTS.values())
    spread = math.sqrt(own + sum(weight * shared for weight, shared in _ASPECTS.values()) ** 2)
    of_query = np.repeat(random.standard_normal(len(sizes)), sizes)
    unseen = random.standard_normal(len(useful))
    total = useful / spread + _QUERY_SPREAD * of_query + noise * unseen
    if interactions:
        total += interactions * _interactions(pages.aspect)
    total /= math.hypot(1, interactions, _QUERY_SPREAD, noise)
    shares = _GRADE_RATIO ** np.arange(grades)
    cuts = [NormalDist().inv_cdf(share) for share in (np.cumsum(shares) / shares.sum())[:-1].tolist()]
    return np.asarray(np.searchsorted(cuts, total), dtype=np.float64)


def _interactions(aspect: dict[str, Floats]) -> Floats:
    """The sum of three effects that no weighted sum of aspects has, each of mean 0 and the same variance."""

    def correlation(one: str, other: str) -> float:
        return _ASPECTS[one][1] * _ASPECTS[other][1]

    # moments of the standard normal: a b has mean r and variance 1 + r^2; sign(a) b has mean r sqrt(2 / pi)
    product = correlation("title", "clicks")
    trusted = correlation("authority", "anchor") * math.sqrt(2 / math.pi)
    rejected = 1 - NormalDist().cdf(_SPAM_CUT)
    effects = (
        (aspect["title"] * aspect["clicks"] - product) / math.sqrt(1 + product**2),
        (np.sign(aspect["authority"]) * aspect["anchor"] - trusted) / math.sqrt(1 - trusted**2),
        (rejected - (aspect["spam"] > _SPAM_CUT)) / math.sqrt(rejected * (1 - rejected)),
    )
    return np.asarray(sum(effects) / math.sqrt(len(effects)))
