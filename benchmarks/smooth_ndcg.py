"""Smooth NDCG, value and gradient: against plain NumPy on short lists, and transforms against direct sums on long ones.

The direct sums are the project's own, each pair computed once. Of several widths of the kernel the least favorable
one is shown.
"""

from typing import Any

import numpy as np

from benchmarks.clock import best_of, row

SIGMAS = (2.0**-6, 1.0, 2.0**6)


def plain(scores: np.ndarray, labels: np.ndarray, sigma: float) -> tuple[float, np.ndarray]:
    """The definition with NumPy arrays of documents by positions."""
    gain, order = 2.0**labels - 1, np.argsort(-scores, kind="stable")
    weight = 1 / np.log2(np.arange(len(scores)) + 2)
    weight /= np.sort(gain)[::-1] @ weight
    x = scores[:, None] - scores[order]
    h = np.exp(-(x**2) / sigma)
    h /= h.sum(axis=0)
    mean = gain @ h
    t = (2 / sigma) * h * x * (gain[:, None] - mean) * weight
    gradient = t.sum(axis=1)
    gradient[order] -= t.sum(axis=0)
    return 1 - float(weight @ mean), gradient


def against_numpy(documents: int, lists: int) -> dict[str, Any]:
    from rankwise.losses.compute import PreparedLists, loss_lists
    from rankwise.losses.smooth_ndcg import SmoothNDCG

    rng = np.random.default_rng(0)
    scores = rng.normal(size=(lists, documents))
    labels = np.clip(rng.geometric(0.5, scores.shape) - 1, 0, 4).astype(float)
    start = np.arange(0, scores.size + 1, documents)
    rows = []
    for sigma in SIGMAS:
        prepared = PreparedLists.of(SmoothNDCG(sigma=sigma), labels.ravel(), start)
        values, gradient = loss_lists(prepared, scores.ravel(), n_jobs=1)
        value, expected = plain(scores[0], labels[0], sigma)
        assert abs(values[0] - value) < 1e-12
        assert np.abs(gradient[:documents] - expected).max() < 1e-10
        ours = best_of(7, lambda prepared=prepared: loss_lists(prepared, scores.ravel(), n_jobs=1))
        theirs = best_of(5, lambda sigma=sigma: [plain(s, y, sigma) for s, y in zip(scores, labels, strict=True)])
        work = f"smooth NDCG, {lists:,} lists of {documents:,}, sigma {sigma:g}"
        rows.append(row(work, "plain NumPy", theirs, ours, "1 thread", "10 x"))
    return min(rows, key=lambda line: line["ratio"])


def against_direct(documents: int, target: str) -> dict[str, Any]:
    from rankwise._kernels.gauss import gauss_means, gauss_slopes, reach, row_means, row_slopes, windows

    rng = np.random.default_rng(0)
    f = np.sort(rng.normal(size=documents))[::-1].copy()
    gain = 2.0 ** np.clip(rng.geometric(0.5, documents) - 1, 0, 4) - 1
    weight = 1 / np.log2(np.arange(documents) + 2)
    total, mean, own = np.empty((3, documents))
    stop = np.empty(documents, np.int64)
    pairs = np.empty(windows(f, np.inf, stop))  # every pair

    def direct(sigma: float) -> np.ndarray:
        slope = np.zeros(documents)
        row_means(f, gain, sigma, stop, pairs, total, mean)
        row_slopes(f, gain, weight, sigma, stop, pairs, total, mean, slope)
        return slope

    def fast(sigma: float) -> np.ndarray:
        slope = np.zeros(documents)
        far = reach(f, gain, documents, sigma)
        gauss_means(f, gain, sigma, far, total, mean, own)
        gauss_slopes(f, gain, weight, sigma, far, total, mean, own, slope)
        return slope

    rows = []
    for sigma in SIGMAS:
        expected = direct(sigma)
        assert np.abs(fast(sigma) - expected).max() < 1e-10 * np.abs(expected).max()
        work = f"smooth NDCG, one list of {documents:,}, sigma {sigma:g}"
        slow = best_of(30, lambda sigma=sigma: direct(sigma))  # often: a busy moment is longer than a run
        quick = best_of(60, lambda sigma=sigma: fast(sigma))
        rows.append(row(work, "direct sums", slow, quick, "Gauss transforms, 1 thread", target))
    return min(rows, key=lambda line: line["ratio"])


def run() -> list[dict[str, Any]]:
    return [against_numpy(120, 300), against_direct(1_000, "5 x"), against_direct(4_000, "20 x")]


if __name__ == "__main__":
    for line in run():
        print(line)
