"""Intervention harvesting: propensities from rankers that showed the same documents at different positions.

Its ends are bootstrap percentiles over queries, which hold for many sessions only: they are marked "asymptotic".

References
----------
A. Agarwal, I. Zaitsev, X. Wang, C. Li, M. Najork, T. Joachims (2019). Estimating position bias without intrusive
interventions. WSDM. doi:10.1145/3289600.3291017 (AllPairs).

R. A. Bradley, M. E. Terry (1952). Rank analysis of incomplete block designs. Biometrika 39(3/4), 324-345.
doi:10.2307/2334029.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import DataError, RankwiseError
from rankwise.clicks.log import ClickLog, blocks_of
from rankwise.clicks.propensities import Propensities
from rankwise.guarantees._bound import refuse_unless_chance

Floats = NDArray[np.float64]

# Queries are resampled in this many groups, which makes a bootstrap sample a sum of 200 tables of counts.
_GROUPS = 200


def harvest(
    log: "ClickLog | Iterable[ClickLog]", *, delta: float = 0.05, samples: int = 400, random_state: int = 0
) -> Propensities:
    r"""Propensities relative to position 1 from several rankers that showed the same documents elsewhere (AllPairs).

    A document of a query that was shown n_k times at position k and n_l times at l adds its click rates, weighted by
    n_k n_l / (n_k + n_l), to C_{k,l} and C_{l,k}. Both have the same relevance in them, so that the likelihood of
    Poisson counts with the unknown relevances maximised out is that of Bradley and Terry,

    .. math:: \sum_{k \ne l} C_{k,l} \log \frac{\theta_k}{\theta_k + \theta_l},

    which has one maximum if the positions are connected.

    Parameters
    ----------
    log : ClickLog or iterable of ClickLog
        Sessions of two or more logging rankers (``version``), which were assigned to sessions at random.
    delta : float, default=0.05
        Probability that any end is on the wrong side, for many sessions: the ends are bootstrap percentiles.
    samples : int, default=400
        Number of bootstrap samples, of queries.
    random_state : int, default=0
        Seed of the bootstrap.

    Returns
    -------
    Propensities
        The model, its ends marked asymptotic.

    Raises
    ------
    DataError
        If there is one ranker alone, or positions that no document connects.
    """
    refuse_unless_chance("harvest", delta=delta)
    if samples < 2:
        raise RankwiseError(f"harvest: samples is 2 or more: found {samples!r}")
    keys: list[Any] = []
    hashes, versions, depth = [], set(), 0
    for block in blocks_of(log, "harvest"):
        if block.version is None:
            raise DataError("harvest compares two or more logging rankers: the log has no column version")
        versions |= set(block.version.tolist())
        depth = max(depth, block.depth)
        hashes.append(block.hashes())
        keys.append(_shown_counts(block))
    if len(versions) < 2:
        raise DataError(f"harvest compares two or more logging rankers: found {len(versions)} in the column version")
    pairs = _pair_counts(_merged(keys), depth)
    counts = pairs.sum(axis=0)
    theta = _bradley_terry(counts[None])[0]
    draws = np.random.default_rng(random_state).multinomial(_GROUPS, np.full(_GROUPS, 1 / _GROUPS), samples)
    ways = _bradley_terry(np.tensordot(draws.astype(np.float64), pairs, axes=1))
    alpha = delta / (2 * max(1, depth - 1))
    low, high = np.nanquantile(ways, [min(alpha, 0.5), 1 - min(alpha, 0.5)], axis=0)
    return Propensities(
        theta=theta, low=np.minimum(low, theta), high=np.maximum(high, theta), how="harvest", delta_low=delta / 2,
        delta_high=delta / 2, relative=True, asymptotic=True, sessions=np.concatenate(hashes),
    )  # fmt: skip


def _shown_counts(log: ClickLog) -> dict[tuple[str, str, int], list[int]]:
    """(times shown, clicks) by query, document and position."""
    found: dict[tuple[str, str, int], list[int]] = {}
    qid = np.repeat(log.qid, log.sizes).tolist()
    for query, document, place, click in zip(
        qid, log.docid.tolist(), log.position.tolist(), log.click.tolist(), strict=True
    ):
        entry = found.setdefault((str(query), str(document), place), [0, 0])
        entry[0] += 1
        entry[1] += click
    return found


def _merged(
    parts: Sequence[dict[tuple[str, str, int], list[int]]],
) -> dict[tuple[str, str], list[tuple[int, int, int]]]:
    """(position, times shown, clicks) by query and document, over all blocks."""
    total: dict[tuple[str, str, int], list[int]] = {}
    for part in parts:
        for key, (shown, clicks) in part.items():
            entry = total.setdefault(key, [0, 0])
            entry[0] += shown
            entry[1] += clicks
    found: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for (query, document, place), (shown, clicks) in total.items():
        found.setdefault((query, document), []).append((place, shown, clicks))
    return found


def _pair_counts(found: Mapping[tuple[str, str], list[tuple[int, int, int]]], depth: int) -> Floats:
    """The C of :func:`harvest`, by group of queries."""
    group: dict[str, int] = {}
    counts = np.zeros((_GROUPS, depth, depth))
    for (query, _), places in found.items():
        own = counts[group.setdefault(query, len(group) % _GROUPS)]
        for i, (k, n_k, c_k) in enumerate(places):
            for m, n_m, c_m in places[:i]:
                weight = n_k * n_m / (n_k + n_m)
                own[k - 1, m - 1] += weight * c_k / n_k
                own[m - 1, k - 1] += weight * c_m / n_m
    return counts


def _bradley_terry(counts: Floats) -> Floats:
    """theta relative to position 1 by minorisation, for each of several tables; NaN where positions are unconnected."""
    samples, depth, _ = counts.shape
    linked = (counts + counts.transpose(0, 2, 1)).sum(axis=0) > 0
    reached = np.zeros(depth, dtype=bool)
    reached[0] = True
    for _ in range(depth):
        reached = reached | linked[reached].any(axis=0)
    if not reached.all():
        place = 1 + int(np.argmin(reached))
        raise DataError(
            f"harvest: no clicked document connects position {place} with position 1: the rankers are too much alike, "
            "or there are too few sessions; use by_swaps"
        )
    wins = counts.sum(axis=2) + 0.5 / depth  # a trace of a prior keeps positions without clicks above 0
    games = counts + counts.transpose(0, 2, 1) + 1.0 / depth**2
    theta = np.ones((samples, depth))
    for _ in range(2000):
        new = wins / (games / (theta[:, :, None] + theta[:, None, :])).sum(axis=2)
        new /= new[:, :1]
        step = np.abs(np.log(new / theta)).max()
        theta = new
        if step < 1e-7:
            break
    return theta
