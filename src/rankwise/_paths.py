"""Paths that come from outside: what cannot be a path raises a clear error before the system sees it."""

import os

from rankwise.errors import RankwiseError

PathLike = str | os.PathLike[str]


def path_of(path: object) -> str:
    """The path as text.

    Parameters
    ----------
    path : str, bytes or os.PathLike
        The path.

    Returns
    -------
    name : str
        The same path.

    Raises
    ------
    RankwiseError
        If it is not a path, is empty, holds a zero byte, or holds a letter that the file system cannot encode.

    Examples
    --------
    >>> path_of("train.txt")
    'train.txt'
    """
    try:
        name = os.fsdecode(path)  # type: ignore[arg-type]
        os.fsencode(name)
    except TypeError as error:
        raise RankwiseError(f"a path must be a str or path-like, got {path!r:.60}") from error
    except UnicodeEncodeError as error:  # half of a surrogate pair
        raise RankwiseError(f"{path!r:.60} is not a path: the file system cannot encode it ({error.reason})") from error
    if not name:
        raise RankwiseError("a path must not be empty")
    if "\0" in name:
        raise RankwiseError(f"{name!r:.60} is not a path: it holds a zero byte")
    return name
