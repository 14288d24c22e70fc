"""A file dropped into the folder of losses comes under the whole common suite, which tells the truth from the rest."""

import ast
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
DROPPED = ROOT / "tests" / "losses" / "dropped"
SUITES = [ROOT / "tests" / "losses" / name for name in ("test_every_loss.py", "test_every_fact.py")]
DEFINED = "test_every_loss_of_the_package_has_a_definition_to_be_held_against"
# By checks that always see it, and by checks that may: those try a few lists of hypothesis's choice.
CAUGHT_BY = {
    "PairSmoothHinge": (set(), set()),
    "TopHinge": (set(), set()),
    "TopHingeTame": (  # declares half its Lipschitz constant
        {
            "test_no_search_finds_a_steeper_list_than_declared",
            "test_weights_feel_no_more_than_the_radius_of_the_documents",
        },
        {"test_declared_constants_are_never_exceeded"},
    ),
    "TopHingeNarrow": (  # declares too small a range
        {"test_no_search_leaves_the_declared_range"},
        {"test_declared_constants_are_never_exceeded"},
    ),
    "TopHingeCapped": (  # says that it is convex
        {"test_no_search_finds_a_gradient_that_overestimates_a_convex_loss"},
        {"test_no_chord_falls_below_a_convex_loss"},
    ),
    "TopHingeBoastful": (  # says that it bounds NDCG
        {"test_every_bound_holds_on_every_weak_order_of_every_short_list", "test_no_search_gets_below_a_bound"},
        {"test_every_bound_holds_on_longer_lists"},
    ),
    "TopHingeHalf": (  # returns half its gradient
        {
            "test_fast_equals_plain_on_huge_scores_and_on_gaps_that_almost_vanish",
            "test_no_search_finds_a_gradient_that_overestimates_a_convex_loss",
            "test_the_gradient_is_the_slope_away_from_ties",
        },
        {"test_fast_equals_plain", "test_no_chord_falls_below_a_convex_loss"},
    ),
    "TopHingeFirst": (  # says that no order of documents matters
        {"test_neither_a_constant_nor_the_order_of_documents_matters"},
        {"test_fast_equals_plain"},
    ),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """{loss: {check: whether it passed}} from the suites in a process of their own that has the file dropped in."""
    report = tmp_path_factory.mktemp("dropped") / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "tests.losses.dropped.plugin"]
    command += ["-p", "no:cacheprovider", "--hypothesis-profile=dropped", f"--junitxml={report}"]
    command += ["-k", f"TopHinge or PairSmoothHinge or {DEFINED}", *map(str, SUITES)]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert report.exists(), done.stdout + done.stderr
    found = defaultdict(dict)
    for case in ElementTree.parse(report).iter("testcase"):
        check, _, variant = case.get("name").partition("[")
        loss = next((name for name in CAUGHT_BY if f"{name}()" in variant), None)
        passed = len(list(case)) == 0  # neither a failure nor an error, nor skipped
        found[loss][check] = found[loss].get(check, True) and passed
    return found


def checks_of_the_suites():
    """Every check of the common suite but those marked as thorough."""
    for suite in SUITES:
        for node in ast.parse(suite.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                marks = [ast.unparse(mark) for mark in node.decorator_list]
                if "pytest.mark.thorough" not in marks:
                    yield node.name


@pytest.mark.parametrize("loss", CAUGHT_BY)
def test_every_check_runs_on_it_and_exactly_the_wrong_fact_is_caught(outcomes, loss):
    checks = outcomes[loss]
    assert set(checks) == set(checks_of_the_suites()) - {DEFINED}
    always, sometimes = CAUGHT_BY[loss]
    assert always <= {check for check, passed in checks.items() if not passed} <= always | sometimes


def test_its_definition_is_found_where_it_was_dropped(outcomes):
    assert outcomes[None] == {DEFINED: True}


@pytest.mark.parametrize("file", ["loss/top_hinge.py", "oracle/losses_top_hinge.py"])
def test_it_is_the_one_that_contributing_shows(file):
    assert f"```python\n{(DROPPED / file).read_text()}```" in (ROOT / "CONTRIBUTING.md").read_text()
