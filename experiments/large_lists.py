"""Write simulated judged queries of any size as a data set in parts, block by block, never in memory.

``python3 run.py python -m experiments.large_lists lists/ --rows 20000000 --features 136`` writes about 11 GB.

Features are normal numbers on scales of their own, some with many zeros. The label of a document is the grade of a
weighted sum of a few of them plus noise, so a linear ranker learns something and none is perfect. Every block has a
random generator of its own: the same seed gives the same data set, whatever the size of the parts.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rankwise import Parts, Queries
from rankwise._progress import throughput
from rankwise.io import PartsWriter

BLOCK = 1 << 17  # documents that are drawn together
SIZES = (20, 180)  # documents of a query
# Shares of the grades 0 to 4.
GRADES = (0.55, 0.25, 0.12, 0.05, 0.03)


def blocks(rows: int, features: int, seed: int = 0, dtype: str = "float32") -> Iterator[Queries]:
    """Blocks of whole queries, ``rows`` documents in all.

    Parameters
    ----------
    rows : int
        The number of documents.
    features : int
        The number of features.
    seed : int, default=0
        The seed.
    dtype : {"float32", "float64"}, default="float32"
        The type of the features.

    Yields
    ------
    block : Queries
        About 131,072 documents.
    """
    general = np.random.default_rng([seed, 0])
    weights = np.where(general.random(features) < 0.3, general.normal(size=features), 0.0).astype(dtype)
    weights[0] = 1.0  # at least one feature counts
    scale = (10.0 ** general.integers(-2, 3, features)).astype(dtype)
    sparse = np.flatnonzero(general.random(features) < 0.2)
    cuts = np.quantile(general.normal(size=100_000), np.cumsum(GRADES)[:-1])
    spread = float(np.sqrt((weights**2).sum() + 1))
    done = queries = 0
    while done < rows:
        random = np.random.default_rng([seed, 1, done])
        size = min(BLOCK, rows - done)
        sizes = random.integers(SIZES[0], SIZES[1] + 1, size // SIZES[0] + 1)
        sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), size)) + 1]
        sizes[-1] -= sizes.sum() - size  # the block has exactly so many documents
        X = random.standard_normal((size, features), dtype=dtype)
        useful = (X @ weights + random.standard_normal(size, dtype=dtype)) / spread
        X[:, sparse] = np.maximum(X[:, sparse], 0)
        X *= scale
        y = np.searchsorted(cuts, useful).astype(np.float64)
        qid = np.arange(queries, queries + len(sizes))
        yield Queries._trusted(X, y, np.concatenate([[0], np.cumsum(sizes)]), qid=qid)
        done, queries = done + size, queries + len(sizes)


def write_large_lists(
    path: str | Path, rows: int, features: int, *, seed: int = 0, dtype: str = "float32", part_bytes: int = 256 << 20
) -> Parts:
    """Write simulated queries as a data set in parts.

    Parameters
    ----------
    path : path
        The folder.
    rows, features : int
        The numbers of documents and of features.
    seed : int, default=0
        The seed.
    dtype : {"float32", "float64"}, default="float32"
        The type of the features.
    part_bytes : int, default=268435456
        About how large a part is.

    Returns
    -------
    parts : Parts
        The data set.
    """
    total = rows * features * np.dtype(dtype).itemsize
    with throughput("writing", total) as bar, PartsWriter(path, part_bytes=part_bytes, distinct=True) as writer:
        for block in blocks(rows, features, seed, dtype):
            writer.append(block)
            bar.advance_rows(block.n_documents, block.X.nbytes)
    return Parts(path)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("path")
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--features", type=int, default=136)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    given = options.parse_args()
    print(write_large_lists(given.path, given.rows, given.features, seed=given.seed, dtype=given.dtype))
