"""The command ``rankwise``: one file a command, tables for people, ``--json`` for programs.

Bad input is one sentence on standard error and exit code 2; Ctrl-C is exit code 130.
"""

import os
import sys

import typer

from rankwise._errors import RankwiseError
from rankwise._version import __version__
from rankwise.cli import certify, compare, convert, demo, evaluate, inspect, simulate, train

_INTERRUPTED = 130  # what shells report after Ctrl-C

app = typer.Typer(
    name="rankwise",
    help="Rankers trained for the measure that you report: read judged lists, learn, measure, diagnose.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("inspect")(inspect.inspect)
app.command("convert")(convert.convert)
app.command("evaluate")(evaluate.evaluate)
app.command("compare")(compare.compare)
app.command("train")(train.train)
app.command("certify")(certify.certify)
app.command("simulate")(simulate.simulate)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"rankwise {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", callback=_print_version, is_eager=True
    ),
) -> None:
    pass


def main() -> int:
    """Run the command line; the exit code is returned, never raised."""
    try:
        app(prog_name="rankwise")
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
        return _stopped() if code == _INTERRUPTED else code
    except KeyboardInterrupt:  # before typer could take it
        return _stopped()
    except RankwiseError as error:
        return _complain(str(error))
    except FileNotFoundError as error:
        return _complain(f"no such file: {error.filename}")
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return 0


def _stopped() -> int:
    print("rankwise: stopped; nothing half-written was left", file=sys.stderr)
    return _INTERRUPTED


def _complain(sentence: str) -> int:
    print(f"rankwise: {sentence}", file=sys.stderr)
    return 2
