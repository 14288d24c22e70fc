"""Expected values of measures on lists of tie blocks, with 100 digits, from the positions of the relevant documents.

A list is given by its blocks of equal scores, best score first; a block by how many of its documents have each label.
Every order inside a block is equally likely. Where a formula of the package goes through the places of a block, these
go through its relevant documents: the j-th of r among n documents stands at place t with probability
C(t-1, j-1) C(n-t, r-j) / C(n, r).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Context, Decimal, localcontext
from functools import cache
from math import comb
from types import SimpleNamespace
from typing import Any

Block = Mapping[int, int]
DIGITS = Context(prec=100)
# Smaller probabilities are left out: far below any error that a float64 shows.
NEGLIGIBLE = Decimal("1e-40")


def expected(measure: Any, blocks: Sequence[Block]) -> Decimal:
    """The measure's mean over all orders inside the blocks; the list has a relevant document."""
    with localcontext(DIGITS):
        return EXPECTATIONS[measure.name](measure, blocks)


def with_offsets(measure: Any, blocks: Sequence[Block]) -> Iterator[tuple[Block, int, int, int]]:
    """(block, its size, documents above it, its places within the cut-off) for the blocks that the cut-off reaches."""
    above = 0
    for block in blocks:
        size = sum(block.values())
        within = size if measure.cutoff is None else min(size, measure.cutoff - above)
        if within <= 0:
            return
        yield block, size, above, within
        above += size


def length(blocks: Sequence[Block]) -> int:
    return sum(sum(block.values()) for block in blocks)


def relevant(measure: Any, block: Block) -> int:
    return sum(count for label, count in block.items() if label >= measure.rel)


def place_chances(size: int, count: int, j: int) -> Iterator[tuple[int, Decimal]]:
    """(t, P(T = t)) of T, the place of the j-th of ``count`` marked documents among ``size``."""
    chance = Decimal(comb(size - j, count - j)) / comb(size, count)
    for t in range(j, size - count + j + 1):
        yield t, chance
        if t < size:
            chance *= Decimal(t * (size - count + j - t)) / ((t - j + 1) * (size - t))


def mean_reciprocal(size: int, count: int, j: int, above: int, within: int) -> Decimal:
    """E[1 / (above + T); T <= within] of the same T."""
    return sum((chance / (above + t) for t, chance in place_chances(size, count, j) if t <= within), Decimal(0))


# ------------------------------------------------------------------------------------------- relevant or not


def average_precision(measure: Any, blocks: Sequence[Block]) -> Decimal:
    total, before = Decimal(0), 0
    for block, size, above, within in with_offsets(measure, blocks):
        r = relevant(measure, block)
        if measure.blocks:
            total += Decimal(r) * (before + r) / (above + size)
        elif size <= 100:
            for j in range(1, r + 1):
                total += (before + j) * mean_reciprocal(size, r, j, above, within)
        elif r:
            # the same by pairs of places: any one is relevant with chance r / n, any two with r (r - 1) / n (n - 1)
            pair = Decimal(r * (r - 1)) / (size * (size - 1))
            for t in range(1, within + 1):
                total += ((before + 1) * (Decimal(r) / size) + (t - 1) * pair) / (above + t)
        before += r
    every = sum(relevant(measure, block) for block in blocks)
    return total / (min(every, measure.cutoff or every) if measure.norm == "cutoff" else every)


def reciprocal_rank(measure: Any, blocks: Sequence[Block]) -> Decimal:
    for block, size, above, within in with_offsets(measure, blocks):
        if r := relevant(measure, block):
            return mean_reciprocal(size, r, 1, above, within)
    return Decimal(0)


def found(measure: Any, blocks: Sequence[Block]) -> Decimal:
    """The mean number of relevant documents within the cut-off, by the hypergeometric distribution."""
    total = Decimal(0)
    for block, size, _, within in with_offsets(measure, blocks):
        r = relevant(measure, block)
        first = max(0, within - (size - r))
        chance = Decimal(comb(r, first) * comb(size - r, within - first)) / comb(size, within)
        for h in range(first, min(r, within) + 1):
            total += h * chance
            chance = chance * (r - h) * (within - h) / ((h + 1) * (size - r - within + h + 1))
    return total


def precision(measure: Any, blocks: Sequence[Block]) -> Decimal:
    return found(measure, blocks) / (min(measure.cutoff, length(blocks)) if measure.short == "list" else measure.cutoff)


def recall(measure: Any, blocks: Sequence[Block]) -> Decimal:
    return found(measure, blocks) / sum(relevant(measure, block) for block in blocks)


def r_precision(measure: Any, blocks: Sequence[Block]) -> Decimal:
    r = sum(relevant(measure, block) for block in blocks)
    return found(SimpleNamespace(rel=measure.rel, cutoff=r), blocks) / r


def binary_preference(measure: Any, blocks: Sequence[Block]) -> Decimal:
    """The j-th relevant document of a block at its place t has t - j others of the block above it."""
    r = sum(relevant(measure, block) for block in blocks)
    most = min(r, length(blocks) - r)
    total, before = Decimal(0), 0
    for block, size, _, _ in with_offsets(measure, blocks):
        inside = relevant(measure, block)
        for j in range(1, inside + 1):
            for t, chance in place_chances(size, inside, j):
                n = before + t - j
                total += chance * (1 - Decimal(min(n, r)) / most if n else 1)
        before += size - inside
    return total / r


def all_judged(measure: Any, blocks: Sequence[Block]) -> Decimal:
    return Decimal(1)


def success(measure: Any, blocks: Sequence[Block]) -> Decimal:
    missed = Decimal(1)
    for block, size, _, within in with_offsets(measure, blocks):
        missed *= Decimal(comb(size - relevant(measure, block), within)) / comb(size, within)
    return 1 - missed


def rank_biased_precision(measure: Any, blocks: Sequence[Block]) -> Decimal:
    p = Decimal(measure.p)
    total = Decimal(0)
    for block, size, above, within in with_offsets(measure, blocks):
        r = relevant(measure, block)
        total += sum((p ** (above + t) for t in range(within)), Decimal(0)) * (1 - p) * r / size
    return total


# ------------------------------------------------------------------------------------------- by grades


@cache
def discount(kind: Any, place: int) -> Decimal:
    if not isinstance(kind, str):
        return Decimal(kind[place - 1]) if place <= len(kind) else Decimal(0)
    return Decimal(2).ln() / Decimal(1 + place if kind == "log2" else max(place, 2)).ln()


def gain(measure: Any, label: int) -> Decimal:
    if isinstance(measure.gain, str):
        return Decimal(2**label - 1 if measure.gain == "exp2" else label)
    return Decimal(dict(measure.gain)[label])


def mean_gains(measure: Any, blocks: Sequence[Block]) -> list[Decimal]:
    """The mean gain at every place of the list."""
    gains = []
    for block in blocks:
        size = sum(block.values())
        gains += [sum((count * gain(measure, label) for label, count in block.items()), Decimal(0)) / size] * size
    return gains


def best_gains(measure: Any, blocks: Sequence[Block]) -> list[Decimal]:
    every = [gain(measure, label) for block in blocks for label, count in block.items() for _ in range(count)]
    return sorted(every, reverse=True)


def discounted(measure: Any, gains: Sequence[Decimal]) -> Decimal:
    places = enumerate(gains[: measure.cutoff], 1)
    return sum((each * discount(measure.discount, place) for place, each in places), Decimal(0))


def dcg(measure: Any, blocks: Sequence[Block]) -> Decimal:
    return discounted(measure, mean_gains(measure, blocks))


def ndcg(measure: Any, blocks: Sequence[Block]) -> Decimal:
    if measure.short == "zero" and measure.cutoff is not None and length(blocks) < measure.cutoff:
        return Decimal(0)
    return dcg(measure, blocks) / discounted(measure, best_gains(measure, blocks))


def mean_ndcg(measure: Any, blocks: Sequence[Block]) -> Decimal:
    reached, ideal, total = Decimal(0), Decimal(0), Decimal(0)
    mean, best = mean_gains(measure, blocks), best_gains(measure, blocks)
    for place in range(1, len(mean) + 1):
        reached += mean[place - 1] * discount(measure.discount, place)
        ideal += best[place - 1] * discount(measure.discount, place)
        total += reached / ideal
    return total / len(mean)


def pass_chances(block: Block, max_grade: int) -> list[Decimal]:
    """P(a reader passes the first a documents with a positive label), a = 0, 1, ..., in a random order of these.

    The elementary symmetric polynomials of the 1 - x, which are the coefficients of the product of (1 + (1 - x) z)^n
    over the grades, divided by the number of subsets.
    """
    count = sum(n for label, n in block.items() if label > 0)
    coefficients, subsets = [Decimal(1)], 1
    for label, n in block.items():
        if label > 0:
            passing = 1 - Decimal(2**label - 1) / 2**max_grade
            power = [comb(n, a) * passing**a for a in range(n + 1)]
            longer = [Decimal(0)] * (len(coefficients) + n)
            for a, left in enumerate(coefficients):
                for b, right in enumerate(power):
                    longer[a + b] += left * right
            coefficients = longer
    chances = []
    for a, coefficient in enumerate(coefficients):
        chances.append(coefficient / subsets)
        subsets = subsets * (count - a) // (a + 1)
    return chances


@cache
def stop_chances(counts: tuple[tuple[int, int], ...], max_grade: int) -> tuple[list[Decimal], Decimal]:
    """P(the reader of this block stops at place t), t = 1, 2, ..., and P(he passes all of it)."""
    passes = pass_chances(dict(counts), max_grade)
    count, size = len(passes) - 1, sum(n for _, n in counts)
    stops = [Decimal(0)] * size
    for j in range(1, count + 1):
        stop = passes[j - 1] - passes[j]
        for t, chance in place_chances(size, count, j):
            stops[t - 1] += stop * chance
        if passes[j] < NEGLIGIBLE:
            break
    return stops, passes[count]


def expected_reciprocal_rank(measure: Any, blocks: Sequence[Block]) -> Decimal:
    total, reading = Decimal(0), Decimal(1)
    for block, _, above, within in with_offsets(measure, blocks):
        stops, passed = stop_chances(tuple(block.items()), measure.max_grade)
        total += reading * sum((stops[t - 1] / (above + t) for t in range(1, within + 1)), Decimal(0))
        reading *= passed
    return total


def winner_takes_all(measure: Any, blocks: Sequence[Block]) -> Decimal:
    highest = max(label for block in blocks for label, count in block.items() if count)
    return Decimal(blocks[0].get(highest, 0)) / sum(blocks[0].values())


def pair_accuracy(measure: Any, blocks: Sequence[Block]) -> Decimal:
    right, different = Decimal(0), 0
    for place, block in enumerate(blocks):
        for label, count in block.items():
            for lower, block_below in enumerate(blocks[place:], place):
                for other, others in block_below.items():
                    if lower == place:  # every pair of the block is met twice
                        different += count * others * (other < label)
                        right += Decimal(count * others * (other < label)) / 2
                    else:
                        different += count * others * (other != label)
                        right += count * others * (other < label)
    return right / different


EXPECTATIONS: dict[str, Callable[[Any, Sequence[Block]], Decimal]] = {
    "AP": average_precision,
    "RR": reciprocal_rank,
    "P": precision,
    "R": recall,
    "Rprec": r_precision,
    "Bpref": binary_preference,
    "Judged": all_judged,
    "Success": success,
    "RBP": rank_biased_precision,
    "DCG": dcg,
    "nDCG": ndcg,
    "MeanNDCG": mean_ndcg,
    "ERR": expected_reciprocal_rank,
    "WTA": winner_takes_all,
    "Pairs": pair_accuracy,
}
