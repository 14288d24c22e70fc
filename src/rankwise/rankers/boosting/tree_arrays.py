"""What the files of boosters have in common: the trees of a file, and arrays put together from those of its trees."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import FileFormatError
from rankwise.rankers.boosting.tree_checks import DTYPES, MISSING_NAN

MOST_FEATURES = 10_000_000  # a damaged number must not take all memory
# Words of all sets of categories: a single large category takes a word for every 32 smaller ones.
_MOST_WORDS = 1 << 24
# Weights of documents are kept as whole numbers, the largest with so many bits.
_BITS_OF_WEIGHTS = 40


class TreesOfFile(NamedTuple):
    """The trees of a booster's file.

    Attributes
    ----------
    n_features : int
        The number of features.
    arrays : dict of str to ndarray
        The attributes of :class:`~rankwise.rankers.boosting.tree_ensemble.TreeEnsemble` by name.
    offset : float
        What is added to the sum of the trees.
    divisor : float
        What the sum of the trees is divided by.
    names : tuple of str or None
        The names of the features, if the booster was given any.
    """

    n_features: int
    arrays: dict[str, NDArray[Any]]
    offset: float = 0.0
    divisor: float = 1.0
    names: tuple[str, ...] | None = None


def concat_trees(trees: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The arrays of an ensemble from those of its trees; what a tree leaves out: NaN is missing, no categories."""
    sizes = [len(tree["feature"]) for tree in trees]
    usual = {name: np.empty(0, dtype) for name, dtype in DTYPES.items()} | {"n_words": np.empty(0, np.int64)}
    parts: dict[str, list[NDArray[Any]]] = {name: [empty] for name, empty in usual.items()}
    for tree, size in zip(trees, sizes, strict=True):
        given: dict[str, NDArray[Any]]
        given = {"missing": np.full(size, MISSING_NAN, np.uint8), "n_words": np.zeros(size, np.int64), **tree}
        for name, found in parts.items():
            found.append(given.get(name, usual[name]))
    joined = {name: np.concatenate(found) for name, found in parts.items()}
    for name, lengths in (("start", sizes), ("word_start", joined.pop("n_words"))):
        joined[name] = np.append(0, np.cumsum(lengths, dtype=np.int64))
    return joined


def first_rounds(trees: Sequence[Any], rounds: int | None, per_round: int = 1) -> list[Any]:
    """The trees of the first rounds; all of them where ``rounds`` is None."""
    return list(trees) if rounds is None else list(trees)[: rounds * per_round]


def sets_of_categories(
    sets: Sequence[Sequence[int]], taken: int, where: str
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Bit sets of categories.

    Parameters
    ----------
    sets : sequence of sequence of int
        The categories, 0 or more, of every node; none at numerical nodes.
    taken : int
        Words that other trees of the model take.
    where : str
        The tree, for the message.

    Returns
    -------
    n_words : ndarray of int64
        The number of words of every node.
    words : ndarray of uint32
        The words in the order of the nodes.

    Raises
    ------
    FileFormatError
        If the sets of the model take too much memory.
    """
    n_words = np.array([max(one) // 32 + 1 if len(one) else 0 for one in sets], np.int64)
    if taken + int(n_words.sum()) > _MOST_WORDS:
        raise FileFormatError(f"{where}: its categories are too large: number them from 0 before training")
    words = np.zeros(int(n_words.sum()), np.uint32)
    first = np.append(0, np.cumsum(n_words))
    for place, one in enumerate(sets):
        codes = np.array(one, np.int64)
        np.bitwise_or.at(words, first[place] + codes // 32, np.uint32(1) << (codes % 32).astype(np.uint32))
    return n_words, words


def as_counts(weight: NDArray[np.float64], total: float) -> NDArray[np.int64]:
    """Weights of documents as whole numbers, where they are not counts: in units of a power of two.

    Parameters
    ----------
    weight : ndarray of float64
        The weights of nodes or leaves of one tree.
    total : float
        The largest weight of the tree, that of its root.

    Returns
    -------
    ndarray of int64
        The numbers; 0 throughout where the weights are not known.
    """
    if not (weight >= 0).all() or not 0 < total < math.inf or (weight > total * (1 + 1e-3)).any():
        return np.zeros(len(weight), np.int64)
    return np.rint(np.ldexp(weight, _BITS_OF_WEIGHTS - math.frexp(total)[1])).astype(np.int64)


def names_or_none(names: Sequence[Any], usual: Sequence[str]) -> tuple[str, ...] | None:
    """The names of features; None where the booster made them up, or they are not different texts."""
    found = [name for name in names if isinstance(name, str) and name.strip()]
    if len(found) < len(usual) or len(names) != len(usual) or len(set(found)) < len(found) or found == list(usual):
        return None
    return tuple(found)


def numbers_in(tree: Mapping[str, Any], name: str, where: str, kinds: str) -> NDArray[Any]:
    """A list of numbers that float32 can hold, of these kinds of NumPy: as float64 if "f" is one, otherwise int64."""
    try:
        given = np.array(tree[name])
        if given.ndim != 1 or (given.dtype.kind not in kinds and len(given)):
            raise TypeError("no list of numbers")
        found = given.astype(np.float64 if "f" in kinds else np.int64)
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise FileFormatError(f"{where}: {name} is missing or damaged") from error
    if not (np.abs(found) <= float(np.finfo(np.float32).max)).all():
        raise FileFormatError(f"{where}: {name} holds a number that float32 cannot hold")
    return found
