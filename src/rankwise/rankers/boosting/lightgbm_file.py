"""LightGBM's text format of a model, read into flat arrays: what ``save_model`` and ``model_to_string`` write.

Only what a score depends on is read, with gains, counts and names; each value is checked for its form here, and the
trees as a whole by :class:`~rankwise.rankers.boosting.tree_ensemble.TreeEnsemble`.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import FileFormatError, RankwiseError
from rankwise.rankers.boosting.tree_arrays import MOST_FEATURES, TreesOfFile, concat_trees, first_rounds, names_or_none
from rankwise.rankers.boosting.tree_checks import DTYPES

_VERSIONS = ("v3", "v4")
# The bits of a decision type: a set of categories, the side of missing values, and two bits for what is missing.
_CATEGORICAL, _DEFAULT_LEFT, _MISSING = 1, 2, 2


def read_lightgbm(text: str, rounds: int | None = None) -> TreesOfFile:
    """Read the trees of a model with one score per row.

    Parameters
    ----------
    text : str
        The model.
    rounds : int, default=None
        The number of trees to read; None reads all.

    Returns
    -------
    TreesOfFile
        The trees; those of a random forest are divided by their number, as LightGBM does.

    Raises
    ------
    FileFormatError
        If the text is no such model, is damaged, or holds what the ensemble cannot express.
    """
    if not isinstance(text, str):
        raise RankwiseError(f"a LightGBM model must be a str, got {type(text).__name__}")
    text = text.replace("\r\n", "\n")  # written on Windows
    head, *blocks = re.split(r"^Tree=", text.partition("\nend of trees")[0], flags=re.MULTILINE)
    n_features, names, is_mean = _read_head(head)
    if "\nend of trees" not in text:
        raise FileFormatError("the LightGBM model is cut short: the line 'end of trees' is missing")
    kept = first_rounds(blocks, rounds)
    trees = [_lightgbm_tree(block, number, n_features) for number, block in enumerate(kept)]
    divisor = float(max(len(trees), 1)) if is_mean else 1.0
    return TreesOfFile(n_features, concat_trees(trees), divisor=divisor, names=names)


def _read_head(head: str) -> tuple[int, tuple[str, ...] | None, bool]:
    """Check the lines before the first tree: the number of features, their names, and whether trees are averaged."""
    facts = _facts(head)
    if not head.lstrip().startswith("tree\n"):
        raise FileFormatError("this is not a LightGBM model: its first line must be 'tree'")
    if facts.get("version") not in _VERSIONS:
        raise FileFormatError(f"the LightGBM model must have version v3 or v4, got {facts.get('version')!r:.20}")
    if facts.get("num_class") != "1" or facts.get("num_tree_per_iteration") != "1":
        raise FileFormatError(
            "the LightGBM model has several scores per row (multi-class): expected num_class=1, as rankers and "
            "regressions have"
        )
    highest = facts.get("max_feature_idx", "")
    if not re.fullmatch(r"[0-9]{1,10}", highest) or int(highest) >= MOST_FEATURES:
        raise FileFormatError(f"the LightGBM model has max_feature_idx={highest!r:.20}: expected a whole number")
    count = int(highest) + 1
    given = facts.get("feature_names", "").split()
    names = names_or_none(given, [f"Column_{place}" for place in range(count)]) if len(given) == count else None
    return count, names, re.search(r"^average_output", head, flags=re.MULTILINE) is not None


def _facts(text: str) -> dict[str, str]:
    """The lines ``key=value``."""
    pairs = (line.partition("=") for line in text.split("\n"))
    return {key: value.strip() for key, mark, value in pairs if mark}


def _lightgbm_tree(block: str, number: int, n_features: int) -> dict[str, NDArray[Any]]:
    """The arrays of one tree, from the text after ``Tree=``."""
    numbered, _, rest = block.partition("\n")
    tree = _Tree(_facts(rest), f"the LightGBM model, tree {number}")
    if numbered.strip() != str(number):
        raise FileFormatError(f"the LightGBM model numbers its tree {number} as {numbered!r:.20}")
    if tree.facts.get("is_linear", "0") != "0":
        raise FileFormatError(f"{tree.where}: it has linear models in its leaves: train with linear_tree=False")
    value = tree.floats("leaf_value")
    leaves, nodes = len(value), len(value) - 1
    if tree.facts.get("num_leaves") != str(leaves):
        raise FileFormatError(f"{tree.where}: it has {leaves} leaf values, and num_leaves says otherwise")
    if not nodes:
        empty = {name: np.empty(0, dtype) for name, dtype in DTYPES.items()}
        return {**empty, "n_words": np.empty(0, np.int64), "value": value, "leaf_count": np.zeros(1, np.int64)}
    decision = tree.wholes("decision_type", nodes, 0, 15)
    missing = decision >> _MISSING
    if (missing > 2).any():
        raise FileFormatError(f"{tree.where}: unknown decision type {int(decision[missing > 2][0])}")
    # a node that separates NaN from all numbers has an infinite threshold, and features are finite or NaN
    threshold, categorical = tree.floats("threshold", nodes, largest=True), (decision & _CATEGORICAL) > 0
    n_words, words = tree.categories(threshold, categorical)
    return {
        "feature": tree.wholes("split_feature", nodes, 0, n_features - 1),
        "threshold": np.where(categorical, 0.0, threshold),
        "left": tree.wholes("left_child", nodes, -leaves, nodes - 1),
        "right": tree.wholes("right_child", nodes, -leaves, nodes - 1),
        "missing": np.where(categorical, 0, missing).astype(np.uint8),
        "default_left": (~categorical & ((decision & _DEFAULT_LEFT) > 0)).astype(np.uint8),
        "n_words": n_words,
        "words": words,
        "value": value,
        "gain": tree.floats("split_gain", nodes),
        "node_count": tree.wholes("internal_count", nodes, 0, 2**53),
        "leaf_count": tree.wholes("leaf_count", leaves, 0, 2**53),
    }


class _Tree:
    """The lines of one tree, whose values are checked as they are read."""

    def __init__(self, facts: Mapping[str, str], where: str) -> None:
        self.facts = facts
        self.where = where

    def floats(self, name: str, length: int | None = None, largest: bool = False) -> NDArray[np.float64]:
        """Finite numbers; with ``largest``, infinity stands for the largest of them."""
        words = self._words(name, length)
        try:
            found = np.array(words, dtype=np.float64)
        except ValueError as error:
            raise FileFormatError(f"{self.where}: {name} holds values that are not numbers") from error
        if largest:
            found[found == np.inf] = np.finfo(np.float64).max
        if not np.isfinite(found).all():
            raise FileFormatError(f"{self.where}: {name} holds a number that is not finite")
        return found

    def wholes(self, name: str, length: int, least: int, most: int) -> NDArray[np.int64]:
        """Whole numbers in a range."""
        words = self._words(name, length)
        wrong = next((word for word in words if not re.fullmatch(r"-?[0-9]{1,18}", word)), None)
        if wrong is not None:
            raise FileFormatError(f"{self.where}: {name} holds {wrong!r:.30}, expected whole numbers")
        found = np.array(words, dtype=np.int64)
        outside = (found < least) | (found > most)
        if outside.any():
            raise FileFormatError(f"{self.where}: {name} holds {found[outside][0]}, expected {least} to {most}")
        return found

    def categories(
        self, threshold: NDArray[np.float64], categorical: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """The number of words of every node, and the words in the order of the nodes.

        The threshold of a categorical node is the number of its set; set c has the words cat_boundaries[c] to
        cat_boundaries[c+1]-1 of cat_threshold.
        """
        n_words = np.zeros(len(threshold), np.int64)
        if not categorical.any():
            return n_words, np.empty(0, np.uint32)
        count = self.wholes("num_cat", 1, 1, len(threshold))[0]
        bounds = self.wholes("cat_boundaries", count + 1, 0, 2**53)
        words = self.wholes("cat_threshold", int(bounds[-1]), 0, 2**32 - 1).astype(np.uint32)
        if bounds[0] != 0 or (np.diff(bounds) <= 0).any():
            raise FileFormatError(f"{self.where}: cat_boundaries do not ascend from 0")
        chosen = threshold[categorical]
        if ((chosen < 0) | (chosen >= count) | (chosen != np.floor(chosen))).any():
            raise FileFormatError(f"{self.where}: a categorical split names none of the {count} sets of categories")
        sets = chosen.astype(np.int64)
        n_words[categorical] = bounds[sets + 1] - bounds[sets]
        return n_words, np.concatenate([words[bounds[one] : bounds[one + 1]] for one in sets.tolist()])

    def _words(self, name: str, length: int | None) -> list[str]:
        """The words of a line, of this number."""
        line = self.facts.get(name)
        if line is None:
            raise FileFormatError(f"{self.where}: it lacks {name}")
        words = line.split()
        if not line.isascii() or "_" in line or not words or (length is not None and len(words) != length):
            expected = "numbers" if length is None else f"{length} numbers"
            raise FileFormatError(f"{self.where}: {name} holds {len(words)} words, expected {expected}")
        return words
