"""Examples in documents print what they say, up to the last digits of floating-point numbers.

Processors that fuse a multiplication and an addition round once where others round twice, so that last digits depend
on the platform. Needs the standard library alone: ``python examples.py README.md`` runs the examples of a document with
whatever packages the interpreter has.
"""

import doctest
import io
import math
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
TOLERANCE = 1e-12
# Twelve digits and more: shorter numbers are rounded, and are the same everywhere.
_LONG = re.compile(r"-?\d+\.\d{10,}(?:e[+-]?\d+)?")
# A program, and what it prints.
_PROGRAM = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


class UpToRounding(doctest.OutputChecker):
    """Texts are equal, and long decimal numbers in them agree to a relative difference of 1e-12."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        wanted, found = _LONG.findall(want), _LONG.findall(got)
        return (
            len(wanted) == len(found)
            and all(math.isclose(float(a), float(b), rel_tol=TOLERANCE) for a, b in zip(wanted, found, strict=True))
            and super().check_output(_LONG.sub("#", want), _LONG.sub("#", got), optionflags)
        )


def run(examples: doctest.DocTest) -> doctest.TestResults:
    """Run the examples of one document or docstring; what differs is printed."""
    return doctest.DocTestRunner(checker=UpToRounding(), optionflags=OPTIONS).run(examples)


def run_file(path: Path) -> doctest.TestResults:
    """Run the examples of a document, and its programs with the text that they print below them."""
    text = path.read_text(encoding="utf-8")
    found = run(doctest.DocTestParser().get_doctest(text, {}, path.name, str(path), 0))
    programs, failed = _PROGRAM.findall(text), 0
    for program, wanted in programs:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(program, {})  # a page of this repository
        if not UpToRounding().check_output(wanted, printed.getvalue(), OPTIONS):
            print(f"{path.name}:\n{program}printed\n{printed.getvalue()}in place of\n{wanted}")
            failed += 1
    return doctest.TestResults(found.failed + failed, found.attempted + len(programs))


if __name__ == "__main__":
    result = run_file(Path(sys.argv[1]))
    print(f"{result.attempted} examples, {result.failed} failed")
    sys.exit(result.failed > 0 or result.attempted == 0)
