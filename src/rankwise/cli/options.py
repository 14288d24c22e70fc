"""Declarations of options and arguments: default, help, and the rest where it differs from the rule.

An option has the name of the parameter of its command, with hyphens, and a flag has no opposite. :func:`name_options`
applies this rule when a command is registered.
"""

from collections.abc import Callable
from functools import partial
from inspect import Parameter, signature
from typing import Any

import typer
from typer.models import OptionInfo


def new_app(name: str, help: str) -> typer.Typer:
    """A command with commands of its own."""
    names = {"help_option_names": ["-h", "--help"]}
    return typer.Typer(
        name=name, help=help, no_args_is_help=True, pretty_exceptions_enable=False, context_settings=names
    )


def option(default: Any, help: str | None, *names: str, **more: Any) -> Any:
    """Declare an option; ``names`` are its short name, and a long name that is not that of the parameter."""
    return typer.Option(default, *names, help=help, **more)


value_option = partial(option, rich_help_panel="Values in the data")
table_option = partial(option, rich_help_panel="Columns of a table (CSV, JSON lines, parquet, Arrow)")


def argument(default: Any, help: str, **more: Any) -> Any:
    """Declare an argument."""
    return typer.Argument(default, help=help, **more)


def is_required(parameter: Parameter) -> bool:
    """Whether a parameter of a command has to be given."""
    return parameter.default is Parameter.empty or getattr(parameter.default, "default", None) is ...


def name_options(command: Callable[..., None]) -> None:
    """Name the options of a command that were declared without a long name."""
    for name, parameter in signature(command).parameters.items():
        declared = parameter.default
        if isinstance(declared, OptionInfo) and not any(one.startswith("--") for one in declared.param_decls or ()):
            declared.param_decls = (f"--{name.replace('_', '-')}", *(declared.param_decls or ()))
