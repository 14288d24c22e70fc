"""A distribution of few judged lists, whose risk is a finite sum, and learning from thousands of samples at once.

The loss is ListNet's in its KL form: convex, 0 or more, smooth; its gradient has an l1 norm of 2 at most (G), and moves
by 1 at most where every score moves by 1 at most (H1).
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

G, H1, RADIUS = 2.0, 1.0, 1.0


@dataclass
class FewLists:
    """Lists of one length, rows of norm 1 at most, and how often each is drawn."""

    X: np.ndarray  # lists x documents x features
    y: np.ndarray
    chance: np.ndarray

    @classmethod
    def random(cls, lists: int, m: int, d: int, seed: int) -> "FewLists":
        random = np.random.default_rng(seed)
        X = random.standard_normal((lists, m, d))
        X /= np.maximum(np.sqrt((X**2).sum(axis=2, keepdims=True)), 1.0)
        y = random.integers(0, 4, size=(lists, m)).astype(float)
        return cls(X, y, random.dirichlet(np.ones(lists)))

    def losses(self, w: np.ndarray) -> np.ndarray:
        """One loss for each w (a row) and list."""
        target = softmax(self.y)
        return (target * (np.log(target) - log_softmax(self._scores(w)))).sum(axis=-1)

    def _scores(self, w: np.ndarray) -> np.ndarray:
        lists, m, d = self.X.shape
        return (w @ self.X.reshape(-1, d).T).reshape(-1, lists, m)

    def gradients(self, w: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
        """The gradient in w of every list's loss, or of one list ``of`` each w."""
        if of is None:
            slopes = softmax(self._scores(w)) - softmax(self.y)
            return np.einsum("kmd,rkm->rkd", self.X, slopes)
        X = self.X[of]
        slopes = softmax(np.einsum("rmd,rd->rm", X, w)) - softmax(self.y)[of]
        return np.einsum("rmd,rm->rd", X, slopes)

    def risk(self, w: np.ndarray) -> np.ndarray:
        return self.losses(w) @ self.chance

    def best(self, W: float) -> np.ndarray:
        """The w of norm W at most with the smallest risk."""
        found = minimize(
            lambda w: float(self.risk(w[None])[0]),
            np.zeros(self.X.shape[2]),
            jac=lambda w: self.chance @ self.gradients(w[None])[0],
            constraints={"type": "ineq", "fun": lambda w: W**2 - w @ w, "jac": lambda w: -2 * w},
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        return found.x * min(1.0, W / max(np.linalg.norm(found.x), 1e-300))

    def draw(self, repetitions: int, n: int, seed: int) -> np.ndarray:
        """Which list each of n draws gave, for many samples."""
        return np.random.default_rng(seed).choice(len(self.chance), size=(repetitions, n), p=self.chance)

    def descend(self, drawn: np.ndarray, eta: float) -> np.ndarray:
        """The averages of online gradient descent, one for each sample."""
        w = np.zeros((len(drawn), self.X.shape[2]))
        total = np.zeros_like(w)
        for step in drawn.T:
            total += w
            w = w - eta * self.gradients(w, step)
        return total / drawn.shape[1]

    def regularized(self, drawn: np.ndarray, lambda_: float, steps: int = 300) -> tuple[np.ndarray, np.ndarray]:
        """Regularized minimizers of each sample by accelerated descent, and how far each objective is from its best."""
        counts = np.stack([(drawn == k).sum(axis=1) for k in range(len(self.chance))], axis=1)
        counts, same = np.unique(counts, axis=0, return_inverse=True)  # samples with the same lists learn the same
        shares = counts / drawn.shape[1]
        w = np.zeros((len(shares), self.X.shape[2]))
        ahead, curvature = w, H1 * RADIUS**2 + lambda_
        keep = (np.sqrt(curvature) - np.sqrt(lambda_)) / (np.sqrt(curvature) + np.sqrt(lambda_))
        for _ in range(steps):
            after = ahead - self._slope(ahead, shares, lambda_) / curvature
            ahead, w = after + keep * (after - w), after
        # strong convexity: the gap is at most norm(gradient)^2 / (2 lambda)
        gap = (self._slope(w, shares, lambda_) ** 2).sum(axis=1) / (2 * lambda_)
        return w[same], gap[same]

    def _slope(self, w: np.ndarray, shares: np.ndarray, lambda_: float) -> np.ndarray:
        slopes = (softmax(self._scores(w)) - softmax(self.y)) * shares[:, :, None]
        return slopes.reshape(len(w), -1) @ self.X.reshape(-1, self.X.shape[2]) + lambda_ * w


def log_softmax(s: np.ndarray) -> np.ndarray:
    s = s - s.max(axis=-1, keepdims=True)
    return s - np.log(np.exp(s).sum(axis=-1, keepdims=True))


def softmax(s: np.ndarray) -> np.ndarray:
    return np.exp(log_softmax(s))
