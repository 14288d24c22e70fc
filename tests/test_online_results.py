"""The page on online learning says what its numbers say, and its numbers come out again."""

import json
import math

import numpy as np
import pytest

import rankwise as rw
from experiments.online import FIXED, MEASURES, NUMBERS, PAGE, SHUFFLES, chosen_step, running
from experiments.online_figures import spread
from experiments.pages import read_block


@pytest.fixture(scope="module")
def numbers():
    return json.loads(NUMBERS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def ohsumed(data_folder):
    return rw.Queries.concat([fold.test for fold in rw.io.read_folds(data_folder / "ohsumed")])


def printed(name, measure):
    """The cell of the page."""
    (line,) = (line for line in read_block(PAGE, "ohsumed").splitlines() if line.startswith(f"| {name} |"))
    return line.split(" | ")[2 + MEASURES.index(measure)]


@pytest.mark.parametrize("measure", MEASURES)
def test_one_pass_of_listnet_over_ohsumed_gives_the_printed_digits_again(numbers, ohsumed, measure):
    eta = numbers["data"]["ohsumed"]["rows"]["ListNet"]["eta"][measure]
    assert chosen_step(rw.ListNet, measure, ohsumed) == eta
    again = [running(rw.ListNet(measure, eta=eta), ohsumed, seed).mean for seed in SHUFFLES]
    assert printed("ListNet", measure) == spread(again)


@pytest.mark.parametrize("name", sorted(FIXED))
def test_one_pass_of_a_perceptron_over_ohsumed_is_what_the_page_says(ohsumed, name):
    """Within its spread: which of two equal scores is learned from is decided by the last bit, and then all follows."""
    again = [running(FIXED[name]("nDCG@10"), ohsumed, seed).mean for seed in SHUFFLES]
    mean, deviation = map(float, printed(name, "nDCG@10").split("±"))
    assert abs(np.mean(again) - mean) <= 2 * deviation


# -------------------------------------------------------------------------------- what the page says of its figures


def test_no_loss_is_above_its_bound(numbers):
    simulation, length = numbers["simulation"], numbers["bounds"]["length"]
    losses = np.array(simulation["curves"]["SLAMPerceptron"]["loss"])
    assert (losses[:, -1] <= simulation["bound"]).all()
    assert (np.array(length["loss"]) <= length["bound"]).all()
    assert (np.array(length["paper_loss"]) <= length["paper_bound"]).all()
    margin = numbers["bounds"]["margin"]
    for name, limits in margin["bounds"].items():
        assert (np.array(margin["mistakes"][name]) <= limits).all()


def test_slam_loss_does_not_grow_with_the_list_and_the_printed_bound_does(numbers):
    length = numbers["bounds"]["length"]
    ours, printed = np.mean(length["bound"], axis=1), np.mean(length["paper_bound"], axis=1)
    assert length["m"][0] == 5
    assert length["m"][-1] == 500
    assert ours.max() < 2 * ours.min()
    assert (np.diff(printed) > 0).all()
    assert printed[-1] > 100 * printed[0]


def test_the_adversary_forces_what_nobody_can_avoid(numbers):
    margin = numbers["bounds"]["margin"]
    assert set(margin["forced"]) == {"SLAMPerceptron", "MaxPairPerceptron", "ListNet"}
    for found in margin["forced"].values():
        # one less than the floor of 4/gamma^2 with gamma as a binary number, which can be a little above the decimal
        for gamma, mistakes in zip(margin["gamma"], found, strict=False):
            assert math.floor(4 / gamma**2 * (1 - 1e-12)) - 1 <= mistakes <= 4 / gamma**2


def test_the_printed_bound_is_passed_and_slam_loss_is_not(numbers):
    step = numbers["step"]
    one = step["margin 1"]
    passed = step["rounds"][int(np.argmax(np.array(one["loss"]) > one["printed"]))]
    assert one["printed"] == pytest.approx(468)
    assert passed < 3_000
    assert one["loss"][-1] < one["slam_loss"]
    assert step["margin 0"]["loss"][-1] < step["margin 0"]["slam_loss"]


def test_perceptrons_come_near_1_and_listnet_is_slower_or_faster_by_its_step(numbers):
    """As the figure of the paper, but for a ListNet whose step was chosen on another stream."""
    curves = numbers["simulation"]["curves"]
    final = {name: np.mean(curve["mean"], axis=0)[-1] for name, curve in curves.items()}
    assert min(final["SLAMPerceptron"], final["MaxPairPerceptron"]) > 0.998
    assert final["ListNet, step 1"] < final["ListNet, step of theory"] < final["SLAMPerceptron"] < final["ListNet"]
