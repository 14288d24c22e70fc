"""An experiment on OHSUMED with one file of numbers and one picture: measure and draw, or draw what was measured."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rankwise._figures import save_png
from rankwise._files import writing


def measure_and_draw(
    arguments: Sequence[str], collect: Callable[[Path], Any], draw: Callable[[Any], Any], numbers: Path, figure: Path
) -> int:
    """Write ``collect(set)`` to ``numbers`` unless the argument is ``--redraw``, and draw them; the exit code."""
    data = os.environ.get("RANKWISE_DATA")
    if list(arguments) != ["--redraw"]:
        if arguments or not data:
            sentence = "set RANKWISE_DATA to the folder with the set ohsumed; --redraw is the only argument"
            print(sentence, file=sys.stderr)
            return 2
        with writing(numbers) as part:
            part.write_text(json.dumps(collect(Path(data) / "ohsumed")) + "\n", encoding="utf-8")
    save_png(draw(json.loads(numbers.read_text(encoding="utf-8"))), figure)
    return 0
