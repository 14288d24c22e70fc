"""The page on reproduction says what its numbers say: its tables are made of them, and its claims in words are true."""

import ast
import importlib
import inspect
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import rankwise as rw
from experiments import (
    annealing,
    boosting_rounds,
    bound_forms,
    cutoffs,
    direct,
    direct_on_map,
    online_averaging,
    paper_rows,
    set_facts,
    smoothrank,
    stopping,
)
from experiments.inventory import ITEMS, PAPERS, VERDICTS
from experiments.pages import DOCS
from experiments.published import DIRECT_TABLES_2_AND_3, SMOOTHRANK_TABLE_1, SMOOTHRANK_TABLE_2
from experiments.reproduction import PAGE, main
from experiments.reproduction_tables import BASELINES, BLOCKS, read
from rankwise import losses
from rankwise.io.folds import read_folds

EXPERIMENTS = Path(smoothrank.__file__).parent


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("name", BLOCKS)
def test_every_row_of_a_table_has_a_cell_under_each_title(name):
    assert len({len(re.findall(r"\|", line)) for line in BLOCKS[name]().splitlines()}) == 1


def test_every_part_of_the_page_is_one_that_the_script_writes(page):
    assert re.findall(r"<!-- (\w+): written by experiments/reproduction.py -->", page) == list(BLOCKS)


# ------------------------------------------------------------------------------------------------------- inventory

# What the papers number, read off their text by hand: kind -> the numbers of the captions.
CAPTIONS = {
    "SmoothRank": {
        "Figure": range(1, 6),
        "Table": range(1, 4),
        "Algorithm": [1],
        "Proposition": [1],
        "Remark": [1],
        "Theorem": [1],
        "Lemma": [1],
        "Equation": range(1, 16),
    },
    "direct": {"Figure": range(1, 17), "Table": range(1, 5), "Theorem": range(1, 5), "Equation": range(1, 12)},
    "2014": {
        "Algorithm": [1],
        "Lemma": [1],
        "Proposition": [4],
        "Theorem": [2, 3, 5, 8, 10, 11],
        "Corollary": [6, 7, 9],
        "Equation": range(1, 32),
    },
    "online": {
        "Figure": range(1, 4),
        "Algorithm": range(1, 4),
        "Lemma": [3, 5],
        "Theorem": [1, 4, 6, 8, 9, 10],
        "Corollary": [2, 7, 11],
        "Equation": range(1, 33),
    },
    "2015": {
        "Table": [1],
        "Proposition": [1, 2, 7, 10, 15],
        "Lemma": [4, 13, 14],
        "Theorem": [3, 5, 6, 9, 12, 17, 18],
        "Corollary": [8, 11, 16],
        "Equation": range(1, 13),
    },
}


def numbered(paper):
    """Kind -> the numbers that the inventory has of it, in the order of its rows."""
    found = defaultdict(list)
    for item in ITEMS.values():
        kind = item.number.split()[0].removesuffix("s")
        if item.paper == paper and kind in CAPTIONS[paper]:
            found[kind] += map(int, re.findall(r"\d+", item.number))
    return found


@pytest.mark.parametrize("paper", CAPTIONS)
def test_every_number_of_a_paper_is_in_the_inventory_once(paper):
    found = numbered(paper)
    assert {kind: sorted(numbers) for kind, numbers in found.items()} == {
        kind: list(numbers) for kind, numbers in CAPTIONS[paper].items()
    }


def test_the_inventory_has_the_five_papers_and_no_item_twice():
    assert list(dict.fromkeys(item.paper for item in ITEMS.values())) == list(CAPTIONS)
    assert len(ITEMS) == sum(len(paper.ITEMS) for paper in PAPERS)


@pytest.mark.parametrize("key", ITEMS)
def test_no_cell_is_empty_and_how_close_begins_with_a_verdict(key):
    item = ITEMS[key]
    assert all(part.strip() for part in (item.paper, item.number, item.shows, item.where, item.close))
    verdict, _, details = item.close.partition(":")
    assert verdict in VERDICTS
    assert details or verdict == "same"


def test_the_page_explains_every_verdict(page):
    assert all(f"**{verdict}**" in page for verdict in VERDICTS)


@cache
def anchors(name):
    """The headings of a page as links name them."""
    titles = re.findall(r"^#+ (.*)$", (DOCS / name).read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def assert_resolves(code):
    """A name, a parameter of one, a test or a weight rule that an item names exists."""
    if "::" in code:
        file, name = code.split("::")
        assert f"def {name}(" in (DOCS.parent / "tests" / file).read_text(encoding="utf-8")
        return
    if code.startswith('"'):
        losses.SLAM(weights=code.strip('"'))
        return
    name, _, parameters = code.removesuffix(")").partition("(")
    package, *path = name.split(".")
    if package == "experiments":
        place, path = importlib.import_module(".".join(["experiments", *path[:1]])), path[1:]
    else:
        place = rw if package == "rw" else getattr(rw, package)
        assert package in ("rw", "guarantees", "losses", "measures", "synthetic")
    for part in path:
        place = getattr(place, part)
    known = inspect.signature(place).parameters if parameters else {}
    assert all(one.removesuffix("=") in known for one in parameters.split(", ") if one)


@pytest.mark.parametrize("key", ITEMS)
def test_every_name_test_and_link_of_an_item_exists(key):
    item = ITEMS[key]
    for code in re.findall(r"`([^`]+)`", f"{item.where} {item.close}"):
        assert_resolves(code)
    for target in re.findall(r"\]\(([^)]+)\)", f"{item.where} {item.close}"):
        name, _, anchor = target.partition("#")
        assert (DOCS / (name or PAGE.name)).is_file()
        assert not anchor or anchor in anchors(name or PAGE.name)


@pytest.mark.parametrize("key", [key for key, item in ITEMS.items() if item.module])
def test_what_makes_an_item_is_there_and_says_so(key):
    module, *parts = ITEMS[key].module.split()
    source = (EXPERIMENTS / f"{module}.py").read_text(encoding="utf-8")
    assert f"python -m experiments.{module}" in ast.get_docstring(ast.parse(source))
    assert all(f'"{part}"' in source for part in parts)


def test_what_nothing_makes_is_refused_with_the_reason(capsys):
    assert main(["smoothrank-figure-4"]) == 2
    assert ".GOV" in capsys.readouterr().err
    assert main(["smoothrank-figure-99"]) == 2
    assert "smoothrank-figure-1, smoothrank-figure-2" in capsys.readouterr().err


WITHOUT_ARGUMENTS = (set_facts, stopping, online_averaging)


@pytest.mark.parametrize(
    "module",
    [cutoffs, annealing, boosting_rounds, direct_on_map, paper_rows, *WITHOUT_ARGUMENTS],
    ids=lambda m: m.__name__,
)
def test_without_data_an_experiment_says_what_it_needs_and_writes_nothing(module, monkeypatch, capsys):
    monkeypatch.delenv("RANKWISE_DATA", raising=False)
    before = module.NUMBERS.read_bytes()
    assert (module.main() if module in WITHOUT_ARGUMENTS else module.main([])) == 2
    assert "RANKWISE_DATA" in capsys.readouterr().err
    assert module.NUMBERS.read_bytes() == before


# ------------------------------------------------------------------------------------------------------- SmoothRank


@pytest.fixture(scope="module")
def letor():
    return read(cutoffs.NUMBERS)


def test_the_same_protocol_gave_the_same_means_in_the_older_experiments(letor):
    older = read(direct.RESULTS)["ohsumed"] | {"RidgeRanker": None, "SmoothRank": None}
    smooth = read(smoothrank.RESULTS)["ohsumed"]["mean"]
    for name, line in letor["rankers"].items():
        own = {"RidgeRanker": "RidgeRanker", "SmoothRank": "SmoothRank k=50"}.get(name)
        mean = smooth[own] if own else older[name]["mean"]
        assert {title: line["mean"][title] for title in ("nDCG@10", "AP")} == pytest.approx(
            {title: mean[title] for title in ("nDCG@10", "AP")}, abs=1e-12
        )


def test_no_ranker_of_letor_is_far_from_its_published_values(letor):
    for name, line in letor["rankers"].items():
        for title, published in zip(("nDCG@10", "AP"), SMOOTHRANK_TABLE_2[name], strict=True):
            low, high = line["interval"][title]
            assert abs(line["mean"][title] - published) <= 0.011
            assert low < published < high


def test_the_order_of_the_rankers_is_the_papers_only_at_its_end(letor):
    ours = {name: line["mean"]["nDCG@10"] for name, line in letor["rankers"].items()}
    order = sorted(ours, key=ours.__getitem__, reverse=True)
    assert order.index("SmoothRank") == 2
    assert max(SMOOTHRANK_TABLE_2, key=lambda name: SMOOTHRANK_TABLE_2[name][0]) == "SmoothRank"
    assert (
        set(order[-2:])
        == set(sorted(ours, key=lambda name: SMOOTHRANK_TABLE_2[name][0])[:2])
        == {"SVMMap", "RankBoost"}
    )
    assert min(test["p_corrected"] for test in letor["tests"].values()) > 0.05
    assert len(letor["tests"]) == 8


def test_what_the_text_of_figure_3_says_of_its_curves(letor):
    curves = {name: [letor["rankers"][name]["mean"][f"nDCG@{k}"] for k in cutoffs.CUTS] for name in cutoffs.LINES}
    best = [max(curves, key=lambda name, place=k - 1: curves[name][place]) for k in cutoffs.CUTS]
    worst = [min(curves, key=lambda name, place=k - 1: curves[name][place]) for k in cutoffs.CUTS]
    means = [line["mean"]["nDCG@10"] for line in letor["rankers"].values()]
    for low, high in (line["interval"]["nDCG@10"] for line in letor["rankers"].values()):
        assert low < min(means) <= max(means) < high
    assert set(best[1:6]) == {"SmoothRank", "AdaRank"}
    assert worst[1:] == ["RankBoost"] * 9
    for k, published in zip((1, 5, 10), smoothrank.PAPER_TABLE_3[50], strict=True):
        assert published > max(curve[k - 1] for curve in curves.values())


def test_ten_is_the_best_training_cut_off_here_and_fifty_in_the_paper():
    means = read(smoothrank.RESULTS)["ohsumed"]["mean"]
    for place, at in enumerate((1, 5, 10)):
        ours = {k: means[f"SmoothRank k={k}"][f"nDCG@{at}"] for k in smoothrank.CUTS}
        assert max(ours, key=ours.__getitem__) == 10
        theirs = {k: smoothrank.PAPER_TABLE_3[k][place] for k in smoothrank.CUTS}
        assert max(theirs, key=theirs.__getitem__) == (10 if at == 1 else 50)
        assert theirs[1] < max(theirs.values())


def test_the_set_is_that_of_the_paper(data_folder):
    facts = set_facts.facts(data_folder / "ohsumed")
    assert facts == read(set_facts.NUMBERS)["ohsumed"]
    assert {name: round(value) for name, value in facts.items()} == SMOOTHRANK_TABLE_1


def test_training_climbs_along_the_annealing_and_the_test_queries_gain_nothing():
    found = read(annealing.NUMBERS)
    start, *train = found["train"]
    assert found["queries"] == 106
    assert train[-1] == max(train) > start > max(train[:6])  # up to sigma 2 worse than where it started
    assert found["test"][0] > max(found["test"][1:7])
    late = [interval for sigma, interval in zip(found["sigma"], found["interval"], strict=True) if sigma <= 1]
    assert all(low < 0 < high for low, high in late)


def test_without_annealing_the_objective_is_lower_in_three_of_five_folds():
    other = read(annealing.NUMBERS)["at once"]
    assert sum(at_once < annealed for annealed, at_once in other["objectives"]) == 3
    assert len(other["objectives"]) == 5
    assert other["interval"][0] < 0 < other["interval"][1]


# ------------------------------------------------------------------------------------------------------- other methods


def test_no_other_method_differs_significantly_and_every_mean_is_in_all_intervals():
    numbers = read(paper_rows.NUMBERS)
    for one in paper_rows.SETS:
        lines = numbers[one]["rankers"]
        assert list(lines) == list(paper_rows.rankers())
        means = {name: line["mean"]["nDCG@10"] for name, line in lines.items()}
        assert min(test["p_corrected"] for test in numbers[one]["tests"].values()) > 0.05
        for low, high in (line["interval"]["nDCG@10"] for line in lines.values()):
            assert low < min(means.values()) <= max(means.values()) < high
        assert min(means, key=means.__getitem__) == "AdaRank, as printed"
        for measure in ("nDCG@10", "AP"):
            best = max(lines, key=lambda name, title=measure: lines[name]["mean"][title])
            assert (best == "Equation (5), linear") is (one == "ohsumed")
    smooth = read(cutoffs.NUMBERS)["rankers"]["SmoothRank"]
    assert numbers["ohsumed"]["rankers"]["SmoothRank"]["values"] == smooth["values"]


def test_where_every_bound_is_vacuous_the_annealing_stops_at_once():
    for found in read(stopping.NUMBERS).values():
        assert set(found["smallest bound"]) == {1.0}
        assert set(found["sigma"]) == {4.0}
        assert min(found["below 1"]) > 1e7
        assert abs(np.mean(found["last"]) - np.mean(found["bound"])) < 0.01


# ------------------------------------------------------------------------------------------------------- direct


@pytest.fixture(scope="module")
def on_map():
    return read(direct_on_map.NUMBERS)


def test_the_bounds_are_those_of_the_losses_and_lie_above_what_they_bound():
    kept, again = read(bound_forms.NUMBERS), bound_forms.collect()
    for kind, measured in (("type one", "loss"), ("type two", "indicator")):
        assert list(kept[kind]) == list(again[kind])
        for name, values in again[kind].items():
            np.testing.assert_allclose(kept[kind][name], values, rtol=1e-12)
            if name not in ("measure", "ahead"):
                assert (np.array(values) >= np.array(kept[kind][measured]) - 1e-12).all()
    assert (np.array(kept["type one"]["exp"]) < kept["type one"]["logistic"]).all()
    bounds = np.array([kept["type two"][form] for form in bound_forms.TYPE_TWO])
    assert len(set(bounds.argmin(axis=0).tolist())) > 1  # none is the tightest everywhere


def test_the_papers_own_table_has_a_baseline_above_two_direct_methods():
    ap = {name: values[0] for name, values in DIRECT_TABLES_2_AND_3.items()}
    assert ap["RankSVM"] > ap["SVMMap"] > ap["AdaRank"]


def test_no_direct_method_is_better_than_ranksvm_at_the_top(on_map):
    tested = [one for one in on_map["tests"] if set(BASELINES) & {one["ranker"], one["baseline"]}]
    first = {name: line["mean"]["nDCG@1"] for name, line in on_map["rankers"].items()}
    assert sorted(first, key=first.__getitem__)[0] == "RankBoost"
    assert first["RankSVM"] > max(first["AdaRank"], first["PermuRank"])
    assert min(one["p_corrected"] for one in on_map["tests"]) > 0.05
    against = [one for one in tested if {one["ranker"], one["baseline"]} != set(BASELINES)]
    assert [{one["ranker"], one["baseline"]} for one in against if one["p"] < 0.05] == [{"SVMMap", "RankBoost"}]
    assert len(on_map["tests"]) == 10


def test_map_is_close_to_the_published_and_lowest_for_rankboost(on_map):
    ours = {name: line["mean"]["AP"] for name, line in on_map["rankers"].items()}
    assert max(ours.values()) - min(ours.values()) < 0.01
    assert all(abs(value - DIRECT_TABLES_2_AND_3[name][0]) < 0.01 for name, value in ours.items())
    assert min(ours, key=ours.__getitem__) == "RankBoost"
    assert min(DIRECT_TABLES_2_AND_3, key=lambda name: DIRECT_TABLES_2_AND_3[name][0]) == "RankBoost"
    at_3 = {name: line["mean"]["nDCG@3"] - DIRECT_TABLES_2_AND_3[name][1] for name, line in on_map["rankers"].items()}
    assert [name for name, difference in at_3.items() if difference > 0] == ["RankSVM"]


def test_the_map_that_both_experiments_have_is_the_same(on_map):
    older = read(direct.RESULTS)["ohsumed"]
    for name, other in (("SVMMap", "SVMMap"), ("AdaRank", "AdaRank, AP"), ("PermuRank", "PermuRank")):
        assert on_map["rankers"][name]["mean"]["AP"] == pytest.approx(older[other]["mean"]["AP"], abs=1e-12)


def test_learning_curves_do_not_climb_as_printed():
    found = read(boosting_rounds.NUMBERS)
    printed = found["AdaRank, as printed"]
    assert set(printed["features"]) == {1}
    assert len(set(printed["train"])) == 1
    for name in ("AdaRank", "AdaRank, as printed"):
        products = 1 - np.array(found[name]["printed"])  # of Theorem 4's factors
        assert products[0] < 1
        assert int((np.diff(np.concatenate([[1.0], products])) < 0).sum()) == 1
    train = found["AdaRank"]["train"]
    assert train[-1] < train[0] < max(train)
    swinging = np.array(found["PermuRank"]["train"])
    assert not found["PermuRank"]["converged"]
    assert swinging[-20:].max() - swinging[-20:].min() > 0.1
    settled = found["PermuRank, relevant pairs, max"]
    assert settled["converged"]
    assert len(settled["train"]) == 3


def test_adarank_learns_what_it_learned(data_folder):
    fold = next(read_folds(data_folder / "ohsumed"))
    kept = read(boosting_rounds.NUMBERS)
    for name, settings in boosting_rounds.ADARANK.items():
        again = boosting_rounds.adarank(fold, settings)
        assert again["features"] == kept[name]["features"]
        for column in ("train", "validation", "printed", "certificate"):
            np.testing.assert_allclose(again[column], kept[name][column], rtol=1e-9)


def test_adarank_gains_on_small_queries_and_errs_less_at_the_top(on_map):
    gains = on_map["gains"]
    clear = [
        name for name, low, high in zip(gains["group"], gains["low"], gains["high"], strict=True) if low * high > 0
    ]
    assert clear == ["0k to 1k"]
    assert gains["gain"][0] == max(gains["gain"]) > 0
    assert gains["group"] == sorted(gains["group"])
    fewer = on_map["fewer inverted"]
    assert fewer["definitely-not"][0] < 0 > fewer["definitely-possibly"][0]
    assert fewer["possibly-not"][0] > 0
    assert all(low < 0 < high for _, low, high in fewer.values())


# ------------------------------------------------------------------------------------------------------- texts


def texts(page):
    """Figure -> the decimals in the text for those who cannot see it."""
    found = re.findall(r"figures/(reproduction_\w+)\.png\n:alt: (.*)\n", page)
    return {name: re.findall(r"-?\d+\.\d+", text) for name, text in found}


def test_the_numbers_in_the_texts_of_the_figures_are_those_of_the_figures(page, on_map):
    one = read(bound_forms.NUMBERS)["type one"]
    rounds = read(boosting_rounds.NUMBERS)
    ada, printed, permu = (rounds[name] for name in ("AdaRank", "AdaRank, as printed", "PermuRank"))
    gains, pairs = on_map["gains"]["gain"], on_map["label_pairs"]["share"]
    settled = rounds["PermuRank, relevant pairs, max"]["train"][-1]
    curves = [ada["train"][0], ada["train"][-1], ada["validation"][0], max(ada["validation"])]
    curves += [printed["train"][0], printed["validation"][0]]
    expected = {
        "reproduction_cutoffs": [],
        "reproduction_annealing": [],
        "reproduction_bound_forms": [f"{one['exp'][0]:.2f}", f"{one['logistic'][0]:.2f}", "0.5", "0.5", "0.5", "0.5"],
        "reproduction_accuracies": ["0.01"],
        "reproduction_rounds": [f"{value:.3f}" for value in curves]
        + [f"{value:.2f}" for value in (min(permu["train"]), max(permu["train"]), settled)],
        "reproduction_label_pairs": [f"{100 * share:.1f}" for share in pairs],
        "reproduction_gains": [f"{value:.3f}" for value in (gains[0], min(gains), max(gains[1:]))],
    }
    assert texts(page) == expected


@pytest.mark.parametrize("module", [cutoffs, annealing, boosting_rounds, bound_forms], ids=lambda m: m.__name__)
def test_a_picture_shows_every_number_that_is_kept_of_a_curve(module):
    """The curve that each experiment is about is among the lines of its picture, value by value."""
    numbers = read(module.NUMBERS)
    curve = {
        cutoffs: lambda: [numbers["rankers"]["ListNet"]["mean"][f"nDCG@{k}"] for k in cutoffs.CUTS],
        annealing: lambda: numbers["gain"],
        boosting_rounds: lambda: numbers["PermuRank"]["train"],
        bound_forms: lambda: numbers["type two"]["additive"],
    }[module]()
    lines = [line for axes in module.draw(numbers).axes for line in axes.get_lines()]
    assert any(np.array_equal(line.get_ydata(), curve) for line in lines)


def test_online_the_chosen_listnet_is_ahead_and_algorithm_3_is_behind_on_one_set():
    numbers = read(DOCS / "online_results.json")
    losses = {
        name: np.mean([run[-1] for run in curve["loss"]]) for name, curve in numbers["simulation"]["curves"].items()
    }
    assert losses["ListNet"] < losses["SLAMPerceptron"] < losses["MaxPairPerceptron"] < losses["ListNet, step 1"]
    assert losses["SLAMPerceptron"] < losses["Algorithm 2"] < 1.05 * losses["SLAMPerceptron"]
    for data, ahead in (("ohsumed", -1), ("mq2008", 1)):
        rows = {name: np.mean(row["nDCG@10"]) for name, row in numbers["data"][data]["rows"].items()}
        algorithms = rows["SLAMPerceptron, papers' weights, margin 1"], rows["MaxPairPerceptron"]
        assert rows["ListNet"] > max(algorithms)
        assert ahead * (algorithms[0] - algorithms[1]) > 0


def test_online_only_the_order_of_the_file_makes_the_papers_weights_good_on_ohsumed():
    numbers = read(DOCS / "online_results.json")["data"]
    for name in ("SLAMPerceptron, papers' weights", "SLAMPerceptron, papers' weights, margin 1"):
        held = {data: numbers[data]["rows"][name] for data in ("ohsumed", "mq2008")}
        gain = {
            data: np.mean(row["file order"]["held out, uniform"]) - np.mean(row["held out, uniform"])
            for data, row in held.items()
        }
        assert gain["ohsumed"] > 0.15
        assert abs(gain["mq2008"]) < 0.01


def test_online_averaged_weights_are_better_where_a_perceptron_learns_anything():
    means = {
        (where, name, kind): np.mean(values)
        for where, lines in read(online_averaging.NUMBERS).items()
        for name, kinds in lines.items()
        for kind, values in kinds.items()
    }
    for where, name, kind in means:
        gain = means[where, name, kind] - means[where, name, "none"]
        if "separable" in where:
            assert -0.001 < gain < 0.01
        elif (where, name) != ("OHSUMED, validation parts", "SLAMPerceptron"):
            assert gain > 0.03 or kind == "none"
        else:
            assert max(means[where, name, one] for one in online_averaging.AVERAGES) < 0.25


def test_online_with_one_gaussian_per_grade_the_perceptrons_are_closer():
    simulation = read(DOCS / "online_results.json")["simulation"]
    at = simulation["rounds"].index(100)
    ours = [np.mean(simulation["curves"][name]["mean"], axis=0)[at] for name in ("Algorithm 2", "MaxPairPerceptron")]
    theirs = [
        np.mean(simulation["gaussians"]["mean"][name], axis=0)[0] for name in ("Algorithm 2", "MaxPairPerceptron")
    ]
    assert 0 < theirs[0] - theirs[1] < 0.55 * (ours[0] - ours[1])
