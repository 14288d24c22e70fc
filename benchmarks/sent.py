"""Results of other machines: written by ``bench --save``, checked, and kept in docs/sent/ by ``bench --add``."""

import json
import math
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from rankwise._files import writing
from rankwise.errors import FileFormatError

FOLDER = Path(__file__).parents[1] / "docs" / "sent"
FORMAT = 1
MACHINE = {"processor": str, "cores": int, "system": str, "python": str, "rankwise": str}
TEXTS = ("work", "how", "peer", "target")
LONGEST = 200  # letters of a text: they become cells of a table


@dataclass(frozen=True)
class Sent:
    """Results of one machine.

    Attributes
    ----------
    machine : dict
        Processor, cores, system, memory and versions.
    measured : str
        The day, as in 2026-11-17.
    results : dict of str to list of dict
        Rows by benchmark, as in docs/benchmarks.json.
    """

    machine: dict[str, Any]
    measured: str
    results: dict[str, list[dict[str, Any]]]

    def write(self, path: Path) -> None:
        """Write the file to send."""
        told = {"format": FORMAT, "measured": self.measured, "machine": self.machine, "results": self.results}
        with writing(path) as part:
            part.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path, known: set[str]) -> "Sent":
        """Read a file that somebody sent.

        Parameters
        ----------
        path : path-like
            The file.
        known : set of str
            The names of benchmarks.

        Returns
        -------
        Sent
            Its contents, every value checked.

        Raises
        ------
        FileFormatError
            If something is missing, is of another type, or does not fit together.
        """
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise FileFormatError(f"{path}: there is no such file") from None
        except ValueError as error:
            raise FileFormatError(f"{path}: expected JSON of bench --save: {error}") from None
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise FileFormatError(f"{path}: expected format {FORMAT} of bench --save")
        _check_machine(path, told.get("machine"))
        measured = told.get("measured")
        if not isinstance(measured, str) or not _is_day(measured):
            raise FileFormatError(f"{path}: measured is {measured!r}, expected a day such as 2026-11-17")
        results = told.get("results")
        if not isinstance(results, dict) or not results:
            raise FileFormatError(f"{path}: results is {type(results).__name__}, expected rows by benchmark")
        for name, rows in results.items():
            if name not in known:
                raise FileFormatError(f"{path}: no benchmark is called {name!r}; there are: {', '.join(sorted(known))}")
            if not isinstance(rows, list) or not rows:
                raise FileFormatError(f"{path}: {name} has no rows")
            for number, row in enumerate(rows, 1):
                _check_row(f"{path}: row {number} of {name}", row)
        return cls(told["machine"], measured, results)

    def name(self) -> str:
        """The name of its file in docs/sent/."""
        words = re.sub(r"[^a-z0-9]+", "_", f"{self.machine['processor']} {self.machine['cores']}".lower()).strip("_")
        return f"{words}_{self.measured}.json"


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _check_machine(path: Path, machine: Any) -> None:
    if not isinstance(machine, dict):
        raise FileFormatError(f"{path}: machine is {type(machine).__name__}, expected its description")
    for name, kind in MACHINE.items():
        value = machine.get(name)
        if type(value) is not kind:
            raise FileFormatError(f"{path}: {name} of the machine is {value!r}, expected {kind.__name__}")
    for name, value in machine.items():
        if not (type(value) in (int, float) or (isinstance(value, str) and _is_plain(value))):
            raise FileFormatError(f"{path}: {name} of the machine is neither a number nor a short plain text")


def _check_row(where: str, row: Any) -> None:
    """Texts are short and plain; the ratio is that of two finite positive amounts."""
    if not isinstance(row, dict):
        raise FileFormatError(f"{where} is {type(row).__name__}, expected a row")
    for name in TEXTS:
        if not isinstance(row.get(name), str) or not _is_plain(row[name]):
            raise FileFormatError(f"{where}: {name} is {row.get(name)!r}, expected a short plain text")
    unit = "mib" if "rankwise_mib" in row else "seconds"
    amounts = [row.get(f"peer_{unit}"), row.get(f"rankwise_{unit}"), row.get("ratio")]
    for amount in amounts:
        if not isinstance(amount, (int, float)) or not (math.isfinite(amount) and amount > 0):
            raise FileFormatError(f"{where}: amounts and ratio are {amounts}, expected positive numbers")
    peer, own, ratio = amounts
    if not math.isclose(peer / own, ratio, rel_tol=1e-6):
        raise FileFormatError(f"{where}: the ratio is {ratio:.4g}, expected {peer / own:.4g}, that of its amounts")
    if set(row) != {*TEXTS, "ratio", f"peer_{unit}", f"rankwise_{unit}"}:
        raise FileFormatError(f"{where} has {', '.join(sorted(row))}: expected one task, two amounts and their ratio")


def _is_plain(text: str) -> bool:
    """One line that is no markup and breaks no table."""
    return 0 < len(text) <= LONGEST and text.isprintable() and not re.search(r"[|<>`\[\]{}$\\]", text)


def read_all(folder: Path = FOLDER) -> list[Sent]:
    """Every result in docs/sent/, by name."""
    from benchmarks.__main__ import names

    return [Sent.read(path, set(names())) for path in sorted(folder.glob("*.json"))]
