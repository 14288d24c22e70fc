"""``rankwise train``: learn a ranker from judged lists; ``--online`` from a stream of any length, round by round."""

import json
import math
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwise._errors import DataError, FileFormatError, RankwiseError
from rankwise.cli import reading
from rankwise.cli import wording as completion

if TYPE_CHECKING:
    from rankwise.rankers.online.learner import OnlineLearner
import ast
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rankwise._errors import Interrupted

if TYPE_CHECKING:
    from rankwise.data.queries import Queries
    from rankwise.rankers._base import Ranker

_SHORT = {"slam": "SLAMPerceptron", "max-pair": "MaxPairPerceptron", "listnet": "ListNet"}
_MODEL = Path("model.rankwise")


class Average(StrEnum):
    """Which weights a run ends with."""

    none = "none"
    uniform = "uniform"
    suffix = "suffix"


class Scale(StrEnum):
    """What features are divided by as they come."""

    none = "none"
    radius = "radius"
    standard = "standard"


@reading.with_options
def train(
    data: reading.JudgedArgument,
    online: Annotated[
        bool, typer.Option("--online", help="Predict each list, then learn from it; a text is never loaded as a whole.")
    ] = False,
    ranker: Annotated[
        str | None,
        typer.Option(
            "--ranker",
            "-r",
            help="The name of a ranker (default SmoothRank; online: slam, max-pair, listnet ...).",
            autocompletion=completion.rankers,
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure",
            "-m",
            help="What is learned for, and accounted: nDCG@10 (default), AP ...",
            autocompletion=completion.measures,
        ),
    ] = None,
    margin: Annotated[
        float | None, typer.Option(help="slam: 0, scale-free (default), or the margin of a pair.")
    ] = None,
    eta: Annotated[float | None, typer.Option(help="Size of a step (default 1).")] = None,
    weights: Annotated[str | None, typer.Option(help="slam: the rule for the weights of documents.")] = None,
    averaging: Annotated[
        Average | None, typer.Option(help="Keep the last weights, the mean over all rounds, or over the later ones.")
    ] = None,
    scale: Annotated[
        Scale | None, typer.Option(help="Divide features by the largest radius so far, or by their own deviation.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: any parameter of the ranker; may be repeated.")
    ] = None,
    validation: Annotated[
        Path | None, typer.Option(help="Judged lists that the ranker makes its choices by; nothing is held out then.")
    ] = None,
    share: Annotated[
        float, typer.Option("--test-share", min=0, max=0.9, help="Queries held out to test on; 0: learn from all.")
    ] = 0.2,
    seed: reading.SeedOption = 0,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Threads (default: every core).")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Online: how often a file is read from beginning to end.")] = 1,
    features: Annotated[
        int | None, typer.Option(min=1, help="Features of a text (default: those of its first lists, or the model's).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=f"The model (default {_MODEL}, which must be new, or the one resumed)."),
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the run of this model, to the same bits.")] = None,
    skip: Annotated[int, typer.Option(min=0, help="Lists to pass over first, as those that a model has seen.")] = 0,
    checkpoint: Annotated[int | None, typer.Option(min=1, help="Also save the model after every N rounds.")] = None,
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Learn a ranker from judged lists, test it, and save it.

    A fifth of the queries is held out by chance, and the model is measured on them; --validation or --test-share 0
    learn from all. Ctrl-C saves what was learned by the last finished round.

    Online, rows with one qid that stand together are a list, and a qid may return later: memory does not grow with the
    stream. Ctrl-C saves what was learned. A run that is resumed ends with the bits of one that was never stopped.

    Example: rankwise train judged.txt --out model.rankwise

    Example: rankwise train my.csv --qid query --label grade --ignore url

    Example: zcat clicks.txt.gz | rankwise train - --online -o clicks.rankwise
    """
    from rankwise.cli.online_run import OnlineRun, judged_blocks

    given = {"measure": measure, "margin": margin, "eta": eta, "weights": weights}
    given |= {"averaging": averaging and averaging.value, "scale": scale and scale.value}
    given = {name: value for name, value in given.items() if value is not None} | as_settings(settings or [])
    if not online:
        _refuse_online_only({"--resume": resume, "--checkpoint": checkpoint, "--skip": skip or None})
        batch = ranker_named(ranker or DEFAULT, {"measure": "nDCG@10", **given, "missing": reads["missing"]})
        known = {"verbose": not as_json, "random_state": seed, "n_jobs": jobs}
        batch.set_params(**{name: value for name, value in known.items() if name in batch._get_param_names()})
        target = _target(out, None)
        parts = parts_of_file(data, validation, share, seed, reads)
        learning = BatchRun(batch, *parts, target)
        learning.learn()
        learning.show(as_json)
        return
    if resume is None:
        model = _fresh(ranker or "slam", {**given, "epochs": epochs, "missing": reads["missing"]})
    else:
        model = _resumed(resume, [*(["ranker"] if ranker else []), *given])
    _check_source(data, epochs)
    target = _target(out, resume)
    width = getattr(model, "n_features_in_", features)
    blocks = judged_blocks(data, epochs, skip, width, reads)
    run = OnlineRun(model, target, checkpoint)
    try:
        run.over(blocks, epochs * os.path.getsize(data) if data.is_file() else 0)
    except KeyboardInterrupt:
        print(f"rankwise: {run.stopped(skip)}", file=sys.stderr)
        raise
    if not run.learned:
        what = f"nothing after the first {skip:,} lists" if skip else "no judged lists"
        raise FileFormatError(f"{'standard input' if os.fspath(data) == '-' else data} holds {what}")
    run.save()
    if as_json:
        print(json.dumps(_document(run.model, target)))
        return
    _show(run.model, target)


def _refuse_online_only(given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value is not None:
            raise RankwiseError(f"{option} belongs to a run that learns list by list: give --online as well")


def _fresh(ranker: str, parameters: dict[str, Any]) -> "OnlineLearner":
    """The ranker that was asked for; what it cannot learn by is told before anything is read."""
    from rankwise.rankers._base import registered
    from rankwise.rankers.online.learner import OnlineLearner

    kinds = {name: kind for name, kind in registered().items() if issubclass(kind, OnlineLearner)}
    wanted = _SHORT.get(ranker.lower(), ranker)
    kind = {name.lower(): kind for name, kind in kinds.items()}.get(wanted.lower())
    if kind is None:
        known = ", ".join([*_SHORT, *kinds])
        raise RankwiseError(f"--ranker is one of {known}: found {ranker!r}")
    unknown = [name for name in parameters if name not in kind._get_param_names()]
    if unknown:
        raise RankwiseError(f"{kind.name} has nothing that --{unknown[0]} could say: leave it out")
    model: OnlineLearner = kind(**parameters)
    model._config(None)
    return model


def _resumed(path: Path, given: list[str]) -> "OnlineLearner":
    from rankwise._api import load
    from rankwise.rankers.online.learner import OnlineLearner

    if given:
        raise RankwiseError(f"--resume goes on by the rules of the saved run: leave out --{given[0]}")
    model = load(path)
    if not isinstance(model, OnlineLearner):
        raise DataError(f"{path} holds {type(model).__name__}, and --resume goes on with a run of an online ranker")
    return model


def _check_source(data: Path, epochs: int) -> None:
    if epochs > 1 and (os.fspath(data) == "-" or (data.exists() and not data.is_file())):
        name = "standard input" if os.fspath(data) == "-" else os.fspath(data)
        raise RankwiseError(f"{name} can be read once: --epochs {epochs} needs a file")


def _target(out: Path | None, resumed: Path | None) -> Path:
    """Where the model goes; that it can go there is clear before the first round."""
    target = out or resumed or _MODEL
    if out is None and resumed is None and target.exists():
        raise RankwiseError(f"{target} is there already: name the model by --out, or go on with it by --resume")
    folder = Path(os.path.realpath(target)).parent
    if not folder.is_dir():
        raise RankwiseError(f"{target} cannot be written: the folder {folder} is not there")
    if target.is_dir() or not os.access(folder, os.W_OK):
        raise RankwiseError(f"{target} cannot be written: {'it is a folder' if target.is_dir() else 'no permission'}")
    return target


def _document(model: "OnlineLearner", target: Path) -> dict[str, Any]:
    """The run as plain numbers."""
    ledger = model.ledger_
    mean = ledger.mean
    return {
        "model": str(target),
        "ranker": model.name,
        "features": model.n_features_in_,
        "rounds": ledger.rounds,
        "mistakes": ledger.mistakes,
        "measure": ledger.config.measure.title,
        "mean": mean if math.isfinite(mean) else None,
        "loss": ledger.loss,
        "radius": ledger.radius,
    }


def _show(model: "OnlineLearner", target: Path) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print(model.ledger_.table().rich())
    console.print(f"{model.name} on {model.n_features_in_:,} features: {target}", markup=False, soft_wrap=True)


# ---------------------------------------------------------------------------------------------------------- batch run
# A batch fit from the command line: what is learned from and tested on, what was chosen, and a clean stop.


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
