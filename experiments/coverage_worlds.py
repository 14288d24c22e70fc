"""Worlds in which a bound can be about something else than it says.

A bound on a mean over future queries fails if its queries are not what it takes them for: training rows, copies, the
queries that chose the winner, a part of the population, or a stream that is looked at again and again. Each world here
draws such data from a population whose mean is an exact sum, and counts how often what is printed is wrong. Beside it
stands a control: the number that a careless reading of the same data gives. A control is wrong far more often than it
may be, and the verdict that clears the guarantee has to find it out.

======== ==================================================================== ========================================
part     what is repeated                                                     control
======== ==================================================================== ========================================
hold-out fit, and certify by a hold-out that repeats queries or has training  copies dropped, or all taken for draws
         rows
choice   K rankers on one test part                                           certify the one with the best test mean
subset   a measure that is undefined, tied, or not counted for some queries   read as a bound about all queries
polling  a mean that is looked at after every value                           a bound for one number of values
A/A      two equal rankers, users of very different activity                  every list counts, not one per user
======== ==================================================================== ========================================
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rankwise as rw
from experiments.coverage_counts import CONTROL, Outcome, Trial, check
from experiments.coverage_populations import Mean
from rankwise.clicks import ClickLog, ab_test
from rankwise.clicks.preferences import differences
from rankwise.guarantees import Bound, ConfidenceSequence, mean_interval
from rankwise.guarantees.holdout.sequences import RunningMean

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Random = np.random.Generator

TRAINING = 60  # queries to learn from
UNDEFINED = ", undefined counted as 0"


# ------------------------------------------------------------------------------------------- populations


@dataclass(frozen=True)
class Catalog:
    """Finitely many queries, all of the same length, and how often each of them is asked.

    Attributes
    ----------
    X : ndarray, shape (n_kinds, documents, n_features)
    labels : ndarray, shape (n_kinds, documents)
    chance : ndarray, shape (n_kinds,)
    weight : ndarray, shape (n_kinds,); None: all count the same
    """

    X: Floats
    labels: Floats
    chance: Floats
    weight: Floats | None = None

    def draw(self, n: int, random: Random) -> Ints:
        """The numbers of n independent queries."""
        return random.choice(len(self.chance), size=n, p=self.chance)

    def queries(self, which: Ints) -> rw.Queries:
        """Queries by their numbers."""
        rows, labels = self.X[which].reshape(-1, self.X.shape[2]), self.labels[which].ravel()
        weight = None if self.weight is None else self.weight[which]
        return rw.Queries.from_arrays(rows, labels, group=[self.X.shape[1]] * len(which), weight=weight)

    def losses(self, model: Any, ties: str = "expected") -> Floats:
        """1 - measure of every query of the catalog; NaN where it is undefined."""
        every = self.queries(np.arange(len(self.chance)))
        measure = str(model.measure)
        scores = np.asarray(model.predict(every))
        return 1 - rw.evaluate(every, scores, [measure], ties=ties, n_jobs=1).per_query[measure]  # type: ignore[arg-type]

    def mean(self, values: Floats) -> float:
        """The mean over future queries that have a value."""
        known = ~np.isnan(values)
        return float(values[known] @ self.chance[known] / self.chance[known].sum())


def _graded(useful: Floats) -> Floats:
    """The labels 2, 1, 0, 0, ... by falling usefulness."""
    place = np.argsort(np.argsort(-useful, axis=1), axis=1)
    return np.maximum(0.0, 2.0 - place)


def _by_first_feature(random: Random, kinds: int, documents: int = 5, features: int = 2) -> tuple[Floats, Floats]:
    """Queries whose labels follow the first feature, up to noise."""
    X = random.random((kinds, documents, features))
    return X, _graded(X[:, :, 0] + 0.05 * random.standard_normal((kinds, documents)))


@cache
def head_query() -> Catalog:
    """One query is half of the traffic; its labels are the reverse of what all others teach."""
    X, labels = _by_first_feature(np.random.default_rng(11), 2_000)
    X[0] = [[0.2, 0.1], [0.4, 0.9], [0.6, 0.3], [0.8, 0.7], [0.9, 0.2]]
    labels[0] = [2.0, 1.0, 0.0, 0.0, 0.0]
    return Catalog(X, labels, np.concatenate([[0.5], np.full(1_999, 0.5 / 1_999)]))


@cache
def zipf_queries() -> Catalog:
    """The query of rank r is asked in proportion to 1/r; the 20 most frequent are the hard ones."""
    X, labels = _by_first_feature(np.random.default_rng(12), 2_000)
    labels[:20] = _graded(-X[:20, :, 0])
    chance = 1 / np.arange(1, 2_001)
    return Catalog(X, labels, chance / chance.sum())


@cache
def noise() -> Catalog:
    """Labels that no feature explains, and more features than needed to remember them."""
    random = np.random.default_rng(13)
    X = random.standard_normal((2_000, 4, 150))
    return Catalog(X, _graded(random.random((2_000, 4))), np.full(2_000, 1 / 2_000))


@cache
def two_documents() -> Catalog:
    """Two documents, of which the first feature puts the wrong one on top: always in query 0, else in a tenth.

    Query 0 is a quarter of the traffic.
    """
    random = np.random.default_rng(14)
    X = random.random((2_000, 2, 3))
    labels = np.zeros((2_000, 2))
    wrong = np.arange(2_000) % 10 == 0
    relevant = np.where(wrong, X[:, :, 0].argmin(axis=1), X[:, :, 0].argmax(axis=1))
    labels[np.arange(2_000), relevant] = 1.0
    return Catalog(X, labels, np.concatenate([[0.25], np.full(1_999, 0.75 / 1_999)]))


@cache
def partly_empty() -> Catalog:
    """Six queries in ten have no relevant document."""
    X, labels = _by_first_feature(np.random.default_rng(15), 2_000)
    labels[np.arange(2_000) % 10 < 6] = 0.0
    return Catalog(X, labels, np.full(2_000, 1 / 2_000))


@cache
def partly_tied() -> Catalog:
    """In half of the queries all documents have the same score."""
    X, labels = _by_first_feature(np.random.default_rng(16), 2_000)
    X[::2, :, 0] = 0.5
    return Catalog(X, labels, np.full(2_000, 1 / 2_000))


@cache
def partly_weightless() -> Catalog:
    """Half of the queries have weight 0, and they are the hard ones."""
    X, labels = _by_first_feature(np.random.default_rng(17), 2_000)
    labels[::2] = _graded(-X[::2, :, 0])
    return Catalog(X, labels, np.full(2_000, 1 / 2_000), np.tile([0.0, 1.0], 1_000))


# ------------------------------------------------------------------------------------------- hold-outs


class Sample(NamedTuple):
    """The numbers of the training and hold-out queries, and those of each careless reading of the hold-out."""

    train: Ints
    holdout: Ints
    readings: tuple[Ints, ...]


@dataclass(frozen=True)
class Holdout:
    """A world of the part "hold-out".

    Attributes
    ----------
    about : what it is like
    catalog : the population
    make : the ranker
    draw : a sample with n fresh hold-out queries
    control : what a careless reading takes for independent draws; the largest bound counts where there are several
    """

    about: str
    catalog: Callable[[], Catalog]
    make: Callable[[], Any]
    draw: Callable[[Catalog, Random, int], Sample]
    control: str


def _fresh(catalog: Catalog, random: Random, n: int) -> Sample:
    """Training queries and a hold-out, all independent; the careless reading drops what was seen."""
    train, holdout = catalog.draw(TRAINING, random), catalog.draw(n, random)
    return Sample(train, holdout, (holdout[~np.isin(holdout, train)],))


def _with_training(share: float) -> Callable[[Catalog, Random, int], Sample]:
    """Fresh queries, and a share of the training file; the careless reading counts them all."""

    def draw(catalog: Catalog, random: Random, n: int) -> Sample:
        train = catalog.draw(TRAINING, random)
        holdout = np.concatenate([catalog.draw(n, random), train[: round(share * TRAINING)]])
        return Sample(train, holdout, (holdout,))

    return draw


def _with_easy_training(catalog: Catalog, random: Random, n: int) -> Sample:
    """Fresh queries, and a training file of easy queries and the frequent one.

    Neither all queries nor those that were not seen have the mean of future ones.
    """
    easy = np.flatnonzero(np.arange(len(catalog.chance)) % 10 > 0)
    train = np.concatenate([[0], random.choice(easy, size=3 * n // 2 - 1, replace=False)])
    fresh = catalog.draw(n, random)
    holdout = np.concatenate([fresh, train])
    return Sample(train, holdout, (holdout, fresh[~np.isin(fresh, train)]))


def _several_times(catalog: Catalog, random: Random, n: int) -> Sample:
    """Every fresh query is given 30 times; the careless reading counts every copy."""
    train, holdout = catalog.draw(TRAINING, random), np.repeat(catalog.draw(n, random), 30)
    return Sample(train, holdout, (holdout,))


def first_feature(features: int, measure: str = "nDCG@10") -> rw.LinearModel:
    """A ranker that learns nothing: it scores by the first feature."""
    return rw.LinearModel(coef=np.eye(features)[0], measure=measure)


def _memorizing() -> Any:
    return rw.RidgeRanker("nDCG@10", alpha=1e-6, balanced=False, n_jobs=1)


def _learning() -> Any:
    return rw.RankSVM("nDCG@10", alpha=10.0, prior_coef=None, scale="none", n_jobs=1)


DROPPED, TAKEN = "queries with the content of a training query dropped", "every query taken for an independent draw"
HOLDOUTS = {
    "head query": Holdout(
        "one query is half of the traffic, and the one that is ranked worst", head_query, _learning, _fresh, DROPPED
    ),
    "Zipf queries": Holdout(
        "the query of rank r is asked in proportion to 1/r, the 20 most frequent are ranked worst",
        zipf_queries,
        lambda: first_feature(2),
        _fresh,
        DROPPED,
    ),
    "some training rows": Holdout(
        "a third of the training file is in the hold-out; the ranker remembers it",
        noise,
        _memorizing,
        _with_training(1 / 3),
        TAKEN,
    ),
    "the whole training file": Holdout(
        "all of the training file is in the hold-out; the ranker remembers it",
        noise,
        _memorizing,
        _with_training(1.0),
        TAKEN,
    ),
    "easy training rows and a frequent query": Holdout(
        "a training file of easy queries, and one frequent query, is in the hold-out",
        two_documents,
        lambda: first_feature(3, "nDCG@1"),
        _with_easy_training,
        "the larger of two bounds, from every query and from those that were not seen",
    ),
    "rows given 30 times": Holdout(
        "every query of the hold-out is in the file 30 times",
        two_documents,
        lambda: first_feature(3, "nDCG@1"),
        _several_times,
        TAKEN,
    ),
}


def holdout_trial(trial: Trial, random: Random, delta: float) -> list[Outcome]:
    """The headline and the rows of a certificate by a hold-out that repeats queries, or touches training."""
    world = HOLDOUTS[trial.values]
    catalog = world.catalog()
    sample = world.draw(catalog, random, trial.n)
    model = world.make().fit(catalog.queries(sample.train))
    losses = catalog.losses(model)
    truth = catalog.mean(losses)
    certificate = model.certificate(None, catalog.queries(sample.holdout), delta)
    found = [outcome_of(certificate.headline, "Headline", truth, delta)] if certificate.headline else []
    for row in certificate.rows:
        if row.kind == "hold-out" and row.applies is not False:
            found.append(outcome_of(row, row.name, truth, delta))
    careless = max(betting_end(losses[which], delta) for which in sample.readings)
    return [*found, Outcome(CONTROL + world.control, delta, careless < truth)]


def outcome_of(bound: Bound, what: str, truth: float, allowed: float) -> Outcome:
    """Whether a bound is wrong, and whether it can be."""
    count = check(bound, Mean(truth))
    return Outcome(what, allowed, bool(count.failed), bool(count.vacuous))


def betting_end(losses: Floats, delta: float) -> float:
    """The upper end by betting of losses that are taken for independent draws."""
    return mean_interval(losses, delta, method="betting", ends="high").high


# ------------------------------------------------------------------------------------------- chosen winners

DOCUMENTS, FEATURES = 6, 20  # of the queries of this part
MANY = 50  # rankers of which the best on the test queries is certainly too good to be true


def choice_trial(trial: Trial, random: Random, delta: float) -> list[Outcome]:
    """K rankers of the same quality: all certificates together, and that of the one that validation has chosen."""
    rankers = int(trial.values.split()[0])
    # one relevant document that no feature knows: any scores have the mean of a random order
    truth = 1 - float(np.mean(1 / np.log2(np.arange(2, DOCUMENTS + 2))))
    models = [rw.LinearModel.of(one, measure="nDCG@10") for one in random.standard_normal((rankers, FEATURES))]
    validation, test = (_one_relevant(trial.n, random) for _ in range(2))
    by_validation, by_test = ([_mean(model, queries) for model in models] for queries in (validation, test))
    together = [model.certificate(None, test, delta / rankers).headline for model in models]
    chosen = models[int(np.argmax(by_validation))].certificate(None, test, delta).headline
    assert chosen is not None
    each = [outcome_of(bound, "", truth, delta) for bound in together if bound is not None]
    best = models[int(np.argmax(by_test))]
    losses = 1 - rw.evaluate(test, best, ["nDCG@10"], n_jobs=1).per_query["nDCG@10"]
    any_failed, all_vacuous = any(one.failed for one in each), all(one.vacuous for one in each)
    careless, what = betting_end(losses, delta) < truth, "betting for the winner on the test queries"
    return [
        Outcome("All headlines, each at delta/K", delta, any_failed, all_vacuous),
        outcome_of(chosen, "Headline of the winner on validation", truth, delta),
        # among a few rankers the best is hardly luckier than delta allows: no verdict
        Outcome(CONTROL + what, delta, careless) if rankers >= MANY else Outcome(what, math.nan, careless),
    ]


def _one_relevant(n: int, random: Random) -> rw.Queries:
    labels = np.eye(DOCUMENTS)[random.integers(DOCUMENTS, size=n)].ravel()
    return rw.Queries.from_arrays(random.standard_normal((n * DOCUMENTS, FEATURES)), labels, group=[DOCUMENTS] * n)


def _mean(model: Any, queries: rw.Queries) -> float:
    return float(rw.evaluate(queries, model, ["nDCG@10"], n_jobs=1).per_query["nDCG@10"].mean())


# ------------------------------------------------------------------------------------------- parts of a population


@dataclass(frozen=True)
class Subset:
    """A world of the part "subset": a population, what its rows must name, and how a careless reader takes them.

    Attributes
    ----------
    about : what it is like
    catalog : the population
    named : the words by which the headline names what it is about
    careless : the losses that a careless reader takes it to be about, from a catalog and its ranker
    control : the careless reading, in words
    """

    about: str
    catalog: Callable[[], Catalog]
    named: str
    careless: Callable[[Catalog, rw.LinearModel], Floats]
    control: str


def _undefined_as_0(catalog: Catalog, model: rw.LinearModel) -> Floats:
    return np.nan_to_num(catalog.losses(model), nan=1.0)


SUBSETS = {
    "empty queries": Subset(
        "six queries in ten have no relevant document",
        partly_empty,
        "future queries with a relevant document",
        _undefined_as_0,
        "the headline, read as a bound on all queries with 0 for the undefined",
    ),
    "tied scores": Subset(
        "in half of the queries all documents have the same score",
        partly_tied,
        ", ties averaged,",
        lambda catalog, model: catalog.losses(model, "pessimistic"),
        "the headline, read as a bound for the worst order of tied documents",
    ),
    "weights of 0": Subset(
        "half of the queries have weight 0, and they are ranked worst",
        partly_weightless,
        "future queries of weight above 0",
        lambda catalog, model: catalog.losses(model),
        "the headline, read as a bound on all queries",
    ),
}


def subset_trial(trial: Trial, random: Random, delta: float) -> list[Outcome]:
    """Certificates where a measure is undefined, tied or not counted for some queries."""
    world = SUBSETS[trial.values]
    catalog = world.catalog()
    model = first_feature(catalog.X.shape[2]).fit(catalog.queries(catalog.draw(TRAINING, random)))
    certificate = model.certificate(None, catalog.queries(catalog.draw(trial.n, random)), delta)
    losses, headline = catalog.losses(model), certificate.headline
    if headline is None:
        return []
    counted = losses if catalog.weight is None else np.where(catalog.weight > 0, losses, np.nan)
    truth, careless = catalog.mean(counted), catalog.mean(world.careless(catalog, model))
    # a bound that does not name its part of the population is wrong, whatever its number
    unnamed = world.named not in headline.bounds
    found = [outcome_of(headline, "Headline", truth, delta)._replace(failed=unnamed or headline.value < truth)]
    for row in certificate.rows:
        if row.kind == "hold-out":
            of_all = row.bounds.endswith(UNDEFINED)
            value = catalog.mean(_undefined_as_0(catalog, model)) if of_all else truth
            found.append(outcome_of(row, row.name + (UNDEFINED if of_all else ""), value, delta))
    return [*found, outcome_of(headline, CONTROL + world.control, careless, delta)]


# ------------------------------------------------------------------------------------------- polling

STREAM = 20_000  # values of a stream that is looked at after each of them


def _coins(random: Random) -> tuple[Floats, Floats]:
    return np.full(STREAM, 0.5), (random.random(STREAM) < 0.5).astype(float)


def _learning_stream(random: Random) -> tuple[Floats, Floats]:
    """A ranker that learns: the mean of a value depends on the values before it."""
    draws, mean, means = random.random(STREAM), 0.3, np.empty(STREAM)
    for place, draw in enumerate(draws.tolist()):
        means[place] = mean
        mean += (0.7 - mean) * 0.002 if draw < mean else 0.0  # it learns from what was clicked
    return means, (draws < means).astype(float)


STREAMS = {
    "fair coins": ("values with a mean of 0.5", _coins),
    "a ranker that learns": ("a mean that rises from 0.3 to 0.7, by what was clicked", _learning_stream),
}


@cache
def radii(n: int, delta: float) -> Floats:
    """The radius of a running mean after 1, 2, ... n values; it does not depend on the values."""
    return np.array([RunningMean(delta, n=place).radius for place in range(1, n + 1)])


def polling_trial(trial: Trial, random: Random, delta: float) -> list[Outcome]:
    """A bound that is looked at after every value: one moment at which it is wrong is a failure."""
    means, values = STREAMS[trial.values][1](random)
    place = np.arange(1, trial.n + 1)
    behind = np.cumsum(means[: trial.n]) / place
    gap = behind - np.cumsum(values[: trial.n]) / place
    fixed = np.sqrt(math.log(1 / delta) / (2 * place))  # Hoeffding's upper end for one n
    return [
        Outcome("RunningMean, both ends at any time", delta, bool((np.abs(gap) > radii(trial.n, delta)).any())),
        Outcome(CONTROL + "Hoeffding's upper end for one n, at any time", delta, bool((gap > fixed).any())),
        Outcome("Hoeffding's upper end for one n, at that n", delta, bool(gap[-1] > fixed[-1])),
    ]


# ------------------------------------------------------------------------------------------- A/A tests

USERS = {"300 users": 300, "3,000 users": 3_000}


def aa_trial(trial: Trial, random: Random, delta: float) -> list[Outcome]:
    """Two equal rankers, users assigned by a coin, activity by Zipf's law: is one of the two found to be better?"""
    users = USERS[trial.values]
    activity = 1 / np.arange(1, users + 1)
    user = random.choice(users, size=trial.n, p=activity / activity.sum())
    taste = np.clip(0.7 + 0.2 * random.standard_normal(users), 0, 1)
    arm, clicked = (random.random(users) < 0.5)[user], random.random(trial.n) < taste[user]
    first = np.sort(np.unique(user, return_index=True)[1])
    return [
        Outcome("No winner, first list of each user", delta, _decided(clicked[first], arm[first], delta)),
        Outcome(CONTROL + "no winner, every list", delta, _decided_carelessly(clicked, arm, delta)),
    ]


def _decided(clicked: NDArray[np.bool_], arm: NDArray[np.bool_], delta: float) -> bool:
    n = len(clicked)
    ids = np.arange(n)
    log = ClickLog(
        start=np.arange(n + 1),
        session=ids,
        qid=ids,
        docid=ids,
        position=np.ones(n, dtype=np.int64),
        click=clicked,
        version=np.where(arm, "A", "B"),
    )
    return ab_test(log, versions=("A", "B"), delta=delta, grid=200).decided is not None


def _decided_carelessly(clicked: NDArray[np.bool_], arm: NDArray[np.bool_], delta: float) -> bool:
    """The same sequence without the test of the coin, which would refuse it: lists are not assigned, users are."""
    sequence = ConfidenceSequence(delta, span=(-2.0, 2.0), grid=200)
    sequence.update(differences(clicked.astype(float), arm, 0.5)[0])
    return not sequence.low <= 0 <= sequence.high


PARTS: dict[str, Callable[[Trial, Random, float], list[Outcome]]] = {
    "hold-out": holdout_trial,
    "choice": choice_trial,
    "subset": subset_trial,
    "polling": polling_trial,
    "A/A": aa_trial,
}
ABOUT = {
    **{name: world.about for name, world in HOLDOUTS.items()},
    "9 rankers": "nine rankers of the same quality, 100 validation and 100 test queries",
    "50 rankers": "50 of them",
    **{name: world.about for name, world in SUBSETS.items()},
    **{name: about for name, (about, _) in STREAMS.items()},
    **dict.fromkeys(USERS, "two equal rankers; the user of rank r is active in proportion to 1/r"),
}
TRIALS = (
    *(Trial("hold-out", world, n) for world in HOLDOUTS for n in ((30, 100) if "times" in world else (100, 300))),
    *(Trial("choice", rankers, 100) for rankers in ("9 rankers", "50 rankers")),
    *(Trial("subset", world, n) for world in SUBSETS for n in (100, 300)),
    *(Trial("polling", stream, STREAM) for stream in STREAMS),
    *(Trial("A/A", users, 3_000) for users in USERS),
)
