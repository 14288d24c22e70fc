"""``rankwise inspect``: describe judged queries, find problems in them, and say how to train on them.

A file is read in any case that can be mended by options, and what has to be said about its columns is kept as findings:
roles whose column is not there, labels that are words or missing. The command for training has the options that work.
"""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rankwise._diagnose.findings import Diagnosis, Finding
from rankwise.cli import reading, wording
from rankwise.cli.columns import candidates, owners, reading_words, write_columns_file
from rankwise.cli.options import argument, output_option
from rankwise.cli.wording import in_shell
from rankwise.errors import DataError, FileFormatError
from rankwise.queries.checks import plural

if TYPE_CHECKING:
    from rankwise.features.builder import FeatureBuilder
    from rankwise.features.table import RawTable
    from rankwise.queries.parts.parts import Parts
    from rankwise.queries.queries import Queries

_SHOWN = 4  # candidates that a finding names
_TITLES = {"qid": "query ids", "label": "labels", "docid": "document ids"}


@reading.with_options
def inspect(
    files: list[Path] = argument(
        ..., "Judged queries in any format (- is standard input), folders of parts; further files are other splits."
    ),
    per_feature: bool = output_option(False, "Also print a line for each feature.", "--per-feature", "--features"),
    write_columns: Path | None = output_option(
        None, "Write roles and kinds of columns to this TOML file, for --columns."
    ),
    as_json: reading.JsonOption = False,
    *,
    reads: dict[str, Any],
) -> None:
    """Describe judged queries, find problems in them, and print the command that trains on them.

    Shows sizes and labels, and finds useless or unscaled features, leaks, degenerate queries, duplicates, and queries
    that two splits share. In a table, the columns of ids and labels are found by name and values, and the treatment of
    texts, categories, dates, gaps, identifiers and constants is shown. In folders of parts, all checksums are verified.

    Example: rankwise inspect train.txt vali.txt test.txt

    Example: rankwise inspect my.csv --qid query --label grade --ignore url

    Example: rankwise inspect my.csv --write-columns columns.toml
    """
    from rankwise._diagnose.run import diagnose
    from rankwise._progress import track
    from rankwise.io.any_file import kind_of

    path, *others = files
    look = look_at(path, reads)
    splits = {str(path): look.queries}
    splits |= {str(other): _read_other(other, look) for other in track(others, "reading")}
    diagnosis = diagnose(splits, verbose=True)
    diagnosis = Diagnosis.of([*look.findings, *diagnosis.findings], diagnosis.facts, diagnosis.features)
    # what is called a problem is not trained on, unless somebody decides so
    left_out = [name for one in diagnosis.findings if one.severity == "problem" for name in one.columns]
    if write_columns is not None:
        _write_look(write_columns, path, look, left_out)
    written = write_columns is not None
    command = _train_command(path, look, write_columns or reads.get("columns"), written, left_out)
    if as_json:
        plan = None if look.builder is None else look.builder.plan_
        print(json.dumps({**diagnosis.to_dict(), "columns": plan, "command": command}))
        return
    if look.builder is not None:
        _show_columns(path, look.builder)
    print(in_shell(str(diagnosis)))
    if per_feature:
        from rich.console import Console

        Console().print(diagnosis.table().rich())
    if command is not None and (look.table is not None or (path.is_file() and kind_of(path) == "table")):
        print(f"\nto train:\n{command}")


def _show_columns(path: Path, builder: "FeatureBuilder") -> None:
    """Print what is done with each column."""

    from rankwise._tables import Table

    report = builder.report_
    roles = [f"{_TITLES[role]} in {name}" for role, name in builder.roles_.items() if role in _TITLES and name]
    left = sum(not row["features"] for row in builder.plan_)
    used = f"{len(builder.feature_names_out_)} features from {len(builder.columns_in_)} columns, {left} left out"
    print(f"{path}: {builder.n_features_in_} columns: {', '.join(roles)}; {used}")
    columns: dict[str, Any] = {name: report[name] for name in report.columns}
    columns["reason"] = [in_shell(reason) for reason in report["reason"].tolist()]
    wording.new_console().print(Table(columns).rich())


# ------------------------------------------------------------------------------------------- what is read


class Look(NamedTuple):
    """A file that was read.

    Attributes
    ----------
    queries : Queries or Parts
        Its queries.
    reads : dict
        What the options say, with the columns that were found.
    findings : list of Finding
        About roles and labels.
    table : RawTable or None
        The table, if the file is one that could not be read as plain numbers by the options alone.
    builder : FeatureBuilder or None
        The builder that made the features, where one was needed.
    """

    queries: "Queries | Parts"
    reads: dict[str, Any]
    findings: list[Finding]
    table: "RawTable | None" = None
    builder: "FeatureBuilder | None" = None


def look_at(path: Path, reads: dict[str, Any]) -> Look:
    """Read a file, with columns found by name and values where the options name none that are there.

    Parameters
    ----------
    path : Path
        The file.
    reads : dict
        What the options say.

    Returns
    -------
    Look
        The queries, and what has to be said about the columns.
    """
    from rankwise.features.judged import new_builder, open_table, plain_numbers

    if reading.is_parts(path):
        return Look(_open_verified(path), reads, [])
    told = any(kind != "number" for kind in reads.get("kinds", {}).values())
    table = open_table(path) if told else None
    findings: list[Finding] = []
    if table is None:
        try:
            return Look(reading.read_queries(path, reads), reads, [])
        except (DataError, FileFormatError) as error:
            table = open_table(path)
            if table is None:
                raise
            try:
                reads, findings = _settle_roles(table, reads)
            except DataError:
                raise error from None  # which names the line, too
        if plain_numbers(table, reads):
            return Look(reading.read_queries(path, reads), reads, findings, table)
    else:
        reads, findings = _settle_roles(table, reads)
    builder = new_builder({**reads, "missing": "error"})
    queries = builder.fit_transform(table)
    return Look(queries, reads, [*findings, *_about_numbers(table, builder)], table, builder)


def _open_verified(path: Path) -> "Parts":
    """A data set in parts, after all of its files were compared with their checksums."""
    from rankwise.queries.parts.parts import Parts

    parts = Parts(path)
    parts.verify(verbose=True)
    return parts


def _about_numbers(table: "RawTable", builder: "FeatureBuilder") -> list[Finding]:
    """The finding about columns of numbers with some texts among them."""
    found = reading.mostly_numbers(table, builder)
    if not found:
        return []
    what = f"{plural(len(found), 'column')} {reading.MIXED}"
    advice = "correct the texts; or kind number in --columns treats them as missing"
    return [Finding.of("problem", what, found.values(), advice, found)]


def _read_other(path: Path, first: Look) -> "Queries | Parts":
    """Read another split as the first file was read."""
    if reading.is_parts(path):
        return _open_verified(path)
    if first.builder is None:
        return reading.read_queries(path, first.reads)
    return reading.transform(first.builder, reading.open_table_or_raise(path), path)


def _settle_roles(table: "RawTable", reads: dict[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
    """The options with columns that are there, and findings about those that were not."""
    known = reading.with_defaults(reads)
    settled, findings = dict(reads), []
    taken = set(known.get("ignore", ()))
    owner = None
    for role in ("qid", "label", "docid"):
        name = known.get(role, "docid" if role == "docid" else None)
        if role != "docid" and name is None:
            continue  # data without labels
        if name not in table.names:
            if role in reads:
                raise DataError(f"there is no column {name!r}: pass {role}='its name'")
            found = candidates(table, role, taken, owner)
            if role != "docid" or found:
                findings.append(_about_role(role, str(name), [f"{one.name} ({one.why})" for one in found]))
            if not found and role == "qid":
                raise DataError(
                    f"there is no column {name!r} of query ids, and no other column looks like one: pass qid='its name'"
                )
            name = settled[role] = found[0].name if found else None
        if name is not None:
            taken.add(name)
        if role == "qid":
            owner = owners(table, str(name))
    if known["label"] is not None and settled.get("label", "label") is not None:
        settled, more = _with_grades(table, settled)
        findings += more
    return {name: value for name, value in settled.items() if value is not None or name == "label"}, findings


def _about_role(role: str, name: str, found: list[str]) -> Finding:
    """The finding about a role whose column is not there."""
    what = f"there is no column {name!r} for the {_TITLES[role]}"
    if not found:
        return Finding.of("problem", what, (), f"pass {role}='its name': no column looks like {_TITLES[role]}")
    severity: Any = "note" if role == "docid" else "problem"
    advice = f"the first of these is used here and in the command; for another column, pass {role}='its name'"
    return Finding.of(severity, what, found[:_SHOWN], advice)


def _with_grades(table: "RawTable", reads: dict[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
    """Grades for words in the label column, and what to do with rows that have no label."""
    from rankwise.features.roles import labels_of, propose_grades

    name = str(reads.get("label", "label"))
    column, findings = table.column(name), []
    try:
        labels = labels_of(table, name, reads.get("grades"))
    except DataError:
        if reads.get("grades") or column.stored != "text":
            raise
        grades = {word: float(grade) for word, grade in propose_grades(column).items()}
        reads = {**reads, "grades": grades}
        listed = ",".join(f"{word}={grade:g}" for word, grade in grades.items())
        what = f"the labels in {name!r} are words"
        advice = "the command assigns grades in this order: check it, and change --labels if needed"
        findings.append(Finding.of("problem", what, [listed], advice))
        labels = labels_of(table, name, grades)
    unjudged = 0 if labels is None else int((~(labels >= 0)).sum())
    if 0 < unjudged < table.n_rows and reads["unjudged"] == "error":
        reads = {**reads, "unjudged": "drop"}
        what = f"{plural(unjudged, 'row has', 'rows have')} no label, or a negative one, in {name!r}"
        findings.append(
            Finding.of("problem", what, (), "unjudged='drop' leaves them out, unjudged='zero' labels them 0")
        )
    return reads, findings


# ------------------------------------------------------------------------------------------- what is written


def _train_command(path: Path, look: Look, columns: Path | None, written: bool, left_out: list[str]) -> str | None:
    """The command that trains on this file, to paste; None without labels.

    Parameters
    ----------
    path : Path
        The file.
    look : Look
        What was found.
    columns : Path or None
        The file of ``--columns``.
    written : bool
        Whether that file was written just now, and so holds everything.
    left_out : list of str
        Columns with a problem.

    Returns
    -------
    str or None
        The command, quoted for a shell.
    """
    if getattr(look.queries, "y", None) is None:
        return None
    words = reading_words(look.reads, columns, left_out, roles=not written)
    return shlex.join(["rankwise", "train", str(path), *words])


def _write_look(target: Path, path: Path, look: Look, left_out: list[str]) -> None:
    """Write what was decided as a file for ``--columns``.

    Parameters
    ----------
    target : Path
        The file to write.
    path : Path
        The table.
    look : Look
        What was found.
    left_out : list of str
        Columns with a problem.
    """
    from rankwise.features.judged import open_table

    table = look.table or open_table(path)
    if table is None:
        raise DataError(f"--write-columns requires a table, got {path}")
    roles = {**reading.with_defaults(look.reads)}
    if roles.get("docid") is None and "docid" in table.names:
        roles["docid"] = "docid"
    ignored = roles.get("ignore", ())
    if look.builder is not None:
        kinds = [
            (row["column"], *_kind_and_remark({**row, "reason": in_shell(row["reason"])})) for row in look.builder.plan_
        ]
    else:
        names = [name for name in table.names if name not in (roles["qid"], roles["label"], roles.get("docid"))]
        kinds = [(name, "ignore", "as requested") if name in ignored else (name, "number", "numbers") for name in names]
    problem = "a problem: see the output of rankwise inspect"
    kinds = [(name, "ignore", problem) if name in left_out else (name, kind, why) for name, kind, why in kinds]
    write_columns_file(target, path.name, roles, kinds)


def _kind_and_remark(row: dict[str, Any]) -> tuple[str, str]:
    """(kind for the file, remark) of a column."""
    from rankwise.features.columns import LEFT_OUT

    if row["kind"] in LEFT_OUT:
        return "ignore", f"{row['kind']}: {row['reason']}"
    return "number" if row["kind"] == "amount" else row["kind"], row["reason"]
