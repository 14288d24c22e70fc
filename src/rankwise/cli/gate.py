"""``rankwise gate``: whether a new model may be released, by a hold-out that answers passed or not.

The exit code is the answer: 0 passed, 1 not passed, 2 an error. Whatever is printed depends on the hold-out through
this answer alone.
"""

import json
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankwise.cli import reading, wording
from rankwise.cli.options import argument, data_option, measure_option, model_option, output_option, plan_option
from rankwise.errors import RankwiseError

if TYPE_CHECKING:
    from rankwise.evaluation.gate.gate import Decision

_NOT_PASSED, _ERROR = 1, 2
_ROLES = ("qid", "label", "docid", "grades", "columns")
# margins and standard deviations of the plan, by whether models are compared: of differences and of values
_MARGIN, _SD = {True: 0.02, False: 0.05}, {True: 0.2, False: 0.3}


@reading.with_options
def gate(
    model: Path = argument(
        ..., "The new model: a saved ranker, a model of a booster, or scores of the hold-out from any source."
    ),
    data: Path = data_option(..., "The hold-out: judged queries that no model and none of its makers has seen."),
    state: Path = data_option(
        ..., "The file in which attempts are counted, beside the hold-out; made by the first one."
    ),
    against: Path | None = model_option(None, "The model in use: the new one must not be worse, but for --allow."),
    allow: float = measure_option(0.0, "With --against: how much worse the mean may be; below 0 it must be better."),
    at_least: float | None = measure_option(None, "Instead of --against: the threshold of the mean."),
    measure: list[str] = measure_option(
        ["nDCG@10"],
        "nDCG@10, AP, RR ...; if repeated, a model passes if every measure does.",
        "-m",
        autocompletion=wording.measures,
    ),
    delta: float = measure_option(0.05, "Probability with which a model may ever pass wrongly, over all attempts."),
    ties: reading.TiesOption = None,
    empty: reading.EmptyOption = None,
    rel: reading.RelOption = None,
    margin: float | None = plan_option(
        None, "For the number of queries needed: a margin, declared (0.05; 0.02 --against)."
    ),
    sd: float | None = plan_option(None, "For the same: a standard deviation, declared (0.3; 0.2 --against)."),
    markdown: bool = output_option(False, "Print Markdown, for the summary of a CI job."),
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Ask a locked hold-out whether a new model may be released: passed (exit code 0) or not passed (1).

    Each attempt spends a part of delta, so the answers hold together, however models are made from earlier answers. The
    same model gets the stored answer. Keep the data and the state where the makers of models cannot read them, and ask
    from one machine, one model at a time. Errors are exit code 2, and spend nothing.

    Example: rankwise gate new.rankwise --against old.rankwise --data judged.csv --allow 0.005 --state gate.json

    Example: rankwise gate new.rankwise --data judged.csv --at-least 0.6 --state gate.json --markdown
    """
    if as_json and markdown:
        raise RankwiseError("--json and --markdown cannot be combined")
    compared = against is not None
    room = 1 + allow if compared else 1 - (at_least or 0.0)  # between the threshold and the largest mean
    wanted = min(_MARGIN[compared], room / 2) if margin is None else margin, _SD[compared] if sd is None else sd
    if room > 0 and not (0 < wanted[0] < room and wanted[1] > 0):
        raise RankwiseError(
            f"--margin must be above 0 and below {room:g}, and --sd above 0, got {wanted[0]:g} and {wanted[1]:g}"
        )
    given = {"at_least": at_least} if against is None else {"allow": allow}
    if compared and at_least is not None:
        raise RankwiseError("--against and --at-least cannot be combined")
    conventions: dict[str, Any] = {"ties": ties or "expected", "empty": empty or "skip", "rel": rel}
    try:
        decision = _ask(model, against, data, reads, measure, delta, state, given | conventions)
    except (RankwiseError, OSError):
        raise
    except Exception as error:  # exit code 1 is an answer, so nothing else may end with it
        traceback.print_exc()
        raise typer.Exit(_ERROR) from error
    _show(decision, wanted, markdown, as_json)
    if not decision.passed:
        raise typer.Exit(_NOT_PASSED)


def _ask(
    model: Path,
    against: Path | None,
    data: Path,
    reads: dict[str, Any],
    measure: list[str],
    delta: float,
    state: Path,
    given: dict[str, Any],
) -> "Decision":
    """Open the files, and ask."""
    from rankwise.evaluation.gate.gate import Gate

    paths = [model] if against is None else [model, against]
    for path in paths:
        if not path.exists():
            raise RankwiseError(f"{path} does not exist: expected a saved ranker or scores")
    rankers = {path: reading.load_ranker(path) for path in paths if reading.is_model(path)}
    holdout = _open(data, rankers, reads)
    asked = {
        path: rankers[path] if path in rankers else reading.read_scored(data, path, reads, {"queries": holdout})[1]
        for path in paths
    }
    if against is not None:
        given = {**given, "better_than": asked[against]}
    return Gate(holdout, measure, delta=delta, state=state, **given).ask(asked[model])


def _open(data: Path, rankers: dict[Path, Any], reads: dict[str, Any]) -> Any:
    """The hold-out with all of its columns, whatever the models use: its digest may not depend on them."""
    tables = [reading.raw_table_for(ranker, data) for ranker in rankers.values()]
    table = next((one for one in tables if one is not None), None)
    if table is None:
        return reading.read_queries(data, reading.keeping_missing(reads, rankers.values()) if rankers else reads)
    named = [role for role in _ROLES if role in reads]
    if named:
        raise RankwiseError(f"the columns of {data} are those that the models remember: leave out {named[0]}=")
    return table


def _show(decision: "Decision", wanted: tuple[float, float], markdown: bool, as_json: bool) -> None:
    """Print the decision; the answer is the exit code, also where nobody reads what is printed."""
    try:
        if as_json:
            print(json.dumps(decision.to_dict()))
        elif markdown:
            print(decision.to_markdown(*wanted))
        else:
            wording.new_console().print(decision.table(*wanted).rich())
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
