"""Checks of click logs: what makes a log invalid is an error, what looks wrong is a row of :func:`inspect`'s table.

Two logs are wrong in ways that no estimator repairs: clicks on documents that were not shown, and pages of which a
position is missing. The former is an error when the log is read. The latter is counted here and is an error in gains,
because a document that lost its place would be missing from the balance.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._tables import Table
from rankwise.errors import DataError

if TYPE_CHECKING:
    from rankwise.clicks.log import ClickLog

# A coin is refuted at this level, however often its tosses are looked at.
COIN_LEVEL = 0.001
# A session that clicks more than this share of ten or more shown documents looks like a program.
BOT_SHARE = 0.9
BOT_SHOWN = 5


def check_rows(
    where: str, session: Any, qid: Any, docid: Any, position: ArrayLike, click: ArrayLike, optional: Mapping[str, Any]
) -> dict[str, Any]:
    """The fields of a ClickLog from columns with one value per shown document; see ``ClickLog.from_rows``."""
    ids = {"session": _identities(session), "qid": _identities(qid), "docid": _identities(docid)}
    n = len(ids["session"])
    place = _whole(where, position, "position", 1)
    clicked = _numbers(where, click, "click")
    extra = {name: _extra(where, name, column) for name, column in optional.items() if column is not None}
    for name, values in (*ids.items(), ("position", place), ("click", clicked), *extra.items()):
        if len(values) != n:
            raise DataError(
                f"{where}: {name} must have one value for each of the {n:,} shown documents, got {len(values):,}"
            )
    if not n:
        raise DataError(f"{where}: a click log must have at least one shown document, got none")
    if (clicked < 0).any():
        raise DataError(f"{where}: click must be at least 0, got {clicked[clicked < 0][0]:g}")
    code, first = _codes(ids["session"])
    order = np.lexsort((place, code))
    fields: dict[str, Any] = {
        "start": np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(code))]),
        "session": ids["session"][first],
        "qid": ids["qid"][first],
        "docid": ids["docid"][order],
        "position": place[order],
        "click": clicked[order] > 0,
    }
    check_equal(where, "qid", ids["qid"], code, first, ids["session"])
    _check_repeats(where, ids, place, code)
    for name, values in extra.items():
        if name != "logged_rank":
            check_equal(where, name, values, code, first, ids["session"])
        fields[name] = values[order if name == "logged_rank" else first]
    _check_experiment(where, fields)
    return fields


def check_equal(
    where: str, name: str, values: NDArray[Any], code: NDArray[Any], first: NDArray[Any], session: NDArray[Any]
) -> None:
    """Raise an error if a column that belongs to sessions differs within one."""
    differs = values != values[first][code]
    if np.any(differs):
        row = int(np.argmax(differs))
        other = values[first][code[row]]
        raise DataError(
            f"{where}: session {session[row]!s:.40} must have one value of {name}, got {other!s:.40} and "
            f"{values[row]!s:.40}"
        )


def _check_repeats(where: str, ids: dict[str, NDArray[Any]], place: NDArray[np.int64], code: NDArray[Any]) -> None:
    """Raise an error if a session shows one document twice, or two documents at one position."""
    for name, values in (("position", place), ("document", _codes(ids["docid"])[0])):
        order = np.lexsort((values, code))
        again = (np.diff(code[order]) == 0) & (np.diff(values[order]) == 0)
        if again.any():
            row = int(order[np.argmax(again) + 1])
            shown = place[row] if name == "position" else ids["docid"][row]
            what = "two documents at" if name == "position" else "more than once the"
            raise DataError(f"{where}: session {ids['session'][row]!s:.40} shows {what} {name} {shown!s:.40}")


def _check_experiment(where: str, fields: Mapping[str, Any]) -> None:
    for one, other in (("swap", "swapped"), ("exploration", "pool")):
        if (one in fields) != (other in fields):
            there, missing = (one, other) if one in fields else (other, one)
            raise DataError(f"{where}: the column {there} requires the column {missing}")
    if "exploration" in fields:
        share = fields["exploration"]
        if ((share < 0) | (share > 1)).any():
            raise DataError(f"{where}: exploration must be in [0, 1], got {share[(share < 0) | (share > 1)][0]:g}")
        sizes = np.diff(fields["start"])
        if (fields["pool"] < sizes).any():
            raise DataError(f"{where}: pool, the number of candidates, must be at least the number of shown documents")


def _extra(where: str, name: str, column: Any) -> NDArray[Any]:
    if name == "version":
        return _identities(column)
    if name == "swapped":
        return _numbers(where, column, name) > 0
    if name == "exploration":
        return _numbers(where, column, name)
    return _whole(where, column, name, 1 if name == "pool" else 0)


def _identities(values: Any) -> NDArray[Any]:
    found = np.asarray(values)
    if found.ndim != 1:
        raise DataError(f"ids must be one per shown document, got an array of shape {found.shape}")
    return found if found.dtype.kind in "iu" else found.astype(str).astype(object)


def _codes(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers by first appearance, and the place of each first appearance."""
    kind = values if values.dtype.kind in "iu" else values.astype(str)
    _, first, inverse = np.unique(kind, return_index=True, return_inverse=True)
    by_place = np.argsort(first, kind="stable")
    number = np.empty(len(first), dtype=np.int64)
    number[by_place] = np.arange(len(first))
    return number[inverse.ravel()], first[by_place]


def _numbers(where: str, values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{where}: {name} must be numbers, got {values!r:.60}") from None
    if found.ndim != 1 or not np.isfinite(found).all():
        raise DataError(f"{where}: {name} must be finite numbers in one dimension, got NaN, infinity or another shape")
    return found


def _whole(where: str, values: ArrayLike, name: str, least: int) -> NDArray[np.int64]:
    found = _numbers(where, values, name)
    bad = (found != np.rint(found)) | (found < least) | (found > 2**31)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"{where}: {name} must be an integer of at least {least}, got {found[row]:g} in row {row:,}")
    return found.astype(np.int64)


# ------------------------------------------------------------------------------------------------------------- coins


def coin_refuted(heads: int, tosses: int, chance: float) -> bool:
    r"""Whether a count of heads refutes that a coin falls heads with this probability, at level 0.001 at all looks.

    It does if the likelihood of the tosses under the coin is 0.001 or less of that under a coin whose probability is
    drawn from Beta(1/2, 1/2):

    .. math:: \frac{B(h + 1/2,\ n - h + 1/2) / B(1/2, 1/2)}{c^h (1 - c)^{n - h}} \ge 1000.

    Parameters
    ----------
    heads, tosses : int
        How often the coin fell heads, of how many tosses.
    chance : float
        The claimed probability of heads.

    Returns
    -------
    bool
        True if the claim is refuted.

    Notes
    -----
    Proof. If the claim is right, the ratio is a mean of likelihood ratios, a nonnegative martingale that begins at 1;
    by Ville's inequality it ever reaches 1,000 with probability 0.001 at most.

    Examples
    --------
    >>> coin_refuted(540, 1_000, 0.5), coin_refuted(900, 1_000, 0.5)
    (False, True)
    """
    tails = tosses - heads

    def beta(a: float, b: float) -> float:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    evidence = beta(heads + 0.5, tails + 0.5) - beta(0.5, 0.5)
    return evidence - heads * math.log(chance) - tails * math.log1p(-chance) >= math.log(1 / COIN_LEVEL)


# ------------------------------------------------------------------------------------------------- what looks wrong


def incomplete(log: "ClickLog") -> NDArray[np.bool_]:
    """Sessions whose positions are not 1, 2, ..., n: a shown document is missing from the log."""
    last = log.position[np.maximum(log.start[1:] - 1, 0)]
    return np.asarray((last != log.sizes) & (log.sizes > 0))


def inspect(log: "ClickLog") -> Table:
    """Count what a log holds and what looks wrong in it.

    Parameters
    ----------
    log : ClickLog
        The log.

    Returns
    -------
    Table
        Columns what, sessions, share, and meaning: why it matters.

    Examples
    --------
    >>> from rankwise.clicks import ClickLog
    >>> log = ClickLog.from_rows(session=[1, 1], qid=[7, 7], docid=["a", "b"], position=[1, 3], click=[0, 1])
    >>> found = inspect(log)
    >>> found["what"][2], int(found["sessions"][2])
    ('a position is missing', 1)
    """
    n, sizes = len(log), log.sizes
    clicks = np.bincount(log.session_of_row, weights=log.click, minlength=n)
    bots, late = (sizes >= BOT_SHOWN) & (clicks >= BOT_SHARE * sizes), np.zeros(n, dtype=bool)
    late[log.session_of_row[log.click & (log.position > 50)]] = True
    rows: list[tuple[str, Any, str]] = [
        ("all", np.ones(n, dtype=bool), "values treat sessions as independent draws"),
        ("without a click", clicks == 0, "normal; counted as 0"),
        ("a position is missing", incomplete(log), "a shown document is missing: gains cannot be computed"),
        ("nearly everything clicked", bots, "looks like a bot: leave its client out"),
        ("clicked below position 50", late, "looks like a bot, or positions that do not start at 1 on each page"),
        ("fewer shown than the deepest page", sizes < log.depth, "short lists, or pages cut by the logger"),
    ]
    if log.swap is not None:
        rows.append(("in a swap experiment", log.swap > 1, "propensities can be learned from these"))
    if log.exploration is not None:
        rows.append(("may have been shuffled", log.exploration > 0, "every candidate can be seen: policy-aware"))
    counted = ((what, int(np.sum(found)), int(np.sum(found)) / max(n, 1), meaning) for what, found, meaning in rows)
    return Table.of_rows(("what", "sessions", "share", "meaning"), counted)


def click_rates(log: "ClickLog") -> Table:
    """Click rate by position: a description of the log, which is not the examination of positions.

    Parameters
    ----------
    log : ClickLog
        The log.

    Returns
    -------
    Table
        Columns position, shown, clicks, rate.
    """
    shown = np.bincount(log.position, minlength=log.depth + 1)[1:]
    clicks = np.bincount(log.position, weights=log.click, minlength=log.depth + 1)[1:]
    rate = np.divide(clicks, shown, out=np.zeros(len(shown)), where=shown > 0)
    return Table(
        {"position": np.arange(1, log.depth + 1), "shown": shown, "clicks": clicks.astype(np.int64), "rate": rate}
    )
