"""The rounds of online learning, played on judged lists: prepare some lists, show them one after the other, account.

``play(rules, state, queries, order) -> (state, played)`` is all of it: a state is never changed, so that a run can be
stopped, saved and continued at any round, and any division of the same rounds into calls gives the same bits.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import RankwiseError
from rankwise._kernels import drive
from rankwise.data.fingerprints import FINGERPRINT, Marks, packed
from rankwise.data.queries import Queries
from rankwise.guarantees.weights import WeightFacts
from rankwise.losses.compute import PreparedLists
from rankwise.measures._base import BinaryMeasure
from rankwise.measures.compute import ScoredLists, measure_lists_by_ties
from rankwise.solvers.online import Played, Rules, State

Vector = NDArray[np.float64]

# Documents that are prepared, shown and measured together: enough that the calls do not show, and on several threads
# few enough that the first and the last part, which nothing goes beside, do not show either.
_ALONE, _BESIDE = 1 << 16, 1 << 15


def play(
    rules: Rules,
    state: State,
    queries: Queries,
    order: NDArray[np.int64],
    n_jobs: int | None = None,
    *,
    read: bool = False,
) -> tuple[State, Played]:
    """Present the lists ``order`` one after the other, from a state; the state after the last, and what happened.

    ``read``: take the fingerprints of the lists as well, while they are still near.
    """
    after = state.copy()
    stage = Stage(rules, queries, after, read)
    threads = drive.threads(n_jobs)
    chunks = drive.query_chunks(_start_of(queries, order), _ALONE if threads == 1 else _BESIDE)
    found = _beside(stage, [order[first:last] for first, last in chunks], threads)
    if not all(np.isfinite(getattr(after, name)).all() for name in ("w", "sums", "moments", "sizes")):
        raise RankwiseError(
            f"weights or radii after round {after.rounds:,} are too large for float64: scale the features, or take a "
            "smaller eta"
        )
    return after, _together(order, found)


@dataclass(frozen=True)
class Part:
    """Some lists in the order in which they are shown, with all that the labels alone decide."""

    order: NDArray[np.int64]
    start: NDArray[np.int64]
    labels: Vector
    prepared: PreparedLists
    grade: Vector


class Shown(NamedTuple):
    """What came of showing a part, one score a document and one value a list."""

    scores: Vector
    loss: Vector
    mistake: NDArray[np.bool_]
    marks: Marks


@dataclass(frozen=True)
class Stage:
    """What rounds are played on; ``state`` is written into."""

    rules: Rules
    queries: Queries
    state: State
    read: bool = False

    def prepare(self, order: NDArray[np.int64]) -> Part:
        """Before the lists are shown: what the loss prepares, and the classes of labels."""
        from rankwise.losses.slam_weights import number_lists

        start = _start_of(self.queries, order)
        labels, measure = _labels_in_order(self.queries, order, start), self.rules.measure
        grade, no_rows = np.empty(len(labels)), np.empty(0, np.int64)
        classes = measure.row_values(labels) if isinstance(measure, BinaryMeasure) else labels
        number_lists(start, no_rows, classes, grade)
        return Part(order, start, labels, PreparedLists.of(self.rules.loss, labels, start), grade)

    def present(self, part: Part) -> Shown:
        """Show the lists one after the other."""
        from rankwise._kernels.fingerprint import SKETCHED, column_keys, projection_signs
        from rankwise._kernels.jit import typed_function
        from rankwise.losses._driver import FORMULA
        from rankwise.solvers._rounds import rounds_on

        rules, queries, lists = self.rules, self.queries, part.prepared
        no_rows, no_weight = np.empty(0, np.int64), np.empty(0)
        scores, loss = np.empty(len(part.labels)), np.zeros(len(part.order))
        mistake = np.zeros(len(part.order), dtype=bool)
        read = len(part.order) if self.read else 0
        hashes, sketches = np.zeros(read, np.uint64), np.zeros((read, SKETCHED), np.uint32)
        before = self.state.rounds
        done = rounds_on(queries.X.dtype)(
            typed_function(type(rules.loss).formula, FORMULA),
            part.order,
            queries.start,
            no_rows if queries.is_grouped else queries.rows,
            np.asarray(queries.X),
            part.labels,
            part.grade,
            lists.label,
            lists.value,
            no_weight if queries.weight is None else queries.weight,
            lists.table,
            np.array(rules.loss.knobs(), dtype=np.float64),
            rules.as_numbers(),
            column_keys(queries.n_features + 1),
            projection_signs(queries.n_features),
            *vars(self.state).values(),
            scores,
            loss,
            mistake,
            hashes,
            sketches,
        )
        if done < len(part.order):
            query = queries.names()[int(part.order[done])]
            raise RankwiseError(
                f"a score of query {query!r} in round {before + done + 1:,} is too large for float64: scale the "
                "features, or take a smaller eta"
            )
        return Shown(scores, loss, mistake, packed(hashes, sketches))

    def account(self, part: Part, shown: Shown) -> Played:
        """After the lists were shown: what came of it, with equal scores in no order and in the worst one."""
        lists = ScoredLists(shown.scores, part.labels, part.start)
        values = measure_lists_by_ties([self.rules.measure], lists, ["expected", "pessimistic"], n_jobs=1)[:, 0]
        weights = self._weights(part, shown.mistake)
        return Played(part.order, shown.mistake, shown.loss, values[0], values[1], weights, shown.marks)

    def _weights(self, part: Part, mistake: NDArray[np.bool_]) -> WeightFacts:
        from rankwise.solvers._rounds import add_weight_facts

        if self.rules.loss.name != "SLAM":
            return WeightFacts()
        often = np.empty(0) if self.queries.weight is None else self.queries.weight[part.order]
        facts = np.array([0.0, np.inf, 1.0, 0.0, 0.0])
        add_weight_facts(mistake, part.start, part.prepared.value, often, facts)
        total, least, ratio, steepest, longest = facts.tolist()
        return WeightFacts(V=total, smallest=least, v_max=ratio, longest=int(longest), steepest=steepest)


def _beside(stage: Stage, parts: list[NDArray[np.int64]], threads: int) -> list[Played]:
    """Rounds follow one another, but the next lists are prepared, and those that were shown measured, beside them."""
    if threads == 1 or len(parts) == 1:
        found = []
        for order in parts:
            part = stage.prepare(order)
            found.append(stage.account(part, stage.present(part)))
        return found
    with ThreadPoolExecutor(1) as beside:
        ready, waiting = [beside.submit(stage.prepare, order) for order in parts[:1]], []
        for number in range(len(parts)):
            ready += [beside.submit(stage.prepare, order) for order in parts[number + 1 : number + 2]]
            part = ready[number].result()
            waiting.append(beside.submit(stage.account, part, stage.present(part)))
        return [future.result() for future in waiting]


def _together(order: NDArray[np.int64], parts: list[Played]) -> Played:
    """Parts of a run as one."""
    if not parts:
        nothing = np.empty(0)
        return Played(order, np.empty(0, np.bool_), nothing, nothing, nothing, WeightFacts(), np.empty(0, FINGERPRINT))
    arrays = [[getattr(part, name) for part in parts] for name in ("mistake", "loss", "measure", "worst", "marks")]
    mistake, loss, measure, worst, marks = map(np.concatenate, arrays)
    weights = reduce(or_, (part.weights for part in parts))
    return Played(order, mistake, loss, measure, worst, weights, marks)


def _start_of(queries: Queries, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where these lists begin, list after list, and where the last ends."""
    return np.concatenate([[0], np.cumsum(queries.sizes[order])]).astype(np.int64)


def _labels_in_order(queries: Queries, order: NDArray[np.int64], start: NDArray[np.int64]) -> Vector:
    """The labels of these lists, list after list; a view where they stand that way already."""
    labels = queries.labels()
    if queries.is_grouped and len(order) and (np.diff(order) == 1).all():
        return labels[queries.start[order[0]] : queries.start[order[-1] + 1]]
    places = np.repeat(queries.start[order] - start[:-1], np.diff(start)) + np.arange(start[-1])
    return np.ascontiguousarray(labels[places if queries.is_grouped else queries.rows[places]])
