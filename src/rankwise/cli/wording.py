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
from typing import Any

# argument -> option, where the option is not the same word with hyphens
_OPTIONS = {"grades": "--labels", "n_features": "--features"}
_ARGUMENTS = (
    "missing", "unjudged", "qid", "label", "docid", "features", "n_features", "row_radius", "longest", "ignore",
    "measure", "empty",
)  # fmt: skip
# arguments of the library whose option has another word, by the name of the command's own parameter
_SAME = {"random_state": "seed", "feature_names": "names"}
# options that take NAME=VALUE, for arguments that have no option of their own
_ASSIGN = ("--set", "--option")
# what is said of click logs: functions that are values of options here, and arguments that have no option
_PHRASES = (
    (r"\bUse by_swaps, harvest, or given\b", "Use --how swaps, --how harvest, or --theta"),
    (r"\bby_swaps\b", "--how swaps"),
    (r"\bharvest(?=:| requires)", "--how harvest"),
    (r"^gain(?=:| )", "compare"),
    (r"^safe_ranker(?=:| )", "learn --safe"),
    (r"^impressions_needed(?=:| )", "interleave --plan"),
    (r"^ClickLog\.\w+: ", ""),
    (r"pass unknown='drop'", "give --drop-unknown"),
    (r" \(log\.split keeps them apart\)", ""),
    (r", or pass (qid=|repeated='first')", ""),
    (r"pass (session|qid|docid|position|click)= \(found", "rename one to it (found"),
    (r"\(relative=True scales it\)", '("relative": true in the file scales it)'),
)
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
    >>> in_shell("export with shift='sample', or fit with scaling='none'", {"shift": "--shift", "option": "--option"})
    'export with --shift sample, or fit with --option scaling=none'
    """
    for pattern, words in _PHRASES:
        sentence = re.sub(pattern, words, sentence)
    spelled = {name: f"--{name.replace('_', '-')}" for name in _ARGUMENTS} | _OPTIONS | dict(options)
    spelled |= {argument: options[own] for argument, own in _SAME.items() if own in options}

    def option(found: "re.Match[str]") -> str:
        """Spell ``name=value`` as ``--name value``."""
        value = "NAME" if found[2] == "its name" else found[2] and shlex.quote(found[2])
        return f"{spelled[found[1]]} {value}".rstrip()

    def several(found: "re.Match[str]") -> str:
        """Spell ``missing='zero' or 'min'`` as ``--missing zero or min``: the later texts are values, too."""
        return option(found) + re.sub(r"'([^']*)'", lambda other: shlex.quote(other[1]), found[3])

    names = "|".join(map(re.escape, spelled))
    sentence = re.sub(r"grades=\{([^}]*)\}", lambda found: f"--labels {_grades(found[1])}", sentence)
    sentence = re.sub(r"columns=\{'([^']*)': '(\w+)'\}", r'kind "\2" in --columns', sentence)
    sentence = sentence.replace("zero_based=True", "--first-id 0").replace("label=None", "--label ''")
    sentence = re.sub(r"\bignore=\[('[^']*'(?:, '[^']*')+)\]", _ignored, sentence)
    # what stands in brackets is a value of its own, such as nDCG(dcg='log2')
    sentence = re.sub(rf"(?<![\w(.-])({names})=\['([^']*)'\]", option, sentence)
    sentence = re.sub(rf"(?<![\w(.-])({names})='([^']*)'((?:(?:,| or) '[^']*')*)", several, sentence)
    sentence = re.sub(rf"(?<![\w(.-])({names})=(?!\{{)([^\s,;:]*)", option, sentence)
    assign = next((own for own in _ASSIGN if own in options.values()), None)
    if assign is None:
        return sentence
    return re.sub(
        r"(?<![\w(.-])(\w+)='([^']*)'", lambda found: f"{assign} {shlex.quote(f'{found[1]}={found[2]}')}", sentence
    )


def _ignored(found: "re.Match[str]") -> str:
    """Spell ``ignore=['a', 'b']`` as ``--ignore a,b``."""
    names = re.findall(r"'([^']*)'", found[1])
    return f"--ignore {shlex.quote(','.join(names))}"


def _grades(inside: str) -> str:
    """Spell ``'bad': 0, 'good': 1`` as ``bad=0,good=1``."""
    return shlex.quote(re.sub(r"['\"]?: ", "=", re.sub(r"(^|, )['\"]", ",", inside)).lstrip(","))


def rankers(incomplete: str) -> list[str]:
    """List the rankers whose names begin so; the names are read from the sources, since importing takes a second."""
    folder = Path(__file__).parents[1] / "rankers"
    named = re.compile(r'^    name = "(\w+)"', re.MULTILINE)
    found = [name for file in folder.rglob("*.py") for name in named.findall(file.read_text(encoding="utf-8"))]
    return [name for name in sorted(found) if name.lower().startswith(incomplete.lower())]


def measures(incomplete: str) -> list[str]:
    """List the common measures whose names begin so."""
    return [name for name in _MEASURES if name.lower().startswith(incomplete.lower())]


def show_certificate(certificate: Any) -> None:
    """Print the table of a certificate and its notes."""
    from rich.console import Console

    console = Console(highlight=False)
    table = certificate.table(vacuous=False)
    if len(table):
        console.print(table.rich())
    for note in (*filter(None, [certificate.folded()]), *certificate.notes):
        console.print(f"- {in_shell(note)}", markup=False)
