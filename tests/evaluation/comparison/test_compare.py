"""A comparison says what evaluate, select and significance say of the same folds, whatever takes part in it."""

import json

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge

from rankwise import (
    AdaRank,
    Queries,
    RidgeRanker,
    SLAMPerceptron,
    compare,
    evaluate,
    kfold,
    make_lists,
    significance,
    split,
)
from rankwise.evaluation import select
from rankwise.evaluation.comparison.selection import all_names, combinations, grid_for
from rankwise.io import Fold
from rankwise.rankers._base import registered

MEASURES = ["nDCG@5", "AP"]


@pytest.fixture(scope="module")
def lists():
    return make_lists(36, documents=8, features=4, random_state=3)


@pytest.fixture(scope="module")
def folds(lists):
    return list(kfold(lists, 3))


def two():
    return {"ridge": RidgeRanker("nDCG@5"), "slam": SLAMPerceptron("nDCG@5")}


def apart_from_cost(comparison):
    document = comparison.to_dict()
    for cell in document["cells"]:
        del cell["seconds"], cell["memory"]
    return document


def test_every_number_is_that_of_select_evaluate_and_significance(lists, folds):
    found = compare(two(), lists, MEASURES, folds=3)
    apart = select(two(), folds, grids={"slam": grid_for(SLAMPerceptron("nDCG@5"))})
    results = apart.evaluate(MEASURES)
    for name in two():
        np.testing.assert_array_equal(found.scores[name], apart.scores[name])
        assert found.means[name] == results[name].mean
        assert found.intervals[name] == results[name].interval(0.95)
    assert found.tests == significance(results, baseline="ridge")
    by_cell = {(line["fold"], line["ranker"]): line for line in apart.chosen}
    for line in found.chosen:
        other = by_cell[line["fold"], line["ranker"]]
        assert (line["settings"], line["tried"]) == (other["settings"], other["tried"])
        assert line["validation"] == pytest.approx(other["validation"], abs=0)


POOLING = [one for kind in registered().values() for one in kind.examples() if one.learns_from_validation]


@pytest.mark.parametrize("ranker", POOLING, ids=lambda ranker: " ".join(repr(ranker).split()))
def test_a_ranker_that_learns_from_its_validation_part_is_judged_before_it_does(ranker, folds):
    fold = folds[0]
    found, chosen = compare({"own": ranker}, [fold], "nDCG@5"), select({"own": ranker}, [fold])
    final = clone(ranker).fit(fold.train, validation=fold.validation).predict(fold.test)
    np.testing.assert_array_equal(found.scores["own"], final)
    np.testing.assert_array_equal(chosen.scores["own"], final)
    apart = clone(ranker)
    if hasattr(ranker, "refit"):
        apart.set_params(refit="train").fit(fold.train, validation=fold.validation)
    else:
        apart.fit(fold.train)
    judged = apart.score(fold.validation)
    assert found.chosen["validation"].tolist() == chosen.chosen["validation"].tolist() == [judged]


def test_folds_that_were_made_before_are_taken_as_they_are(lists, folds):
    own, divided = compare(two(), folds, MEASURES), compare(two(), lists, MEASURES, folds=3)
    assert apart_from_cost(own) == apart_from_cost(divided)


def test_the_number_of_threads_changes_nothing(lists):
    alone, together = (compare(two(), lists, MEASURES, folds=3, n_jobs=jobs) for jobs in (1, 3))
    assert apart_from_cost(alone) == apart_from_cost(together)


def test_per_query_and_per_fold_values_belong_to_their_lists(lists, folds):
    found = compare(two(), lists, MEASURES, folds=3)
    table = found.per_query("map")
    assert table["qid"].tolist() == [name for fold in folds for name in fold.test.names()]
    assert table["fold"].tolist() == [1] * 12 + [2] * 12 + [3] * 12
    start = 0
    for number, fold in enumerate(folds, start=1):
        rows = fold.test.n_documents
        scores = found.scores["slam"][start : start + rows]
        start += rows
        result = evaluate(fold.test, scores, MEASURES)
        np.testing.assert_array_equal(table["slam"][table["fold"] == number], result["AP"])
        (line,) = (row for row in found.per_fold if row["fold"] == number and row["ranker"] == "slam")
        assert {title: line[title] for title in MEASURES} == result.mean


class Spy(BaseEstimator):
    """Scores by one feature, and remembers which lists it was given for what."""

    seen: list = []  # noqa: RUF012 - shared by clones on purpose

    def __init__(self, feature=0):
        self.feature = feature

    def fit(self, queries):
        Spy.seen.append(("fit", tuple(queries.names())))
        return self

    def predict(self, queries):
        Spy.seen.append(("predict", tuple(queries.names())))
        return queries.X[:, self.feature]


def test_nobody_sees_the_test_part_before_it_is_scored_once(lists):
    fold = Fold(*split(lists, random_state=1))
    Spy.seen.clear()
    compare({"spy": Spy()}, [fold], grids={"spy": {"feature": [0, 1, 2]}}, n_jobs=1)
    tested = [place for place, (_, names) in enumerate(Spy.seen) if names == tuple(fold.test.names())]
    assert tested == [len(Spy.seen) - 1]
    assert {names for what, names in Spy.seen if what == "fit"} == {tuple(fold.train.names())}


def test_without_a_validation_part_folds_of_the_training_part_choose(lists):
    train, test = split(lists, (0.7, 0.3), random_state=1)
    Spy.seen.clear()
    found = compare({"spy": Spy()}, [(train, test)], "nDCG@5", grids={"spy": {"feature": [0, 1, 2]}}, n_jobs=1)
    fits = [set(names) for what, names in Spy.seen if what == "fit"]
    assert fits[-1] == set(train.names())
    assert all(not names & set(test.names()) for names in fits)
    held = [set(names) for what, names in Spy.seen if what == "predict"][:-1]
    assert all(not learned & judged for learned, judged in zip(fits[:-1], held, strict=True))
    assert set.union(*held) == set(train.names())
    # a single feature learns nothing, so that the mean over folds is near the mean over all lists
    worth = [evaluate(train, train.X[:, feature], "nDCG@5").mean["nDCG@5"] for feature in range(3)]
    assert found.chosen["settings"][0] == {"feature": int(np.argmax(worth))}


def test_scikit_learn_objects_learn_from_the_documents(lists, folds):
    mixed = Queries.from_arrays(lists.X[::-1], lists.y[::-1], qid=np.asarray(lists.qid)[lists.query_of_row[::-1]])
    found = compare({"sk": Ridge(alpha=2.0)}, folds, MEASURES)
    for number, fold in enumerate(folds, start=1):
        model = Ridge(alpha=2.0).fit(fold.train.X, fold.train.y)
        own = [cell.scores for cell in found.cells if cell.fold == number]
        np.testing.assert_array_equal(own[0], model.predict(fold.test.X))
    assert compare({"sk": Ridge()}, mixed, folds=3).means["sk"]["nDCG@10"] > 0.5  # rows in no order at all


def test_who_leaves_his_seed_open_gets_one(lists):
    forest = {"forest": RandomForestRegressor(5)}
    first, second = (apart_from_cost(compare(forest, lists, folds=3)) for _ in range(2))
    assert first == second
    assert forest["forest"].random_state is None


class Grouped:
    """Not scikit-learn's at all: is told the sizes of lists, learns in place and returns nothing."""

    def fit(self, X, y, group=None):
        assert sum(group) == len(X) == len(y)
        self.told = np.asarray(group)

    def predict(self, X):
        return X[:, 0] * (self.told.sum() > 0)


def test_who_takes_groups_is_told_them(lists, folds):
    found = compare({"grouped": Grouped()}, folds)
    np.testing.assert_array_equal(found.scores["grouped"], found.queries.X[:, 0])
    assert found.models["grouped"][0].told.tolist() == folds[0].train.sizes.tolist()


def test_fitted_models_and_scores_need_no_folds(lists):
    train, test = split(lists, (0.5, 0.5), random_state=2)
    model = RidgeRanker().fit(train)
    sk = Ridge().fit(train.X, train.y)
    found = compare({"ours": model, "sk": sk, "column": test.X[:, 0]}, test, MEASURES, baseline="column")
    np.testing.assert_array_equal(found.queries.X, test.X)
    np.testing.assert_array_equal(found.scores["ours"], model.predict(test))
    np.testing.assert_array_equal(found.scores["sk"], sk.predict(test.X))
    assert found.tests["baseline"].tolist() == ["column"] * 4
    assert {cell.fold for cell in found.cells} == {1}


def test_scores_of_all_documents_are_found_again_in_every_fold(lists, folds, tmp_path):
    shuffled = np.random.default_rng(0).permutation(lists.n_documents)
    mixed = Queries.from_arrays(
        lists.X[shuffled], lists.y[shuffled], qid=np.asarray(lists.qid)[lists.query_of_row[shuffled]]
    )
    np.savetxt(tmp_path / "scores.txt", mixed.X[:, 1])
    given = {"array": mixed.X[:, 1], "file": tmp_path / "scores.txt", "learned": Ridge()}
    found = compare(given, mixed, folds=3)
    np.testing.assert_array_equal(found.scores["array"], found.queries.X[:, 1])
    np.testing.assert_allclose(found.scores["file"], found.queries.X[:, 1])
    whole = Queries.concat([fold.test for fold in folds])
    together, apart = whole.X[:, 2], [fold.test.X[:, 2] for fold in folds]
    both = compare({"together": together, "apart": apart}, folds)
    np.testing.assert_array_equal(both.scores["together"], both.scores["apart"])


def test_what_is_handed_in_stays_as_it_was(lists):
    rankers = {"ridge": RidgeRanker(), "sk": Ridge()}
    before = {name: clone(ranker).get_params() for name, ranker in rankers.items()}
    compare(rankers, lists, folds=3, n_jobs=2)
    assert {name: ranker.get_params() for name, ranker in rankers.items()} == before
    assert not hasattr(rankers["ridge"], "coef_")
    assert not hasattr(rankers["sk"], "coef_")


def test_a_declared_grid_leaves_alone_what_the_caller_has_set(lists):
    found = compare({"set": SLAMPerceptron(epochs=2), "none": SLAMPerceptron()}, lists, folds=3, grids={"none": {}})
    lines = list(found.chosen)
    assert all("epochs" not in line["settings"] for line in lines if line["ranker"] == "set")
    assert {line["tried"] for line in lines if line["ranker"] == "set"} == {8}
    assert {line["tried"] for line in lines if line["ranker"] == "none"} == {1}


@pytest.mark.parametrize("kind", [registered()[name] for name in all_names()], ids=lambda kind: kind.name)
@pytest.mark.parametrize("measure", ["nDCG@5", "AP"])
def test_every_declared_setting_can_be_learned(lists, kind, measure):
    grid = grid_for(kind(measure=measure))
    for setting in combinations(grid):
        if setting:
            scores = kind(measure=measure).set_params(**setting).fit(lists[:6]).predict(lists)
            assert np.isfinite(scores).all()
    chooses = kind(measure=measure).takes_validation
    assert chooses or grid  # nobody is left with settings that nobody chose


def test_the_league_is_ordered_and_marked_against_the_baseline(lists):
    noise = np.random.default_rng(1).normal(size=lists.n_documents)
    given = {"noise": noise, "labels": lists.y, "noise again": noise}
    found = compare(given, lists, ["nDCG@5", "RR"])
    assert found.table()["ranker"].tolist() == ["labels", "noise", "noise again"]
    assert [found.mark(name, "nDCG@5") for name in given] == ["base", "+", "="]
    turned = compare(given, lists, ["nDCG@5"], baseline="labels")
    assert turned.table("ndcg@5")["mark"].tolist() == ["base", "-", "-"]
    assert turned.table("nDCG@5")["losses"].tolist()[0] == 0
    assert "base" in repr(found)


def test_the_document_is_json_and_says_what_was_done(lists, tmp_path):
    found = compare(two(), lists, MEASURES, folds=3, like="letor", random_state=4)
    text = found.to_json(tmp_path / "found.json")
    said = json.loads(text)
    assert text == (tmp_path / "found.json").read_text("utf-8")
    assert said["random_state"] == 4
    assert said["conventions"]["like"] == "letor"
    assert said["rankers"]["slam"]["grid"]["epochs"] == [1, 5, 20]
    assert said["results"]["ridge"]["AP"]["mean"] == found.means["ridge"]["AP"]
    assert len(said["results"]["ridge"]["AP"]["per_fold"]) == 3
    assert len(said["per_query"]["values"]["slam"]["AP"]) == len(said["per_query"]["qid"]) == 36
    assert {cell["ranker"] for cell in said["cells"]} == set(two())
    assert {"rankwise", "numpy"} <= set(said["versions"])


def test_what_a_fit_settled_on_is_told_whatever_number_it_is(lists):
    class Endless(RidgeRanker):
        def _fit(self, queries, validation):
            super()._fit(queries, validation)
            self.alpha_ = np.inf

    found = compare({"endless": Endless(), "ridge": RidgeRanker(alpha=2.0)}, lists, folds=3)
    said = {cell["ranker"]: cell["settled"] for cell in json.loads(found.to_json())["cells"]}
    assert said == {"endless": {"alpha": {"number": "inf"}}, "ridge": {"alpha": 2.0}}


def test_one_ranker_one_fold_and_lists_without_anything_relevant():
    nothing = Queries.from_arrays(np.arange(24.0).reshape(12, 2), np.zeros(12), group=[3] * 4)
    train, test = nothing[:2], nothing[2:]
    found = compare({"ridge": RidgeRanker(alpha=1.0)}, [(train, test)], MEASURES)
    assert np.isnan(found.means["ridge"]["AP"])
    assert len(found.tests) == 0
    json.loads(found.to_json())
    pair = compare({"a": nothing.X[:, 0], "b": -nothing.X[:, 0]}, nothing, MEASURES)
    assert pair.mark("b", "AP") == "="
    json.loads(pair.to_json())
    assert "base" in repr(pair)


def test_weights_of_lists_count(lists):
    weight = np.arange(36) % 3
    weighted = lists.with_weight(weight)
    found = compare({"a": lists.X[:, 0], "ridge": RidgeRanker(), "sk": Ridge()}, weighted, "AP", folds=3)
    order = [lists.names().index(name) for name in found.queries.names()]
    np.testing.assert_array_equal(found.queries.weight, weight[order])
    per_query = found.results["a"]["AP"]
    counts = ~np.isnan(per_query)
    expected = np.average(per_query[counts], weights=weight[order][counts])
    assert found.means["a"]["AP"] == pytest.approx(expected)


def test_lightgbm_stops_by_the_validation_part(lists):
    lightgbm = pytest.importorskip("lightgbm")
    fold = Fold(*split(lists, random_state=5))
    found = compare({"trees": "lightgbm", "ada": AdaRank()}, [fold], "nDCG@5")
    (model,) = found.models["trees"]
    assert isinstance(model.model_, lightgbm.Booster)
    assert 1 <= model.trees_ < 1000
    worth = [
        evaluate(fold.validation, model.model_.predict(fold.validation.X, num_iteration=trees), "nDCG@5").mean["nDCG@5"]
        for trees in range(1, model.model_.num_trees() + 1)
    ]
    own = evaluate(fold.validation, model.predict(fold.validation), "nDCG@5").mean["nDCG@5"]
    assert own >= max(worth) - 0.02  # LightGBM counts ties and empty lists in its own way


def test_lightgbm_is_left_out_aloud_where_it_is_missing(lists, monkeypatch, capsys):
    from rankwise.errors import MissingExtraError
    from rankwise.evaluation.comparison import rankers as compare_rankers

    def missing(name):
        raise MissingExtraError(f"{name} is needed here and is not installed")

    monkeypatch.setattr(compare_rankers, "require", missing)
    found = compare({"trees": "lightgbm", "ridge": RidgeRanker()}, lists, folds=3)
    assert found.rankers == ["ridge"]
    assert capsys.readouterr().err.startswith("rankwise: trees is left out: lightgbm is needed")
    with pytest.raises(MissingExtraError):
        compare(["lightgbm"], lists, folds=3)


def test_the_picture_shows_every_ranker_and_measure(lists):
    pytest.importorskip("matplotlib")
    found = compare(two(), lists, MEASURES, folds=3)
    panels = found.plot().axes
    assert [panel.get_title(loc="left") for panel in panels] == MEASURES
    assert {label.get_text() for label in panels[0].get_yticklabels()} == set(two())
    assert len(found.plot("AP").axes) == 1


def test_w14_tables_for_pages_and_papers():
    """The best mean of each measure is bold, and marks are those of the comparison."""
    lists = make_lists(60, documents=8, features=4, random_state=1)
    found = compare({"a_b": -lists.X[:, 0], "ridge": RidgeRanker()}, lists, ["nDCG@5", "AP"], folds=3)
    assert found.mark("ridge", "AP") == "+"
    ridge, other = (found.means[name]["AP"] for name in ("ridge", "a_b"))
    lines = found.to_markdown().splitlines()
    assert lines[0] == "| ranker | nDCG@5 | nDCG@5 95% | AP | AP 95% |"
    assert f"| **{ridge:.4f}** + |" in lines[2]
    assert lines[3].startswith("| a\\_b |")
    assert f"| {other:.4f} |" in lines[3]
    assert lines[-1].startswith("Marks + and -: better and worse than a\\_b (paired randomization test")
    lines = found.to_latex().splitlines()
    assert rf"& \textbf{{{ridge:.4f}}}$^{{+}}$ &" in lines[4]
    assert lines[5].startswith(r"a\_b & ")
    assert lines[-1].startswith("% Marks + and -: better and worse than a_b")
    # one ranker is the best of nothing, and one evaluation or a table of tests has no marks
    alone = compare({"a": lists.X[:, 0]}, lists, "AP")
    assert "**" not in alone.to_markdown()
    result = found.results["ridge"]
    assert result.to_markdown(0.9) == result.table(0.9).to_markdown()
    assert result.to_latex(how="t") == result.table(how="t").to_latex()
    assert "p\\_corrected" in found.tests.to_latex()
