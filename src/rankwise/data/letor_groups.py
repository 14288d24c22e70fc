"""Which rows of a LETOR text belong together: by their qids, or by the sizes in a file beside it."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise._errors import FileFormatError
from rankwise.data.grouping import Grouping, by_size, warn_of_empty
from rankwise.data.plain_text import without_mark
from rankwise.data.sources import STANDARD_INPUT, name_of, read_text
from rankwise.data.texts import Texts

SIDE_FILES = (".query", ".group")  # LightGBM's and XGBoost's names
_LONGEST = 256  # letters of an id up to which all ids may take the room of the longest


def as_written(tokens: Texts) -> NDArray[Any]:
    """Ids as whole numbers if each is written as one is, else as the texts that they are (``007`` stays ``007``)."""
    from rankwise._kernels.letor_lines import read_integers

    data = tokens.data.view()
    data.flags.writeable = False
    numbers = np.empty(len(tokens), dtype=np.int64)
    if read_integers(data, tokens.offset[:-1], np.diff(tokens.offset), numbers):
        return numbers
    texts = list(tokens)
    if max(map(len, texts)) > _LONGEST or any(text.endswith("\0") for text in texts):  # NumPy drops zeros at the end
        return np.array([*texts, None], dtype=object)[:-1]
    return np.array(texts, dtype=str)


def find_side_file(source: Any) -> str | None:
    """The file of sizes that belongs to a text by its name: ``train.txt.query`` or ``train.txt.group``."""
    if hasattr(source, "read") or name_of(source) == STANDARD_INPUT:
        return None
    name = name_of(source)
    names = [name, name.removesuffix(".gz")]
    return next((known + end for known in names for end in SIDE_FILES if os.path.isfile(known + end)), None)


def group_sizes(query_file: Any, name: str, dropped: NDArray[np.bool_], n_rows: int) -> Grouping:
    """Queries of the sizes that the file lists, one a line, without the rows that were dropped.

    A query whose rows were all dropped is gone, as it would be from a text with qids.
    """
    n_lines = len(dropped) or n_rows
    sizes = _read_sizes(query_file, name, n_lines)
    if sum(sizes) != n_lines:
        raise FileFormatError(
            f"{name_of(query_file)}: the sizes add up to {sum(sizes):,}, but {name} has {n_lines:,} rows"
        )
    warn_of_empty(np.array(sizes, dtype=np.int64), name_of(query_file))
    if len(dropped):
        kept_before = np.concatenate([[0], np.cumsum(~dropped)])
        kept = np.diff(kept_before[np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])])
        return by_size(kept[kept > 0], n_rows)
    return by_size(sizes, n_rows)


def _read_sizes(query_file: Any, name: str, n_lines: int) -> list[int]:
    """The sizes, none above the number of rows; Python's own numbers, whose sum does not wrap."""
    text = read_text(query_file)
    sizes = []
    for number, line in enumerate(without_mark(text.data.tobytes(), text.name).splitlines(), start=1):
        words = line.split()
        if len(words) > 1 or not all(word.isdigit() and len(word) <= 18 for word in words):
            shown = line.decode("utf-8", "replace").strip()
            raise FileFormatError(f"{text.name}, line {number:,}: expected the size of a query, found {shown[:40]!r}")
        for size in map(int, words):
            if size > n_lines:
                raise FileFormatError(
                    f"{text.name}, line {number:,}: a query of {size:,} rows, but {name} has {n_lines:,} rows"
                )
            sizes.append(size)
    return sizes
