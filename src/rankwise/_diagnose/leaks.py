"""Leaks: features that know the label, by how well each ranks alone, and by their names.

Every feature ranks the documents of each query alone, in the better of its two directions. With linear gains, ``nDCG``
of that ranking, ties averaged, is put on a scale where chance is 0 and a perfect order is 1:

    skill = mean over queries of (DCG - DCG of a random order) / (ideal DCG - DCG of a random order).

A feature is a leak

- if its skill is at least ``COPY`` = 0.95: it orders documents as the label does. The best features of OHSUMED (0.36),
  MQ2008 (0.51), LightGBM's example (0.38) and generated queries (0.47 at 300 queries) do not come near;
- if it is a coarse copy: where two documents of a query differ in it, the label almost never says the opposite. A flag
  such as "was bought" may have a skill far below 0.95, because it leaves most documents tied, and is still made of the
  judgment. At most ``CONTRADICTED`` = 1% of the documents may stand below a worse one, and the skill, minus three
  standard errors over queries, must be at least ``COARSE`` = 0.2: a rare flag that is never wrong is a good feature;
- if its skill, minus three standard errors over queries, is at least ``STRONG`` = 0.6 and leaves at most half of the
  error 1 - skill of the best feature after it; up to three features may stand out in this way together.

None of these counts if so few judgments are there that one of the features could order them by chance.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._diagnose.findings import Finding, Severity
from rankwise.queries.checks import names_or_columns, plural
from rankwise.queries.queries import Queries

Vector = NDArray[np.float64]

COPY, STRONG, HALF, TOGETHER, ERRORS = 0.95, 0.6, 0.5, 3, 3.0
CONTRADICTED, COARSE = 0.01, 0.2
# Values of X that are looked at: about a second. Queries at equal distances are taken where there are more.
_VALUES = 1 << 23
# The probability that some feature orders all judgments by chance must be below this.
_CHANCE = 1e-6
_NAMED = 5  # features alone, in the facts

# Words that name a judgment. The first kind counts anywhere in a name, the second only as a whole name: search engines
# have features such as 'avg_rating' and 'relevance_model_score'.
_ANYWHERE = (
    "label", "labels", "qrel", "qrels", "judgment", "judgement", "clicked", "purchased", "converted", "groundtruth",
)  # fmt: skip
_WHOLE = (
    "relevance", "relevant", "rel", "grade", "grades", "target", "rating", "ratings", "gold", "truth", "y",
    "ground_truth",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Alone:
    """The skill of every feature alone.

    Attributes
    ----------
    ndcg : ndarray of float64, shape (n_features,)
        Mean nDCG with linear gains, ties averaged, in the better direction.
    skill : ndarray of float64, shape (n_features,)
        The same between 0, a random order, and 1, a perfect one.
    error : ndarray of float64, shape (n_features,)
        The standard error of the skill over queries.
    contradicted : ndarray of float64, shape (n_features,)
        Of the documents in queries where the feature varies, the share that stands, in the better direction, below one
        with a lower label; 1 if it varies in no query.
    surprise : float
        Minus the logarithm of the probability that a random order is perfect in every query.
    """

    ndcg: Vector
    skill: Vector
    error: Vector
    contradicted: Vector
    surprise: float

    @property
    def surely(self) -> Vector:
        """The skill minus three standard errors."""
        return self.skill - ERRORS * self.error

    @property
    def by_chance(self) -> bool:
        """Whether the judgments are so few that one of the features may order them by chance."""
        return self.surprise < log(2 * max(1, len(self.skill)) / _CHANCE)


def rank_alone(queries: Queries) -> Alone | None:
    """Rank by every feature alone.

    Parameters
    ----------
    queries : Queries
        The judged queries.

    Returns
    -------
    alone : Alone or None
        None without labels, features, or a query with two labels.
    """
    if queries.y is None or not queries.n_features:
        return None
    every = (_of_query(queries, int(query)) for query in some_queries(queries, _VALUES))
    found = [one for one in every if one is not None]
    if not found:
        return None
    down, up, below, above, varying, chance, surprise = (np.array(part) for part in zip(*found, strict=True))
    skills = [(side - chance[:, np.newaxis]) / (1 - chance)[:, np.newaxis] for side in (down, up)]
    falls = skills[0].mean(axis=0) >= skills[1].mean(axis=0)
    skill = np.where(falls, *skills)
    error = skill.std(axis=0, ddof=1) / np.sqrt(len(skill)) if len(skill) > 1 else np.full(len(falls), np.inf)
    contradicted = np.where(falls, below.sum(axis=0), above.sum(axis=0))
    documents = varying.sum(axis=0)
    share = np.where(documents > 0, contradicted / np.maximum(1, documents), 1.0)
    return Alone(np.where(falls, down, up).mean(axis=0), skill.mean(axis=0), error, share, float(surprise.sum()))


def some_queries(queries: Queries, values: int) -> NDArray[np.int64]:
    """Queries at equal distances whose features are about so many values, or all of them."""
    share = min(1.0, values / max(1, queries.n_documents * queries.n_features))
    count = max(1, round(share * len(queries)))
    return np.unique(np.linspace(0, len(queries) - 1, count).round().astype(np.int64)) if len(queries) else np.arange(0)


def _of_query(queries: Queries, query: int) -> tuple[Any, ...] | None:
    """The skill of every feature alone in one query; None where all labels are equal.

    nDCG of every feature and of its reverse, documents that either contradicts, documents if the feature varies, nDCG
    of a random order, and the surprise.
    """
    rows = queries.rows_of(int(query))
    gain = queries.labels()[rows]
    if len(gain) < 2 or gain.min() == gain.max():
        return None
    gain = (gain - gain.min()) / (gain.max() - gain.min())  # the size and the offset of labels do not matter
    X = np.asarray(queries.X[rows])
    n, d = X.shape
    order = np.argsort(X, axis=0, kind="stable")
    ordered = np.take_along_axis(X, order, axis=0)
    begins = np.ones((n, d), dtype=bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    block = (np.cumsum(begins, axis=0) - 1 + n * np.arange(d)).ravel()  # a number for every block of ties
    discount = 1 / np.log2(np.arange(2, n + 2))
    gains = np.bincount(block, gain[order].ravel(), minlength=n * d)
    mean = gains / np.maximum(1, np.bincount(block, minlength=n * d))
    sides = []
    for weights in (discount[::-1], discount):  # the largest value first, and the smallest
        total = np.bincount(block, np.repeat(weights, d), minlength=n * d)
        sides.append((mean * total).reshape(d, n).sum(axis=1))
    ideal = float((np.sort(gain)[::-1] * discount).sum())
    orders = lgamma(n + 1) - sum(lgamma(count + 1) for count in np.unique(gain, return_counts=True)[1])
    chance = float(gain.mean() * discount.sum()) / ideal
    varies = np.where(begins[1:].any(axis=0), n, 0)
    return sides[0] / ideal, sides[1] / ideal, *_count_contradictions(gain[order], begins), varies, chance, orders


def _count_contradictions(gain: Vector, begins: NDArray[np.bool_]) -> tuple[Vector, Vector]:
    """Documents whose gain is below that of a document with a smaller value of the feature, and above it.

    ``gain`` has a column for every feature, in the order of its values; ``begins`` says where another value begins.
    """
    n, d = gain.shape
    first = np.maximum.accumulate(np.where(begins, np.arange(n)[:, np.newaxis], 0), axis=0)  # of the block of ties
    most, least = np.maximum.accumulate(gain, axis=0), np.minimum.accumulate(gain, axis=0)
    before = np.take_along_axis(np.vstack([np.full((1, d), -np.inf), most]), first, axis=0)
    lowest = np.take_along_axis(np.vstack([np.full((1, d), np.inf), least]), first, axis=0)
    return (gain < before).sum(axis=0), (gain > lowest).sum(axis=0)


def find_leaks(queries: Queries, alone: Alone | None, facts: dict[str, Any]) -> Iterator[Finding]:
    """Features that order documents as the label does, that stand far above the others, or have the name of a label.

    Parameters
    ----------
    queries : Queries
        The judged queries.
    alone : Alone or None
        What :func:`rank_alone` found.
    facts : dict
        Receives the nDCG and the skill of the best features alone.

    Yields
    ------
    finding : Finding
        One finding per kind of leak.
    """
    names = names_or_columns(queries)
    copies = coarse = above = np.empty(0, dtype=np.int64)
    rest = 0.0
    if alone is not None:
        order = np.argsort(-alone.skill, kind="stable")
        facts["best_alone"] = {
            names[place]: {"ndcg": float(alone.ndcg[place]), "skill": float(alone.skill[place])}
            for place in order[:_NAMED]
        }
        figures = zip(names, alone.ndcg, alone.skill, strict=True)
        names = [f"{name} (alone: nDCG {ndcg:.3f}, skill {skill:.2f})" for name, ndcg, skill in figures]
        if not alone.by_chance:
            copies = order[alone.skill[order] >= COPY]
            others = order[len(copies) :]
            is_coarse = (alone.contradicted[others] <= CONTRADICTED) & (alone.surely[others] >= COARSE)
            coarse = others[is_coarse]
            above = _standing_out(alone, others[~is_coarse])
        rest = max(np.delete(alone.skill, [*copies, *coarse, *above]).tolist(), default=0.0)
    called = np.setdiff1d(_find_label_names(queries), [*copies, *coarse, *above]).astype(np.int64)
    ranks, are = ("feature ranks", "features rank"), ("feature is", "features are")
    contradicting = f"where documents of a query differ in it, at most {CONTRADICTED:.0%} of them contradict the label"
    kinds: tuple[tuple[Severity, NDArray[np.int64], tuple[str, str], str], ...] = (
        ("problem", copies, ranks, f"like the label itself (skill {COPY:g} or more)"),
        ("problem", coarse, are, f"a coarse copy of the label: {contradicting}"),
        ("warning", above, ranks, f"far better alone than all others (of which the best has skill {rest:.2f})"),
        ("warning", called, ("feature has", "features have"), "a name that suggests a label"),
    )
    for severity, places, have, what in kinds:
        if len(places):
            where = [names[place] for place in places]
            yield Finding.of(severity, f"{plural(len(places), *have)} {what}", where, *_advice(queries, places))


def _advice(queries: Queries, places: NDArray[np.int64]) -> tuple[str, list[str]]:
    """(what to do, the columns to leave out): the call that reads the data without these features."""
    them = "it" if len(places) == 1 else "them"
    way, columns = "leave the column out of the file", list[str]()
    if queries.feature_names is not None:
        columns = _columns_of([queries.feature_names[place] for place in places], queries)
        way = f"leave {them} out by ignore={columns!r} when reading"
    known = "is it" if len(places) == 1 else "are they"
    return f"{known} known before anybody has judged or clicked? If not, {way}; nothing is left out by itself", columns


def _columns_of(features: list[str], queries: Queries) -> list[str]:
    """The columns of the table that features were made of; the features themselves without a FeatureBuilder."""
    plan = () if queries.built_by is None else queries.built_by.plan_
    owner = {feature: row["column"] for row in plan for feature in row["features"]}
    return list(dict.fromkeys(owner.get(name, name) for name in features))


def _standing_out(alone: Alone, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first features of an order by skill that leave at most half of the error of the next one."""
    for count in range(1, min(TOGETHER, len(order) - 1) + 1):
        least = alone.surely[order[:count]].min()
        if least >= STRONG and 1 - least <= HALF * (1 - alone.skill[order[count]]):
            return order[:count]
    return order[:0]


def _find_label_names(queries: Queries) -> list[int]:
    """The features whose names are those of judgments."""
    found = []
    for place, name in enumerate(queries.feature_names or ()):
        words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]
        if "_".join(words) in _WHOLE or any(word in _ANYWHERE for word in words):
            found.append(place)
    return found
