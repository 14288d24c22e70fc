"""``rankwise export``: write a ranker for a search engine, a database or a program, with evidence that it ranks the
same.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankwise.cli import reading, wording
from rankwise.cli.options import argument, option
from rankwise.errors import RankwiseError
from rankwise.io.sources import plain_number


@reading.with_options
def export(
    model: Path = argument(
        ..., "A saved ranker, or a model of LightGBM, XGBoost, CatBoost, RankLib, SVM-rank or liblinear."
    ),
    to: str | None = option(None, "The target; without it the targets are listed.", "-t"),
    sample: Path | None = option(None, "Queries with raw features, on which the engine's scores are compared."),
    output: Path | None = option(None, "A file, or a folder for several (default: print the model).", "--out", "-o"),
    called: str = option("rankwise", "Name of the model or function in the target.", "--name"),
    names: str | None = option(
        None,
        "Names of the features (or columns) in the engine, separated by commas; built: the engine "
        "receives the features that the model makes from its columns.",
        "--features",
    ),
    shift: str = option(
        "0", "Constant added to every score; sample: the smallest that makes the scores of the sample non-negative."
    ),
    cutoff: Path | None = option(None, "A cut-off of this model, as rankwise cutoff writes it."),
    option: list[str] | None = option(None, "An option of the target, such as store=shop; may be repeated."),
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Write a ranker for Solr, Elasticsearch, OpenSearch, Vespa, RankLib, ONNX, SQL, Python or C.

    Example: rankwise export model.rankwise --to c --sample test.txt -o score.c

    Example: rankwise export lightgbm.txt --to opensearch --sample test.txt -o upload

    Example: rankwise export svm_rank.model --to rankwise -o model.rankwise
    """
    if to is None:
        _list_targets(as_json)
        return
    built = names is not None and names.strip() == "built"
    listed = None if names is None or built else [name.strip() for name in names.split(",")]
    ranker = _open(model, listed)
    if reads["missing"] == "zero":
        ranker.set_params(missing="zero")
    if to.lower() == "rankwise":
        _save(ranker, output)
        return
    from rankwise import export as export_model

    options: dict[str, Any] = dict(_option(one) for one in option or ())
    if built:
        options["features"] = "built"
    if cutoff is not None:
        from rankwise.guarantees.cutoff import Cutoff

        options["cutoff"] = Cutoff.load(cutoff)
    queries = None if sample is None else _sample(ranker, sample, reads)
    done = export_model(
        ranker, to, output, called=called, sample=queries, feature_names=listed, shift=_number(shift), **options
    )
    if as_json:
        print(json.dumps(done.to_dict()))
        return
    _show(done, output)


def _sample(ranker: Any, path: Path, reads: dict[str, Any]) -> Any:
    """Read queries to compare scores on; a raw table for a model that makes its features of one."""
    table = reading.raw_table_for(ranker, path)
    if table is not None:
        builder = ranker.features_.as_fitted()
        ranker.record_ = replace(ranker.record_, builder=builder)
        builder.roles_ = {**builder.roles_, **{role: reads[role] for role in builder.roles_ if role in reads}}
        return table
    if hasattr(ranker, "features_"):
        return reading.read_for(ranker, path, reads, judged=False)
    return reading.read_queries(path, reading.keeping_missing(reads, [ranker]))


def _open(path: Path, names: list[str] | None) -> Any:
    """Read a saved ranker, or the model of another tool."""
    if not path.exists():
        raise RankwiseError(f"{path} does not exist: expected a saved ranker or a model of another tool")
    from rankwise import read_model
    from rankwise.io.any_file import is_store

    if is_store(str(path)):
        return reading.load_ranker(path)
    return read_model(path, feature_names=names)


def _save(ranker: Any, output: Path | None) -> None:
    """Save a model of another tool as a rankwise file."""
    if output is None:
        raise RankwiseError("--to rankwise requires --out FILE")
    ranker.save(output)
    print(f"{output}: {ranker.name}, {ranker.n_features_in_:,} features")


def _number(text: str) -> Any:
    """Parse ``--shift``."""
    if text == "sample":
        return text
    value = plain_number(text)
    if value is None:
        raise RankwiseError(f"--shift must be a number or 'sample', got {text!r:.40}")
    return value


def _option(text: str) -> tuple[str, Any]:
    """Parse ``--option NAME=VALUE``."""
    name, mark, value = text.partition("=")
    if not mark:
        raise RankwiseError(f"--option must be NAME=VALUE, got {text!r:.40}")
    value = value.strip()
    return name.strip(), int(value) if re.fullmatch("[0-9]{1,18}", value) else value


def _list_targets(as_json: bool) -> None:
    """Print the targets."""
    from rankwise.exports._base import targets

    found = {**{name: kind.title for name, kind in targets().items()}, "rankwise": "a file for the other commands"}
    if as_json:
        print(json.dumps(found))
        return
    from rankwise._tables import Table

    console = wording.new_console()
    console.print("Choose a target with --to:", markup=False)
    console.print(Table({"--to": sorted(found), "what": [found[name] for name in sorted(found)]}).rich())


def _show(done: Any, output: Path | None) -> None:
    """Print the model, unless it was written; notes go to standard error then, which a pipe leaves out."""
    if output is None:
        print(done.text, end="")
    console = wording.new_console(stderr=output is None)
    if output is not None:
        console.print(f"{output}: {', '.join(done.files)} for {done.target}", markup=False)
    for note in done.notes:
        console.print(f"- {note}", markup=False)
    if done.parity is not None:
        console.print(done.parity.table().rich())
