"""Measures straight from their definitions, on one permutation, with exact fractions where they can be had."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

Labels = Sequence[float]


def dcg(labels: Labels, k: int | None = None) -> float:
    return sum((2**label - 1) / math.log2(1 + place) for place, label in enumerate(labels[:k], 1))


def ndcg(labels: Labels, k: int | None = None) -> float:
    return dcg(labels, k) / dcg(sorted(labels, reverse=True), k)


def mean_ndcg(labels: Labels, k: None = None) -> float:
    return sum(ndcg(labels, cut) for cut in range(1, len(labels) + 1)) / len(labels)


def ap(labels: Labels, k: int | None = None) -> float:
    hits = [label >= 1 for label in labels]
    return sum(sum(hits[:place]) / place for place in range(1, len(hits[:k]) + 1) if hits[place - 1]) / sum(hits)


def precision(labels: Labels, k: int) -> float:
    return sum(label >= 1 for label in labels[:k]) / k


def recall(labels: Labels, k: int) -> float:
    return sum(label >= 1 for label in labels[:k]) / sum(label >= 1 for label in labels)


def success(labels: Labels, k: int) -> float:
    return float(any(label >= 1 for label in labels[:k]))


def rprec(labels: Labels, k: None = None) -> float:
    return precision(labels, sum(label >= 1 for label in labels))


def bpref(labels: Labels, k: None = None) -> float:
    """A label of None stands for a document that was not judged."""
    known = [label >= 1 for label in labels if label is not None]
    r, others = sum(known), known.count(False)
    above = [known[:place].count(False) for place, hit in enumerate(known) if hit]
    return sum(1 - min(n, r) / min(others, r) if n else 1 for n in above) / r


def judged(labels: Labels, k: int) -> float:
    """A label of None stands for a document that was not judged."""
    return sum(label is not None for label in labels[:k]) / len(labels[:k])


def rr(labels: Labels, k: int | None = None) -> float:
    return next((1 / place for place, label in enumerate(labels[:k], 1) if label >= 1), 0.0)


def rbp(labels: Labels, k: int | None = None) -> float:
    return 0.2 * sum(0.8 ** (place - 1) for place, label in enumerate(labels[:k], 1) if label >= 1)


def err(labels: Labels, k: int | None = None) -> float:
    total, reading = 0.0, 1.0
    for place, label in enumerate(labels[:k], 1):
        stop = (2**label - 1) / 16
        total += reading * stop / place
        reading *= 1 - stop
    return total


def wta(labels: Labels, k: None = None) -> float:
    return float(labels[0] == max(labels))


def pairs(labels: Labels, k: None = None) -> float:
    right = [a > b for a, b in itertools.combinations(labels, 2) if a != b]
    return sum(right) / len(right)


DEFINITIONS: dict[str, Callable[..., float]] = {
    "DCG": dcg,
    "nDCG": ndcg,
    "MeanNDCG": mean_ndcg,
    "AP": ap,
    "P": precision,
    "R": recall,
    "Rprec": rprec,
    "Bpref": bpref,
    "Judged": judged,
    "Success": success,
    "RR": rr,
    "RBP": rbp,
    "ERR": err,
    "WTA": wta,
    "Pairs": pairs,
}


def tie_orders(scores: Sequence[float], labels: Labels) -> Iterator[list[float]]:
    """The labels in every order that these scores allow, each order of a tie block equally often."""
    blocks = [
        [label for score, label in zip(scores, labels, strict=True) if score == height]
        for height in sorted(set(scores), reverse=True)
    ]
    for parts in itertools.product(*(itertools.permutations(block) for block in blocks)):
        yield [label for part in parts for label in part]


def stable_order(scores: Sequence[float], labels: Labels) -> list[float]:
    return [labels[i] for i in sorted(range(len(labels)), key=lambda i: -scores[i])]
