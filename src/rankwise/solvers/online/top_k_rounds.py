r"""Rounds of online gradient descent in which only the labels of the first k documents shown are seen.

In round t there is a query of m documents with scores s = X w. Let E be its first k documents by decreasing scores,
equal scores in the order of the input. With probability gamma (``explore``) the first k documents shown are a set S of
k documents, each set equally likely; otherwise S = E. Documents of S are shown first, by decreasing scores, then the
others. The learner sees the labels of S and follows an unbiased estimate of the gradient. Where m <= k all labels are
seen: nothing is explored, and the gradient is the gradient of the loss.

**The estimate.** Let the loss be a sum of terms, each of which depends on the labels of one set T of r documents (r = 1
or 2, :attr:`~rankwise.losses.Loss.labels_per_term`), and r <= k < m. A term is seen if S contains T, with probability

.. math:: p_T = (1 - \gamma) 1\{T \subseteq E\} + \gamma q, \qquad q = \binom{k}{r} \Big/ \binom{m}{r},

because a uniform set of k documents contains a given set of r with probability C(m - r, k - r) / C(m, k) = q. With g_T
the gradient of the term, g' = sum of g_T / p_T over the terms that are seen can be computed from the labels of S, and
its mean is sum_T p_T g_T / p_T, the gradient. Values of the loss are estimated in the same way. The mean is over this
round's S alone, given everything before, so w may depend on earlier rounds in any way.

**The loss that is estimated** is the sum of terms itself. Losses with one label per term count 0 where all labels of a
query are equal; a learner that does not see all labels cannot make that exception, and for m > k it is not made.

**Which losses have such an estimate.** A function g(y) of the labels of m documents has an unbiased estimate from the
labels of k documents, S drawn with known probabilities P(S) that do not depend on labels, if and only if it is a sum of
functions of at most k labels each and P gives every set of documents of such a function a chance. *If*: by the above.
*Only if*: the estimate is a function h_S of the labels of S, its mean is sum_S P(S) h_S(y_S), and this is such a sum.
So a gradient whose mixed difference over k + 1 labels is not 0 has no unbiased estimate. The tests compute it for every
loss of the package: those without ``labels_per_term`` have one that is not 0 for k = 1 and k = 2. ``GradedPairs`` alone
has none: it is a sum over pairs divided by the number of all documents, but its kernel divides by the number of those
that it is given.

**One label is not enough for NDCG, for any algorithm.** Two documents have the labels

=============  ====  ====  ====  ====
labels         2, 1  0, 0  2, 0  0, 1
=============  ====  ====  ====  ====
probability A  0.5   0.4   0     0.1
probability B  0.1   0     0.4   0.5
=============  ====  ====  ====  ====

in independent rounds. In A as in B the first document has label 2 with probability 1/2 and else 0, the second one label
1 with probability 0.6 and else 0. An algorithm chooses one document before the labels are drawn and sees its label
alone. The distribution of what it sees, given what it saw before, is therefore the same in A and in B; so is that of
all its choices, by induction over the rounds. With gains 2^y - 1, NDCG of a list is larger by 1 - 1/log2(3) times the
difference of the two gains, over the ideal DCG, if the first document is first. The mean of this difference is positive
in A (0.0647) and negative in B (-0.0166). In each round, the expected loss in A of showing the second document first
plus that in B of showing the first document first is at least the smaller of the two, d > 0.0165, in whatever
proportion the algorithm mixes them. Over T rounds the two expected regrets therefore sum to at least d T, and one of
them is at least d T / 2: linear. The same holds for every loss that is calibrated for NDCG, that is, whose expectation
stays away from its minimum wherever scores sort two documents against their expected normalized gains: for some d > 0
no scores are within d of the minimum both in A and in B, and any algorithm loses at least d T / 2, in A or in B, to
weights that attain the minimum there. For losses that are sums of functions of single labels A and B are the same, and
a regret of O(T^(2/3)) is proved (:func:`rankwise.guarantees.top_k_regret`): DCG, precision and their losses see single
labels.

References
----------
S. Chaudhuri, A. Tewari (2017). Online learning to rank with top-k feedback. Journal of Machine Learning Research
18(103). arXiv:1608.06408
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from rankwise._kernels.bits import mix
from rankwise._kernels.dot_products import add_rows, dot_and_square
from rankwise._kernels.machine.jit import FLOATS, FLOATS_IN, INTS, INTS_IN, MATRIX, compiled, kernel, typed_function
from rankwise._kernels.radius import raised_radius, reach_from_mean
from rankwise._kernels.sorting import sort_carrying
from rankwise.errors import DataError
from rankwise.losses.compute import KERNEL
from rankwise.queries.fingerprints import fingerprint_query
from rankwise.solvers.online.config import FeedbackTotals, RoundLog, State
from rankwise.solvers.online.loop import (
    AVERAGE,
    BALL,
    BALL_RADIUS,
    CUT,
    ETA,
    L2,
    LARGEST,
    ROUNDS,
    SQRT,
    STEP,
    BlockOutcome,
    QueryBlock,
    RoundInputs,
    RoundOutputs,
    RoundRunner,
    add_to_averages,
    is_mistake,
    make_buffers,
    onto_l1_ball,
    onto_l2_ball,
    rounds_signature,
    set_scale,
    weight_arrays,
)

Vector = NDArray[np.float64]
Rows = NDArray[np.int64]

# What is known of a document: its label is not given; its query was shown earlier, and whether it was in E.
UNSEEN, RECORDED, IN_TOP = 1, 2, 4
# Places in the settings and in the totals of the compiled loop.
DEPTH, EXPLORE, TERMS = range(3)
ESTIMATE, EXPLORED, UNMEASURED, LABEL, LONGEST, MISMATCH = range(6)

_STRIDE = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class TopKState(State):
    """The state of linear weights with the key of the random rankings.

    Attributes
    ----------
    key : ndarray of uint64, shape (1,)
        With the number of a round, what decides whether and which documents are shown at random.
    totals : ndarray, shape (6,)
        The numbers of :class:`~rankwise.solvers.online.config.FeedbackTotals`, and a flag for the loop.
    """

    key: NDArray[np.uint64]
    totals: Vector

    @classmethod
    def drawn(cls, features: int, random: np.random.Generator) -> "TopKState":
        """The state before the first round."""
        key = random.integers(0, 2**64, size=1, dtype=np.uint64)
        return cls(**vars(State.fresh(features)), key=key, totals=np.zeros(6))

    @property
    def feedback(self) -> FeedbackTotals:
        estimate, explored, unmeasured, label, longest, _ = self.totals.tolist()
        return FeedbackTotals(estimate, int(explored), int(unmeasured), label, int(longest))


# ------------------------------------------------------------------------------------------------------- one ranking


@kernel
def random_unit(key, draw, number):
    """A number of [0, 1) that is a function of its arguments: SplitMix, twice."""
    word = mix(np.uint64(key) + _STRIDE * np.uint64(draw))
    word = mix(word + _STRIDE * np.uint64(number + 1))
    return float(word >> np.uint64(11)) * 2.0**-53


@kernel
def draw_ranking(score, depth, explore, key, draw, order, shown):
    """The documents by decreasing scores into ``order``, and in the order in which they are shown into ``shown``."""
    size = len(score)
    negated, place = -score, np.arange(size)
    sort_carrying(negated, place, np.empty(size), np.empty(size, np.int64), np.empty(size + 1, np.int64))
    for p in range(size):
        order[p] = place[p]
        shown[p] = place[p]
    if size <= depth or not random_unit(key, draw, 0) < explore:
        return
    drawn = np.zeros(size, np.bool_)  # by place in the order of scores
    for p in range(size):
        place[p] = p
    for p in range(depth):  # the first places of a random permutation
        q = p + min(int(random_unit(key, draw, p + 1) * (size - p)), size - 1 - p)
        place[p], place[q] = place[q], place[p]
        drawn[place[p]] = True
    first, last = 0, depth
    for p in range(size):
        if drawn[p]:
            shown[first] = order[p]
            first += 1
        else:
            shown[last] = order[p]
            last += 1


@kernel
def inclusion(depth, size, terms, explore):
    """p_T of a term inside E, and of one that is not: 1 and 1 where all documents are seen."""
    if size <= depth:
        return 1.0, 1.0
    share = depth / size
    if terms == 2.0:
        share *= (depth - 1.0) / (size - 1.0)
    return 1.0 - explore + explore * share, explore * share


@kernel
def _add_pairs(kernel, score, label, value, chosen, count, weight, grad, table, params):
    """Add the loss over the pairs among some documents, times a weight, to ``grad``; returns its value."""
    s, y, v, g = np.empty(count), np.empty(count), np.empty(count), np.zeros(count)
    for c in range(count):
        s[c], y[c], v[c] = score[chosen[c]], label[chosen[c]], value[chosen[c]]
    loss = kernel(s, y, v, g, table, params)
    for c in range(count):
        grad[chosen[c]] += weight * g[c]
    return weight * loss


@kernel
def estimate_gradient(kernel, affine, score, label, value, seen, top, settings, grad, table, params):
    """Add the estimate of the gradient to ``grad``, from the labels of the documents that are seen alone.

    ``top`` is whether a document is in E, ``affine`` the estimate kernel of a loss with one label per term. Returns the
    estimate of the loss.
    """
    size, terms = len(score), settings[TERMS]
    inside, outside = inclusion(settings[DEPTH], size, terms, settings[EXPLORE])
    if size <= settings[DEPTH]:
        return kernel(score, label, value, grad, table, params)
    if terms == 1.0:
        y, v = np.zeros(size), np.zeros(size)
        for p in range(size):
            if seen[p]:
                weight = 1.0 / (inside if top[p] else outside)
                y[p], v[p] = label[p] * weight, value[p] * weight
        return affine(score, y, v, grad, table, params)
    chosen, both, count, common = np.empty(size, np.int64), np.empty(size, np.int64), 0, 0
    for p in range(size):
        if seen[p]:
            chosen[count] = p
            count += 1
            if top[p]:
                both[common] = p
                common += 1
    if common == count:
        return _add_pairs(kernel, score, label, value, chosen, count, 1.0 / inside, grad, table, params)
    loss = _add_pairs(kernel, score, label, value, chosen, count, 1.0 / outside, grad, table, params)
    if common > 1:  # pairs inside E have another weight
        weight = 1.0 / inside - 1.0 / outside
        loss += _add_pairs(kernel, score, label, value, both, common, weight, grad, table, params)
    return loss


# ------------------------------------------------------------------------------------------------------------- rounds


def _play_top_k_rounds(kernel, inputs, state, outputs, affine, key, totals, settings, record, moments, l1_radius):
    """Show the queries one after the other; returns how many, fewer only if a score overflowed or labels are wrong.

    ``record`` has the flags of the documents in the order of presentation, or is empty: all labels are given then.
    """
    order, start, rows, X, judged, grade, label, value, weight, table, params, config, keys, signs = inputs
    w, sums, counts, sizes, scale = state
    scores, losses, mistaken, hashes, sketches = outputs
    gradient, places, highest, class_size, clear, spot, cells, words = make_buffers(order, start)
    longest = len(gradient)
    by_score, shown = np.empty(longest, np.int64), np.empty(longest, np.int64)
    seen_buffer, top_buffer = np.empty(longest, np.bool_), np.empty(longest, np.bool_)
    features = X.shape[1]
    step, center, effective = np.empty(features), np.empty(features), np.empty(features)
    end, mean_first, depth = 0, False, int(settings[DEPTH])
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
        judgments = judged[end : end + size]
        if len(hashes) > 0:
            hashes[r] = fingerprint_query(own, X, judgments, keys, signs, words, spot, cells, sketches[r])
        first = end
        end += size
        if size == 0:
            continue
        seen, top = seen_buffer[:size], top_buffer[:size]
        recorded, partly = False, False
        if len(record) > 0:
            recorded = record[first] & RECORDED != 0
            for p in range(size):
                partly = partly or record[first + p] != 0
        if recorded:
            for p in range(size):
                seen[p] = record[first + p] & UNSEEN == 0
                top[p] = record[first + p] & IN_TOP != 0
        else:
            draw_ranking(s, depth, settings[EXPLORE], key[0], t, by_score[:size], shown[:size])
            for p in range(size):
                seen[shown[p]] = p < depth
                top[by_score[p]] = p < depth
            if partly:
                for p in range(size):
                    if seen[p] != (record[first + p] & UNSEEN == 0):
                        totals[MISMATCH] = 1.0
                        return r
        explored = False
        for p in range(size):
            explored = explored or (seen[p] and not top[p])
            g[p] = 0.0
            if seen[p] or not partly:
                totals[LABEL] = max(totals[LABEL], judgments[p])
        totals[EXPLORED] += explored
        totals[UNMEASURED] += partly
        totals[LONGEST] = max(totals[LONGEST], size)
        query_weight = 1.0 if len(weight) == 0 else weight[order[r]]
        losses[r] = query_weight * estimate_gradient(kernel, affine, s, y, v, seen, top, settings, g, table, params)
        totals[ESTIMATE] += losses[r]
        if explored and not recorded:  # what was shown; a stream is measured by it
            for p in range(size):
                s[shown[p]] = -float(p)
        mistaken[r] = not partly and is_mistake(s, c, config[CUT], highest, class_size, clear)
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


@cache
def top_k_rounds_on(dtype: np.dtype[Any], scaled: bool, onto_l1: bool) -> Any:
    """The loop compiled for this type of X, with scaling and the projection onto the l1 ball only where asked for."""
    state = (FLOATS, MATRIX, INTS, FLOATS, FLOATS)
    optional = (MATRIX if scaled else types.none, types.float64 if onto_l1 else types.none)
    key = types.Array(types.uint64, 1, "C")
    affine = types.FunctionType(KERNEL)
    signature = rounds_signature(dtype, state, affine, key, FLOATS, FLOATS_IN, INTS_IN, *optional)
    return compiled(kernel(_play_top_k_rounds), signature)


@dataclass(frozen=True)
class TopKRunner(RoundRunner):
    """Rounds of linear weights that learn from the labels of the first documents shown.

    Attributes
    ----------
    record : ndarray of int64 or None
        For grouped queries: what is known of each document, by row; None if all labels are given.
    """

    record: Rows | None = None

    def _flags(self, part: QueryBlock) -> Rows:
        """The record in the order of presentation."""
        if self.record is None:
            return np.empty(0, np.int64)
        begin = self.queries.start[part.order] - part.start[:-1]
        places = np.repeat(begin, np.diff(part.start)) + np.arange(part.start[-1])
        return np.asarray(self.record[places])

    def present(self, part: QueryBlock) -> BlockOutcome:
        """Show the queries one after the other."""
        return replace(self, record=self._flags(part))._present(part)

    def _present(self, part: QueryBlock) -> BlockOutcome:
        return super().present(part)

    def _run(self, kernel: Any, inputs: RoundInputs, outputs: RoundOutputs) -> int:
        """Run the compiled loop; returns the number of queries that were scored."""
        config, state = self.config, self.state
        assert isinstance(state, TopKState)
        scaled, onto_l1 = config.scale != "none", config.projection == "l1"
        moments, radius = state.moments if scaled else None, float(config.max_norm) if onto_l1 else None
        settings = np.array(
            [float(config.feedback_depth or 0), config.explore, float(config.loss.labels_per_term or 0)]
        )
        loop = top_k_rounds_on(inputs.X.dtype, scaled, onto_l1)
        own = type(config.loss).estimate_kernel
        affine = kernel if own is None else typed_function(own, KERNEL)
        others = (affine, state.key, state.totals, settings, self.record, moments, radius)
        done = int(loop(kernel, tuple(inputs), weight_arrays(state), tuple(outputs), *others))
        if state.totals[MISMATCH]:
            raise DataError(
                f"labels must be given for exactly the first {config.feedback_depth} documents that the ranker showed "
                "and be NaN for the others: show(X) returns their order for the next round"
            )
        return done

    def account(self, part: QueryBlock, shown: BlockOutcome) -> RoundLog:
        """After queries were shown: the log; the measure of a query is NaN where some of its labels are not given."""
        log, flags = super().account(part, shown), self._flags(part)
        if not len(flags):
            return log
        known = np.array([not flags[a:b].any() for a, b in zip(part.start[:-1], part.start[1:], strict=True)])
        return replace(log, measure=np.where(known, log.measure, np.nan), worst=np.where(known, log.worst, np.nan))
