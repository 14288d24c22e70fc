"""The rounds of online learning: prepare some queries, show them one after the other, measure what was predicted.

``run_rounds(config, state, queries, order) -> (state, log)`` is the entry point. A state is never changed, so a run can
be stopped, saved and continued at any round, and any division of the same rounds into calls gives the same bits.

The rounds themselves run in one compiled loop, :func:`_play_rounds`. A mistake is found by comparing scores, never by a
loss above some epsilon: under pessimistic ties, the labels of the decisive positions are not those of an ideal order.
:class:`RoundRunner` prepares blocks of queries for the loop and measures the scores that come out; on several threads
it does both alongside the loop.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._kernels import parallel
from rankwise._kernels.dot_products import add_rows, dot, dot_and_square
from rankwise._kernels.machine.jit import (
    FLOATS,
    FLOATS_IN,
    INTS,
    INTS_IN,
    MATRIX,
    MATRIX_IN,
    compiled,
    features_in,
    kernel,
    typed_function,
)
from rankwise._kernels.moments import add_moments
from rankwise._kernels.radius import raised_radius, reach_from_mean
from rankwise._kernels.ragged import GRADES
from rankwise.errors import RankwiseError
from rankwise.guarantees.bounds.online import WeightFacts
from rankwise.losses.compute import KERNEL, PreparedLists, label_classes
from rankwise.measures.compute import ScoredLists, measure_lists_by_ties
from rankwise.queries.fingerprints import (
    FINGERPRINT,
    PROJECTIONS,
    SKETCHED,
    Marks,
    column_keys,
    fingerprint_query,
    pack_marks,
    projection_signs,
)
from rankwise.queries.queries import Queries
from rankwise.solvers.online.config import OnlineConfig, RoundLog, State

Vector = NDArray[np.float64]


# ------------------------------------------------------------------------------------------------------- compiled loop

# Places in ``config``.
CUT, ALWAYS, ETA, STEP, BALL, BALL_RADIUS, AVERAGE, SCALE = range(8)
# What the numbers there mean.
CONSTANT, SQRT = 0.0, 1.0
NO_BALL, L2, L1 = 0.0, 1.0, 2.0
LAST, UNIFORM, SUFFIX = 0.0, 1.0, 2.0
RAW, BY_RADIUS, STANDARD = 0.0, 1.0, 2.0

# Places in ``counts`` and ``sizes``.
ROUNDS, DOCUMENTS = 0, 1
SCALE_RADIUS, LARGEST = 0, 1


@kernel
def onto_l1_ball(w, radius):
    """Project onto the l1 ball in place: every size shrinks by the same threshold, none below 0.

    With the sizes in decreasing order the threshold is the largest of (a_1 + ... + a_p - radius) / p.
    """
    total = np.abs(w).sum()
    if total <= radius:
        return
    sizes = np.sort(np.abs(w))
    threshold, above = 0.0, 0.0
    for p in range(len(sizes)):
        above += sizes[len(sizes) - 1 - p]
        threshold = max(threshold, (above - radius) / (p + 1))
    for j in range(len(w)):
        w[j] = math.copysign(max(abs(w[j]) - threshold, 0.0), w[j])


@kernel(inline="always")
def is_mistake(score, grade, cut, top, size, clear):
    """Whether the first ``cut`` positions, lower labels first among equal scores, lack a label of the ideal order.

    From the highest class down, a class that takes n of these positions needs n documents that score above every
    document of the lower classes. Exact, in O(m + classes), without a sort. The last three arguments are buffers.
    """
    classes = 0
    for i in range(len(grade)):
        classes = max(classes, grade[i] + 1)
    for c in range(classes):
        top[c], size[c], clear[c] = -np.inf, 0, 0
    for i in range(len(score)):
        c = grade[i]
        top[c] = max(top[c], score[i])
        size[c] += 1
    for c in range(1, classes):  # from here on: the highest score up to and including class c
        top[c] = max(top[c], top[c - 1])
    for i in range(len(score)):
        c = grade[i]
        if c > 0 and score[i] > top[c - 1]:
            clear[c] += 1
    left = min(cut, float(len(score)))
    for c in range(classes - 1, 0, -1):
        needed = min(float(size[c]), left)
        if clear[c] < needed:
            return True
        left -= needed
    return False


@kernel
def set_scale(X, own, config, moments, counts, sizes, scale, buffer):
    """Update the running scale of the features from the features of this query, not from its labels."""
    if config[SCALE] == BY_RADIUS:
        for j in range(len(scale)):
            scale[j] = 1.0
        sizes[SCALE_RADIUS] = raised_radius(X, own, scale, buffer, sizes[SCALE_RADIUS], False)[0]
        if sizes[SCALE_RADIUS] > 0.0:
            for j in range(len(scale)):
                scale[j] = 1.0 / sizes[SCALE_RADIUS]
    elif config[SCALE] == STANDARD:
        counts[DOCUMENTS] = add_moments(X, own, counts[DOCUMENTS], moments[0], moments[1])
        for j in range(len(scale)):
            spread = math.sqrt(moments[1, j] / counts[DOCUMENTS])
            scale[j] = 1.0 / spread if spread > 0.0 else 0.0


@kernel(inline="always")
def onto_l2_ball(w, radius):
    """Project the weights onto the l2 ball, in place."""
    norm = math.sqrt(dot(w, w))
    if norm > radius:
        factor = radius / norm
        for j in range(len(w)):
            w[j] *= factor


@kernel(inline="always")
def add_to_averages(w, t, sums, kind):
    """Sums of the weights that rounds began with: of all of them, or of the two latest stretches [p/2, p) and [p, t].

    p is the largest power of two up to the number of the round: their union holds at least the last half and at most
    the last three quarters of the rounds, and the number of rounds need not be known in advance.
    """
    if kind == SUFFIX and t & (t - 1) == 0:
        for j in range(len(w)):
            sums[0, j] = sums[1, j]
            sums[1, j] = 0.0
    if kind != LAST:
        for j in range(len(w)):
            sums[1, j] += w[j]


class RoundInputs(NamedTuple):
    """The queries of a block, in the order in which the compiled loops take them apart.

    Labels (``judged``) and what they decide (``grade``, ``label``, ``value``) are in the order of presentation. Empty
    ``rows`` mean that queries are contiguous, an empty ``weight`` that every query weighs 1.
    """

    order: NDArray[np.int64]
    start: NDArray[np.int64]
    rows: NDArray[np.int64]
    X: NDArray[Any]
    judged: Vector
    grade: NDArray[np.int64]
    label: Vector
    value: Vector
    weight: Vector
    table: Vector
    params: Vector
    config: Vector
    keys: NDArray[np.uint64]
    signs: NDArray[np.float64]


class RoundOutputs(NamedTuple):
    """What the compiled loops write, in their order.

    Scores are in the order of presentation; loss and mistake are per query. ``hashes`` and ``sketches``, unless empty,
    receive the fingerprints of the queries, which are computed while their rows are in the cache.
    """

    scores: Vector
    loss: Vector
    mistake: NDArray[np.bool_]
    hashes: NDArray[np.uint64]
    sketches: NDArray[np.uint32]


def weight_arrays(state: State) -> tuple[Any, ...]:
    """The arrays of a state that every loop of linear weights writes into, in its order."""
    return state.w, state.sums, state.counts, state.sizes, state.scale


@kernel
def make_buffers(order, start):
    """Buffers of a round, for the longest of these queries: gradient, rows, three by class, three for fingerprints."""
    longest = 0
    for r in range(len(order)):
        longest = max(longest, start[order[r] + 1] - start[order[r]])
    classes = max(longest, GRADES)
    return (
        np.empty(longest),
        np.empty(longest, np.int64),
        np.empty(classes),
        np.empty(classes, np.int64),
        np.empty(classes, np.int64),
        np.empty(PROJECTIONS),
        np.empty(PROJECTIONS, np.int64),
        np.empty(longest, np.uint64),
    )


def _play_rounds(kernel, inputs, state, outputs, moments, l1_radius):
    """Show the queries one after the other; returns how many, fewer only if a score overflowed.

    ``moments`` and ``l1_radius`` are None where features are not scaled and where weights are not projected onto the l1
    ball: the loop is then compiled without them, which numba does for arguments alone.
    """
    # taken apart once: a field that is read in the loop counts a reference to its array in every round
    order, start, rows, X, judged, grade, label, value, weight, table, params, config, keys, signs = inputs
    w, sums, counts, sizes, scale = state
    scores, losses, mistaken, hashes, sketches = outputs
    gradient, places, top, class_size, clear, spot, cells, words = make_buffers(order, start)
    features = X.shape[1]
    step, center, effective = np.empty(features), np.empty(features), np.empty(features)
    end, mean_first = 0, False
    for r in range(len(order)):
        low, size = start[order[r]], start[order[r] + 1] - start[order[r]]
        counts[ROUNDS] += 1
        t = counts[ROUNDS]
        add_to_averages(w, t, sums, config[AVERAGE])
        s, g = scores[end : end + size], gradient[:size]
        y, v, c = label[end : end + size], value[end : end + size], grade[end : end + size]
        own = places[:size] if len(rows) == 0 else rows[low : low + size]
        if len(rows) == 0:
            for p in range(size):
                places[p] = low + p
        if moments is not None and size > 0:
            set_scale(X, own, config, moments, counts, sizes, scale, center)
        for j in range(features):
            effective[j] = w[j] * scale[j]
        far = 0.0
        for p in range(size):
            s[p], square = dot_and_square(X[own[p]], effective)
            far = max(far, square)
            if not math.isfinite(s[p]):
                return r
        if len(hashes) > 0:
            judgments = judged[end : end + size]
            hashes[r] = fingerprint_query(own, X, judgments, keys, signs, words, spot, cells, sketches[r])
        end += size
        mistaken[r] = size > 0 and is_mistake(s, c, config[CUT], top, class_size, clear)
        if size == 0 or not (mistaken[r] or config[ALWAYS] != 0.0):
            continue
        query_weight = 1.0 if len(weight) == 0 else weight[order[r]]
        for p in range(size):
            g[p] = 0.0
        losses[r] = query_weight * kernel(s, y, v, g, table, params)
        if moments is not None:
            sizes[LARGEST], mean_first = raised_radius(X, own, scale, center, sizes[LARGEST], mean_first)
        elif math.sqrt(far) > sizes[LARGEST]:  # rows close enough to 0 cannot raise the radius
            around = reach_from_mean(X, own, center)
            sizes[LARGEST] = max(sizes[LARGEST], min(math.sqrt(far), around))
        for j in range(features):
            step[j] = 0.0
        add_rows(X, own, g, step)
        eta = config[ETA] / math.sqrt(t) if config[STEP] == SQRT else config[ETA]
        for j in range(features):
            w[j] -= eta * query_weight * scale[j] * step[j]
        if config[BALL] == L2:
            onto_l2_ball(w, config[BALL_RADIUS])
        if l1_radius is not None:
            onto_l1_ball(w, l1_radius)
    return len(order)


@kernel
def add_weight_facts(mistaken, start, value, weight, facts):
    """Update ``facts``, extremes of the weights v of the queries with a mistake.

    They are the largest sum, the smallest positive weight, and of one query the largest ratio of two positive weights,
    the largest (sum)^2 / (smallest positive), and the largest number of positive weights.
    """
    for r in range(len(mistaken)):
        if not mistaken[r]:
            continue
        query_weight = 1.0 if len(weight) == 0 else weight[r]
        total, least, most, count = 0.0, np.inf, 0.0, 0
        for p in range(start[r], start[r + 1]):
            v = query_weight * value[p]
            if v > 0.0:
                total += v
                least = min(least, v)
                most = max(most, v)
                count += 1
        if count > 0:
            facts[0] = max(facts[0], total)
            facts[1] = min(facts[1], least)
            facts[2] = max(facts[2], most / least)
            facts[3] = max(facts[3], total * total / least)
            facts[4] = max(facts[4], float(count))


_KEYS = types.Array(types.uint64, 1, "C", readonly=True)
_tuple_of: Any = types.Tuple  # numba declares no types for it
_OUTPUTS = _tuple_of(
    (
        FLOATS,
        FLOATS,
        types.Array(types.boolean, 1, "C"),
        types.Array(types.uint64, 1, "C"),
        types.Array(types.uint32, 2, "C"),
    )
)


def rounds_signature(dtype: np.dtype[Any], state: tuple[Any, ...], *others: Any) -> Any:
    """The signature of a loop over rounds.

    Parameters
    ----------
    dtype : dtype
        The type of X.
    state : tuple of numba types
        The arrays that the loop learns.
    *others : numba type
        Further arguments.

    Returns
    -------
    signature : numba signature
        Of loop(kernel, inputs, state, outputs, *others). Arrays are grouped in plain tuples: those of named ones would
        have to be read-only as declared, and cost another 5 us for each call.
    """
    inputs = (*(INTS_IN,) * 3, features_in(dtype), FLOATS_IN, INTS_IN, *(FLOATS_IN,) * 6, _KEYS, MATRIX_IN)
    return types.int64(types.FunctionType(KERNEL), _tuple_of(inputs), _tuple_of(state), _OUTPUTS, *others)


@cache
def rounds_on(dtype: np.dtype[Any], scaled: bool, onto_l1: bool) -> Any:
    """The loop compiled for this type of X, with scaling and the projection onto the l1 ball only where asked for."""
    state = (FLOATS, MATRIX, INTS, FLOATS, FLOATS)
    optional = (MATRIX if scaled else types.none, types.float64 if onto_l1 else types.none)
    return compiled(kernel(_play_rounds), rounds_signature(dtype, state, *optional))


# --------------------------------------------------------------------------------------------------- blocks of rounds

# Documents that are prepared, shown and measured together: enough that the cost of the calls does not matter, and on
# several threads few enough that the first and the last block, which nothing runs alongside, do not matter either.
_ALONE, _BESIDE = 1 << 16, 1 << 15


def run_rounds(
    config: OnlineConfig,
    state: State,
    queries: Queries,
    order: NDArray[np.int64],
    n_jobs: int | None = None,
    *,
    read: bool = False,
    runner: "Callable[..., RoundRunner] | None" = None,
) -> tuple[State, RoundLog]:
    """Show queries one after the other, from a state.

    Parameters
    ----------
    config : OnlineConfig
        How to learn.
    state : State
        Where the run is; not changed.
    queries : Queries
        Judged queries.
    order : ndarray of int64
        Which queries to show, in this order; one round each.
    n_jobs : int, default=None
        Number of threads; None uses every core. The result does not depend on it.
    read : bool, default=False
        Whether to compute the fingerprints of the queries as well.
    runner : callable, default=None
        (config, queries, state, read) -> RoundRunner; None is :class:`RoundRunner` itself, for linear weights.

    Returns
    -------
    after : State
        The state after the last round.
    log : RoundLog
        What happened.

    Raises
    ------
    RankwiseError
        If a score, the weights or a radius is too large for float64.
    """
    after = state.copy()
    stage = (RoundRunner if runner is None else runner)(config, queries, after, read)
    threads = parallel.threads(n_jobs)
    chunks = parallel.query_chunks(_start_of(queries, order), stage.block_documents(threads))
    found = _run_parts(stage, [order[first:last] for first, last in chunks], threads)
    if not all(np.isfinite(array).all() for array in vars(after).values()):
        raise RankwiseError(
            f"weights or radii after round {after.rounds:,} are too large for float64: scale the features, or take a "
            "smaller eta"
        )
    return after, _together(order, found)


@dataclass(frozen=True)
class QueryBlock:
    """Some queries in the order in which they are shown, with everything that the labels alone decide.

    ``start`` is where the documents of each query begin in the block, ``prepared`` what the loss computes from the
    labels, and ``grade`` the class of each label, larger for larger labels of the same query.
    """

    order: NDArray[np.int64]
    start: NDArray[np.int64]
    labels: Vector
    prepared: PreparedLists
    grade: NDArray[np.int64]


class BlockOutcome(NamedTuple):
    """The outcome of showing a block: scores per document; loss, mistake and fingerprint per query."""

    scores: Vector
    loss: Vector
    mistake: NDArray[np.bool_]
    marks: Marks


@dataclass(frozen=True)
class RoundRunner:
    """Runs blocks of rounds; ``state`` is written into."""

    config: OnlineConfig
    queries: Queries
    state: State
    read: bool = False

    def block_documents(self, threads: int) -> int:
        """Documents that are prepared, shown and measured together."""
        return _ALONE if threads == 1 else _BESIDE

    def prepare(self, order: NDArray[np.int64]) -> QueryBlock:
        """Before queries are shown: what the loss prepares, and the classes of labels."""
        start = _start_of(self.queries, order)
        labels, measure = _labels_in_order(self.queries, order, start), self.config.measure
        grade = label_classes(measure.row_values(labels) if measure.binary else labels, start)
        return QueryBlock(order, start, labels, PreparedLists.of(self.config.loss, labels, start), grade)

    def present(self, part: QueryBlock) -> BlockOutcome:
        """Show the queries one after the other."""
        config, queries, lists = self.config, self.queries, part.prepared
        arrays = (
            part.order,
            queries.start,
            np.empty(0, np.int64) if queries.is_grouped else queries.rows,
            np.asarray(queries.X),
            part.labels,
            part.grade,
            lists.label,
            lists.value,
            np.empty(0) if queries.weight is None else queries.weight,
            lists.table,
            np.array(config.loss.params(), dtype=np.float64),
            config.as_numbers(),
            column_keys(queries.n_features + 1),
            projection_signs(queries.n_features),
        )
        count = len(part.order)
        read = count if self.read else 0
        outputs = RoundOutputs(
            np.empty(len(part.labels)),
            np.zeros(count),
            np.zeros(count, dtype=bool),
            np.zeros(read, np.uint64),
            np.zeros((read, SKETCHED), np.uint32),
        )
        before = self.state.rounds
        kernel = typed_function(type(config.loss).kernel, KERNEL)
        done = self._run(kernel, RoundInputs(*arrays), outputs)
        if done < count:
            query = queries.names()[int(part.order[done])]
            raise RankwiseError(
                f"a score of query {query!r} in round {before + done + 1:,} is too large for float64: scale the "
                "features, or take a smaller eta"
            )
        return BlockOutcome(outputs.scores, outputs.loss, outputs.mistake, pack_marks(outputs.hashes, outputs.sketches))

    def _run(self, kernel: Any, inputs: RoundInputs, outputs: RoundOutputs) -> int:
        """Run the compiled loop; returns the number of queries that were scored."""
        config, state = self.config, self.state
        scaled, onto_l1 = config.scale != "none", config.projection == "l1"
        moments, radius = state.moments if scaled else None, float(config.max_norm) if onto_l1 else None
        return int(
            rounds_on(inputs.X.dtype, scaled, onto_l1)(
                kernel, tuple(inputs), weight_arrays(state), tuple(outputs), moments, radius
            )
        )

    def account(self, part: QueryBlock, shown: BlockOutcome) -> RoundLog:
        """After queries were shown: the log, with the measure under averaged and under pessimistic ties."""
        lists = ScoredLists(shown.scores, part.labels, part.start)
        weight = None if self.queries.weight is None else self.queries.weight[part.order]
        return round_log(self.config, part.order, lists, part.prepared.value, weight, shown)


def round_log(
    config: OnlineConfig,
    order: NDArray[np.int64],
    lists: ScoredLists,
    value: Vector,
    weight: Vector | None,
    shown: BlockOutcome,
) -> RoundLog:
    """What happened to queries that were shown.

    Parameters
    ----------
    config : OnlineConfig
        How the run learns.
    order : ndarray of int64
        The queries, in the order in which they were shown.
    lists : ScoredLists
        Their scores and labels, in that order.
    value : ndarray, shape (n_documents,)
        What the loss prepared under this name.
    weight : ndarray, shape (n_queries,), or None
        The weights of the queries, in that order; None where all are 1.
    shown : BlockOutcome
        The outcome.

    Returns
    -------
    RoundLog
        The log.
    """
    values = measure_lists_by_ties([config.measure], lists, ["expected", "pessimistic"], n_jobs=1)[:, 0]
    weights = WeightFacts()
    if config.loss.perceptron_bound == "weights":  # the loss has weights v
        facts = np.array([0.0, np.inf, 1.0, 0.0, 0.0])
        add_weight_facts(shown.mistake, lists.start, value, np.empty(0) if weight is None else weight, facts)
        total, least, ratio, steepest, longest = facts.tolist()
        weights = WeightFacts(V=total, smallest=least, v_max=ratio, longest=int(longest), steepest=steepest)
    return RoundLog(order, shown.mistake, shown.loss, values[0], values[1], weights, shown.marks)


def _run_parts(runner: RoundRunner, parts: list[NDArray[np.int64]], threads: int) -> list[RoundLog]:
    """Run the rounds in order; on several threads, prepare the next block and measure the last one alongside."""
    if threads == 1 or len(parts) == 1:
        found = []
        for order in parts:
            part = runner.prepare(order)
            found.append(runner.account(part, runner.present(part)))
        return found
    with ThreadPoolExecutor(1) as pool:
        ready, waiting = [pool.submit(runner.prepare, order) for order in parts[:1]], []
        for number in range(len(parts)):
            ready += [pool.submit(runner.prepare, order) for order in parts[number + 1 : number + 2]]
            part = ready[number].result()
            waiting.append(pool.submit(runner.account, part, runner.present(part)))
        return [future.result() for future in waiting]


def _together(order: NDArray[np.int64], parts: list[RoundLog]) -> RoundLog:
    """The logs of consecutive blocks as one."""
    if not parts:
        nothing = np.empty(0)
        return RoundLog(
            order, np.empty(0, np.bool_), nothing, nothing, nothing, WeightFacts(), np.empty(0, FINGERPRINT)
        )
    arrays = [[getattr(part, name) for part in parts] for name in ("mistake", "loss", "measure", "worst", "marks")]
    mistake, loss, measure, worst, marks = map(np.concatenate, arrays)
    weights = reduce(or_, (part.weights for part in parts))
    return RoundLog(order, mistake, loss, measure, worst, weights, marks)


def _start_of(queries: Queries, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the documents of these queries begin, one query after the other, and where the last ends."""
    return np.concatenate([[0], np.cumsum(queries.sizes[order])]).astype(np.int64)


def _labels_in_order(queries: Queries, order: NDArray[np.int64], start: NDArray[np.int64]) -> Vector:
    """The labels of these queries, one after the other; a view where they are in this order already."""
    labels = queries.labels()
    if queries.is_grouped and len(order) and (np.diff(order) == 1).all():
        return labels[queries.start[order[0]] : queries.start[order[-1] + 1]]
    places = np.repeat(queries.start[order] - start[:-1], np.diff(start)) + np.arange(start[-1])
    return np.ascontiguousarray(labels[places if queries.is_grouped else queries.rows[places]])
