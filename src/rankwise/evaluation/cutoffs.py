"""How many results to show: :func:`cutoff` finds a threshold on scores, or a number of documents, with a guarantee.

The demand (:mod:`~rankwise.guarantees.holdout.demands`) and the sequence of cuts
(:mod:`~rankwise.guarantees.holdout.cutting`) are known before any data. Here models, scores and judged queries meet
them.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from rankwise._arrays import Mask, Vector
from rankwise._tables import Table
from rankwise.errors import DataError, RankwiseError
from rankwise.evaluation.evaluation import open_judged_and_scores
from rankwise.guarantees._bound import CALIBRATION, Bound, Precondition, refuse_unless_chance
from rankwise.guarantees.certificate import READINGS
from rankwise.guarantees.cutoff import BY, By, Cutoff, standardize
from rankwise.guarantees.holdout.cutting import CutSequence, DrawnQueries, count_shown_cuts
from rankwise.guarantees.holdout.demands import Demand, KeptValues, kept_values
from rankwise.guarantees.holdout.intervals import UNSEEN, blank_uncounted
from rankwise.guarantees.holdout.testing import level_of_each
from rankwise.queries.fingerprints import Fingerprints, Seen, fingerprints
from rankwise.queries.queries import Queries, as_queries
from rankwise.rankers._base import Ranker
from rankwise.rankers._inputs import apply_builder
from rankwise.rankers._record import digest_of, digest_of_scores
from rankwise.rankers.certificate.claims import population_of
from rankwise.rankers.certificate.collect import KnownDraws, known_draws

Groups = ArrayLike | Sequence[Hashable] | Callable[[Any], Hashable]

CUTS_FIXED = "the cuts and their order were fixed before these queries were seen"
SOURCE = "Angelopoulos, Bates, Candes, Jordan and Lei, Learn then test, 2021"
STATEMENT = "the last cut of a fixed sequence before the first whose mean bets at level delta do not show"
# Points of the curve.
_POINTS = 25


@overload
def cutoff(
    model: Any,
    calibration: Any,
    keep: str | Demand,
    *,
    delta: float = ...,
    by: By = ...,
    groups: None = ...,
    grid: ArrayLike | None = ...,
    train: Queries | None = ...,
) -> Cutoff: ...
@overload
def cutoff(
    model: Any,
    calibration: Any,
    keep: str | Demand,
    *,
    delta: float = ...,
    by: By = ...,
    groups: Groups,
    grid: ArrayLike | None = ...,
    train: Queries | None = ...,
) -> dict[Any, Cutoff]: ...
def cutoff(
    model: Any,
    calibration: Any,
    keep: str | Demand,
    *,
    delta: float = 0.05,
    by: By = "score",
    groups: Groups | None = None,
    grid: ArrayLike | None = None,
    train: Queries | None = None,
) -> Cutoff | dict[Any, Cutoff]:
    r"""Find where to cut lists, so that a demand holds on average over future queries with probability 1 - delta.

    .. math:: P\big(E[\text{recall of what is kept}] \ge 0.9\big) \ge 1 - \delta

    The cut-off is the last cut of a fixed sequence before the first that bets on the calibration queries do not show to
    meet the demand. The sequence begins where the demand holds trivially: with everything kept for recall and for what
    is lost, with nothing kept for precision.

    Parameters
    ----------
    model : ranker, array-like of shape (n_documents,), str or path-like
        A fitted ranker, any object with ``predict``, one score per document, or the file of some.
    calibration : Queries, str or path-like
        Judged queries that the model has not seen, or the file of some.
    keep : str
        The demand, such as ``"recall>=0.9"``, ``"recall(rel=2)>=0.9"``, ``"precision>=0.5"``, ``"nDCG@10 lost<=0.01"``
        or ``"nDCG@10>=0.4"``; measures are spelled as everywhere, and have values between 0 and 1. Queries for which
        recall, or another measure, is undefined do not count. For precision all queries count: nothing kept is 1, and
        what is kept for a query without a relevant document is wrong.
    delta : float, default=0.05
        The probability with which the demand may fail to hold.
    by : {"score", "standardized", "rank"}, default="score"
        A threshold on the model's own scores; on scores standardized within their query, for models whose scores are
        not comparable across queries; or a number of documents. Documents with equal scores are kept together by
        score; by rank the demand holds however ties are broken.
    groups : array-like of shape (n_queries,) or callable, default=None
        The group of every query, or a function of a :class:`~rankwise.Query` that names it. There is then one cut-off
        for each group, at delta divided by their number: all of them hold together with probability 1 - delta.
    grid : array-like, default=None
        The thresholds, or numbers of documents, to choose from, fixed without the calibration queries. None takes all
        numbers of documents, or all thresholds of nine binary digits, which is too coarse only for scores that share a
        constant hundreds of times as large as they vary.
    train : Queries, default=None
        The queries that scores of another source were learned from; a ranker of this package remembers them.

    Returns
    -------
    Cutoff or dict of Cutoff
        The cut-off, or one for each group.

    Raises
    ------
    RankwiseError
        If the demand is not one, or even whole lists are not shown to meet it; or if the queries were used in training.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.make_lists(600, documents=20, random_state=0)
    >>> model = rw.RidgeRanker().fit(lists[:200])
    >>> found = rw.cutoff(model, lists[200:], keep="recall(rel=2)>=0.8", by="rank")
    >>> print(found)
    keep the first 7 documents: 35.0% of the documents
    R(rel=2) of what is kept on future queries with a relevant document and for which it is defined >= 0.8
    with probability 0.95
    (0.855 on 339 of 400 calibration queries)
    >>> len(model.rank(lists[:1], cutoff=found))
    7
    """
    refuse_unless_chance("cutoff", delta=delta)
    demand = Demand.parse(keep)
    if by not in BY:
        raise RankwiseError(f"cutoff: by must be one of {', '.join(map(repr, BY))}, got {by!r:.40}")
    cuts = None if grid is None else _checked_grid(grid, by)
    queries, scores = open_judged_and_scores(calibration, model)
    seen, digest, intact, n_jobs = None, None, False, None
    if isinstance(scores, Ranker):
        scores._check_fitted()
        digest, seen, n_jobs = digest_of_scores(scores), scores.record_.seen, scores.n_jobs
        intact = scores.record_.digest in (None, digest_of(scores))
        queries = apply_builder(scores, queries, grouped=True, judged=True)
    queries = as_queries(queries, "cutoff")
    queries.require_labels()
    if train is not None:
        if not isinstance(train, Queries):
            raise DataError(f"train must be Queries, got {type(train).__name__}")
        seen = Seen().with_training(fingerprints(train)) if seen is None else seen
    if not queries.n_documents:
        raise DataError("cutoff needs judged documents to calibrate with, got none")
    values = np.asarray(scores.predict(queries) if hasattr(scores, "predict") else scores, dtype=np.float64)
    if values.shape != (queries.n_documents,) or not np.isfinite(values).all():
        raise DataError(
            f"cutoff needs one finite score for each of {queries.n_documents:,} documents, got an array of shape "
            f"{values.shape}{'' if np.isfinite(values).all() else ' with NaN or infinite ones'}"
        )
    known = known_draws(queries, seen, about_it=intact, n_jobs=n_jobs)
    if known.missing:
        raise DataError(known.missing.replace("hold-out", "calibration"))
    kept = kept_values(demand, queries, values, n_jobs=n_jobs)
    task = _Calibration(demand, by, delta, cuts, queries, kept, _sequence(demand, by, cuts, queries, values, kept))
    about: dict[str, Any] = {
        "model": digest,
        "scaling": None if queries.scaling is None else queries.scaling.digest_,
        "calibrated_on": Fingerprints.of(fingerprints(queries, n_jobs=n_jobs)),
    }
    counts = ~np.isnan(blank_uncounted(np.zeros(len(queries)), queries.weight))
    if groups is None:
        return task.calibrate(counts, known, delta, **about)
    names = _names_of_groups(groups, queries)
    every = list(dict.fromkeys(names))
    level = level_of_each(delta, len(every))
    parts = {name: np.array([one == name for one in names]) & counts for name in every}
    return {name: task.calibrate(part, known, level, len(every), name, **about) for name, part in parts.items()}


def _checked_grid(grid: ArrayLike, by: str) -> Vector:
    """The thresholds as an array."""
    try:
        cuts = np.asarray(grid, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise RankwiseError(f"grid must hold numbers, got {grid!r:.60}") from error
    whole = by != "rank" or bool(((cuts == np.floor(cuts)) & (cuts >= 1)).all())
    if not len(cuts) or not np.isfinite(cuts).all() or not whole:
        kind = "numbers of documents, 1 or more" if by == "rank" else "finite thresholds"
        raise RankwiseError(f"grid must hold {kind}, got {grid!r:.60}")
    return cuts


def _sequence(
    demand: Demand, by: str, cuts: Vector | None, queries: Queries, scores: Vector, kept: KeptValues
) -> CutSequence:
    """The cuts, for documents in ranked order or in that of their rows."""
    falling, owner, sizes = demand.begins_with_all, queries.query_of_row, queries.sizes
    if by == "rank":
        return CutSequence.of_ranks(sizes, falling=falling, grid=cuts)
    if by == "standardized":
        scores = standardize(scores, owner, sizes)
    return CutSequence.of(scores, owner, sizes, falling=falling, grid=cuts)


def _names_of_groups(groups: Any, queries: Queries) -> list[Any]:
    """The group of every query."""
    if callable(groups):
        return [groups(query) for query in queries]
    names = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    if len(names) != len(queries):
        raise DataError(f"groups must name one group for each of {len(queries):,} queries, got {len(names):,}")
    return names


class _Calibration:
    """The calibration set as a demand sees it, for one or several groups of its queries."""

    def __init__(
        self,
        demand: Demand,
        by: By,
        delta: float,
        grid: Vector | None,
        queries: Queries,
        kept: KeptValues,
        sequence: CutSequence,
    ) -> None:
        self.demand, self.by, self.delta, self.grid = demand, by, delta, grid
        self.queries, self.kept, self.sequence = queries, kept, sequence

    def calibrate(
        self, counts: Mask, known: KnownDraws, level: float, groups: int = 1, name: Any = None, **about: Any
    ) -> Cutoff:
        """The cut-off of the queries that count, at this level."""
        demand, sequence = self.demand, self.sequence
        distinct = len(np.unique(known.group)) == len(known.group) and not known.same.any()
        drawn = DrawnQueries(counts, *((None, None) if distinct else (known.group, known.same)))
        where = "" if name is None else f" of group {name!r}"
        whole = np.where(counts, self.kept.at(sequence.kept(-1)), np.nan)
        readings = drawn.readings(whole)
        if np.isnan(whole).all() or not len(readings.sure):
            why = f"{demand.measure.title} is undefined for" if np.isnan(whole).all() else "training has seen"
            raise DataError(f"cutoff: {why} every calibration query{where}")
        shown = count_shown_cuts(sequence, self.kept, drawn, level)
        if not shown and not demand.holds_at_first:
            raise RankwiseError(
                f"{demand} cannot be shown{where}: whole lists have {float(np.nanmean(whole)):.3f} on average, and at "
                f"least {drawn.rough_lower_end(whole, level):.3f} by this sample"
            )
        step = shown - 2
        now = sequence.kept(max(step, -1))
        values = np.where(counts, self.kept.at(now), np.nan)
        population = population_of(self.queries, np.where(counts, whole, 0.0))  # of other groups nothing is said
        of_group = "" if name is None else f" of group {name!r}"
        many = int(self.queries.sizes[counts].sum())
        n = int((~np.isnan(values)).sum())
        together = (
            f"; the cut-offs of all {groups} groups hold together with probability {1 - self.delta:g}"
            if groups > 1
            else ""
        )
        bound = Bound(
            name="Betting, fixed sequence",
            bounds=f"{demand.number} on {population}{of_group}",
            statement=STATEMENT,
            value=demand.limit,
            terms={
                "mean": self._shown(float(np.nanmean(values))),
                "n": n,
                "drawn": int(counts.sum()) if name is not None else len(counts),
                "sure": len(readings.sure),
                "optional": len(readings.optional),
                "delta": level,
                "cuts": len(sequence.cuts),
            },
            preconditions=(
                known.unseen,
                *([Precondition(READINGS, True)] if len(readings.optional) else []),
                UNSEEN,
                Precondition(CUTS_FIXED, None if self.grid is not None else True),
                Precondition(f"it holds with probability {1 - level:g} over the queries{together}"),
            ),
            source=SOURCE,
            ceiling=1.0,
            floor=0.0,
            side="at most" if demand.lost else "at least",
            kind="hold-out",
            scope=CALIBRATION,
        )
        return Cutoff(
            keep=repr(demand),
            by=self.by,
            value=sequence.beginning if not shown else self._value(step),
            share_kept=float(now[counts].sum() / many) if many else 0.0,
            estimate=bound.terms["mean"],
            bound=bound,
            curve=self._curve(counts, drawn, level, max(step, -1)),
            vacuous=not shown,
            notes=tuple(note.replace("hold-out", "calibration") for note in known.notes),
            **about,
        )

    def _value(self, step: int) -> float:
        """The cut of a step; by rank everything is kept from the longest list on."""
        cut = self.sequence.cut_at(step)
        if self.by == "rank" and math.isinf(cut) and self.grid is None:
            return float(self.queries.sizes.max())
        return cut

    def _shown(self, value: float) -> float:
        """The value as the demand spells it: what is lost, not what is left."""
        return 1 - value if self.demand.lost else value

    def _curve(self, counts: Mask, drawn: DrawnQueries, level: float, chosen: int) -> Table:
        """Share, estimate and bound for some steps, spread evenly over the documents kept."""
        sequence = self.sequence
        turned = np.sort(sequence.turn[counts[sequence.query]])
        places = np.linspace(0, len(turned) - 1, _POINTS).astype(int) if len(turned) else np.empty(0, int)
        steps = {-1, chosen, *turned[places].tolist()} - {len(sequence.cuts)}
        rows: list[tuple[float, ...]] = []
        for step in sorted(steps):
            cut, now = sequence.cut_at(step), sequence.kept(step)
            if step == -1 and math.isinf(cut):
                if not self.sequence.by_rank:
                    continue
                cut = float(self.queries.sizes.max()) if cut > 0 else 0.0
            values = self.kept.at(now)
            mean = float(np.nanmean(np.where(counts, values, np.nan)))
            end = drawn.rough_lower_end(values, level)
            documents = now[counts].sum()
            total = self.queries.sizes[counts].sum()
            share, each = documents / max(1, total), documents / max(1, counts.sum())
            rows.append((cut, float(share), float(each), self._shown(mean), self._shown(end)))
        names = ("cut", "kept", "documents", "estimate", "bound")
        ordered = sorted(row for row in rows if math.isfinite(row[0]))
        return Table({name: [row[place] for row in ordered] for place, name in enumerate(names)})
