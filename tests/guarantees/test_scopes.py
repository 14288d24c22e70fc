"""Every guaranteed number says what it is about, and the table of the documentation is written from the objects."""

import importlib
from pathlib import Path

import rankwise
import rankwise.guarantees as guarantees
from experiments import scopes
from experiments.pages import read_block
from rankwise.guarantees import Bound
from rankwise.guarantees._bound import Scope
from rankwise.rankers.linear.presets import RankSVM


def declares(thing):
    """Whether a class or a module declares scopes of its own."""
    declared = vars(thing).get("SCOPES"), vars(thing).get("scope")
    return any(isinstance(one, Scope) for one in (*getattr(declared[0], "values", tuple)(), declared[1]))


def test_the_page_has_the_table_of_the_objects():
    assert read_block(scopes.PAGE, "scopes") == scopes.table()


def test_every_function_that_returns_a_bound_is_in_the_table():
    functions = [getattr(guarantees, name) for name in guarantees.__all__]
    returning = {
        one.__name__ for one in functions if getattr(one, "__annotations__", {}).get("return") in (Bound, "Bound")
    }
    assert returning - {"for_fitted_norm", "smallest"} == set(scopes.EXAMPLES)
    for name, arguments in scopes.EXAMPLES.items():
        assert isinstance(getattr(guarantees, name)(**arguments).scope, Scope), name


def test_every_class_and_module_that_declares_a_scope_is_in_the_table():
    found, root = set(), Path(rankwise.__file__).parent
    for path in root.rglob("*.py"):
        if "Scope" not in path.read_text(encoding="utf-8"):
            continue
        short = ".".join(path.relative_to(root).with_suffix("").parts)
        home = importlib.import_module(f"rankwise.{short}")
        found |= {(short, "")} if declares(home) else set()
        own = [one for one in vars(home).values() if isinstance(one, type) and one.__module__ == home.__name__]
        found |= {(short, one.__qualname__) for one in own if declares(one)}
    # the scopes of intervals come with the interval
    assert found - {("guarantees._bound", "Interval")} == set(scopes.DECLARED)


def test_every_row_of_a_certificate_has_a_scope_and_prints_it():
    lists = rankwise.make_lists(60, random_state=0)
    certificate = RankSVM("nDCG@10", alpha=0.1).fit(lists[:40]).certificate(lists[:40], lists[40:], longest=200)
    assert len(certificate.rows) > 4
    for row in certificate.rows:
        assert isinstance(row.scope, Scope), row.name
        assert row.scope.population in certificate.details()


def test_no_cell_of_the_table_is_empty():
    for what, scope in scopes.rows():
        assert all([what, scope.population, scope.unit, scope.read, scope.choices]), what
