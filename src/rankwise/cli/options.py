"""Declarations of options and arguments: default, help, and the rest where it differs from the rule.

An option has the name of the parameter of its command, with hyphens, and a flag has no opposite. :func:`complete`
applies this rule when a command is registered. Help shows options in panels: an option declares its panel by the
function that makes it (``model_option``), and one that declares none stands in the first panel, "Options".
"""

from collections.abc import Callable
from functools import partial
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo, OptionInfo

DATA = "Data"
COLUMNS = "Columns of a table (CSV, JSON lines, Parquet, Arrow)"
MODEL = "Model"
MEASURES = "Measures and tests"
ONLINE = "Online"
PARTS = "Parts (data in pieces on disk, from rankwise convert --parts)"
PAGES = "Pages of two rankers"
PLAN = "Plan (before there are data)"
REPORT = "Report"
SERVICE = "Service"
OUTPUT = "Output"
_PANELS = (SERVICE, DATA, COLUMNS, MODEL, MEASURES, ONLINE, PARTS, PLAN, PAGES, REPORT, OUTPUT)
_ORDER = {panel: place for place, panel in enumerate(_PANELS, 1)}  # after "Options"

# What stands for a value in help, by the type of the parameter; choices are listed.
_VALUES = {"int": "N", "float": "NUMBER", "str": "TEXT", "Path": "PATH"}


class _InPanels:
    """Help in panels, in their order; flags have no value to show."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The arguments, and the options panel by panel."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        options = [one for one in found if one.param_type_name == "option" and not one.hidden]
        for one in options:
            if one.is_flag:
                one.metavar = ""
        *own, asks_help = options
        if own and all(one.rich_help_panel for one in own):  # --help would be a panel alone
            asks_help.rich_help_panel = OUTPUT
        return sorted(found, key=lambda one: _ORDER.get(one.rich_help_panel, 0))


class Command(_InPanels, TyperCommand):
    """A command."""


class Group(_InPanels, TyperGroup):
    """A command with commands of its own."""


def new_app(name: str, help: str) -> typer.Typer:
    """A command with commands of its own."""
    names = {"help_option_names": ["-h", "--help"]}
    return typer.Typer(
        name=name, help=help, cls=Group, no_args_is_help=True, pretty_exceptions_enable=False, context_settings=names
    )


def option(default: Any, help: str | None, *names: str, **more: Any) -> Any:
    """Declare an option; ``names`` are its short name, and a long name that is not that of the parameter."""
    return typer.Option(default, *names, help=help, **more)


data_option = partial(option, rich_help_panel=DATA)
column_option = partial(option, rich_help_panel=COLUMNS)
model_option = partial(option, rich_help_panel=MODEL)
service_option = partial(option, rich_help_panel=SERVICE)
measure_option = partial(option, rich_help_panel=MEASURES)
online_option = partial(option, rich_help_panel=ONLINE)
parts_option = partial(option, rich_help_panel=PARTS)
pages_option = partial(option, rich_help_panel=PAGES)
plan_option = partial(option, rich_help_panel=PLAN)
report_option = partial(option, rich_help_panel=REPORT)
output_option = partial(option, rich_help_panel=OUTPUT)


def argument(default: Any, help: str, **more: Any) -> Any:
    """Declare an argument."""
    return typer.Argument(default, help=help, **more)


def is_required(parameter: Parameter) -> bool:
    """Whether a parameter of a command has to be given."""
    return parameter.default is Parameter.empty or getattr(parameter.default, "default", None) is ...


def complete(command: CommandInfo) -> None:
    """Apply the rules to a registered command: names and values of options, and a text that a terminal wraps."""
    command.cls = Command
    called: Callable[..., Any] = command.callback  # type: ignore[assignment]
    # typer shows paragraphs as they are, so line breaks of the sources would remain
    command.help = "\n\n".join(" ".join(part.split()) for part in cleandoc(called.__doc__ or "").split("\n\n"))
    for name, parameter in signature(called).parameters.items():
        declared = parameter.default
        if isinstance(declared, OptionInfo) and not any(one.startswith("--") for one in declared.param_decls or ()):
            declared.param_decls = (f"--{name.replace('_', '-')}", *(declared.param_decls or ()))
        for one in (declared, *getattr(parameter.annotation, "__metadata__", ())):
            if isinstance(one, OptionInfo) and one.metavar is None:
                one.metavar = _value(parameter.annotation)


def _value(annotation: Any) -> str | None:
    """What stands for a value of this type: the first word that is known, also inside of Annotated, list and None."""
    if annotation in (int, float, str, Path):
        return _VALUES[annotation.__name__]
    return next(filter(None, map(_value, get_args(annotation))), None)
