"""Measures of third parties come in through entry points, are found on demand, and are held to the same rules."""

import os
import subprocess
import sys
import textwrap

import pytest

from rankwise._registry import discover
from rankwise.errors import RankwiseError
from rankwise.measures import Measure, registered

MEASURE = """
from dataclasses import dataclass
from rankwise._kernels.machine.jit import kernel
from rankwise.measures import BinaryMeasure

@kernel
def last_formula(value, end, retrieved, best, table, params):
    return value[-1]

@dataclass(frozen=True, kw_only=True, repr=False)
class LastRelevant(BinaryMeasure):
    "1 if the last document is relevant."
    name = "{name}"
    takes_cutoff = False
    kernel = last_formula
"""


@pytest.fixture
def third_party(tmp_path):
    """Run code in a fresh process that has a third party's package with one measure installed."""

    def run(
        code: str, name: str = "LastRelevant", target: str = "theirs:LastRelevant"
    ) -> subprocess.CompletedProcess[str]:
        (tmp_path / "theirs.py").write_text(MEASURE.format(name=name))
        info = tmp_path / "theirs-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[rankwise.measures]\nlast = {target}\n")
        path = os.pathsep.join([str(tmp_path), *sys.path])
        command = [sys.executable, "-c", textwrap.dedent(code)]
        return subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
        )

    return run


def test_a_third_partys_measure_is_parsed_printed_and_evaluated(third_party):
    done = third_party("""
        import sys
        import rankwise as rw
        assert "theirs" not in sys.modules
        result = rw.evaluate([0, 1, 1, 0], [4, 3, 2, 1], ["LastRelevant"], group=[2, 2])
        print(result.mean, repr(rw.measures.parse("lastrelevant(rel=2)")))
    """)
    assert done.stdout.strip() == "{'LastRelevant': 0.5} LastRelevant(rel=2)", done.stderr


def test_a_name_that_is_taken_is_refused_with_both_owners(third_party):
    done = third_party("import rankwise as rw; rw.measures.parse('AP')", name="AP")
    assert "'AP' is declared twice: by rankwise.measures.ap.AP and by theirs.LastRelevant" in done.stderr


def test_an_entry_point_that_is_no_measure_is_refused_by_name(third_party):
    done = third_party("import rankwise as rw; rw.measures.parse('AP')", target="theirs:last_formula")
    assert "entry point 'theirs:last_formula' of group 'rankwise.measures' is not a Measure" in done.stderr


def test_every_measure_of_the_package_is_found_without_being_listed():
    assert {"nDCG", "AP", "RR", "ERR", "Pairs", "WTA"} <= set(registered())
    assert all(issubclass(kind, Measure) for kind in registered().values())


def test_a_package_without_such_classes_has_none():
    class Nothing:
        pass

    assert discover("rankwise.measures", Nothing, "rankwise.nothing") == {}
    with pytest.raises(ModuleNotFoundError):
        discover("rankwise.no_such_room", Nothing, "rankwise.nothing")
    assert issubclass(RankwiseError, ValueError)
