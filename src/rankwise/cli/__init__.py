"""The command ``rankwise``: one module per command, tables for people, ``--json`` for programs.

A command module declares its options as defaults of parameters (``options``) and calls the library; ``reading`` has the
options and the file handling that commands share, ``wording`` the words of the shell. This module registers the
commands and turns errors into one message on standard error and exit code 2; ``certify`` that certifies nothing is exit
code 3, a gate that is not passed exit code 1, and Ctrl-C exit code 130.
"""

import io
import os
import sys
import warnings
from importlib import import_module
from typing import Any

import typer

from rankwise._version import __version__
from rankwise.cli.options import complete, new_app, option
from rankwise.cli.wording import in_shell
from rankwise.errors import RankwiseError

_INTERRUPTED = 130  # what shells report after Ctrl-C

app = new_app(
    "rankwise",
    "Train rankers for the measure that you report. Start with rankwise demo, or with a file: rankwise inspect my.csv",
)


# panel of the help -> names of its commands; each is in a module of this package with the same name
_COMMANDS = {
    "Start": ("demo", "doctor", "warm"),
    "Data": ("inspect", "split", "convert"),
    "Model": ("train", "rank", "evaluate", "certify", "compare", "gate", "cutoff"),
    "Online": ("serve", "replay", "state", "clicks", "simulate"),
    "Output": ("report", "export"),
}
_MODULES = {"report": "compare", "replay": "serve", "state": "serve"}  # a command in the module of another one
for _panel, _names in _COMMANDS.items():
    for _name in _names:
        _module = import_module(f"{__name__}.{_MODULES.get(_name, _name)}")
        _commands = getattr(_module, "app", None)
        if _commands is None:
            app.command(_name, rich_help_panel=_panel)(getattr(_module, _name))
        else:  # a command with commands of its own
            app.add_typer(_commands, name=_name, rich_help_panel=_panel)
            for _command in _commands.registered_commands:
                complete(_command)
for _command in app.registered_commands:
    complete(_command)


def _print_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        print(f"rankwise {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = option(False, "Print the version and stop.", "--version", callback=_print_version, is_eager=True),
) -> None:
    """The options of ``rankwise`` itself."""
    pass


def main() -> int:
    """Run the command line.

    Returns
    -------
    int
        The exit code: 0, 1 if a gate was not passed, 2 for invalid input, 3 if nothing could be certified, or 130 after
        Ctrl-C.
    """
    _print_anything()
    with warnings.catch_warnings():
        # warnings of other packages keep their usual form
        shown = warnings.showwarning
        said: set[str] = set()  # a file may be opened several times, also in threads: one line about it is enough

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            """Our own as a sentence: who types a command has no line of code to look at."""
            if category.__module__.partition(".")[0] == "rankwise":
                if str(message) in said:
                    return
                said.add(str(message))
                print(f"rankwise: warning: {in_shell(str(message), _options())}", file=sys.stderr)
            else:
                shown(message, category, *where, **more)

        warnings.showwarning = show
        return _main()


def _main() -> int:
    """Run the command line with errors turned into messages."""
    try:
        app(prog_name="rankwise")
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
        return _report_interrupt() if code == _INTERRUPTED else code
    except KeyboardInterrupt:  # before typer could take it
        return _report_interrupt()
    except RankwiseError as error:
        return _complain(str(error))
    except FileNotFoundError as error:
        return _complain(f"{error.filename} does not exist")
    except BrokenPipeError:  # the reader of the output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return 0


def _print_anything() -> None:
    """Escape characters that the terminal's encoding lacks: ids may hold bytes that are not UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _options() -> dict[str, str]:
    """The options of the command that is running, by the names of its parameters."""
    command: Any = typer.main.get_command(app)
    for word in sys.argv[1:]:
        if word not in getattr(command, "commands", {}):
            break
        command = command.commands[word]
    return {one.name: max(one.opts, key=len) for one in command.params if one.param_type_name == "option"}


def _report_interrupt() -> int:
    """Report Ctrl-C."""
    print("rankwise: stopped; no incomplete file was left", file=sys.stderr)
    return _INTERRUPTED


def _complain(sentence: str) -> int:
    """Report an error in one line."""
    print(f"rankwise: {in_shell(sentence, _options())}", file=sys.stderr)
    return 2
