"""Words of the shell: messages that name options instead of arguments, and what the tab key completes.

The library's messages speak of arguments, ``missing='zero'``; :func:`in_shell` rewrites them for users of the command
line, who type ``--missing zero``. :func:`rankers` and :func:`measures` are the completions of ``--ranker`` and
``--measure``; they start fast because they import nothing that is compiled.
"""

import re
import shlex
from pathlib import Path
from typing import Any

# argument -> option, where the option is not the same word with hyphens
_OPTIONS = {"grades": "labels", "n_features": "features"}
_ARGUMENTS = "missing|unjudged|qid|label|docid|features|n_features|row_radius|longest|ignore|measure|empty"
_MEASURES = ("nDCG@10", "nDCG", "AP", "RR", "P@10", "ERR@20", "RBP", "WTA")


def in_shell(sentence: str) -> str:
    """Spell every argument in a message as the option that sets it.

    Parameters
    ----------
    sentence : str
        A message of the library.

    Returns
    -------
    str
        The message for users of the command line.

    Examples
    --------
    >>> in_shell("give missing='zero' or missing='min'")
    'give --missing zero or --missing min'
    """
    sentence = re.sub(r"grades=\{([^}]*)\}", lambda found: f"--labels {_grades(found[1])}", sentence)
    sentence = re.sub(r"columns=\{'([^']*)': '(\w+)'\}", r'kind "\2" in --columns', sentence)
    sentence = sentence.replace("zero_based=True", "--first-id 0").replace("label=None", "--label ''")
    sentence = re.sub(r"\bignore=\[('[^']*'(?:, '[^']*')+)\]", _ignored, sentence)
    sentence = re.sub(rf"\b({_ARGUMENTS})=\['([^']*)'\]", _option, sentence)
    sentence = re.sub(rf"\b({_ARGUMENTS})='([^']*)'((?:(?:,| or) '[^']*')*)", _options, sentence)
    return re.sub(rf"\b({_ARGUMENTS})=(\S*)", _option, sentence)


def _option(found: "re.Match[str]") -> str:
    """Spell ``name=value`` as ``--name value``."""
    name = _OPTIONS.get(found[1], found[1]).replace("_", "-")
    value = "NAME" if found[2] == "its name" else found[2] and shlex.quote(found[2])
    return f"--{name} {value}".rstrip()


def _ignored(found: "re.Match[str]") -> str:
    """Spell ``ignore=['a', 'b']`` as ``--ignore a,b``."""
    names = re.findall(r"'([^']*)'", found[1])
    return f"--ignore {shlex.quote(','.join(names))}"


def _options(found: "re.Match[str]") -> str:
    """Spell ``missing='zero' or 'min'`` as ``--missing zero or min``: the later texts are values, too."""
    return _option(found) + re.sub(r"'([^']*)'", lambda other: shlex.quote(other[1]), found[3])


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
