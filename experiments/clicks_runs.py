"""The simulated click logs of :mod:`experiments.clicks`: worlds whose truth is known, and what is measured in them."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import rankwise as rw
from rankwise import clicks
from rankwise.clicks.preferences import credits, outcomes, team_draft
from rankwise.clicks.rankings import ranks_of
from rankwise.guarantees import ConfidenceSequence

Floats = Any

SHOWN = 10
THETA = 1 / np.arange(1, SHOWN + 1)
TAU, DELTA = 0.1, 0.1
GAIN = 0.10


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warnings about documents that were never shown, which are what is measured here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True)
class Setting:
    """Judged queries, a logging ranking, a better and a worse one, as scores of the documents, with their values."""

    queries: rw.Queries
    attractive: Floats
    logged: Floats
    better: Floats
    worse: Floats

    def true(self, scores: Floats, k: int = SHOWN) -> float:
        return clicks.true_value(self.queries, scores, self.attractive, k=k)

    @classmethod
    def make(cls, documents: int = SHOWN, queries: int = 300, gain: float = GAIN, seed: int = 0) -> "Setting":
        """Queries whose better ranking is worth ``gain`` more, and whose worse one half of that less."""
        judged = rw.make_lists(queries, documents=documents, features=5, random_state=seed)
        attractive = clicks.attractiveness(judged)
        noise = np.random.default_rng(seed).normal(size=(3, judged.n_documents))
        logged = judged.labels() + 2.0 * noise[0]

        def blend(t: float, other: Floats) -> Floats:
            return (1 - abs(t)) * logged + abs(t) * np.sign(t) * judged.labels() + 0.3 * other

        def at(target: float, other: Floats, sign: float) -> Floats:
            base = clicks.true_value(judged, logged, attractive, k=SHOWN)
            low, high = 0.0, 1.0
            for _ in range(30):
                middle = (low + high) / 2
                found = clicks.true_value(judged, blend(sign * middle, other), attractive, k=SHOWN) - base
                low, high = (middle, high) if sign * found < abs(target) else (low, middle)
            return blend(sign * high, other)

        return cls(judged, attractive, logged, at(gain, noise[1], 1.0), at(gain / 2, noise[2], -1.0))

    def log(self, sessions: int, seed: Any, **how: Any) -> clicks.ClickLog:
        return clicks.simulate(
            self.queries, self.logged, sessions, attractive=self.attractive, random_state=seed, **how
        )


# ------------------------------------------------------------------------------------------------------- propensities


def naive_errors(setting: Setting, sessions: int = 200_000) -> list[float]:
    """Relative error of the click rate by position, relative to position 1, at positions 2 to 10."""
    rates = clicks.click_rates(setting.log(sessions, 1))["rate"]
    return ((rates / rates[0]) / THETA - 1)[1:].tolist()


def ends_by_sessions(setting: Setting) -> dict[str, Any]:
    """Upper end over truth and estimate over truth of positions 2, 5 and 10, by sessions per position."""
    found: dict[str, Any] = {}
    rankers = {"a": setting.logged, "b": setting.better}
    for each in (2_000, 20_000):
        swapped = clicks.by_swaps(setting.log(9 * each, each, swaps=True), delta=0.1)
        log = clicks.simulate(setting.queries, rankers, 9 * each, attractive=setting.attractive, random_state=each)
        shared = clicks.harvest(log, delta=0.1)
        found[str(each)] = {
            "swaps": {str(k): [float(x[k - 1] / THETA[k - 1]) for x in (swapped.low, swapped.theta, swapped.high)]
                      for k in (2, 5, 10)},
            "harvest": {str(k): [float(x[k - 1] / THETA[k - 1]) for x in (shared.low, shared.theta, shared.high)]
                        for k in (2, 5, 10)},
        }  # fmt: skip
    return found


# ----------------------------------------------------------------------------------------------------------- coverage

TRUST = 0.6
TRUSTING = {"theta": THETA * (1 - TRUST * THETA), "beta": THETA * TRUST * THETA}


@dataclass(frozen=True)
class Case:
    """A click model, propensities, and whether the preconditions of the bounds are met: yes, no, or for values."""

    name: str
    met: str
    propensities: Callable[[Setting, int], clicks.Propensities]
    how: dict[str, Any]
    logs: int = 1_000


def true_theta(setting: Setting, seed: int) -> clicks.Propensities:
    return clicks.given(THETA)


def swapped_ends(setting: Setting, seed: int) -> clicks.Propensities:
    return clicks.by_swaps(setting.log(18_000, [seed, 7], swaps=True), delta=0.05)


def harvested_ends(setting: Setting, seed: int) -> clicks.Propensities:
    rankers = {"a": setting.logged, "b": setting.better}
    log = clicks.simulate(setting.queries, rankers, 10_000, attractive=setting.attractive, random_state=[seed, 8])
    return clicks.harvest(log, delta=0.05, samples=200)


CASES = (
    Case("true propensities", "yes", true_theta, {}),
    Case("true propensities, dependent clicks", "yes", true_theta, {"model": "dependent"}),
    Case("ends by swaps", "yes", swapped_ends, {}),
    Case("ends by harvesting (asymptotic)", "yes", harvested_ends, {}, 300),
    Case("propensities 30% too large", "for values", lambda s, seed: clicks.given(np.minimum(1.3 * THETA, 1.0)), {}),
    Case("trust bias, corrected", "yes", lambda s, seed: clicks.given(**TRUSTING), {"model": "trust"}),
    Case("propensities 37% too small", "no", lambda s, seed: clicks.given(0.63 * THETA), {}),
    Case("trust bias, ignored", "no", true_theta, {"model": "trust"}),
    Case("cascade readers", "no", true_theta, {"model": "cascade"}),
    Case("sessions logged five times", "no", true_theta, {"repeats": 5}),
)


def coverage(setting: Setting, case: Case, logs: int | None = None, sessions: int = 1_000) -> dict[str, Any]:
    """How often bounds miss the truth, and how often rankings are certified, over independent logs."""
    worth, base, least = (setting.true(one) for one in (setting.better, setting.logged, setting.worse))
    missed = {"value": 0, "gain": 0, "worse": 0}
    certified = {"better": 0, "worse": 0}
    lower = {"value": 0.0, "gain": 0.0}
    logs = case.logs if logs is None else logs
    with quietly():
        for number in range(logs):
            log = setting.log(sessions, [number, 3], **case.how)
            model = case.propensities(setting, number)
            settings: dict[str, Any] = {"tau": TAU, "delta": DELTA}
            value = clicks.value(log, setting.better, model, **settings)
            gain = clicks.gain(log, setting.better, model, **settings)
            fall = clicks.gain(log, setting.worse, model, **settings)
            missed["value"] += value.lower > worth
            missed["gain"] += gain.lower > worth - base
            missed["worse"] += fall.lower > least - base
            certified["better"] += gain.certified
            certified["worse"] += fall.certified
            lower["value"] += value.lower / logs
            lower["gain"] += gain.lower / logs
    return {
        "logs": logs, "sessions": sessions, "met": case.met, "missed": missed, "certified": certified, "lower": lower,
    }  # fmt: skip


def power(setting: Setting, logs: int = 200) -> dict[str, Any]:
    """Share of logs that certify the better ranking, by sessions and tau."""
    found: dict[str, Any] = {}
    for sessions in (300, 1_000, 3_000, 10_000):
        for tau in (0.1, 0.3):
            gains = [
                clicks.gain(setting.log(sessions, [seed, sessions]), setting.better, clicks.given(THETA), tau=tau,
                            delta=DELTA)
                for seed in range(logs)
            ]  # fmt: skip
            found[f"{sessions} {tau:g}"] = {
                "certified": float(np.mean([one.certified for one in gains])),
                "lower": float(np.mean([one.lower for one in gains])),
            }
    return found


# --------------------------------------------------------------------------------------------------------------- bias


def biases(setting: Setting, logs: int = 100) -> dict[str, Any]:
    """Mean and spread of estimates of the better ranking's value, by sessions: naive, clipped and doubly robust."""
    worth = setting.true(setting.better)
    found: dict[str, Any] = {"true": worth, "logged": setting.true(setting.logged)}
    for sessions in (100, 300, 1_000, 3_000, 10_000):
        rows = []
        with quietly():
            for seed in range(logs):
                log = setting.log(sessions, [seed, sessions, 5])
                clipped = clicks.value(log, setting.better, clicks.given(THETA), tau=0.1)
                strong = clicks.value(log, setting.better, clicks.given(THETA), tau=0.5)
                # clicks as if every position were examined alike
                naive = clicks.value(log, setting.better, clicks.given(np.ones(SHOWN)), tau=1.0)
                rows.append([naive.estimate, clipped.estimate, strong.estimate, strong.self_normalized,
                             strong.doubly_robust, clipped.lower])  # fmt: skip
        names = ("naive", "clipped at 0.1", "clipped at 0.5", "self-normalized at 0.5", "doubly robust at 0.5", "bound")
        found[str(sessions)] = {
            name: [float(np.mean(column)), float(np.std(column))]
            for name, column in zip(names, zip(*rows, strict=True), strict=True)
        }
    return found


# -------------------------------------------------------------------------------------------------------- exploration


def exploring(setting: Setting, logs: int = 10) -> dict[str, Any]:
    """Mean lower bound of the gain where half of the candidates are not shown, by exploration and sessions."""
    base, pool = setting.true(setting.logged), int(setting.queries.sizes[0])
    shuffled = float(
        np.mean([setting.true(np.random.default_rng(seed).random(len(setting.logged))) for seed in range(20)])
    )
    found: dict[str, Any] = {"gain": setting.true(setting.better) - base, "pool": pool, "rows": {}}
    for share in (0.0, 0.02, 0.05, 0.1, 0.2):
        cost = share * (base - shuffled)
        for sessions in (1_000, 10_000, 50_000):
            with quietly():
                lowers = [
                    clicks.gain(setting.log(sessions, [seed, sessions, 9], exploration=share), setting.better,
                                clicks.given(THETA), tau=0.005, delta=DELTA).lower
                    for seed in range(logs)
                ]  # fmt: skip
            found["rows"][f"{share:g} {sessions}"] = {"lower": float(np.mean(lowers)), "cost": cost}
    return found


# ------------------------------------------------------------------------------------- candidates beyond the pool

POOL, CANDIDATES, POOL_THETA = 6, 12, np.array([1.0, 0.6, 0.4, 0.3])


@dataclass(frozen=True)
class PoolSetting:
    """Queries of which shuffled pages show the first six of twelve candidates; a gain over a ranking with the others.

    ``outside`` is the attractiveness of the six that are never shown; those in the pool have 0.2. The new ranking has
    the pool first. The old one begins with ``outsiders`` documents that are never shown.
    """

    outside: float
    outsiders: int

    def scores(self) -> tuple[Floats, Floats]:
        """The new and the old ranking of one query, as scores."""
        new = -np.arange(CANDIDATES, dtype=float)
        old = np.r_[np.arange(POOL), 50 - np.arange(CANDIDATES - POOL)].astype(float)
        old[POOL + self.outsiders :] = -1.0
        return new, old

    def log(self, sessions: int, seed: Any, queries: int = 20) -> tuple[clicks.ClickLog, Floats, Floats]:
        """Sessions whose pages are always shuffled, with the scores of the new and the old ranking."""
        random = np.random.default_rng(seed)
        n, shown = queries * CANDIDATES, len(POOL_THETA)
        documents = rw.Queries.from_arrays(
            np.zeros((n, 1)), qid=np.repeat(np.arange(queries), CANDIDATES), docid=[f"d{row}" for row in range(n)]
        )
        query = random.integers(queries, size=sessions)
        page = np.argsort(random.random((sessions, POOL)), axis=1)[:, :shown]
        click = random.random(page.shape) < POOL_THETA * 0.2
        log = clicks.ClickLog.from_rows(
            session=np.repeat(np.arange(sessions), shown),
            qid=np.repeat(query, shown),
            docid=[f"d{row}" for row in (query[:, None] * CANDIDATES + page).ravel().tolist()],
            position=np.tile(np.arange(1, shown + 1), sessions),
            click=click.ravel(),
            exploration=np.ones(sessions * shown),
            pool=np.full(sessions * shown, POOL),
        )
        new, old = self.scores()
        return log.join(documents), np.tile(new, queries), np.tile(old, queries)

    def truth(self) -> float:
        """The true gain in DCG at the length of the page."""
        attractive = np.repeat([0.2, self.outside], [POOL, CANDIDATES - POOL])
        table = np.concatenate([[0.0], 1 / np.log2(np.arange(2, len(POOL_THETA) + 2)), np.zeros(CANDIDATES)])
        new, old = (table[np.argsort(np.argsort(-one)) + 1] for one in self.scores())
        return float(attractive @ (new - old))


POOLS = {
    "all old ones beyond the pool, attractiveness 0.9": PoolSetting(0.9, 6),
    "all old ones beyond the pool, attractiveness 1": PoolSetting(1.0, 6),
    "one old one beyond the pool, attractiveness 1": PoolSetting(1.0, 1),
}


def beyond_pool(setting: PoolSetting, logs: int = 1_000, sessions: int = 4_000, delta: float = 0.05) -> dict[str, Any]:
    """How often the bound on the gain is above the truth where the other ranking shows what is never explored."""
    lowers = []
    with quietly():
        for number in range(logs):
            log, new, old = setting.log(sessions, [number, 21])
            lowers.append(clicks.gain(log, new, clicks.given(POOL_THETA), over=old, tau=0.05, delta=delta).lower)
    truth = setting.truth()
    missed = int(np.sum(np.array(lowers) > truth))
    return {"logs": logs, "delta": delta, "truth": truth, "missed": missed, "lower": float(np.mean(lowers))}


# ------------------------------------------------------------------------------------------------------- interleaving


def pages_of(setting: Setting, one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Orders of all documents of every query, as rows, by two rankings."""
    rows = setting.queries.rows.reshape(len(setting.queries), -1)
    return tuple(
        np.take_along_axis(rows, np.argsort(ranks_of(setting.queries, scores)[rows], axis=1), axis=1)
        for scores in (one, other)
    )  # type: ignore[return-value]


def drafted(setting: Setting, orders: tuple[Floats, Floats], n: int, random: np.random.Generator) -> Floats:
    """Credits of n impressions of the first order over the second."""
    query = random.integers(len(setting.queries), size=n)
    page = team_draft(orders[0][query], orders[1][query], SHOWN, random)
    click = random.random(page.rows.shape) < THETA * setting.attractive[page.rows]
    return credits(page.team, click)


def decision(x: Floats, span: tuple[float, float], delta: float) -> int | None:
    """The first look at which 0 is excluded."""
    lows, highs = ConfidenceSequence(delta, span=span, grid=2).run(x)
    out = (lows >= 0) | (highs <= 0)
    return int(np.argmax(out)) + 1 if out.any() else None


def null_runs(setting: Setting, runs: int = 2_000, impressions: int = 2_000, delta: float = 0.05) -> dict[str, Any]:
    """Share of runs that ever decide between two rankings of the same quality, looking after every impression.

    In every impression each of two rankings is the first one with probability 1/2: neither can be better.
    """
    random = np.random.default_rng(11)
    orders = pages_of(setting, setting.logged, setting.better)
    decided = 0
    for _ in range(runs):
        x = drafted(setting, orders, impressions, random) * random.choice((-1.0, 1.0), impressions)
        decided += decision(x, (-1.0, 1.0), delta) is not None
    return {"runs": runs, "impressions": impressions, "delta": delta, "decided": decided}


def deciding(setting: Setting, runs: int = 100, delta: float = 0.05) -> dict[str, Any]:
    """Impressions that interleaving needs to find the better ranking, looking always, and sessions of A/B tests."""
    random = np.random.default_rng(12)
    orders = pages_of(setting, setting.better, setting.logged)
    most = 2_000
    drafts = [drafted(setting, orders, most, random) for _ in range(runs)]
    times = [decision(x, (-1.0, 1.0), delta) or most + 1 for x in drafts]
    return {
        "preference": float(np.mean(np.concatenate(drafts))),
        "median": float(np.median(times)),
        "80%": float(np.quantile(times, 0.8)),
        "wrong": int(sum(x[:t].mean() < 0 for x, t in zip(drafts, times, strict=True) if t <= most)),
        "runs": runs,
        "A/B": {outcome: ab_sessions(setting, outcome, delta) for outcome in ("clicked", "first")},
    }


def ab_sessions(setting: Setting, outcome: str, delta: float) -> dict[str, Any]:
    """Sessions of both arms together that an A/B test on an outcome needs, at a fixed horizon and looking always."""
    means, variances = [], []
    for scores in (setting.better, setting.logged):
        log = clicks.simulate(setting.queries, scores, 200_000, attractive=setting.attractive, random_state=13)
        y = outcomes(log, outcome)
        means.append(float(y.mean()))
        variances.append(float(y.var()))
    # a two-sided z test at delta = 0.05 has the power 0.5 and 0.8 at these horizons
    fixed = {
        name: 2 * sum(variances) * (1.959964 + z) ** 2 / (means[0] - means[1]) ** 2
        for name, z in (("0.5", 0.0), ("0.8", 0.841621))
    }
    both = {"a": setting.better, "b": setting.logged}
    limit, times = 100_000, []
    for seed in range(40):
        log = clicks.simulate(setting.queries, both, limit, attractive=setting.attractive, random_state=[seed, 14])
        found = clicks.ab_test(log, versions=("a", "b"), outcome=outcome, delta=delta, grid=2)
        times.append(found.decided_at or limit + 1)
    return {"means": means, "fixed": fixed, "sequential median": float(np.median(times)), "limit": limit}


# ----------------------------------------------------------------------------------------------------------- learning


def learning(seeds: int = 20, judged_for_logger: int = 30) -> dict[str, Any]:
    """True DCG@10 on test queries of what is learned from clicks, with what the safe mode says."""
    train = rw.make_lists(500, documents=SHOWN, features=20, noise=0.3, random_state=1)
    test = rw.make_lists(1_000, documents=SHOWN, features=20, noise=0.3, random_state=2)
    a, judged = clicks.attractiveness(train, 0.05, 0.6), clicks.attractiveness(test, 0.05, 0.6)
    measure = "DCG(dcg='log2')@10"
    logger = rw.RidgeRanker(alpha=30.0).fit(train[:judged_for_logger])

    def worth(ranker: Any) -> float:
        return clicks.true_value(test, ranker, judged, k=SHOWN)

    def ridge() -> Any:
        return rw.RidgeRanker(measure, target="labels", balanced=False)

    model = clicks.given(THETA)
    found: dict[str, Any] = {"logger": worth(logger), "all labels": worth(ridge().fit(train.with_labels(a)))}
    with quietly():
        for sessions in (2_000, 20_000):
            rows: dict[str, list[float]] = {"naive ridge": [], "ridge": [], "softmax": [], "safe": []}
            certified, lowers = 0, []
            for seed in range(seeds):
                log = clicks.simulate(train, logger, sessions, attractive=a, random_state=[seed, sessions])
                labeled = log.with_propensities(model, tau=TAU)
                rows["naive ridge"].append(worth(ridge().fit(clicks.training_queries(log, None))))
                rows["ridge"].append(worth(ridge().fit(labeled)))
                safe = clicks.safe_ranker(log, logger, model, tau=TAU, delta=0.05)
                rows["softmax"].append(worth(safe.learned))
                rows["safe"].append(worth(safe.model))
                certified += safe.certified
                lowers.append(safe.gain.lower)
            found[str(sessions)] = {
                "values": rows,
                "certified": certified,
                "seeds": seeds,
                "lower": float(np.mean(lowers)),
            }
    return found
