"""Smoothed measures straight from their definitions, with the derivatives of every soft indicator written out."""

import numpy as np

from rankwise.losses.smooth_ndcg import SmoothDCG1, SmoothNDCG, SmoothPrecision, SmoothRR


def soft_indicators(s: np.ndarray, sigma: float) -> np.ndarray:
    """h[..., i, j]: how far document i is at position j, for one list or many."""
    f = -np.sort(-s, axis=-1)
    e = np.exp(-((s[..., :, None] - f[..., None, :]) ** 2) / sigma)
    return e / e.sum(axis=-2, keepdims=True)


def soft_positions(s: np.ndarray, gain: np.ndarray, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """(mean gain of every position, its Jacobian [position, document]); ties in stable order."""
    m = len(s)
    order = sorted(range(m), key=lambda i: (-s[i], i))
    mean, jacobian = np.zeros(m), np.zeros((m, m))
    for j, at in enumerate(order):
        x = s - s[at]
        h = np.exp(-(x**2) / sigma)
        h /= h.sum()
        mean[j] = h @ gain
        jacobian[j] = -(2 / sigma) * h * x * (gain - mean[j])
        jacobian[j, at] -= jacobian[j].sum()  # adding a constant to all scores changes nothing
    return mean, jacobian


def smooth_ndcg(loss: SmoothNDCG, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    gain, k = loss.row_values(labels), len(s) if loss.k is None else min(loss.k, len(s))
    discount = np.append(loss.table(len(s))[:k], np.zeros(len(s) - k))
    ideal = discount @ np.sort(gain)[::-1]
    if len(set(gain)) == 1 or ideal == 0:
        return 0.0, np.zeros(len(s))
    mean, jacobian = soft_positions(s, gain, loss.sigma)
    return 1 - discount @ mean / ideal, -discount @ jacobian / ideal


def smooth_ndcg_with_more_digits(
    loss: SmoothNDCG, s: np.ndarray, labels: np.ndarray
) -> tuple[float, np.ndarray, float]:
    """(value, gradient, largest part of it if no gains were alike), in extended precision where the machine has it.

    Gains are compared with that of the position's own document, so that equal ones cancel exactly; room O(m).
    """
    s, gain = s.astype(np.longdouble), loss.row_values(labels).astype(np.longdouble)
    k = len(s) if loss.k is None else min(loss.k, len(s))
    discount = loss.table(len(s))[:k].astype(np.longdouble)
    discount /= discount @ np.sort(gain)[::-1][:k]
    order = np.argsort(-s, kind="stable")
    value, gradient, largest = np.longdouble(1), np.zeros(len(s), np.longdouble), 0.0
    for weight, at in zip(discount, order, strict=False):
        x, more = s - s[at], gain - gain[at]
        h = np.exp(-(x**2) / loss.sigma)
        h /= h.sum()
        value -= weight * (gain[at] + h @ more)
        pull = weight * h * (x * 2 / loss.sigma)
        gradient += pull * (more - h @ more)
        gradient[at] -= (pull * (more - h @ more)).sum()
        largest = max(largest, float(np.abs(pull).max() * gain.max()))
    return float(value), gradient, largest


def smooth_precision(loss: SmoothPrecision, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    relevant = loss.row_values(labels)
    if len(set(relevant)) == 1:
        return 0.0, np.zeros(len(s))
    rho, jacobian = soft_positions(s, relevant, loss.sigma)
    return 1 - rho[: loss.k].sum() / loss.k, -jacobian[: loss.k].sum(axis=0) / loss.k


def smooth_rr(loss: SmoothRR, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    relevant = loss.row_values(labels)
    if len(set(relevant)) == 1:
        return 0.0, np.zeros(len(s))
    rho, jacobian = soft_positions(s, relevant, loss.sigma)
    value, gradient = 0.0, np.zeros(len(s))
    none_yet, slope = 1.0, np.zeros(len(s))  # the chance that nothing relevant came before, and its gradient
    for j in range(len(s)):
        value += rho[j] * none_yet / (j + 1)
        gradient += (jacobian[j] * none_yet + rho[j] * slope) / (j + 1)
        slope = slope * (1 - rho[j]) - none_yet * jacobian[j]
        none_yet *= 1 - rho[j]
    return 1 - value, -gradient


def smooth_dcg1(loss: SmoothDCG1, s: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    gain = loss.row_values(labels)
    if len(set(gain)) == 1:
        return 0.0, np.zeros(len(s))
    p = np.exp((s - s.max()) / loss.sigma)
    p /= p.sum()
    return 1 - p @ gain / gain.max(), -p * (gain - p @ gain) / (loss.sigma * gain.max())


DEFINITIONS = {
    "SmoothNDCG": smooth_ndcg,
    "SmoothPrecision": smooth_precision,
    "SmoothRR": smooth_rr,
    "SmoothDCG1": smooth_dcg1,
}
