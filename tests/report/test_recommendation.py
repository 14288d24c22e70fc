"""The first line of a report: which ranker to take, and which others are not shown to be worse."""

import dataclasses
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import rankwise as rw
from rankwise.evaluation.comparison.comparison import Comparison
from rankwise.evaluation.statistics.multiple_testing import correct
from rankwise.evaluation.statistics.paired import paired_test
from rankwise.report.recommendation import guarantee, recommendation

LISTS = rw.make_lists(80, documents=8, features=2, random_state=1)
STYLE = (Path(rw.__file__).parent / "report" / "templates" / "page.css").read_text(encoding="utf-8")


def noisy(noise, seed):
    return LISTS.y + noise * np.random.default_rng(seed).standard_normal(LISTS.n_documents)


def compared(**noises):
    scores = {name: noisy(noise, seed) for seed, (name, noise) in enumerate(noises.items())}
    return rw.compare(scores, LISTS, "nDCG@10")


def test_the_best_is_taken_and_those_that_may_be_as_good_are_named():
    found = recommendation(compared(base=9.0, good=0.8, other=0.85, bad=5.0))
    assert found["ranker"] in ("good", "other")
    (close,) = {"good", "other"} - {found["ranker"]}
    assert found["lead"] == f"Take {found['ranker']}"
    assert found["rest"].endswith(f"). Not shown to be worse: {close}.")
    assert re.match(r" \(nDCG@10 0\.\d{3}, 95% interval 0\.\d{3} to 0\.\d{3}\)\.", found["rest"])
    assert found["shown"] == found["ranker"]


def test_a_baseline_may_be_the_one_to_take():
    found = recommendation(compared(base=0.5, worse=6.0, worst=9.0))
    assert found["lead"] == "Take base, the baseline"
    assert found["rest"].endswith("All others are shown to be worse.")
    assert found["shown"] == "worse"  # the chart of changes is against the baseline


def test_a_baseline_that_is_not_worse_is_called_so_and_many_names_are_counted():
    noises = {f"r{number}": 1.0 + number / 1000 for number in range(9)}
    found = recommendation(compared(**noises))
    assert re.search(r"Not shown to be worse: \w+(, \w+| \(the baseline\))+.* and \d others\.$", found["rest"])


def test_one_ranker_needs_no_recommendation():
    assert recommendation(compared(base=1.0)) is None


def test_a_winner_that_is_shown_to_be_worse_is_not_taken(monkeypatch):
    found = compared(base=9.0, good=0.5, bad=5.0)
    monkeypatch.setattr(Comparison, "winner", property(lambda self: "bad"))
    assert recommendation(found)["ranker"] == "good"
    monkeypatch.setattr(Comparison, "winner", property(lambda self: "base"))
    level = dataclasses.replace(found, level=1 - 1e-9)  # nothing is shown at this level
    assert recommendation(level)["ranker"] == "base"


def test_no_ranker_is_called_worse_that_is_not_after_a_correction_for_all_pairs():
    """The tests that are made are corrected at least as much as among the tests of all pairs."""
    for seed in range(6):
        noises = {f"r{number}": 1 + 0.4 * number for number in range(4)}
        scores = {name: noisy(noise, 100 * seed + place) for place, (name, noise) in enumerate(noises.items())}
        found = rw.compare(scores, LISTS, "AP")
        chosen = recommendation(found)
        pairs = list(itertools.combinations(found.rankers, 2))
        tested = [paired_test(found.results[a]["AP"], found.results[b]["AP"]) for a, b in pairs]
        corrected = dict(zip(pairs, correct([one.p_value for one in tested]), strict=True))
        for name in set(found.rankers) - {chosen["ranker"]}:
            pair = next(pair for pair in pairs if set(pair) == {name, chosen["ranker"]})
            if name not in chosen["rest"].partition("Not shown")[2]:
                assert corrected[pair] <= 0.05


def test_a_guarantee_is_about_the_measure_itself():
    train, held = rw.split(LISTS, (0.5, 0.5), random_state=0)
    certificate = rw.RidgeRanker().fit(train).certificate(holdout=held)
    said = guarantee(certificate)
    least = 1 - certificate.headline.value
    assert said.startswith("nDCG@10 on future queries")
    assert f" is at least {least:.3f} on average, with 95% confidence" in said
    none = rw.RidgeRanker().fit(train).certificate(train)
    assert guarantee(none) == none.summary()


# ----------------------------------------------------------------------------------------------------------- colors


def rgb_of(text):
    return np.array([int(text[place : place + 2], 16) for place in (1, 3, 5)]) / 255


def lab(color):
    """CIE L*a*b* of sRGB, D65."""
    linear = np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)
    matrix = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    x, y, z = np.cbrt(np.array(matrix) @ linear / [0.95047, 1, 1.08883])  # no color here is dark enough for the line
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_of_rankers_are_told_apart_and_seen(theme):
    blocks = [block for block in re.findall(r"\{([^{}]*--c0[^{}]*)\}", STYLE) if f"color-scheme: {theme}" in block]
    assert blocks
    for block in blocks:
        style = dict(re.findall(r"--(\w+): (#\w{6})", block))
        colors = [lab(rgb_of(style[f"c{number}"])) for number in range(8)]
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(colors, 2)) > 30
        assert all(abs(color[0] - lab(rgb_of(style["card"]))[0]) > 30 for color in colors)
