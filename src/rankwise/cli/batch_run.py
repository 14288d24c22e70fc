"""A batch fit from the command line: what is learned from and tested on, what was chosen, and a clean stop."""

import ast
import json
import math
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise._errors import DataError, Interrupted, RankwiseError

if TYPE_CHECKING:
    from rankwise.data.queries import Queries
    from rankwise.rankers._base import Ranker

DEFAULT = "SmoothRank"


def as_settings(given: list[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; a value is a number, a list, True, None, or else a text."""
    settings: dict[str, Any] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise RankwiseError(f"--set takes NAME=VALUE, such as --set rounds=100: found {pair!r}")
        try:
            settings[name] = ast.literal_eval(text)  # reads literals alone, and runs nothing
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):  # all that literals can provoke
            settings[name] = text
    return settings


def ranker_named(name: str, parameters: dict[str, Any]) -> "Ranker":
    """A new ranker of this class, in any case of letters; parameters that it does not have are refused."""
    from rankwise.rankers._base import registered

    kinds = registered()
    kind = {known.lower(): kind for known, kind in kinds.items()}.get(name.replace("-", "").lower())
    if kind is None:
        near = get_close_matches(name.lower(), [known.lower() for known in kinds], n=1)
        meant = next((f" (did you mean {known}?)" for known in kinds if near and known.lower() == near[0]), "")
        raise RankwiseError(f"--ranker is one of {', '.join(sorted(kinds))}: found {name!r}{meant}")
    known = kind._get_param_names()
    unknown = [one for one in parameters if one not in known]
    if unknown:
        raise RankwiseError(f"{kind.name} has no parameter {unknown[0]!r}: it has {', '.join(known)}")
    return kind(**parameters)


@dataclass(frozen=True)
class BatchRun:
    """A fit of ``model`` on ``train``, with ``validation`` where it was given and ``test`` where it was split off."""

    model: "Ranker"
    train: "Queries"
    validation: "Queries | None"
    test: "Queries | None"
    target: Path

    def learn(self) -> None:
        """Fit and save; Ctrl-C saves what was learned by the last finished round, and goes on to the caller."""
        takes = self.validation is not None and self.model.takes_validation
        try:
            self.model.fit(self.train, validation=self.validation if takes else None)
        except Interrupted:
            self.model.save(self.target)
            print(f"rankwise: stopped early; what {self.model.name} had learned is in {self.target}", file=sys.stderr)
            raise
        self.model.save(self.target)

    def results(self) -> dict[str, Any]:
        """What was learned from, what was chosen, and the measure on every part, as plain numbers."""
        parts: dict[str, Queries | None] = {"train": self.train, "validation": self.validation, "test": self.test}
        return {
            "model": str(self.target),
            "ranker": self.model.name,
            "features": self.model.n_features_in_,
            "measure": self.model._measure().title,
            "chosen": self._chosen(),
            "parts": {name: self._measured(part) for name, part in parts.items() if part is not None},
        }

    def _chosen(self) -> dict[str, float]:
        """What the fit settled on: the attributes that repeat the name of a parameter."""
        names = [name for name in self.model._get_param_names() if hasattr(self.model, f"{name}_")]
        found = {name: getattr(self.model, f"{name}_") for name in names}
        numbers = {name: float(value) for name, value in found.items() if isinstance(value, (int, float))}
        return {name: value for name, value in numbers.items() if math.isfinite(value)}

    def _measured(self, part: "Queries") -> dict[str, Any]:
        from rankwise.evaluation.evaluate import evaluate

        measure = self.model._measure()
        result = evaluate(part, self.model.predict(part), measure)
        title = result.titles[0]
        low, high = result.interval(0.95)[title] if len(part) > 1 else (math.nan, math.nan)
        numbers = {"mean": result.mean[title], "low": low, "high": high}
        return {"queries": len(part), **{name: x if math.isfinite(x) else None for name, x in numbers.items()}}

    def show(self, as_json: bool) -> None:
        """Print :meth:`results` for a person or for a program."""
        results = self.results()
        if as_json:
            print(json.dumps(results))
            return
        from rich.console import Console

        from rankwise._tables import Table

        console = Console(highlight=False)
        parts = results["parts"]
        table = {"part": list(parts), "queries": [one["queries"] for one in parts.values()]}
        table |= {results["measure"]: [one["mean"] for one in parts.values()]}
        table |= {side: [one[side] for one in parts.values()] for side in ("low", "high")}
        console.print(Table(table).rich())
        chosen = "".join(f", {name} {value:g}" for name, value in results["chosen"].items())
        if self.test is None and self.validation is not None:
            console.print("the validation part made choices, so its mean is on the bright side", markup=False)
        console.print(f"{results['ranker']} on {results['features']:,} features{chosen}: {self.target}", markup=False)


def parts_of_file(
    data: Path, validation: Path | None, share: float, seed: int, options: dict[str, Any]
) -> tuple["Queries", "Queries | None", "Queries | None"]:
    """(train, validation, test): a second file chooses; without one, a share of the queries is held out to test on."""
    from rankwise.cli.reading import read_lists
    from rankwise.data.folds import split

    queries = read_lists(data, options)
    queries.labels()
    if validation is not None:
        return queries, read_lists(validation, options), None
    if share == 0:
        return queries, None, None
    if len(queries) < 2:
        raise DataError(
            f"{data} holds {len(queries)} list{'' if len(queries) == 1 else 's'}, too few to hold some out: give "
            "--test-share 0"
        )
    train, test = split(queries, (1 - share, share), random_state=seed)
    return train, None, test
