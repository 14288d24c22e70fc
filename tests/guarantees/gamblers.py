"""The capital of the betting bound, counted by hand in plain Python, and for many samples at once."""

import math

import numpy as np

from rankwise.guarantees.holdout import betting


def sizes_by_hand(n, alpha):
    """The five fixed sizes for n values."""
    power = 1
    while power < n:
        power *= 2
    last = max(1 / power, 1e-3)
    variances = [0.25 ** (1 - k / 4) * last ** (k / 4) for k in range(5)]
    return [math.sqrt(2 * math.log(1 / alpha) / (power * variance)) for variance in variances]


def adaptive_by_hand(values, m, alpha):
    """Value by value, as the authors write it, with the variance kept by hand."""
    capital, total, squares, variance = 1.0, 0.0, 0.0, 0.25
    for i, x in enumerate(values, start=1):
        size = math.sqrt(2 * math.log(1 / alpha) / (len(values) * variance))
        capital *= 1 + (min(size, betting.SHARE / m) if m > 0 else size) * (x - m)
        total += x
        squares += (x - (0.5 + total) / (i + 1)) ** 2
        variance = (0.25 + squares) / (i + 1)
    return capital


def fixed_by_hand(values, m, alpha):
    """The part of the capital of those who bet fixed sizes, half of one in all."""
    sizes = sizes_by_hand(len(values), alpha)
    most = betting.SHARE / m if m > 0 else math.inf
    return sum(math.prod(1 + min(size, most) * (x - m) for x in values) for size in sizes) / (2 * len(sizes))


def capital_by_hand(values, m, alpha):
    """The capital of everyone: forty with orders of their own, and five with fixed sizes."""
    orders = betting.fix_orders(len(values)).tolist()
    own = sum(adaptive_by_hand([values[place] for place in order], m, alpha) for order in orders)
    return own / (2 * len(orders)) + fixed_by_hand(values, m, alpha)


def log_capitals(x, m, alpha):
    """The logarithm of the same capital for every row of x, shape (samples, n)."""
    n = x.shape[1]
    orders, sizes = betting.fix_orders(n), betting.fix_sizes(n, alpha)[:, None]
    own = []
    for block in np.array_split(x, math.ceil(x.size / 25_000)):  # a million numbers at a time
        ordered = block[:, orders]
        own.append(np.logaddexp.reduce(betting.log_capital(ordered, betting.bets(ordered, alpha), m), axis=1))
    fixed = np.logaddexp.reduce(betting.log_capital(x[:, None, :], sizes, m), axis=1)
    return np.logaddexp(np.concatenate(own) - math.log(len(orders)), fixed - math.log(len(sizes))) - math.log(2)


def refuted_on_the_way(x, mean, alpha):
    """Rows that refute the true mean at any moment of the one game in the order of the row."""
    factors = 1 + np.minimum(betting.bets(x, alpha), betting.SHARE / mean) * (x - mean)
    return np.cumsum(np.log(factors), axis=-1).max(axis=-1) >= math.log(1 / alpha)


def refuted(x, mean, alpha):
    """Rows of values that refute the true mean from below."""
    return log_capitals(x, mean, alpha) >= math.log(1 / alpha)
