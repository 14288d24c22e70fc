"""Every function that gives a bound says what it is about, and shows every constant of its formula."""

import json
import math
import re
from typing import get_args

import pytest

import rankwise.guarantees as guarantees
from experiments import printed_bounds
from rankwise.guarantees import Bound
from rankwise.guarantees._bound import Kind
from rankwise.guarantees.certificate import Certificate, Claim, certificate_of

BALL = {"W": 1.0, "radius": 1.0, "m": 10, "n": 10_000, "delta": 0.05}
LEARNED = {"G": 2.0, "W": 1.0, "radius": 1.0, "n": 100}
SPARSE = {"G": 1.0, "W1": 1.0, "entry": 1.0, "d": 5, "m": 10, "n": 100}
RUN = {"F": 1.0, "norm_u": 2.0, "radius": 1.0}
ROUNDS = {"phi": [0.6, 0.5], "alpha": [0.5, 0.4], "delta": [0.2, 0.1]}

# function -> (kind, arguments)
EVERY = {
    "adarank_certificate": ("training", ROUNDS),
    "adarank_logistic_certificate": ("training", ROUNDS | {"mass": [0.5, 0.4]}),
    "adarank_printed": ("training", ROUNDS),
    "ogd_smooth_small_step": ("generalization", {"L_star": 0.1, "H": 1.0, "W": 1.0, "n": 100}),
    "fixed_step": ("online", RUN | {"kappa": 2.0, "eta": 0.1}),
    "l1_ball": ("generalization", SPARSE | {"risk": 0.1, "b": 1.0, "delta": 0.05}),
    "l1_erm": ("generalization", SPARSE | {"b": 1.0, "delta": 0.05}),
    "l2_ball": ("generalization", BALL | {"risk": 0.1, "L2": 1.0, "b": 1.0}),
    "linf_ball": ("generalization", BALL | {"risk": 0.1, "G": 1.0, "b": 1.0}),
    "linf_erm": ("generalization", BALL | {"G": 1.0, "b": 1.0}),
    "ogd_average": ("generalization", LEARNED),
    "ogd_smooth": ("generalization", {"L_star": 0.1, "H": 1.0, "W": 1.0, "n": 100}),
    "online_to_batch": ("online", {"L": 3.0, "n": 10, "delta": 0.05}),
    "printed_003": ("online", RUN | {"v_max": 2.0, "m": 3}),
    "printed_corollary_11": ("generalization", SPARSE | {"B": 1.0}),
    "printed_corollary_8": ("generalization", {"G": 1.0, "W": 1.0, "radius": 1.0, "m": 10, "n": 100, "B": 1.0}),
    "printed_smooth_erm": ("generalization", {"L_star": 0.1, "D_0": 0.1}),
    "printed_theorem_1": ("generalization", BALL | {"risk": 0.1, "L2": 1.0}),
    "rerm": ("generalization", LEARNED | {"lambda_": 0.1, "gap": 0.01}),
    "rerm_best": ("generalization", LEARNED | {"gap": 0.01}),
    "separable_loss": ("online", {"gamma": 0.5, "radius": 1.0, "V": 1.0, "eta": 1.0}),
    "separable_mistakes": ("online", {"gamma": 0.5, "radius": 1.0, "V": 1.0, "smallest": 0.1, "eta": 1.0}),
    "separable_worst_pair": ("online", {"gamma": 0.5, "radius": 1.0}),
    "slam_mistakes": ("online", RUN | {"V": 1.0, "smallest": 0.1, "eta": 1.0}),
    "smooth_ball": ("generalization", BALL | {"risk": 0.1, "H1": 1.0, "B": 1.0}),
    "smooth_erm": ("generalization", BALL | {"L_star": 0.1, "H1": 1.0, "B": 1.0}),
    "smoothing_error": ("training", {"scores": [0.3, 0.1], "gains": [1.0, 0.0], "sigma": 0.1}),
    "surrogate_above_loss": ("training", {"surrogate": [0.5, 0.2], "losses": [0.4, 0.1]}),
    "quarter_step": ("online", RUN | {"kappa": 2.0, "eta": 0.125}),
    "rerm_in_ball": ("generalization", LEARNED),
    "slam_loss": ("online", RUN | {"V": 1.0, "eta": 1.0}),
    "top_k_regret": (
        "online",
        LEARNED | {"m": 5, "k": 2, "labels_per_term": 2, "explore": 0.1, "eta": 0.01, "cost": 3.0},
    ),
    "type_two_below_type_one": ("training", {"type_one": [0.4], "margin": [1.5], "achieved": [1.0]}),
    "worst_pair_mistakes": ("online", RUN),
}
# what stands in formulas besides the constants: functions, and words for what is averaged or solved for
WORDS = {
    *("sqrt", "log", "log2", "exp", "pi", "mean", "sum", "of", "with", "steps", "discounts", "ideal", "DCG", "loss"),
    *("surrogate", "type", "one", "p", "q", "l", "Pi"),
}


def made(name):
    home = printed_bounds if hasattr(printed_bounds, name) and "printed" in name else guarantees
    return getattr(home, name)(**EVERY[name][1])


def test_none_is_forgotten():
    """Whatever the package gives out and returns a bound is in the table above, and so are the printed formulas."""
    printed = [name for name in vars(printed_bounds) if "printed" in name]
    functions = [getattr(guarantees, name) for name in guarantees.__all__]
    functions += [getattr(printed_bounds, name) for name in printed]
    found = {
        function.__name__
        for function in functions
        if getattr(function, "__annotations__", {}).get("return") in (Bound, "Bound")
    }
    assert found - {"for_fitted_norm", "smallest"} == set(EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_a_bound_says_what_it_is_about(name):
    bound = made(name)
    assert bound.kind == EVERY[name][0]
    assert bound.kind in get_args(Kind)
    assert bound.bounds
    assert math.isfinite(bound.value)


@pytest.mark.parametrize("name", EVERY)
def test_every_constant_of_the_formula_is_among_the_terms(name):
    bound = made(name)
    symbols = set(re.findall(r"[A-Za-z_]\w*", bound.statement)) - WORDS
    assert symbols <= set(bound.terms), bound
    given = {"lambda_": "lambda"}
    asked = {given.get(name, name) for name, value in EVERY[name][1].items() if isinstance(value, (int, float))}
    assert asked <= set(bound.terms), bound


@pytest.mark.parametrize("name", EVERY)
def test_a_bound_goes_through_a_certificate_to_json_and_back(name):
    bound = made(name)
    found = certificate_of([Claim.certain(bound)], about=name, delta=0.05)
    assert Certificate.from_json(found.to_json()).rows == (bound,)
    json.loads(found.to_json(indent=2))


@pytest.mark.parametrize("name", [name for name in EVERY if name.startswith("printed") and "lambda" not in name])
def test_what_is_printed_is_marked_as_such_and_never_the_headline(name):
    bound = made(name)
    assert bound.status == "as printed"
    assert certificate_of([Claim(lambda delta: bound, headline=True)], about=name, delta=0.05).headline is None
