"""Planted defects are found, each with its numbers, and data without them raise no alarm."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise._diagnose import features as of_features
from rankwise._diagnose.drift import permutation_test
from rankwise._diagnose.features import find_correlated_pairs
from rankwise._diagnose.leaks import rank_alone
from rankwise._diagnose.run import diagnose
from rankwise.io.letor.read import read_letor
from rankwise.measures.ndcg import NDCG
from rankwise.queries.folds import split
from rankwise.queries.queries import Queries
from rankwise.synthetic.lists import make_lists

CLEAN = make_lists(120, documents=(5, 20), features=8, random_state=3)
NEW = (
    "like the label",
    "coarse copy",
    "far better alone",
    "a name that suggests",
    "in other units",
    "repeat the id",
    "repeats the id",
)
NEW += ("other values", "order of rows", "sorted by label")


def alarms(*sets):
    """The findings of the kinds that this page is about."""
    return [one for one in diagnose(*sets).findings if any(words in one.what for words in NEW)]


def with_column(queries, values, name="new"):
    return Queries.from_arrays(
        np.column_stack([queries.X, values]),
        queries.y,
        qid=np.array(queries.names(), dtype=object)[queries.query_of_row],
        docid=queries.docid,
        feature_names=[*queries.feature_names, name],
    )


def noise(seed=0, count=None):
    return np.random.default_rng(seed).normal(size=CLEAN.n_documents if count is None else count)


# ------------------------------------------------------------------------------------------- no false alarm


@pytest.mark.parametrize("seed", range(12))
def test_generated_queries_and_their_splits_raise_no_alarm(seed):
    lists = make_lists(100, documents=(4, 25), features=2 + seed, random_state=seed)
    assert alarms(*split(lists, (0.6, 0.2, 0.2), random_state=seed)) == []


@pytest.mark.parametrize("seed", range(10))
def test_few_short_queries_raise_no_alarm(seed):
    assert alarms(make_lists(12, documents=(2, 5), features=15, random_state=seed)) == []


@pytest.mark.parametrize("name", ["ohsumed", "mq2008"])
def test_real_data_have_no_leak_and_no_drift_between_their_parts(data_folder, name):
    parts = {path.name[:2]: read_letor(path) for path in sorted((data_folder / name).glob("S?.txt.gz"))}
    found = [one.what for one in alarms(parts)]
    assert [what for what in found if "in other units" not in what and "order of rows" not in what] == []
    # both are as they come: two features of each repeat another one, and OHSUMED's rows know something of the labels
    assert sum("2 features are another one in other units" in what for what in found) == 1
    assert any("order of rows" in what for what in found) == (name == "ohsumed")


# ------------------------------------------------------------------------------------------- leaks


@pytest.mark.parametrize(
    "made",
    [
        lambda y: y,
        lambda y: -y,
        lambda y: y + 0.2 * noise(),
        lambda y: np.exp(3 * y) - 5,
        lambda y: 1 / (1 + y),
        lambda y: 1e12 + y,
    ],
    ids=["label", "reversed", "with noise", "monotone", "falling", "shifted"],
)
def test_a_copy_of_the_label_is_a_problem(made):
    (finding,) = alarms(with_column(CLEAN, made(CLEAN.y)))
    assert finding.severity == "problem"
    assert finding.what.startswith("1 feature ranks like the label itself")
    assert finding.where[0].startswith("new (alone: nDCG ")
    assert "ignore=['new']" in finding.advice


def test_a_noisy_label_is_a_warning_with_the_figures_of_the_others():
    (finding,) = alarms(with_column(CLEAN, CLEAN.y + 0.6 * noise()))
    assert finding.severity == "warning"
    rest = rank_alone(CLEAN).skill.max()
    assert f"of which the best has skill {rest:.2f}" in finding.what


def test_two_leaks_do_not_hide_each_other():
    lists = with_column(with_column(CLEAN, CLEAN.y + 0.6 * noise(1), "one"), CLEAN.y + 0.6 * noise(2), "two")
    (finding,) = alarms(lists)
    assert finding.what.startswith("2 features rank far better alone")
    lists = with_column(with_column(CLEAN, CLEAN.y, "copy"), CLEAN.y + 0.6 * noise(2), "noisy")
    assert [one.severity for one in alarms(lists)] == ["problem", "warning"]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("least", [1, 2, 3])
def test_a_flag_made_of_the_label_is_a_problem_though_it_leaves_ties(least, sign):
    lists = make_lists(200, documents=(5, 20), features=8, random_state=5)
    flag = sign * (lists.y >= least)
    assert rank_alone(with_column(lists, flag)).skill[-1] < 0.95
    (finding,) = alarms(with_column(lists, flag))
    assert (finding.severity, finding.where[0][:4]) == ("problem", "new ")
    assert finding.what.startswith("1 feature is a coarse copy of the label")
    wrong = np.where(np.random.default_rng(0).random(len(flag)) < 0.1, sign - flag, flag)
    assert rank_alone(with_column(lists, wrong)).contradicted[-1] > 0.01
    assert not any("coarse" in one.what for one in alarms(with_column(lists, wrong)))


def test_a_rare_flag_that_is_never_wrong_is_a_good_feature():
    lists = make_lists(200, documents=(5, 20), features=8, random_state=5)
    rare = (lists.y == lists.y.max()) & (np.random.default_rng(1).random(lists.n_documents) < 0.5)
    assert rank_alone(with_column(lists, rare)).contradicted[-1] == 0
    assert alarms(with_column(lists, rare)) == []


@settings(max_examples=60)
@given(st.data())
def test_contradicted_documents_are_those_below_a_worse_one(data):
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    count = sum(sizes)
    x, y = (np.array(data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)), float) for _ in range(2))
    lists = Queries.from_arrays(x.reshape(-1, 1), y, group=sizes)
    shares = []
    for sign in (1, -1):
        wrong = documents = 0
        for query in lists:
            if len(set(query.y.tolist())) > 1 and len(set(query.X[:, 0].tolist())) > 1:
                pairs = list(zip(query.X[:, 0], sign * query.y, strict=True))
                wrong += sum(any(a < x and label > y for a, label in pairs) for x, y in pairs)
                documents += len(pairs)
        shares.append(wrong / documents if documents else 1.0)
    alone = rank_alone(lists)
    if alone is not None:
        assert min(abs(alone.contradicted[0] - share) for share in shares) < 1e-12


def test_a_perfect_order_of_few_judgments_is_chance():
    few = Queries.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], group=[3])
    assert rank_alone(few).skill[0] == pytest.approx(1)
    assert alarms(few) == []


def test_a_leak_says_nothing_about_unlabeled_queries():
    assert rank_alone(CLEAN.with_labels(None)) is None
    assert rank_alone(CLEAN.with_labels(np.ones(CLEAN.n_documents))) is None


@settings(max_examples=40)
@given(st.data())
def test_skill_and_ndcg_are_those_of_the_measure(data):
    """Against the package's own nDCG with linear gains and averaged ties, in the better direction."""
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    count = sum(sizes)
    small = st.integers(0, 3)
    x = np.array(data.draw(st.lists(small, min_size=count, max_size=count)), dtype=float)
    y = np.array(data.draw(st.lists(small, min_size=count, max_size=count)), dtype=float)
    queries = Queries.from_arrays(x.reshape(-1, 1), y, group=sizes)
    alone = rank_alone(queries)
    measure = NDCG(gain="linear")
    sides = []
    for sign in (1, -1):
        values = []
        for query in queries:
            if len(set(query.y.tolist())) > 1:
                labels = query.y - query.y.min()  # only differences of gains within a query count here
                chance = measure(np.zeros(len(labels)), labels, ties="expected")
                value = measure(sign * query.X[:, 0], labels, ties="expected")
                values.append((value, (value - chance) / (1 - chance)))
        sides.append(np.mean(values, axis=0) if values else None)
    if sides[0] is None:
        assert alone is None
    else:
        ndcg, skill = max(sides, key=lambda side: side[1])
        assert alone.skill[0] == pytest.approx(skill, abs=1e-9)
        if abs(sides[0][1] - sides[1][1]) > 1e-9:
            assert alone.ndcg[0] == pytest.approx(ndcg, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "is_found"),
    [
        ("label", True),
        ("Relevance", True),
        ("clicked_later", True),
        ("wasPurchased", True),
        ("grade", True),
        ("target", True),
        ("rating", True),
        ("avg_rating", False),
        ("relevance_model_score", False),
        ("click_count", False),
        ("labeling_cost", False),
        ("bm25", False),
    ],
)
def test_names_like_those_of_labels_are_named(name, is_found):
    found = alarms(with_column(CLEAN, noise(), name))
    assert bool(found) == is_found
    if found:
        assert found[0].where[0].startswith(f"{name} (alone: nDCG ")


# ------------------------------------------------------------------------------------------- correlated features


@pytest.mark.parametrize("factor", [1e6, -3e-7])
def test_a_feature_in_other_units_is_noted(factor):
    lists = with_column(CLEAN, factor * CLEAN.X[:, 2] + 17, "units")
    (finding,) = alarms(lists)
    assert finding.severity == "note"
    assert finding.where[0].startswith(f"units ~ {CLEAN.feature_names[2]} (r = {np.sign(factor):+.5f})")


def test_offsets_of_queries_do_not_hide_a_correlation():
    """Within queries it is the same feature, over all documents it is not."""
    away = 1e3 * np.random.default_rng(0).normal(size=len(CLEAN))[CLEAN.query_of_row]
    assert len(alarms(with_column(CLEAN, CLEAN.X[:, 1] + away))) == 1


def test_equal_features_are_named_once():
    lists = with_column(CLEAN, CLEAN.X[:, 0])
    assert alarms(lists) == []
    assert "1 feature repeats another one" in [one.what for one in diagnose(lists).findings]


def test_features_that_differ_in_a_few_documents_only_correlate_by_chance():
    rare = np.zeros(CLEAN.n_documents)
    rare[5] = 1
    assert alarms(with_column(with_column(CLEAN, rare, "one"), 3 * rare, "two")) == []


@pytest.mark.parametrize("block", [3, 1 << 10])
def test_pairs_are_those_of_the_whole_matrix_of_correlations(monkeypatch, block):
    monkeypatch.setattr(of_features, "_BLOCK_FEATURES", block)
    monkeypatch.setattr(of_features, "_PAIRED_VALUES", 500)
    random = np.random.default_rng(5)
    X = random.normal(size=(300, 12))
    X[:, 7] = 2 * X[:, 3] + 1e-3 * random.normal(size=300)
    X[:, 9] = -X[:, 0] + 0.02 * random.normal(size=300)
    X[:, 11] = X[:, 3] - 0.2 * random.normal(size=300)  # r of about .98: not one of them
    shuffled = random.permutation(300)
    queries = Queries.from_arrays(X[shuffled], qid=(np.arange(300) // 10)[shuffled])
    centered = np.concatenate([query.X - query.X.mean(axis=0) for query in queries])
    r = np.corrcoef(centered.T)
    expected = {(i, j) for j in range(12) for i in range(j) if abs(r[i, j]) >= of_features.SAME}
    pairs, found = find_correlated_pairs(queries)
    assert set(pairs) == expected == {(3, 7), (0, 9)}
    np.testing.assert_allclose(found, [r[pair] for pair in pairs], rtol=1e-9)


# ------------------------------------------------------------------------------------------- documents and rows


def test_repeated_ids_are_a_warning_with_their_labels():
    lists = make_lists(20, documents=6, features=3, random_state=1)
    ids = [str(one) for one in lists.docid]
    ids[1] = ids[0]
    ids[9] = ids[8]
    ids[13] = ids[0]  # another query: no repeat
    y = lists.y.copy()
    y[:2], y[8:10] = (0, 1), (2, 2)
    repeated = lists.with_labels(y)._replace(docid=type(lists.docid).of(ids))
    (finding,) = alarms(repeated)
    assert finding.severity == "warning"
    assert finding.what == "2 rows repeat the id of a document of the same query, 1 of them with another label"
    assert finding.where == (f"q1: {ids[0]}", f"q2: {ids[8]}")
    assert diagnose(repeated).facts["repeated_ids"] == 2


def in_order(queries, key):
    """The queries with the rows of each in another order."""
    owner = queries.query_of_row
    rows = np.lexsort((key, owner))
    return Queries.from_arrays(
        queries.X[rows], queries.y[rows], qid=np.array(queries.names(), dtype=object)[owner[rows]]
    )


def test_rows_sorted_by_label_are_a_warning():
    (finding,) = alarms(in_order(CLEAN, -CLEAN.y))
    assert (finding.severity, "sorted by label" in finding.what) == ("warning", True)
    assert "correlation -1.00" in finding.what


def test_rows_in_the_order_of_an_earlier_ranking_are_noted():
    labels, features = alarms(in_order(CLEAN, -CLEAN.X[:, 0]))
    assert (labels.severity, "labels depend on the order of rows" in labels.what) == ("note", True)
    assert (features.severity, "predicts 1 feature" in features.what) == ("note", True)


def test_shuffled_rows_depend_on_nothing():
    """The correlation of many shuffles is what its variance says: none in twenty is five deviations away."""
    found = [diagnose(in_order(CLEAN, noise(seed))).facts["label_by_position"] for seed in range(20)]
    assert max(map(abs, found)) < 0.12
    assert all(alarms(in_order(CLEAN, noise(seed))) == [] for seed in range(5))


# ------------------------------------------------------------------------------------------- drift


def moved(queries, change, feature=1):
    def other(X):
        X = X.copy()
        X[:, feature] = change(X[:, feature])
        return X

    return queries.map_features(other)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda x: 100 * x + 1, "mean"),
        (lambda x: x + 4 * x.std(), "mean"),
        (lambda x: np.full(len(x), x.mean()), "spread"),
    ],
    ids=["units", "offset", "filled in"],
)
def test_a_feature_with_another_meaning_in_another_split_is_a_warning(change, kind):
    train, test = split(CLEAN, (0.6, 0.4), random_state=1)
    (finding,) = alarms({"train": train}, {"test": moved(test, change)})
    assert finding.severity == "warning"
    assert finding.what == "1 feature has other values in 'test' than in 'train'"
    assert finding.where[0].startswith(f"{CLEAN.feature_names[1]} ({kind} per query: median ")


def test_drift_is_found_under_another_order_of_columns_and_the_same_every_time():
    train, test = split(CLEAN, (0.6, 0.4), random_state=1)
    drifted = moved(test, lambda x: 100 * x + 1)
    turned = drifted.select_features(drifted.feature_names[::-1])
    one, two, three = (diagnose(train, other, n_jobs=jobs) for other, jobs in ((drifted, 1), (turned, 2), (turned, 1)))
    assert json.dumps(two.to_dict()) == json.dumps(three.to_dict())
    wanted = [finding for finding in one.findings if "other values" in finding.what]
    assert wanted == [finding for finding in two.findings if "other values" in finding.what]


def test_documents_of_one_query_are_no_independent_evidence():
    """Features that differ by query alone: thousands of documents differ, but the queries of both splits are alike."""
    random = np.random.default_rng(0)
    level = np.sort(random.normal(size=16))

    def lists(levels):
        X = np.repeat(levels, 500).reshape(-1, 1) + 1e-3 * random.normal(size=(500 * len(levels), 1))
        return Queries.from_arrays(X, random.integers(0, 2, len(X)), group=[500] * len(levels))

    assert alarms(lists(level[::2]), lists(level[1::2])) == []


def test_corrected_p_values_are_valid():
    """Without a difference, some of 20 statistics is significant at 10 % in at most 10 % of the sets, up to chance."""
    random = np.random.default_rng(1)
    false = 0
    for _ in range(60):
        values = random.normal(size=(24, 2, 10)) ** 3
        p, _ = permutation_test(values[:10], values[10:])
        false += bool((p <= 0.1).any())
    assert false <= 13  # exceeded with probability .003 at 6 expected


def test_p_values_and_shares_are_those_of_all_pairs():
    random = np.random.default_rng(2)
    one, two = random.integers(0, 4, (9, 3)).astype(float), random.integers(1, 6, (7, 3)).astype(float)
    p, often = permutation_test(one, two)
    pairs = two[np.newaxis] - one[:, np.newaxis]
    np.testing.assert_allclose(often, ((pairs > 0) + 0.5 * (pairs == 0)).mean(axis=(0, 1)))
    again, _ = permutation_test(one, two)
    np.testing.assert_array_equal(p, again)
    assert ((p > 0) & (p <= 1)).all()


def test_the_best_features_alone_are_among_the_facts():
    facts = diagnose(CLEAN).facts["best_alone"]
    assert len(facts) == 5
    assert [one["skill"] for one in facts.values()] == sorted((one["skill"] for one in facts.values()), reverse=True)
