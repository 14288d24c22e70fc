"""What a guarantee rests on is frozen at fit: no later change makes a row of a certificate stronger."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import rankwise as rw
from rankwise.errors import RankwiseError
from rankwise.guarantees._bound import Precondition
from rankwise.guarantees.certificate import certificate_of, holdout_claims
from rankwise.queries.queries import Queries
from rankwise.rankers._record import IDLE
from tests.rankers.certificate.test_certificates import (
    KNOWN,
    RANKERS,
    TRAIN,
    UNSEEN,
    fitted,
    lists,
    named,
    over,
    over_every_kind_of_ranker,
)
from tests.rankers.test_saved import rewritten

# A value for every parameter that a certificate might read, most of them harmless to a fitted ranker.
OTHER = {
    "measure": "P@3",
    "alpha": "theory",
    "max_norm": None,
    "prior_coef": None,
    "row_radius": 0.5,
    "norm": 1e-3,
    "tolerance": 0.5,
    "max_calls": 1,
    "scale": "none",
    "folds": 7,
    "random_state": 99,
    "missing": "zero",
    "loss": None,
    "weights": "ap_sym",
    "k": 1,
    "margin": 0.0,
    "eta": 1e-6,
    "step": "constant",
    "update": "mistakes",
    "projection": "none",
    "averaging": "none",
    "epochs": 1,
    "shuffle": False,
    "horizon": 1,
    "rounds": 1,
    "sigmas": (1e-9,),
    "stop": "last",
    "smoothing": "other",
    "start": "zero",
    "warm_start": True,
    "balanced": False,
    "target": "labels",
    "ties": "optimistic",
    "normalized": False,
    "per_pair": False,
    "hinge": "max",
    "solver": "lbfgs",
    "first": "ridge",
    "patience": 1,
    "negated": True,
    "repeats": True,
    "pairs": "query",
    "thresholds": 1,
    "choice": "gradient",
}


def other_value(name, value):
    """A value of a parameter that is not the one it has."""
    if isinstance(value, bool):
        return not value
    found = OTHER.get(name, "something else")
    if repr(found) != repr(value):
        return found
    return {"measure": "AP", "alpha": 1e-9}.get(name, f"not {value!r}")


def rows_of(certificate):
    return [row.to_dict() for row in certificate.rows], certificate.headline and certificate.headline.to_dict()


@over_every_kind_of_ranker
def test_d3_no_parameter_that_is_changed_after_fit_changes_a_row(ranker, tmp_path):
    model = fitted(ranker)
    before = rows_of(model.certificate(TRAIN, UNSEEN, **KNOWN))
    parameters = model.get_params(deep=False)
    changed = copy.copy(model)
    for name, value in parameters.items():
        twin = copy.copy(model)
        twin.__dict__[name] = changed.__dict__[name] = other_value(name, value)
        found = twin.certificate(TRAIN, UNSEEN, **KNOWN)
        assert rows_of(found) == before, name
        assert any(f"{name}=" in note for note in found.notes) == (name not in IDLE)
    changed.__dict__.update(missing="zero", n_jobs=1)  # what a file may hold
    for again in (changed, copy.deepcopy(changed), pickle.loads(pickle.dumps(changed)), saved(changed, tmp_path)):
        assert rows_of(again.certificate(TRAIN, UNSEEN, **KNOWN)) == before
    assert clone(changed).record_.digest is None


def saved(model, folder):
    model.save(folder / "model.rankwise")
    return rw.load(folder / "model.rankwise")


@over_every_kind_of_ranker
def test_d3_parameters_that_are_written_into_change_nothing_either(ranker):
    """Lists and arrays are parameters too, and whoever gave them may go on writing into them."""
    begin = np.linspace(0.1, 1, TRAIN.n_features)
    name = next((name for name in ("prior_coef", "start") if name in ranker.get_params()), None)
    if name is None or type(ranker).__name__ == "TwoStage":
        return
    model, several = clone(ranker), isinstance(ranker, rw.SmoothRank)
    if several:  # of the protocol of the paper, which takes several starts
        model.set_params(protocol="paper")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(**{name: [begin] if several else begin}).fit(TRAIN)
    before = model.certificate(TRAIN, UNSEEN, **KNOWN).to_dict()
    held = getattr(model, name)
    (held[0] if several else held)[:] = 0.0
    after = model.certificate(TRAIN, UNSEEN, **KNOWN).to_dict()
    assert {key: after[key] for key in ("rows", "headline")} == {key: before[key] for key in ("rows", "headline")}


@over_every_kind_of_ranker
def test_weights_that_were_changed_after_fit_leave_only_what_does_not_rest_on_the_fit(ranker, tmp_path):
    model = copy.deepcopy(fitted(ranker))
    if not hasattr(model, "coef_") or not model.learns:
        return
    model.coef_ = model.coef_ + 1.0
    for one in (model, saved(model, tmp_path) if "ledger_" not in model.__dict__ else model):
        found = one.certificate(TRAIN, UNSEEN, **KNOWN)
        assert {row.kind for row in found.rows} <= {"hold-out", "generalization"}
        assert not [*named(found, "Regularized"), *named(found, "Averaged gradient descent")]


@over_every_kind_of_ranker
@pytest.mark.parametrize("change", ["order", "weights", "labels", "features", "one less", "twice"])
def test_other_training_queries_never_make_a_row_that_rests_on_them_stronger(ranker, change):
    random = np.random.default_rng(0)
    given = {
        "order": lambda: TRAIN[random.permutation(len(TRAIN))],
        "weights": lambda: TRAIN.with_weight(np.full(len(TRAIN), 2.0)),
        "labels": lambda: TRAIN.with_labels(3 - TRAIN.labels()),
        "features": lambda: TRAIN.map_features(lambda X: X * (1 + 1e-9)),
        "one less": lambda: TRAIN[1:],
        "twice": lambda: Queries.concat([TRAIN, TRAIN], rename=True),
    }[change]()
    model = fitted(ranker)
    before = {(row.name, row.bounds): row for row in model.certificate(TRAIN, **KNOWN).rows}
    for row in model.certificate(given, **KNOWN).rows:
        if row.applies is False or row.kind == "optimality gap":
            continue
        assert change == "order" or row == before.get((row.name, row.bounds)), "the account needs no queries"
        same = before.get((row.name, row.bounds))
        assert same is not None
        assert row.value >= same.value - 1e-12 * abs(same.value)


# ------------------------------------------------------------------------------------------- the cases that were found


def two_by_two(pairs):
    return Queries.from_arrays(
        np.vstack([x for x, _ in pairs]), np.hstack([y for _, y in pairs]), group=[2] * len(pairs)
    )


def test_d2_a_perceptron_is_not_certified_by_its_queries_in_another_order():
    easy = np.array([[1.0, 0], [-1, 0]]), [1.0, 0.0]
    hard = [(np.array([[0, 1.0], [0, -1]]), [1.0, 0.0] if i % 2 else [0.0, 1.0]) for i in range(60)]
    train = two_by_two([one for i in range(60) for one in (hard[i], easy)])
    other = two_by_two([one for i in range(60) for one in (easy, hard[i])])
    model = rw.SLAMPerceptron("AP").fit(train)
    assert model.ledger_.loss == 30.5
    (row,) = [row for row in model.certificate(train).rows if row.name == "SLAM loss"]
    assert row.value >= 30.5
    assert row.applies
    found = model.certificate(other)
    assert not named(found, "SLAM loss")
    assert any("the same in another order" in note for note in found.notes)
    with pytest.raises(RankwiseError, match="in another order"):
        model.ledger_.bounds(other)


@pytest.mark.parametrize("shuffle", [False, True])
def test_d2_a_shuffled_run_knows_its_queries_in_the_order_of_the_data(shuffle):
    model = rw.SLAMPerceptron(shuffle=shuffle, epochs=2).fit(TRAIN)
    assert model.ledger_.bounds(TRAIN)[0].allows(model.ledger_.loss)
    with pytest.raises(RankwiseError, match="in another order"):
        model.ledger_.bounds(TRAIN[::-1])
    with pytest.raises(RankwiseError, match="with other weights"):
        model.ledger_.bounds(TRAIN.with_weight(np.full(len(TRAIN), 3.0)))


def test_d3_adarank_is_certified_for_the_measure_of_its_fit():
    model = rw.AdaRank("RR").fit(TRAIN)
    found = model.set_params(measure="AP").certificate(TRAIN)
    assert found.about.startswith("AdaRank, RR")
    assert not [row for row in found.rows if "AP" in row.bounds]
    assert any("measure='AP' was 'RR'" in note for note in found.notes)


def test_d3_a_perceptron_is_certified_for_the_margin_of_its_fit(tmp_path):
    model = rw.SLAMPerceptron(margin=1.0, eta=0.01).fit(TRAIN)
    loss, before = model.ledger_.loss, rows_of(model.certificate(TRAIN))
    again = saved(model.set_params(margin=0.0), tmp_path)
    assert again.margin == 1.0, "a file holds the fit"
    assert again.ledger_.config.loss.margin == 1.0
    assert rows_of(again.certificate(TRAIN)) == before
    assert all(
        row.allows(loss) for row in named(again.certificate(TRAIN), "SLAM loss") if row.bounds == "cumulative loss"
    )
    again.partial_fit(UNSEEN)
    assert again.ledger_.config.loss.margin == 1.0, "a run goes on by the rules that it began with"
    assert again.record_.parameters["margin"] == 1.0


def test_d3_a_strength_that_was_chosen_stays_chosen():
    model = rw.SLAMRanker(alpha=(0.1, 1.0, 10.0), prior_coef=None, scale="none", folds=2).fit(TRAIN)
    model.set_params(alpha="theory", row_radius=1.0, norm=1.0)
    (row,) = named(model.certificate(TRAIN, **KNOWN), "Regularized")
    assert row.applies is False
    assert any("lambda was fixed" in one.sentence and one.met is False for one in row.preconditions)


def test_d4_a_common_weight_of_all_queries_multiplies_the_step():
    rows = []
    for weight, eta in ((10.0, 0.01), (1.0, 0.1)):
        train = TRAIN.with_weight(np.full(len(TRAIN), weight))
        model = rw.OnlineRanker(step="constant", eta=eta).fit(train)
        rows += named(model.certificate(train), "Averaged gradient descent")
    heavy, light = rows
    assert heavy.value == pytest.approx(light.value)
    assert heavy.terms["eta"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    "copied",
    [
        lambda X: X.astype(np.float32),
        lambda X: np.column_stack([X[:, 0] * (1 + 1e-12), X[:, 1:]]),
        lambda X: X.round(6),
    ],
)
def test_d5_a_hold_out_is_not_unseen_because_it_was_rounded(copied):
    train = lists(30, features=8, seed=5)
    model = rw.RidgeRanker(alpha=1.0).fit(train)
    found = model.certificate(None, train.map_features(copied))
    assert found.headline is None
    assert any("changed copies" in note or "are copies" in note for note in found.notes)


def test_d5_a_hold_out_is_not_unseen_because_a_document_is_missing():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 8)), random.integers(0, 3, 200)
    model = rw.RidgeRanker(alpha=1.0).fit(X, y, group=[10] * 20)
    kept = np.arange(200) % 10 != 9
    found = model.certificate(None, Queries.from_arrays(X[kept], y[kept], group=[9] * 20))
    assert found.headline is None
    assert any("20 of the 20 hold-out queries" in note and "changed copies" in note for note in found.notes)


def test_d5_what_is_met_and_what_is_assumed_about_a_hold_out():
    """Nobody can know whether weights that were given were learned from the hold-out: that is assumed, in words."""
    prior = rw.RidgeRanker(alpha=1.0).fit(UNSEEN).coef_
    model = rw.RankSVM(alpha=0.1, prior_coef=prior).fit(TRAIN)
    (row,) = named(model.certificate(None, UNSEEN), "Betting")
    met = {one.sentence: one.met for one in row.preconditions}
    assert [one for sentence, one in met.items() if "content of a query which fit saw" in sentence] == [True]
    assert [one for sentence, one in met.items() if "no choice of the ranker saw them" in sentence] == [None]
    assert row.applies is None


def test_d6_copies_of_a_hold_out_do_not_make_it_larger():
    model, few = fitted(rw.RidgeRanker(alpha=1.0)), UNSEEN[np.flatnonzero(UNSEEN.sizes > 2)[:5]]
    once, repeated = model.certificate(None, few), model.certificate(None, Queries.concat([few] * 60, rename=True))
    assert repeated.headline.value >= once.headline.value
    counted = once.headline.terms["n"]
    assert (repeated.headline.terms["sure"], repeated.headline.terms["optional"]) == (counted, 59 * counted)
    assert any("300 of the 300 hold-out queries have the same content as others" in note for note in repeated.notes)
    assert once.notes[0] != repeated.notes[0]


def test_d6_copies_of_training_queries_do_not_make_uniform_bounds_smaller():
    train = Queries.concat([TRAIN] * 40, rename=True)
    model = rw.RidgeRanker(alpha=1.0).fit(TRAIN)
    changed = rw.RidgeRanker(alpha=1.0).fit(train)
    changed.coef_ = model.coef_
    for name in ("l2-Lipschitz", "largest score", "sparse weights"):
        (alone,), (copied,) = (
            named(one.certificate(data, **KNOWN), name) for one, data in ((model, TRAIN), (changed, train))
        )
        assert copied.value >= alone.value * (1 - 1e-9)


def test_d6_a_frequent_query_is_not_hidden_by_counting_it_once():
    """Half of all queries are one hard query: if draws repeat by chance, that query counts as often as it was drawn."""
    losses, group = np.repeat([1.0, 0.0], 500), np.concatenate([np.zeros(500, int), np.arange(1, 501)])
    claims = holdout_claims(losses, of="loss", unseen=Precondition("?", True), group=group)
    assert certificate_of(claims, about="", delta=0.05).headline.value > 0.5


def test_d7_averaging_is_not_said_to_be_absent():
    model = rw.SLAMPerceptron(averaging="uniform").fit(TRAIN)
    for row in model.certificate(TRAIN).rows:
        assert not [one for one in row.preconditions if "neither averaged" in one.sentence]


def test_n7_a_row_shows_the_value_that_was_compared_for_the_headline():
    found = fitted(rw.RidgeRanker(alpha=1.0)).certificate(TRAIN, UNSEEN, **KNOWN)
    compared = min(value for value in found.table()["compared"] if value != "")
    assert compared == found.headline.value
    (row,) = named(found, "Betting")
    assert row.terms["compared_value"] >= row.value
    text = str(found)
    assert f"{compared:.4f}" in text
    assert "bounds are vacuous" in text
    assert not [line for line in text.splitlines() if line.startswith("generalization")]
    assert len(found.table()) == len(found.rows)


@over([ranker for ranker in RANKERS if ranker.learns])
def test_r8_a_ranker_that_was_tampered_with_gives_rows_or_a_clear_error(ranker, tmp_path):
    path = tmp_path / "model.rankwise"
    fitted(ranker).save(path)
    plain = path.read_bytes()

    def forget(facts, header):
        facts.pop("digest")

    def falsify(facts, header):
        facts["learned"] = {
            name: 10**9 if isinstance(value, int) and not isinstance(value, bool) else value
            for name, value in facts["learned"].items()
        }

    for change in (forget, falsify):
        path.write_bytes(rewritten(plain, change))
        try:
            found = rw.load(path).certificate(TRAIN, UNSEEN, **KNOWN)
        except RankwiseError:
            continue
        assert all(math.isfinite(row.value) or row.vacuous for row in found.rows)


@over_every_kind_of_ranker
def test_a_file_of_an_older_version_marks_what_rests_on_the_fit_as_assumed(ranker, tmp_path):
    path = tmp_path / "model.rankwise"
    fitted(ranker).save(path)
    path.write_bytes(rewritten(path.read_bytes(), lambda facts, header: facts.pop("digest")))
    for row in rw.load(path).certificate(TRAIN).rows:
        if row.kind in ("training", "online", "optimality gap"):
            assert row.applies is not True


def test_what_a_file_cannot_hold_is_frozen_all_the_same(tmp_path):
    model = rw.RidgeRanker(alpha=(0.1, 1.0), folds=2, random_state=np.random.default_rng(0)).fit(TRAIN)
    assert not model.certificate(None, UNSEEN).notes[0].startswith("parameters")
    again = saved(model.set_params(random_state=3), tmp_path)
    assert again.random_state == 3
    assert isinstance(again.record_.digest, str)
