"""The library speaks of arguments, ``missing='zero'``; whoever types a command reads of options, ``--missing zero``."""

import os
import re
import shlex
from pathlib import Path

# argument -> option, where it is not the same word with hyphens
_OPTIONS = {"grades": "labels", "n_features": "features"}
_ARGUMENTS = "missing|unjudged|qid|label|docid|features|n_features|row_radius|longest|ignore|measure|empty"


def in_shell(sentence: str) -> str:
    """The sentence with every argument that is an option spelt as one."""
    sentence = re.sub(r"grades=\{([^}]*)\}", lambda found: f"--labels {_grades(found[1])}", sentence)
    sentence = sentence.replace("zero_based=True", "--first-id 0").replace("label=None", "--label ''")
    sentence = re.sub(rf"\b({_ARGUMENTS})=\['([^']*)'\]", _option, sentence)
    sentence = re.sub(rf"\b({_ARGUMENTS})='([^']*)'((?:(?:,| or) '[^']*')*)", _options, sentence)
    return re.sub(rf"\b({_ARGUMENTS})=(\S*)", _option, sentence)


def _option(found: "re.Match[str]") -> str:
    name = _OPTIONS.get(found[1], found[1]).replace("_", "-")
    value = "NAME" if found[2] == "its name" else found[2] and shlex.quote(found[2])
    return f"--{name} {value}".rstrip()


def _options(found: "re.Match[str]") -> str:
    """``missing='zero' or 'min'`` as ``--missing zero or min``: what follows the first value is a value, too."""
    return _option(found) + re.sub(r"'([^']*)'", lambda other: shlex.quote(other[1]), found[3])


def _grades(inside: str) -> str:
    """``'bad': 0, 'good': 1`` as ``bad=0,good=1``."""
    return shlex.quote(re.sub(r"['\"]?: ", "=", re.sub(r"(^|, )['\"]", ",", inside)).lstrip(","))


# --------------------------------------------------------------------------------------------------------- completion
# What the shell offers after a tab: names of rankers and measures, without starting what makes them run.


_MEASURES = ("nDCG@10", "nDCG", "AP", "RR", "P@10", "ERR@20", "RBP", "WTA")


def rankers(incomplete: str) -> list[str]:
    """Names of rankers that begin so; read from the files of the package, since importing them takes a second."""
    folder = Path(__file__).parents[1] / "rankers"
    found = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py") and not name.startswith("_"):
            lines = (folder / name).read_text(encoding="utf-8").splitlines()
            found += [line.split('"')[1] for line in lines if line.startswith('    name = "')]
    return [name for name in sorted(found) if name.lower().startswith(incomplete.lower())]


def measures(incomplete: str) -> list[str]:
    """The usual measures that begin so."""
    return [name for name in _MEASURES if name.lower().startswith(incomplete.lower())]
