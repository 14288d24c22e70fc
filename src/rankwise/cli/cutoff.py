"""``rankwise cutoff``: how many results to show, with a guarantee, from judged queries; the file is for ``rank``."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import typer

from rankwise.cli import reading
from rankwise.cli.certify import NOT_CERTIFIED
from rankwise.cli.options import argument, data_option, measure_option, output_option
from rankwise.cli.wording import in_shell
from rankwise.errors import RankwiseError


@reading.with_options
def cutoff(
    subject: Path = argument(
        ...,
        "A saved ranker, a model of LightGBM, XGBoost or CatBoost, or scores of the judged queries from any source.",
    ),
    data: Path = data_option(..., "Judged queries that were not used in training."),
    keep: str = measure_option(
        ..., "The demand: recall>=0.9, 'recall(rel=2)>=0.9', precision>=0.5, 'nDCG@10 lost<=0.01' ..."
    ),
    by: Literal["score", "standardized", "rank"] = measure_option(
        "score", "A threshold on scores, on scores standardized within their query, or a number of documents."
    ),
    delta: float = measure_option(0.05, "Probability with which the demand may fail to hold."),
    out: Path = output_option(Path("cutoff.json"), "The file to write.", "-o"),
    plot: Path | None = output_option(None, "Also draw share kept, estimate and bound against the cut, as PNG."),
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Find a threshold on scores, or a number of documents, that keeps what is needed on average over future queries.

    The file that is written belongs to this model, and is what rank, export and serve take as --cutoff. If no cut is
    shown to meet the demand, nothing is written, and the exit code is 3.

    Example: rankwise cutoff model.rankwise --data judged.csv --keep "recall>=0.9"

    Example: rankwise cutoff model.rankwise --data test.txt --keep "nDCG@10 lost<=0.02" --by rank -o top.json
    """
    from rankwise.evaluation.cutoffs import cutoff as find_cutoff
    from rankwise.guarantees.holdout.demands import Demand

    demand = Demand.parse(keep)
    if not subject.exists():
        raise RankwiseError(f"{subject} does not exist: expected a saved ranker or scores")
    reading.check_writable(out)
    if reading.is_model(subject):
        model: Any = reading.load_ranker(subject)
        queries: Any = reading.read_for(model, data, reads)
    else:
        queries, model = reading.read_scored(data, subject, reads, {})
    found = find_cutoff(model, queries, demand, delta=delta, by=by)
    if not found.vacuous:
        found.save(out)
        if plot is not None:
            from rankwise._figures import save_png

            save_png(found.plot(), plot)
    if as_json:
        shown = {name: value for name, value in found.to_dict().items() if name != "calibrated_on"}
        print(json.dumps(shown | {"out": None if found.vacuous else str(out)}))
    else:
        print(in_shell(repr(replace(found, notes=()))))
        for note in found.notes:
            print(in_shell(f"- {note}"))
        print("nothing was written" if found.vacuous else f"{out}: for rankwise rank {subject} NEW --cutoff {out}")
    if found.vacuous:
        raise typer.Exit(NOT_CERTIFIED)
