"""``rankwise train``: train a ranker on judged queries and save it.

Without ``--online`` it fits a batch ranker, :class:`BatchRun`, on a file, and measures and certifies it by queries that
were held out. On a data set in parts it first prints what the fit will cost, and computes in passes, which a checkpoint
may record. With ``--online`` it hands over to :mod:`rankwise.cli.train_online`, where the ranker learns
query after query from a stream of any length.
"""

import ast
import json
import logging
import math
import shlex
import sys
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rankwise._progress import report_progress
from rankwise.cli import reading, wording
from rankwise.cli.budget import Budget
from rankwise.cli.columns import reading_words
from rankwise.cli.options import data_option, model_option, online_option, output_option, parts_option
from rankwise.errors import Interrupted, RankwiseError, did_you_mean, warn

if TYPE_CHECKING:
    from rankwise._diagnose.findings import Finding
    from rankwise.queries.queries import Queries
    from rankwise.rankers._base import Ranker

DEFAULT = "AutoRanker"
_SHORT = {"slam": "SLAMPerceptron", "max-pair": "MaxPairPerceptron", "listnet": "ListNet"}
_MODEL = Path("model.rankwise")


@reading.with_options
def train(
    data: reading.JudgedArgument,
    online: bool = online_option(False, "Rank each query, then learn from it; text files are streamed."),
    ranker: str | None = model_option(
        None,
        "Name of a ranker (default AutoRanker; online: slam, max-pair, listnet ...).",
        "-r",
        autocompletion=wording.rankers,
    ),
    measure: str | None = model_option(
        None, "The measure to train for and to report: nDCG@10 (default), AP ...", "-m", autocompletion=wording.measures
    ),
    margin: float | None = online_option(None, "slam: 0, scale-free (default), or the margin of a pair."),
    eta: float | None = online_option(None, "Step size (default 1)."),
    weights: str | None = online_option(None, "slam: rule for the weights of documents."),
    averaging: Literal["none", "uniform", "suffix"] | None = online_option(
        None, "Keep the last weights, or average them over all or over the later rounds."
    ),
    scale: Literal["none", "radius", "standard"] | None = online_option(
        None, "Divide features by the largest radius so far, or by their standard deviation."
    ),
    settings: list[str] | None = model_option(
        None, "NAME=VALUE: any parameter of the ranker; may be repeated.", "--set"
    ),
    validation: Path | None = data_option(None, "Judged queries for model selection; then no query is held out."),
    share: float = data_option(
        0.2, "Share of queries held out for testing; 0 for none.", "--test-share", min=0, max=0.9
    ),
    seed: int = model_option(0, "Seed of all random choices.", min=0),
    jobs: int | None = model_option(None, "Threads (default: every core).", "-j", min=1),
    epochs: int = online_option(1, "Passes over the file.", min=1),
    features: int | None = data_option(
        None, "Number of features of a text (default: that of its first queries, or the model's).", min=1
    ),
    out: Path | None = output_option(
        None, f"The model (default {_MODEL}, or the one resumed); an existing file is replaced.", "-o"
    ),
    resume: Path | None = online_option(None, "Resume the run of this model, bit for bit."),
    skip: int = online_option(0, "Number of queries to skip first, such as those already learned.", min=0),
    checkpoint: str | None = output_option(
        None,
        "With --online: also save the model after every N rounds. For parts: a folder from which the same command "
        "resumes after a crash, bit for bit.",
    ),
    executor: Literal["threads", "processes"] | None = parts_option(None, "What runs the passes (default threads)."),
    workers: int | None = parts_option(None, "Number of threads or processes.", min=1),
    memory: str | None = parts_option(
        None, "Memory to use, such as 500MB (default: what is free); a larger file is trained on in parts."
    ),
    verbose: bool = parts_option(False, "Print a line per pass or tree."),
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Train a ranker on judged queries, test it, and save it.

    Without --ranker, cross-validation chooses between a linear ranker, boosted trees and both. A random 20% of the
    queries is held out to test and certify the ranker; --validation or --test-share 0 trains on all queries. A feature
    that looks like the label causes a warning, and is used unless --ignore names it. Ctrl-C saves the ranker as of the
    last finished round.

    From a table with texts, dates or gaps, features are built as rankwise inspect shows, fitted on the training part
    only. The model remembers how, and which columns hold ids and labels.

    With --online, consecutive rows with the same qid are one query, and a qid may return later: memory does not grow
    with the stream. Ctrl-C saves the ranker. A resumed run gives the same model, bit for bit, as an uninterrupted one.

    A folder made by rankwise convert --parts is never read as a whole: training makes passes over it, and the command
    first prints how many and how long they will take. --ranker RidgeCommittee needs a few passes alone.

    A file that does not fit into memory is first converted to such parts, in the cache folder; a line says where. Of
    a table with texts, features are then learned from a sample of 200,000 rows of the training part.

    Example: rankwise train judged.txt --out model.rankwise

    Example: rankwise train lists/ --ranker SmoothRank --executor processes --workers 4 --checkpoint run/

    Example: rankwise train my.csv --qid query --label grade --ignore url

    Example: rankwise train big.csv --memory 2GB

    Example: zcat clicks.txt.gz | rankwise train - --online --scale standard -o clicks.rankwise
    """
    given: dict[str, Any] = {"measure": measure, "margin": margin, "eta": eta, "weights": weights}
    given |= {"averaging": averaging, "scale": scale}
    # only what was given is passed on: everything else keeps the defaults of the ranker
    given = {name: value for name, value in given.items() if value is not None} | as_settings(settings or [])
    if online:
        from rankwise.cli.train_online import load_run, train_online

        if resume is None:
            model = new_ranker(ranker or "slam", {**given, "epochs": epochs, "missing": reads["missing"]}, online=True)
        else:
            model = load_run(resume, [*(["ranker"] if ranker else []), *given])
        every = None if checkpoint is None else _rounds(checkpoint)
        train_online(data, model, _target(out, resume), epochs, skip, features, every, as_json, reads)
        return
    from rankwise._kernels.parallel import announce_kernels

    batch = new_ranker(ranker or DEFAULT, {"measure": "nDCG@10", **given})
    words = reading_words(reads, reads.get("columns"))
    reads = reading.keeping_missing(reads, [batch])
    batch.set_params(missing=reads["missing"])
    budget = Budget.of(memory, executor, workers)
    too_large = None if reading.is_parts(data) else budget.exceeded_by(data, reads, batch)
    in_parts = reading.is_parts(data) or too_large is not None
    of_parts = {"--executor": executor, "--workers": workers, "--verbose": verbose or None}
    for name, value in (("--resume", resume), ("--checkpoint", checkpoint), ("--skip", skip or None)):
        if value is not None and not (in_parts and name == "--checkpoint"):
            raise RankwiseError(f"{name} requires --online")
    for name, value in of_parts.items():
        if value is not None and not in_parts:
            raise RankwiseError(f"{name} requires a data set in parts: make one with rankwise convert --parts")
    known = {"verbose": verbose or not as_json, "random_state": seed, "n_jobs": jobs}
    batch.set_params(**{name: value for name, value in known.items() if name in batch._get_param_names()})
    if _moves_weights_alike(batch) and "scale" not in given:
        batch.set_params(scale="standard")
    target = _target(out, None)
    announce_kernels(batch.name, "evaluate")
    sets = divide(data, validation, share, seed, reads, batch, budget, too_large)
    if in_parts and batch.runs_on_parts:  # otherwise fit says why not
        print(f"rankwise: {sets[0].estimate(batch)}", file=sys.stderr)
    if verbose:
        _print_passes()
    run = BatchRun(batch, *sets, target, in_parts, None if checkpoint is None else Path(checkpoint))
    for leak in run.leaks:
        warn(f"{leak.what}: {leak.places()}; {leak.advice}")
    run.fit()
    run.show(as_json)
    if words and not as_json:
        _show_next(data, target, words, [] if hasattr(batch, "features_") else words)


def _show_next(data: Path, target: Path, words: list[str], for_model: list[str]) -> None:
    """Print commands to go on with, and the options by which they read the table without and with the model."""
    file, model = str(data), str(target)
    for what, command in {
        "to evaluate it, best on queries that it has not seen": ["evaluate", file, "--model", model, *for_model],
        "to compare rankers on this data": ["compare", file, *words],
        "to export it": ["export", model, "--to", "python", "--sample", file, *for_model, "-o", "model.py"],
    }.items():
        print(f"\n{what}:\n{shlex.join(['rankwise', *command])}")


def _moves_weights_alike(model: "Ranker") -> bool:
    """Whether a ranker learns by steps of one size on features as they are, unless told otherwise."""
    from rankwise.rankers.online.learner import LinearOnlineLearner

    of_rounds = isinstance(model, LinearOnlineLearner) and getattr(model, "solver", "sgd") == "sgd"
    return of_rounds and getattr(model, "eta", None) != "theory"  # which is worked out for raw features


def _rounds(given: str) -> int:
    """The number of rounds between two checkpoints of online learning."""
    if not given.isdecimal() or int(given) < 1:
        raise RankwiseError(f"with --online, --checkpoint must be a positive number of rounds, got {given!r:.60}")
    return int(given)


def as_settings(given: list[str]) -> dict[str, Any]:
    """Parse NAME=VALUE pairs; a value is a Python literal (number, list, True, None) or else a text."""
    settings: dict[str, Any] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise RankwiseError(f"--set must be NAME=VALUE, such as --set rounds=100, got {pair!r}")
        try:
            settings[name] = ast.literal_eval(text)  # parses literals and runs no code
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):  # all that literals can provoke
            settings[name] = text
    return settings


def new_ranker(name: str, parameters: dict[str, Any], online: bool = False) -> Any:
    """Make a ranker from its name, in any case and with or without hyphens.

    Parameters
    ----------
    name : str
        The name of a class, or one of the short names of online rankers.
    parameters : dict
        The parameters; one that the ranker does not have raises an error.
    online : bool, default=False
        Whether only online rankers are allowed.

    Returns
    -------
    Ranker
        The new ranker.
    """
    from rankwise.rankers._base import registered
    from rankwise.rankers.online.learner import OnlineLearner

    kinds = {known: kind for known, kind in registered().items() if not online or issubclass(kind, OnlineLearner)}
    names = {known.lower(): known for known in kinds} | (_SHORT if online else {})
    wanted = name.lower() if name.lower() in names else name.replace("-", "").lower()
    if wanted not in names:
        listed = [*(_SHORT if online else ()), *sorted(kinds)]
        question = did_you_mean(name, listed)
        raise RankwiseError(f"no ranker is called {name!r}{question}: --ranker must be one of {', '.join(listed)}")
    kind = kinds[names[wanted]]
    known = kind._get_param_names()
    unknown = [one for one in parameters if one not in known]
    if unknown:
        raise RankwiseError(f"{kind.name} has no parameter {unknown[0]!r}; available: {', '.join(known)}")
    model: Any = kind(**parameters)
    if online:
        model._config(None)  # settings that cannot work are errors before anything is read
    return model


def _target(out: Path | None, resume: Path | None) -> Path:
    """Choose the file of the model, and check before any learning that it can be written."""
    target = out or resume or _MODEL
    reading.check_writable(target)
    if target.is_dir():
        raise RankwiseError(f"{target} cannot be written: it is a folder")
    return target


@dataclass(frozen=True)
class BatchRun:
    """A fit of one batch ranker from the command line.

    Attributes
    ----------
    model : Ranker
        The ranker.
    train : Queries
        The queries to train on.
    validation : Queries or None
        Queries for model selection, where a file of them was given.
    test : Queries or None
        Queries that were held out, where some were.
    target : Path
        The file of the model.
    in_parts : bool
        Whether the queries are data sets in parts.
    checkpoint : Path or None
        The folder that records passes over parts.
    """

    model: "Ranker"
    train: "Queries"
    validation: "Queries | None"
    test: "Queries | None"
    target: Path
    in_parts: bool
    checkpoint: Path | None

    @cached_property
    def leaks(self) -> "list[Finding]":
        """Features of the training queries that look like the label; in parts, rankwise inspect finds them."""
        if self.in_parts:
            return []
        from rankwise._diagnose.leaks import find_leaks, rank_alone

        return list(find_leaks(self.train, rank_alone(self.train), {}))

    def fit(self) -> None:
        """Fit and save the ranker; after Ctrl-C save what the last finished round left, and raise again."""
        takes = self.validation is not None and self.model.takes_validation
        what = f"training {self.model.name} on {len(self.train):,} queries, {self.train.n_documents:,} documents"
        try:
            with report_progress(what) if self.model.get_params().get("verbose", True) else nullcontext():
                self.model.fit(self.train, validation=self.validation if takes else None, checkpoint=self.checkpoint)
        except Interrupted:
            self.model.save(self.target)
            print(
                f"rankwise: stopped early; {self.model.name} as of the last finished round is in {self.target}",
                file=sys.stderr,
            )
            raise
        self.model.save(self.target)

    def results(self) -> dict[str, Any]:
        """The ranker, what was chosen, its measure with intervals on every part, its certificate, and likely leaks."""
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        return {
            "model": str(self.target),
            "ranker": self.model.name,
            "features": self.model.n_features_in_,
            "columns": self._columns(),
            "measure": self.model._measure().title,
            "chosen": self._choices(),
            "weights": self._members(),
            "parts": {name: self._evaluate(part) for name, part in parts.items() if part is not None},
            "leaks": [asdict(leak) for leak in self.leaks],
            "certificate": None if self.test is None else self.model.certificate(None, self.test).to_dict(),
        }

    def _columns(self) -> dict[str, Any] | None:
        """The columns that features were made of, those left out, and those with a role; None without a builder."""
        builder = getattr(self.train, "built_by", None)
        if builder is None:
            return None
        left = {row["column"]: row["reason"] for row in builder.plan_ if not row["features"]}
        roles = {role: name for role, name in builder.roles_.items() if name is not None}
        return {"used": list(builder.columns_in_), "left_out": left, "roles": roles}

    def _members(self) -> dict[str, float] | None:
        """The weights of the members of an AutoRanker; None for another ranker."""
        from rankwise.rankers.auto.auto_ranker import AutoRanker

        return self.model.weights_ if isinstance(self.model, AutoRanker) else None

    def _choices(self) -> dict[str, float]:
        """Numbers that the fit chose: attributes that repeat the name of a parameter with an underscore."""
        found = {name: getattr(self.model, f"{name}_", None) for name in self.model._get_param_names()}
        numbers = {name: float(value) for name, value in found.items() if isinstance(value, (int, float))}
        return {name: value for name, value in numbers.items() if math.isfinite(value)}

    def _evaluate(self, part: "Queries") -> dict[str, Any]:
        """Mean of the ranker's measure on one part, with its 95% interval."""
        from rankwise.evaluation.evaluation import evaluate

        result = evaluate(part, self.model.predict(part), self.model._measure())
        title = result.titles[0]
        low, high = result.interval(0.95)[title] if len(part) > 1 else (math.nan, math.nan)
        numbers = {"mean": result.mean[title], "low": low, "high": high}
        return {"queries": len(part), **{name: x if math.isfinite(x) else None for name, x in numbers.items()}}

    def show(self, as_json: bool) -> None:
        """Print :meth:`results` in a few lines or as JSON."""
        results = self.results()
        if as_json:
            print(json.dumps(results))
            return
        chosen = "".join(f", {name} {value:g}" for name, value in results["chosen"].items())
        print(f"{results['ranker']} on {results['features']:,} features{chosen}: {self.target}")
        if results["weights"] is not None:
            print("weights: " + ", ".join(f"{name} {value:.2f}" for name, value in results["weights"].items()))
        columns = results["columns"]
        if columns is not None:
            used, left = len(columns["used"]), len(columns["left_out"])
            print(f"features from {used} columns, {left} left out: rankwise inspect shows the details")
        learned = self.model.learns_from_validation
        said = {
            "train": "trained on {}",
            "validation": f"{'also trained on' if learned else 'selected by'} {{}}, on which its mean is optimistic",
            "test": "tested on {} that were held out",
        }
        for name, part in results["parts"].items():
            count = f"{part['queries']:,} {'query' if part['queries'] == 1 else 'queries'}"
            print(f"{said[name].format(count)}: {results['measure']} {_with_interval(part)}")
        print(_describe_certificate(results, self.target))


def _with_interval(part: dict[str, Any]) -> str:
    """A mean and its interval, to four digits."""
    if part["mean"] is None:
        return "undefined"
    return f"{part['mean']:.4f}" + ("" if part["low"] is None else f" ({part['low']:.4f} to {part['high']:.4f})")


def _describe_certificate(results: dict[str, Any], target: Path) -> str:
    """The certificate in one line."""
    certificate, measure = results["certificate"], results["measure"]
    if certificate is None:
        return f"not certified, since no query was held out: use rankwise certify {target} --holdout FILE"
    return wording.describe_certificate(certificate, measure)


def _print_passes() -> None:
    """Print the log of passes on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("rankwise: %(message)s"))
    logger = logging.getLogger("rankwise")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def divide(
    data: Path,
    validation: Path | None,
    share: float,
    seed: int,
    reads: dict[str, Any],
    ranker: "Ranker",
    budget: Budget,
    too_large: str | None,
) -> tuple[Any, Any, Any]:
    """Return (train, validation, test): a second data set for model selection, or a share held out for a test.

    ``too_large`` says why a file is read in parts. Of a table of words, features are learned from the training part.
    """
    from rankwise.features.table import RawTable
    from rankwise.queries.folds import split
    from rankwise.queries.parts.parts import Parts

    queries: Any
    held_out = None if validation is not None or share == 0 else (share, seed)
    if too_large is not None:
        queries = budget.convert(data, reads, too_large, held_out=held_out)
    elif reading.is_parts(data):
        queries = budget.open(data)
    else:
        queries = reading.read_or_open(data, reads)
        if isinstance(queries, RawTable):
            return reading.build_parts(data, queries, validation, share, seed, reads)
        queries.labels()
    if isinstance(queries, Parts) and not queries.has_labels:
        raise RankwiseError(f"{data} has no labels, which training requires")
    if validation is not None:
        return queries, _read_validation(validation, reads, queries.built_by, budget, ranker), None
    if held_out is None:
        return queries, None, None
    reading.refuse_too_few(data, len(queries))
    train, test = split(queries, (1 - share, share), random_state=seed)
    return train, None, test


def _read_validation(path: Path, reads: dict[str, Any], builder: Any, budget: Budget, ranker: "Ranker") -> Any:
    """Read queries for model selection, with the features of the training part."""
    if reading.is_parts(path):
        return budget.open(path)
    too_large = budget.exceeded_by(path, reads, ranker)
    if too_large is not None:
        return budget.convert(path, reads, too_large, builder=builder)
    if builder is not None:
        return reading.transform(builder, reading.open_table_or_raise(path), path)
    return reading.read_queries(path, reads)
