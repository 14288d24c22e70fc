"""Parts of a report are made one by one: one that raises an error costs one line of the page, and nothing else."""

from collections.abc import Callable
from typing import TypeVar

from rankwise.errors import ReportWarning, in_one_line, warn

Made = TypeVar("Made")


def attempt(make: Callable[[], Made], what: str, otherwise: Made) -> tuple[Made, str]:
    """Make a part of a report; an error becomes a warning and a sentence for the page.

    Parameters
    ----------
    make : callable
        Makes the part.
    what : str
        What the part is, for the warning.
    otherwise : object
        What stands in its place after an error.

    Returns
    -------
    made : object
        The part.
    failed : str
        The sentence; empty where there was no error.
    """
    try:
        return make(), ""
    except Exception as error:  # any error: what only draws must not end a run that took hours
        reason = f"{type(error).__name__}: {in_one_line(error)}"
        warn(f"{what} of the report could not be drawn: {reason}", ReportWarning)
        return otherwise, f"This could not be drawn: {reason}"
