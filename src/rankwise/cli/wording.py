"""Words of the shell: messages that name options instead of arguments, and what the tab key completes.

The library's messages speak of arguments, ``missing='zero'``; :func:`in_shell` rewrites them for users of the command
line, who type ``--missing zero``. :func:`rankers` and :func:`measures` are the completions of ``--ranker`` and
``--measure``; they start fast because they import nothing that is compiled.
"""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

# arguments without an option of the same name in the running command; other commands have one
_ARGUMENTS = (
    "missing", "unjudged", "qid", "label", "docid", "features", "row_radius", "longest", "ignore", "measure", "empty",
)  # fmt: skip
_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _ARGUMENTS} | {
    "grades": "--labels",
    "n_features": "--features",
}
# arguments of the library whose option has another word, by the name of the command's own parameter
_SAME = {"random_state": "seed", "feature_names": "names", "n_jobs": "jobs", "sizes": "parts"}
_SPECIAL = {"unknown='drop'": "--drop-unknown", "zero_based=True": "--first-id 0", "label=None": "--label ''"}
# options that take NAME=VALUE, for arguments that have no option of their own
_ASSIGN = ("--set", "--option")
# functions that begin a message, as they are called in the shell
_FUNCTIONS = {"by_swaps": "--how swaps", "harvest": "--how harvest", "gain": "compare", "safe_ranker": "learn --safe"}
_FUNCTIONS |= {"impressions_needed": "interleave --plan", "queries_needed": "certify"}
_FUNCTION = re.compile(rf"^(?:ClickLog\.\w+: |({'|'.join(_FUNCTIONS)})(?=:| requires))")
# NAME=VALUE and further values, such as missing='zero' or 'min'; in brackets it is a value of its own: nDCG(dcg='log2')
_ARGUMENT = re.compile(
    r"(?<![\w(.-])(\w+)=('[^']*'|\[[^\]]*\]|\{[^}]*\}|[^\s,;:'\[{][^\s,;:]*|)((?:(?:,| or) '[^']*')*)"
)
_PARAMETER = re.compile(r"The '(\w+)' parameter of \w+ (?=must be)")
# the argument that a message begins with, after the function where it names one: "delta must be between 0 and 1"
_SUBJECT = re.compile(r"^([\w -]+: |)(\w+)(?= must )")
# words that mean the data at the beginning of a message, although options have these names; data is not "one of"
_NOUNS = {"features", "documents", "queries", "qid", "label", "docid", "columns", "events", "weights"}
_MEASURES = ("nDCG@10", "nDCG", "AP", "RR", "P@10", "ERR@20", "RBP", "WTA")


def in_shell(sentence: str, options: Mapping[str, str] = MappingProxyType({})) -> str:
    """Spell every argument in a message as the option that sets it.

    Parameters
    ----------
    sentence : str
        A message of the library.
    options : mapping of str to str, default={}
        The options of the command that is running, by the names of its parameters. Arguments without an option are
        spelled as ``--set NAME=VALUE`` or ``--option NAME=VALUE`` where the command has one of these.

    Returns
    -------
    str
        The message for users of the command line.

    Examples
    --------
    >>> in_shell("give missing='zero' or missing='min'")
    'give --missing zero or --missing min'
    >>> in_shell("The 'missing' parameter of read_letor must be 'error' or 'zero'. Got 'x' instead.")
    "--missing must be 'error' or 'zero'. Got 'x' instead."
    >>> in_shell("delta must be between 0 and 1, got 2", {"delta": "--delta"})
    '--delta must be between 0 and 1, got 2'
    >>> in_shell("export with shift='sample', or fit with scaling='none'", {"shift": "--shift", "option": "--option"})
    'export with --shift sample, or fit with --option scaling=none'
    """
    sentence = _FUNCTION.sub(lambda match: _FUNCTIONS.get(match[1], ""), sentence)
    own = {name: options[same] for name, same in _SAME.items() if same in options} | dict(options)
    spelled = _OPTIONS | own
    assign = next((option for option in _ASSIGN if option in options.values()), None)

    def name_parameter(match: "re.Match[str]") -> str:
        name = match[1]
        return f"{spelled[name]} " if name in spelled else f"{assign} {name} " if assign else match[0]

    sentence = _PARAMETER.sub(name_parameter, sentence)
    subject = _SUBJECT.match(sentence)
    if subject and subject[2] in own and (subject[2] not in _NOUNS or " must be one of " in sentence):
        sentence = f"{subject[1]}{own[subject[2]]}{sentence[subject.end() :]}"

    def spell(match: "re.Match[str]") -> str:
        """Spell one argument; the texts that follow it are values, too."""
        name, value, others = match.groups()
        if match[0] in _SPECIAL:
            return _SPECIAL[match[0]]
        pairs = re.findall(r"'([^']*)': '?([^,'}]*)", value)
        if name == "columns" and pairs:
            return f'kind "{pairs[0][1]}" in --columns'
        if name not in spelled or (pairs and name != "grades"):
            is_text = assign is not None and value.startswith("'")
            return f"{assign} {shlex.quote(f'{name}={value[1:-1]}')}{others}" if is_text else match[0]
        if pairs:
            value = ",".join(f"{word}={grade}" for word, grade in pairs)
        elif value.startswith("["):
            value = ",".join(re.findall(r"'([^']*)'", value))
        value = "NAME" if value == "'its name'" else value and shlex.quote(value.strip("'"))
        return f"{spelled[name]} {value}".rstrip() + re.sub(r"'([^']*)'", lambda other: shlex.quote(other[1]), others)

    return _ARGUMENT.sub(spell, sentence)


def rankers(incomplete: str) -> list[str]:
    """List the rankers whose names begin so; the names are read from the sources, since importing takes a second."""
    folder = Path(__file__).parents[1] / "rankers"
    named = re.compile(r'^    name = "(\w+)"', re.MULTILINE)
    found = [name for file in folder.rglob("*.py") for name in named.findall(file.read_text(encoding="utf-8"))]
    return [name for name in sorted(found) if name.lower().startswith(incomplete.lower())]


def measures(incomplete: str) -> list[str]:
    """List the common measures whose names begin so."""
    return [name for name in _MEASURES if name.lower().startswith(incomplete.lower())]


def new_console(**settings: Any) -> "Console":
    """A console that prints numbers and names without colors."""
    from rich.console import Console

    return Console(highlight=False, **settings)


def describe_certificate(certificate: Mapping[str, Any], measure: str) -> str:
    """A certificate in one line.

    Parameters
    ----------
    certificate : mapping
        As ``Certificate.to_dict`` writes it.
    measure : str
        The title of the measure.

    Returns
    -------
    str
        What is certified, or why nothing is.
    """
    best = certificate["headline"]
    if best is None:
        return f"not certified: {certificate['missing']}"
    if best["value"] >= best["ceiling"]:
        return f"not certified: {best['terms']['n']:,.0f} queries are too few for a bound on {measure}"
    return (
        f"certified: {best['bounds'].removeprefix('1 - ')} is at least {1 - best['value']:.4f} on average, with "
        f"{100 * (1 - certificate['delta']):g}% confidence"
    )


def show_certificate(certificate: Any) -> None:
    """Print the table of a certificate and its notes."""
    console = new_console()
    table = certificate.table(vacuous=False)
    if len(table):
        console.print(table.rich())
    for note in (*filter(None, [certificate.fold_vacuous()]), *certificate.notes):
        console.print(f"- {in_shell(note)}", markup=False)
