"""Ridge regression on millions of rows in one pass: moments of the features are all that it looks at.

min over w, b of sum_i c_i (w . x_i + b - g_i)^2 + alpha norm(w)^2 needs sum c, sum c x, sum c x x', sum c g x alone.
They are kept apart for relevant and other documents, so that any balance between the two is a matter of adding, as is
any union of sets of lists.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankwise.data.queries import Queries
from rankwise.solvers._row_blocks import row_blocks

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows of (1, x, g) times its transpose, as one symmetric matrix a class of documents.

    ``sums[0]`` is of the documents without relevance, ``sums[1]`` of the relevant ones; row and column 0 belong to the
    1, the last ones to the target g.
    """

    sums: Vector

    @classmethod
    def of(
        cls,
        queries: Queries,
        target: Vector,
        factor: Vector,
        shift: Vector,
        lists: NDArray[np.int64] | None = None,
    ) -> Self:
        """Moments of (x - shift) factor over these lists (None: all), in blocks: X is neither copied nor widened."""
        labels, owner = queries.labels(), queries.query_of_row
        width = queries.n_features + 2
        sums = np.zeros((2, width, width))
        for rows in row_blocks(queries, lists):
            own = target[rows]
            block = np.empty((len(own), width))
            block[:, 0] = 1.0
            block[:, 1:-1] = queries.X[rows]
            block[:, 1:-1] -= shift
            block[:, 1:-1] *= factor
            block[:, -1] = own
            often = np.ones(len(own)) if queries.weight is None else queries.weight[owner[rows]]
            for relevant in (0, 1):
                part = (labels[rows] > 0) == relevant
                if part.any():
                    sums[relevant] += (block[part] * often[part, None]).T @ block[part]
        return cls(sums)

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.sums + other.sums)

    def ridge(self, alphas: Sequence[float], balanced: bool) -> list[Vector]:
        """The weights w for every alpha; with ``balanced`` either class of documents has half of the total weight."""
        counts = self.sums[:, 0, 0]
        share = np.ones(2)
        if balanced and counts.all():
            share = counts.sum() / (2 * counts)
        total = np.tensordot(share, self.sums, 1)
        mean = total[0] / total[0, 0] if total[0, 0] else total[0]
        centred = total - np.outer(mean, total[0])
        values, vectors = np.linalg.eigh(centred[1:-1, 1:-1])
        along = vectors.T @ centred[1:-1, -1]
        # directions in which the features do not vary say nothing, whatever rounding makes of them
        flat = values <= values.max(initial=0.0) * len(values) * np.finfo(float).eps
        return [
            np.asarray(vectors @ np.where(flat, 0.0, along / np.where(flat, 1.0, values + alpha))) for alpha in alphas
        ]
