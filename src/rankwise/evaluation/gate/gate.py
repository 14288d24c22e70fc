r"""A release gate: is the new model good enough? A hold-out answers again and again, and the answers hold together.

Whoever prints the certificate of every candidate and keeps the best one climbs the hold-out: the certificates of the
models that are kept are false far more often than delta. A gate answers passed or not, and nothing else, so it can
count what its answers may have taught (:func:`~rankwise.guarantees.holdout.testing.level_of_attempt`).
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankwise._tables import ShownAsFacts, Table
from rankwise.errors import DataError, RankwiseError
from rankwise.evaluation.gate.asked import Asked, Holdout, ask_model, describe, digest_of_holdout, identify
from rankwise.evaluation.gate.state import Attempt, GateState
from rankwise.features.table import RawTable, as_table
from rankwise.guarantees._bound import HOLDOUT, Scope, refuse_unless_chance
from rankwise.guarantees.holdout.intervals import Plan, blank_uncounted
from rankwise.guarantees.holdout.testing import RunningTest, level_of_attempt, queries_to_show, shows_above
from rankwise.measures._base import Empty, Measure, Ties, settle
from rankwise.queries.checks import plural
from rankwise.queries.fingerprints import fingerprints
from rankwise.queries.overlap import same_content
from rankwise.queries.queries import Queries, as_queries

DELTA = 0.05
CHANGED = "the model has seen changed copies of queries of the hold-out"
_UNSURE = "no query of the hold-out is sure to be new to the model"


@dataclass(frozen=True, repr=False, kw_only=True)
class Decision(ShownAsFacts):
    """What a gate answers: passed or not. All other fields follow from the numbers of attempts, passes and queries.

    Attributes
    ----------
    passed : bool
        The answer. False does not mean that the claim is refuted: it was not shown.
    claim : str
        What is shown if it passed.
    attempt : int
        The number of the attempt.
    level : float
        The level of its test.
    delta : float
        The probability with which any false claim may ever pass this gate.
    queries : int
        The number of queries of the hold-out that count.
    again : bool
        Whether the same model was asked about before: the answer is the stored one, and no attempt.
    thresholds : tuple of float
        The threshold of every measure, or of every difference.
    span : tuple of float
        The smallest and the largest possible value.
    """

    passed: bool
    claim: str
    attempt: int
    level: float
    delta: float
    queries: int
    again: bool
    thresholds: tuple[float, ...]
    span: tuple[float, float]

    def __bool__(self) -> bool:
        return self.passed

    def queries_for(self, margin: float, *, sd: float, power: float = 0.8) -> Plan:
        """How many queries would show, at this level, means that are above their thresholds by a declared margin.

        Parameters
        ----------
        margin : float
            The margin, declared; one that was computed from the hold-out would leak values.
        sd : float
            A guess of the standard deviation of the values, or of the differences, from other queries.
        power : float, default=0.8
            The probability of passing.

        Returns
        -------
        Plan
            The largest number of all measures.
        """
        known: dict[str, Any] = {"sd": sd, "level": self.level, "power": power, "span": self.span}
        plans = [queries_to_show(margin, threshold=one, **known) for one in self.thresholds]
        return max(plans, key=lambda plan: plan.queries)

    def table(self, margin: float | None = None, sd: float | None = None) -> Table:
        """The decision as a table of two columns.

        Parameters
        ----------
        margin : float, default=None
            With ``sd``: adds the number of queries of :meth:`queries_for`.
        sd : float, default=None
            The standard deviation that goes with the margin.

        Returns
        -------
        Table
            The table.
        """
        rows = [
            ("decision", "passed" if self.passed else "not passed"),
            ("claim" if self.passed else "not shown", self.claim),
            ("attempt", f"{self.attempt:,}{' (asked before: the stored answer)' if self.again else ''}"),
            ("level of this attempt", f"{self.level:.3g}"),
            ("delta of all attempts", f"{self.delta:g}"),
            ("hold-out queries that count", f"{self.queries:,}"),
        ]
        if margin is not None and sd is not None and self.level > 0:
            plan = self.queries_for(margin, sd=sd)
            said = f"queries needed to pass in 80% of cases, if the mean is {margin:g} above (declared, sd {sd:g})"
            rows.append((said, f"{plan.queries:,}"))
        return Table.of_rows(("gate", ""), rows)

    def to_markdown(self, margin: float | None = None, sd: float | None = None) -> str:
        """:meth:`table` in Markdown, for the summary of a CI job.

        Parameters
        ----------
        margin : float, default=None
            As for :meth:`table`.
        sd : float, default=None
            As for :meth:`table`.

        Returns
        -------
        str
            The text.
        """
        return self.table(margin, sd).to_markdown()

    def to_dict(self) -> dict[str, Any]:
        """The decision as plain values, for JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}

    def __repr__(self) -> str:
        answer = f"passed: {self.claim}" if self.passed else f"not passed: it is not shown that {self.claim}"
        return f"{answer} (attempt {self.attempt:,}, level {self.level:.3g}, {self.queries:,} queries)"


@dataclass
class _Baseline:
    """The model that others are compared with, and its values on the hold-out."""

    model: Any
    kept: dict[str, Asked] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        return identify(self.model)


class Gate(ShownAsFacts):
    r"""A gate on a hold-out, which may be asked about one model after the other and answers passed or not.

    Attempt j, after b passes, is tested by bets (:func:`~rankwise.guarantees.holdout.testing.shows_above`) at the level

    .. math:: \delta_j = \frac{\delta}{j (j + 1) \, 2^{b + 1} \binom{j - 1}{b}}

    (with :math:`2^{j - 1}` for :math:`2^{b + 1}` where b = j - 1). With probability 1 - delta no model ever passes
    whose mean over future queries is not above the threshold. Several measures are one answer: a model passes if every
    measure does, each at the level of the attempt.

    Parameters
    ----------
    holdout : Queries, data frame, RawTable or None
        Judged queries that neither the models nor their makers have seen. A table with texts, dates or gaps is for
        rankers that have a FeatureBuilder. None is the accumulating form: queries arrive, and are given to :meth:`ask`.
    measure : str, Measure or list of them, default="nDCG@10"
        The measures, with values between 0 and 1.
    at_least : float or list of float, default=None
        The threshold of the mean, one for all measures or one each.
    better_than : ranker, object with predict, or array-like, default=None
        Instead of ``at_least``: the model in use, or its scores. A model passes if its mean is shown to be above that
        of this model minus ``allow``. A later attempt may be against another model, such as the one that passed last.
    allow : float or list of float, default=0.0
        How much worse than the model in use a model may be; below 0 it has to be better by as much.
    delta : float, default=0.05
        The probability with which a model may ever pass wrongly.
    state : str, path-like or None
        The file in which the gate counts, made if it does not exist. It belongs beside the hold-out, not into the
        repository of the makers. None counts in memory, until the process ends: for simulations.
    ties : {"expected", "pessimistic", "optimistic"}, default="expected"
        How equal scores are ordered, see :func:`rankwise.evaluate`.
    empty : {"skip", "zero", "one"}, default="skip"
        The value of a query on which a measure is 0/0, such as one without a relevant document.
    rel : float, default=None
        The smallest label that counts as relevant in binary measures without a label of their own.

    Raises
    ------
    RankwiseError
        If the question is not valid; if the state counts attempts on another hold-out, or of another question; or if it
        is damaged, or an older copy of itself.

    Notes
    -----
    *Proof.* A model, and the model that it is compared with, may be any function of the earlier answers and of what is
    independent of the hold-out. Given the answers of the first j - 1 attempts it is one fixed model, for which a false
    claim passes with probability :math:`\delta_j` at most. The sum of these over all attempts and histories is delta
    (:func:`~rankwise.guarantees.holdout.testing.level_of_attempt`). If one of several means is not above its threshold,
    the model passes with the probability at most with which this one does. The same model gets the stored answer, which
    teaches nothing. Nothing is assumed about how models are made, tuned, or by whom.

    *What breaks it.* Values of the hold-out that leave the gate in any other way: a mean or a certificate that is
    printed, a second gate on the same queries, a look at the file. Makers who see the hold-out, in part or as training
    data: queries that a ranker of this package has seen are recognized by their content, and count as
    :func:`rankwise.certify` counts them (the answer holds whether they are copies or further draws; with changed copies
    no model passes); of other models nothing is known. Code that is asked and writes down what it is given. A state
    that is rolled back or copied together with its second record, or asked on two machines at the same time. Queries
    that are no independent draws of the distribution of future ones.

    *Which queries.* Queries of weight 0 do not count, and other weights have to be equal. Queries for which a measure
    is undefined are left out with ``empty="skip"``: of differences those for which either model has no value. Queries
    that repeat each other are treated as copies or as draws, whichever shows less.

    *Queries that arrive.* Without a hold-out, queries are drawn after the model, and the one it is compared with, are
    frozen. Each :meth:`ask` about the same model adds its queries to a test that may be looked at after each of them
    (:class:`~rankwise.guarantees.holdout.testing.RunningTest`). Another model begins a test of its own and closes that
    of the one before. Its queries are new, so whatever was known when it was frozen, it passes wrongly with probability
    delta / (j (j + 1)) at most, and these sum to delta over all attempts j; values of earlier queries may be known, and
    learned from. A query whose content has arrived before, or was seen by the model, counts only where it shows less.

    Examples
    --------
    >>> import rankwise as rw
    >>> lists = rw.make_lists(700, random_state=0)
    >>> train, holdout = lists[:200], lists[200:]
    >>> old, new = rw.RidgeRanker().fit(train[:20]), rw.AutoRanker().fit(train)
    >>> gate = rw.Gate(holdout, "nDCG@10", better_than=old, allow=0.01, state=None)
    >>> gate.ask(new)
    passed: mean nDCG@10 on future queries with a relevant document is above that of the model in use - 0.01
    (attempt 1, level 0.025, 452 queries)
    >>> gate.ask(rw.RidgeRanker().fit(train[:5])).passed
    False
    >>> gate
    Gate(nDCG@10 better than the model in use - 0.01, delta=0.05; 2 attempts, 1 passed; next level 0.00052)
    """

    scope: ClassVar[Scope] = replace(
        HOLDOUT,
        read="after every attempt; nothing but its answers may be known of the hold-out",
        choices="which models are asked, by all earlier answers; not by anything else that depends on the hold-out",
    )

    def __init__(
        self,
        holdout: Any,
        measure: str | Measure | Sequence[str | Measure] = "nDCG@10",
        *,
        at_least: float | Sequence[float] | None = None,
        better_than: Any = None,
        allow: float | Sequence[float] = 0.0,
        delta: float = DELTA,
        state: str | os.PathLike[str] | None,
        ties: Ties = "expected",
        empty: Empty = "skip",
        rel: float | None = None,
    ) -> None:
        refuse_unless_chance("Gate", delta=delta)
        if ties not in ("expected", "pessimistic", "optimistic"):
            raise RankwiseError(f"Gate: ties must be 'expected', 'pessimistic' or 'optimistic', got {ties!r}")
        if empty not in ("skip", "zero", "one"):
            raise RankwiseError(f"Gate: empty must be 'skip', 'zero' or 'one', got {empty!r}")
        _, self._measures, titles = settle(measure, None, rel)
        for one in self._measures:
            if not one.at_most_one:
                raise RankwiseError(f"Gate: a measure must have values between 0 and 1, got {one.title}")
        if (at_least is None) == (better_than is None):
            raise RankwiseError(
                "Gate requires either at_least= (a threshold) or better_than= (the model in use), got "
                f"{'neither' if at_least is None else 'both'}"
            )
        self.holdout = _open_holdout(holdout)
        self.measures, self.delta = tuple(titles), delta
        self._baseline = None if better_than is None else _Baseline(better_than)
        if at_least is not None:
            self.thresholds, self._span = _as_each("at_least", at_least, len(titles), 0.0, 1.0), (0.0, 1.0)
        else:
            allowed = _as_each("allow", allow, len(titles), -1.0, 1.0)
            self.thresholds, self._span = tuple(-one for one in allowed), (-1.0, 1.0)
        self._conventions: dict[str, Any] = {"ties": ties, "empty": empty, "rel": rel}
        question = {
            "measures": [repr(one) for one in self._measures],
            "asks": "at least" if better_than is None else "better than",
            "thresholds": list(self.thresholds),
            "delta": delta,
            **self._conventions,
        }
        self._described: tuple[int, str, NDArray[np.int64] | None] | None = None
        self._state = GateState(state, question, None if self.holdout is None else digest_of_holdout(self.holdout))

    # ------------------------------------------------------------------------------------------- what was asked

    @property
    def attempts(self) -> int:
        """The number of attempts so far."""
        return len(self._state.attempts)

    @property
    def passed(self) -> int:
        """The number of attempts that passed."""
        return sum(one.passed for one in self._state.attempts)

    @property
    def next_level(self) -> float:
        """The level of the next attempt."""
        return self._level(self._state.attempts)

    def ask(self, model: Any, queries: Queries | None = None) -> Decision:
        """Ask whether a model passes; the answer is on the disk before it is returned.

        Parameters
        ----------
        model : ranker, object with predict, or array-like of shape (n_documents,)
            A fitted ranker of this package, any other model, or its scores. The same model, by a digest of what it
            computes, gets the stored answer, which is no attempt.
        queries : Queries, default=None
            For a gate without a hold-out: judged queries that were drawn after the models were frozen, and were not
            given before. None looks again.

        Returns
        -------
        Decision
            The answer, True or False as a condition.

        Raises
        ------
        RankwiseError
            If the model cannot score the queries, or the state cannot be used; then nothing was spent.
        """
        if self.holdout is not None and queries is not None:
            raise RankwiseError("Gate.ask takes queries= where they arrive: this gate has a hold-out, which is fixed")
        digest, against = identify(model), None if self._baseline is None else self._baseline.digest
        if self.holdout is None:
            return self._ask_on_arrival(model, digest, against, queries)
        with self._state.locked() as attempts:
            known = _find(attempts, digest, against)
        if known is not None:
            return self._decide(attempts, known, again=True)
        # outside of the lock: only the test itself needs to be alone
        new, values = self._measured(model, self.holdout)
        count, about, group = self._about(new.queries)
        with self._state.locked() as attempts:
            known = _find(attempts, digest, against)
            if known is not None:
                return self._decide(attempts, known, again=True)
            level = self._level(attempts)
            rest: dict[str, Any] = {"span": self._span, "weight": new.queries.weight, "group": group}
            rest["seen"] = new.same if new.same.any() else None
            tested = zip(values, self.thresholds, strict=True)
            shown = [shows_above(row, threshold, level, **rest) for row, threshold in tested]  # all, in equal time
            note = CHANGED if new.changed else _UNSURE if new.same.all() else ""
            passed = all(shown) and not new.changed
            attempts.append(Attempt(digest, against, level, passed, count, about, note))
            self._state.write(attempts)
        return self._decide(attempts, len(attempts) - 1, again=False)

    # ------------------------------------------------------------------------------------------- both forms

    def _measured(self, model: Any, queries: Holdout) -> tuple[Asked, NDArray[np.float64]]:
        """The model on the queries, and what is compared with thresholds: its values, or differences."""
        new = ask_model(model, queries, self._measures, self._conventions)
        if self._baseline is None:
            return new, new.values
        kept = self._baseline.kept if queries is self.holdout else {}
        if self._baseline.digest not in kept:
            kept[self._baseline.digest] = ask_model(self._baseline.model, queries, self._measures, self._conventions)
        old = kept[self._baseline.digest]
        return replace(new, same=new.same | old.same, changed=new.changed or old.changed), new.values - old.values

    def _about(self, queries: Queries) -> tuple[int, str, NDArray[np.int64] | None]:
        """How many queries count, what they are, and which repeat each other (None if none do), once for a hold-out."""
        if self._described is not None and queries is self.holdout:
            return self._described
        group = same_content(queries)
        repeats = group if group.max(initial=0) < len(group) - 1 else None
        found = (*describe(queries, self._measures, self._conventions), repeats)
        if queries is self.holdout:
            self._described = found
        return found

    def _level(self, attempts: list[Attempt]) -> float:
        """The level of the attempt after these."""
        attempt = len(attempts) + 1
        if self.holdout is None:  # queries that arrive are new to all earlier answers: no histories to pay for
            return self.delta / (attempt * (attempt + 1))
        return level_of_attempt(self.delta, attempt, sum(one.passed for one in attempts))

    def _decide(self, attempts: list[Attempt], place: int, again: bool) -> Decision:
        one = attempts[place]
        return Decision(
            passed=one.passed,
            claim=self._claim(one.about),
            attempt=place + 1,
            level=one.level,
            delta=self.delta,
            queries=one.queries,
            again=again,
            thresholds=self.thresholds,
            span=self._span,
        )

    def _claim(self, about: str) -> str:
        """What is shown, in words."""
        if self._baseline is None:
            limits = [f"above {one:g}" for one in self.thresholds]
        else:
            limits = [f"above that of the model in use{_plus(one)}" for one in self.thresholds]
        parts = [f"mean {title} on {about} is {limit}" for title, limit in zip(self.measures, limits, strict=True)]
        return ", and ".join(parts)

    def __repr__(self) -> str:
        if self._baseline is None:
            asked = [f"{title} at least {one:g}" for title, one in zip(self.measures, self.thresholds, strict=True)]
        else:
            pairs = zip(self.measures, self.thresholds, strict=True)
            asked = [f"{title} better than the model in use{_plus(one)}" for title, one in pairs]
        counted = f"{plural(self.attempts, 'attempt')}, {self.passed:,} passed; next level {self.next_level:.3g}"
        return f"Gate({' and '.join(asked)}, delta={self.delta:g}; {counted})"

    # ------------------------------------------------------------------------------------------- queries that arrive

    def _ask_on_arrival(self, model: Any, digest: str, against: str | None, queries: Queries | None) -> Decision:
        """The answer for queries that are drawn after the models were frozen."""
        new = values = None
        if not hasattr(model, "predict"):
            raise RankwiseError(f"Gate.ask requires a model where queries arrive, got {type(model).__name__}")
        if queries is not None:
            new, values = self._measured(model, as_queries(queries, "Gate.ask"))
            if new.changed:  # nothing depends on a hold-out here, so it may be said
                raise DataError("Gate.ask: some queries are changed copies of queries that the models have seen")
        with self._state.locked() as attempts:
            known = _find(attempts, digest, against)
            closed = known is not None and (known < len(attempts) - 1 or attempts[known].passed)
            if known is not None and (closed or new is None or values is None):
                return self._decide(attempts, known, again=True)
            if new is None or values is None:
                raise RankwiseError("Gate.ask requires queries=, drawn after the models were frozen: none have arrived")
            if known is None:
                level = self._level(attempts)
                tests = [RunningTest(one, level, span=self._span).to_dict() for one in self.thresholds]
                attempts.append(Attempt(digest, against, level, False, 0, "", tests=tests))
                known = len(attempts) - 1
            earlier = [code for one in attempts for code in one.hashes]
            attempts[known] = self._with_arrivals(attempts[known], new, values, earlier)
            self._state.write(attempts)
        return self._decide(attempts, known, again=False)

    def _with_arrivals(self, one: Attempt, new: Asked, values: NDArray[np.float64], earlier: list[int]) -> Attempt:
        """The attempt with the values of more queries."""
        marks = fingerprints(new.queries)["hash"]
        _, first = np.unique(marks, return_index=True)
        repeated = np.isin(marks, np.array(earlier, dtype=np.uint64)) | new.same
        repeated |= ~np.isin(np.arange(len(marks)), first)
        tests = [RunningTest.from_dict(test) for test in one.tests]
        weight = new.queries.weight
        for test, row in zip(tests, values, strict=True):
            test.update(blank_uncounted(row, weight), optional=repeated)
        count, about = describe(new.queries, self._measures, self._conventions)
        return replace(
            one,
            passed=all(test.shown for test in tests),
            queries=one.queries + count,
            about=about if len(about) > len(one.about) else one.about,
            tests=[test.to_dict() for test in tests],
            hashes=[*one.hashes, *map(int, marks)],
        )


def _find(attempts: list[Attempt], model: str, against: str | None) -> int | None:
    """The place of the attempt with these models; None if there is none."""
    return next((place for place, one in enumerate(attempts) if (one.model, one.against) == (model, against)), None)


def _open_holdout(holdout: Any) -> Holdout | None:
    """The hold-out as a gate uses it, checked."""
    if holdout is None or isinstance(holdout, RawTable):
        return holdout
    if not isinstance(holdout, Queries) and (hasattr(holdout, "columns") or hasattr(holdout, "column_names")):
        return as_table(holdout)
    queries = as_queries(holdout, "Gate")
    queries.require_labels()
    if not len(queries):
        raise DataError("Gate: a hold-out must have queries, got none")
    blank_uncounted(np.zeros(len(queries)), queries.weight)  # weights that differ are an error at once
    return queries


def _as_each(name: str, given: float | Sequence[float], count: int, low: float, high: float) -> tuple[float, ...]:
    """One threshold per measure."""
    try:
        found = tuple(map(float, np.atleast_1d(np.asarray(given, dtype=np.float64))))
    except (TypeError, ValueError) as error:
        raise RankwiseError(f"Gate: {name} must be a number, or one for each measure, got {given!r:.40}") from error
    found = found * count if len(found) == 1 else found
    if len(found) != count:
        raise RankwiseError(f"Gate: {name} must be one number, or one for each of {count} measures, got {len(found)}")
    for one in found:
        if not low < one < high:
            raise RankwiseError(f"Gate: {name} must be above {low:g} and below {high:g}, got {one:g}")
    return found


def _plus(threshold: float) -> str:
    """A margin behind the words for a baseline."""
    return "" if threshold == 0 else f" {'-' if threshold < 0 else '+'} {abs(threshold):g}"
