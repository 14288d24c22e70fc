"""One call passes through few files, and the package keeps its shape: figures that may fall, and may not rise."""

import sys

import pytest

from experiments.structure import shape
from experiments.walk import walks, whole_walks

FILES = {
    "read_letor, SLAMPerceptron.fit, certificate": 37,
    "SmoothRank.fit": 26,
    "RankSVM.fit": 26,
    "a loss of one query": 6,
    "a measure of one query": 5,
    "evaluate": 7,
}
WHOLE = {"read_letor, RidgeRanker.fit, evaluate": 20, "CSV, rankwise train, rankwise certify": 50}
ABOVE_KERNELS = {"a loss of one query": 5, "a measure of one query": 4}
DEEPEST = {"a loss of one query": 5, "a measure of one query": 4}


@pytest.fixture(scope="module")
def found():
    return walks()


def test_a_call_passes_through_no_more_files_than_it_did(found):
    assert found.keys() == FILES.keys()
    longer = {call: walk.files for call, walk in found.items() if len(walk.files) > FILES[call]}
    assert not longer


def test_a_whole_task_passes_through_no_more_files_and_calls_than_it_did():
    found = whole_walks()
    assert {call: found[call].files for call, most in WHOLE.items() if len(found[call].files) > most} == {}
    assert found["read_letor, RidgeRanker.fit, evaluate"].calls <= 1_300


def test_one_loss_and_one_measure_pass_few_files_besides_compiled_code(found):
    above = {call: [name for name in found[call].files if not name.startswith("_kernels")] for call in ABOVE_KERNELS}
    assert {call: files for call, files in above.items() if len(files) > ABOVE_KERNELS[call]} == {}


def test_one_loss_and_one_measure_are_computed_a_few_calls_below_the_public_one(found):
    assert {call: found[call].depth for call in DEEPEST if found[call].depth > DEEPEST[call]} == {}


def test_a_walk_counts_the_files_of_the_loss_itself(found):
    assert {"losses/_base.py", "losses/slam.py"} <= set(found["a loss of one query"].files)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="from Python 3.12 on numba shows profilers no compiled code")
def test_a_walk_counts_compiled_code(found):
    assert ("measures/compute.py", "_measure_chunk") in found["a measure of one query"].functions


def test_modules_are_documented_and_seldom_have_a_single_reader():
    figures = shape()
    assert figures["docstrings, % of lines"] >= 25
    assert figures["modules with one importer"] <= 59
    assert figures["modules above 450 lines"] <= 60
