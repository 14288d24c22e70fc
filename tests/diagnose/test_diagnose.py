"""A diagnosis finds what makes rankers fail silently, and says nothing about data that is sound."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise._diagnose import features as diagnose_features
from rankwise._diagnose.features import odd_words, summarize
from rankwise._diagnose.findings import Finding
from rankwise._diagnose.run import diagnose
from rankwise.errors import DataError, RankwiseError
from rankwise.io.letor.read import read_letor
from rankwise.queries.queries import Queries
from rankwise.synthetic.lists import make_lists


def sound(queries=6, documents=5, features=3, seed=0, **options):
    """Lists in which nothing is wrong."""
    random = np.random.default_rng(seed)
    n = queries * documents
    labels = np.tile(np.arange(documents) % 3, queries)
    options = {"qid": np.repeat([f"{seed}-{q}" for q in range(queries)], documents)} | options
    return Queries.from_arrays(random.random((n, features)), labels, **options)


def found(*sets, severity=None, **options):
    """What was found, as texts."""
    findings = diagnose(*sets, **options).findings
    return [finding.what for finding in findings if severity in (None, finding.severity)]


def the(start, *sets, **options):
    """The one finding that begins like this."""
    matching = [finding for finding in diagnose(*sets, **options).findings if finding.what.startswith(start)]
    assert len(matching) == 1, diagnose(*sets, **options)
    return matching[0]


def changed(queries, rows, columns, value):
    """The same lists with other features at some places."""

    def change(X):
        X = X.copy()
        X[rows, columns] = value
        return X

    return queries.map_features(change)


def test_sound_data_gets_no_findings():
    assert found(sound(), sound(seed=1)) == []
    assert "nothing to remark" in repr(diagnose(sound()))


# ------------------------------------------------------------------------------------------- facts


def test_facts_are_plain_numbers():
    queries = Queries(np.random.rand(7, 2), [0, 1, 2, 0, 0, 0, 1.5], [0, 3, 3, 6, 7])
    facts = diagnose(queries).facts
    assert facts["queries"] == 4
    assert facts["documents"] == 7
    assert facts["features"] == 2
    assert facts["documents_per_query"] == {"min": 0, "median": 2.0, "mean": 1.75, "max": 3}
    assert facts["labels"] == {"0": 4, "1": 1, "1.5": 1, "2": 1}
    assert facts["queries_without_documents"] == 1
    assert facts["queries_with_one_document"] == 1
    assert facts["queries_with_one_label"] == 1
    assert facts["queries_without_relevant"] == 1


def test_very_many_labels_are_counted_in_ranges():
    queries = sound(30, 5, qid=None, group=[5] * 30).with_labels(np.linspace(0, 1, 150))
    labels = diagnose(queries).facts["labels"]
    assert next(iter(labels)) == "0 to 0.1"
    assert list(labels.values()) == [15] * 10


def test_the_table_has_one_row_a_feature():
    X = np.array([[0.0, 1, -3], [0, 2, 5], [0, 2, 7], [0, 2, 8], [0, 9, 9]])
    table = diagnose(Queries.from_arrays(X, [0, 1, 0, 1, 0], group=[2, 2, 1], feature_names=["a", "b", "c"])).table()
    assert table.to_dict() == {
        "name": ["a", "b", "c"],
        "min": [0.0, 1.0, -3.0],
        "max": [0.0, 9.0, 9.0],
        "mean": [0.0, 3.2, 5.2],
        "zeros": [1.0, 0.0, 0.0],
        "constant": [1.0, 0.5, 0.0],  # of the two queries with two documents or more
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [1, 7, 64, 1 << 18])
def test_the_summary_is_the_same_in_blocks_of_any_size(monkeypatch, dtype, block):
    random = np.random.default_rng(1)
    qid = random.integers(0, 9, 120)
    X = random.integers(0, 3, (120, 4)).astype(dtype)
    X[:, 2] = qid
    queries = Queries.from_arrays(X, qid=qid)
    monkeypatch.setattr(diagnose_features, "_BLOCK_VALUES", block)
    summary = summarize(queries, odd_words(0, 4), n_jobs=2)
    assert summary.low.tolist() == X.min(axis=0).tolist()
    assert summary.high.tolist() == X.max(axis=0).tolist()
    assert summary.mean == pytest.approx(X.mean(axis=0), rel=1e-5)
    assert summary.zeros.tolist() == (X == 0).mean(axis=0).tolist()
    same = [np.mean([len(np.unique(X[qid == q, f])) == 1 for q in np.unique(qid)]) for f in range(4)]
    assert summary.constant.tolist() == same
    for one in range(120):
        for two in range(one):
            assert (summary.row_key[one] == summary.row_key[two]) == np.array_equal(X[one], X[two])


def test_memory_mapped_features_are_looked_at_where_they_are(tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, (1_000, 3))
    X[:] = np.random.default_rng(0).random((1_000, 3))
    queries = Queries.from_arrays(np.load(tmp_path / "X.npy", mmap_mode="r"), np.arange(1_000) % 2, group=[10] * 100)
    in_memory = Queries.from_arrays(X[:].copy(), queries.y, group=[10] * 100)
    assert diagnose(queries).to_dict() == diagnose(in_memory).to_dict()


# ------------------------------------------------------------------------------------------- lists and labels


def test_special_queries_are_named():
    queries = Queries.from_arrays(np.random.rand(9, 2), [0, 1, 0, 0, 0, 1, 1, 0, 1], qid=list("aabbcddee"))
    assert the("1 query has a single document", queries).where == ("c",)
    assert the("2 queries have documents of one label only", queries).where == ("b", "d")
    assert the("2 queries have no relevant document", queries).where == ("b", "c")


def test_at_most_ten_places_are_named():
    queries = sound(30).with_labels(np.zeros(150))
    assert len(the("30 queries have no relevant document", queries).where) == 10


def test_a_query_without_documents_is_a_warning():
    queries = Queries(np.random.rand(4, 2), [0, 1, 0, 1], [0, 2, 2, 4])
    finding = the("1 query has no documents", queries)
    assert (finding.severity, finding.where) == ("warning", (1,))


def test_document_ids_given_as_query_ids_are_a_problem():
    queries = Queries.from_arrays(np.random.rand(4, 2), [0, 1, 0, 1], qid=[1, 2, 3, 4])
    assert the("every query has a single document", queries).severity == "problem"


def test_forgotten_query_ids_are_a_warning():
    queries = Queries.from_arrays(np.random.rand(1_001, 2), np.arange(1_001) % 2, group=[1_001])
    assert the("all 1,001 documents belong to one query", queries).severity == "warning"


def test_lists_that_lightgbm_refuses_are_noted():
    queries = Queries.from_arrays(np.random.rand(10_004, 1), np.arange(10_004) % 2, group=[10_001, 3])
    assert the("1 query has more than 10,000 documents", queries).where == (0,)


def test_labels_from_which_nothing_can_be_learned_are_a_problem():
    queries = sound().with_labels(np.repeat(np.arange(6) % 2, 5))  # each query has one label
    assert the("no query has two documents with different labels", queries).severity == "problem"


def test_missing_labels_are_noted():
    assert the("the documents have no labels", sound().with_labels(None)).severity == "note"


def test_real_labels_are_noted():
    labels = np.tile([0, 0.5, 1, 1.25, 2], 6)
    finding = the("12 labels are not a whole number", sound().with_labels(labels))
    assert finding.where == (0.5, 1.25)


@pytest.mark.parametrize(
    ("largest", "severity", "says"),
    [
        (30, None, None),
        (31, "warning", "LightGBM refuses"),
        (32, "warning", "LightGBM and XGBoost refuse"),
        (53, "warning", "LightGBM and XGBoost refuse"),
        (54, "warning", "beyond what float64 holds exactly"),
        (996, "warning", "beyond what float64 holds exactly"),
        (997, "problem", "overflows at label 997"),
        (1330, "problem", "overflows at label 1330"),
    ],
)
def test_labels_beyond_the_range_of_the_gain(largest, severity, says):
    queries = sound().with_labels(np.tile([0, 1, 2, 3, largest], 6))
    gain = [finding for finding in diagnose(queries).findings if "gain" in finding.what]
    assert [finding.severity for finding in gain] == ([] if severity is None else [severity])
    assert all(says in finding.what for finding in gain)
    assert found(queries, gain="linear") == []


def test_the_largest_label_that_is_said_to_be_exact_is():
    assert 2.0**53 - 1 == 2**53 - 1
    assert 2.0**54 - 1 != 2**54 - 1


def test_labels_without_a_gain_in_the_table_are_a_problem():
    assert found(sound(), gain=[0, 1, 3]) == []
    assert found(sound(), gain={0: 0, 1: 1, 2: 5}) == []
    finding = the("1 label is not in the table of gains", sound(), gain={0: 0, 1: 1})
    assert (finding.severity, finding.where) == ("problem", (2.0,))


# ------------------------------------------------------------------------------------------- features


def test_a_feature_that_never_changes_is_noted():
    finding = the("1 feature has the same value everywhere", changed(sound(), slice(None), 1, 4.0))
    assert (finding.severity, finding.where) == ("note", ("X[:, 1]",))


def test_a_feature_that_is_constant_within_every_query_is_a_warning():
    queries = sound(feature_names=["bm25", "idf", "clicks"])
    finding = the("1 feature is constant within every query", changed(queries, slice(None), 1, np.repeat(range(6), 5)))
    assert (finding.severity, finding.where) == ("warning", ("idf",))
    assert "linear ranker" in finding.advice


def test_unscaled_features_are_a_warning():
    wide = sound().map_features(lambda X: X * [1.0, 2e3, 2e6])
    finding = the("the features are not scaled: ranges go from", wide)
    assert (finding.severity, finding.where) == ("warning", ("X[:, 2]", "X[:, 1]"))
    large = sound().map_features(lambda X: X + np.array([0, 0, 2e4]))
    assert the("the features are not scaled: values reach 2e+04", large).where == ("X[:, 2]",)
    assert found(sound().map_features(lambda X: X * [1.0, 100.0, 900.0])) == []


def test_equal_features_are_noted():
    queries = sound(features=4, feature_names=list("abcd"))
    twice = queries.map_features(lambda X: X[:, [0, 1, 0, 1]] * np.array([1.0, 1.0, 1.0, 1.0]))
    assert the("2 features repeat another one", twice).where == ("c = a", "d = b")


def test_minus_zero_is_zero():
    X = np.array([[0.0, -0.0], [1.0, 1.0], [2.0, 2.0]])
    assert "1 feature repeats another one" in found(Queries.from_arrays(X, [0, 1, 0], group=[3]))


# ------------------------------------------------------------------------------------------- repeated rows


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 1), st.integers(0, 1)), min_size=1))
def test_repeated_rows_are_those_that_are_equal_within_a_query(rows):
    """Each row: query, two features, label; few values, so that repeats are the rule."""
    qid, a, b, label = np.array(rows).T
    facts = diagnose(Queries.from_arrays(np.stack([a, b], axis=1), label, qid=qid)).facts
    groups = {}
    for row in rows:
        groups.setdefault(row[:3], []).append(row[3])
    assert facts["repeated_rows"] == sum(len(labels) - 1 for labels in groups.values())
    contradicted = any(len(set(labels)) > 1 for labels in groups.values())
    assert (facts.get("contradictory_rows", 0) > 0) == contradicted


def test_repeated_and_contradictory_documents_are_named():
    queries = sound()
    same = changed(queries, 3, slice(None), queries.X[0])  # labels 0 and 0, query 0-0
    finding = the("1 document repeats the features of another of the same query", same)
    assert (finding.severity, finding.where) == ("note", ("0-0",))
    against = changed(queries, 6, slice(None), queries.X[5])  # labels 0 and 1, query 0-1
    finding = the("1 query has documents with the same features and different labels", against)
    assert (finding.severity, finding.where) == ("warning", ("0-1",))
    elsewhere = changed(queries, 6, slice(None), queries.X[0])  # another query: no repeat
    assert found(elsewhere) == []


def test_without_features_nothing_is_repeated():
    queries = Queries(np.empty((4, 0)), np.array([0.0, 1, 0, 1]), np.array([0, 2, 4]))
    assert found(queries) == []
    assert len(diagnose(queries).table()) == 0


# ------------------------------------------------------------------------------------------- other splits


def test_a_query_in_two_splits_is_a_problem():
    train, test = sound(), sound(seed=1)
    leaky = Queries.concat([test, train[[2, 4]]])
    finding = the("2 queries are in both 'train' and 'other 1'", train, leaky)
    assert (finding.severity, finding.where) == ("problem", ("0-2", "0-4"))
    named = the("2 queries are in both 'mine' and 'yours'", {"mine": train, "yours": leaky})
    assert named.where == finding.where


def test_documents_in_another_order_are_the_same_query():
    train = sound()
    upside_down = Queries.from_arrays(train.X[::-1], train.y[::-1], qid=np.repeat(train.qid, 5)[::-1])
    assert "6 queries are in both 'train' and 'test'" in found(train, {"test": upside_down})


def test_a_query_under_another_name_is_a_problem():
    train = sound()
    renamed = Queries.from_arrays(train.X[10:15], train.y[10:15], qid=["new"] * 5)
    finding = the("1 query has the same documents in 'train' and 'test' under different ids", train, {"test": renamed})
    assert (finding.severity, finding.where) == ("problem", ("0-2 = new",))


def test_splits_without_ids_are_compared_by_their_documents():
    train = sound(qid=None, group=[5] * 6)
    assert found(train, train[4:]) == ["2 queries have the same documents in 'train' and 'other 1'"]


def test_query_numbers_that_begin_anew_are_a_warning():
    train, test = (sound(seed=seed, qid=np.repeat(np.arange(6), 5)) for seed in (0, 1))
    finding = the("6 query ids have different documents in 'train' and 'other 1'", train, test)
    assert (finding.severity, finding.where) == ("warning", (0, 1, 2, 3, 4, 5))


def test_the_other_splits_are_compared_with_each_other():
    train, vali, test = sound(), sound(seed=1), sound(seed=1)
    assert found({"train": train, "vali": vali}, {"test": test}) == ["6 queries are in both 'vali' and 'test'"]


def test_lists_that_are_alike_by_chance_are_not_taken_for_the_same_query():
    single = Queries.from_arrays([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [1, 1, 0], qid=["a", "b", "b"])
    other = Queries.from_arrays([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [1, 1, 0], qid=["c", "d", "d"])
    assert found(single, other, severity="problem") == []


def test_features_are_matched_by_name():
    train = sound(feature_names=["a", "b", "c"])
    swapped = train.select_features(["c", "a", "b"])
    assert "6 queries are in both 'train' and 'other 1'" in found(train, swapped)
    in_order = Queries.from_arrays(swapped.X, train.y, qid=np.repeat(train.qid, 5))  # nameless: by position
    assert "6 query ids have different documents in 'train' and 'other 1'" in found(train, in_order)


def test_splits_with_other_features_are_a_problem():
    one, two = sound(feature_names=list("abc")), sound(seed=1, feature_names=list("abd"))
    finding = the("'train' and 'other 1' have different features (3 and 3)", one, two)
    assert (finding.severity, finding.where) == ("problem", ("c", "d"))
    assert the("'train' and 'other 1' have different features (3 and 4)", one, sound(features=4)).severity == "problem"


def test_a_feature_that_leaves_the_range_by_far_is_a_warning():
    train, test = sound(feature_names=list("abc")), sound(seed=1, feature_names=list("abc"))
    far = the("1 feature leaves the range of 'train' by far in 'other 1'", train, changed(test, 7, 1, 3.5))
    assert far.severity == "warning"
    assert far.where[0].startswith("b (")
    assert found(train, changed(test, 7, 1, 1.5)) == []
    swapped = changed(test, 7, 1, 3.5).select_features(["b", "c", "a"])
    assert the("1 feature leaves", train, swapped).where == far.where


def test_a_feature_that_is_constant_only_in_the_first_split_is_a_warning():
    train = changed(sound(), slice(None), 0, 0.5)
    assert (
        the("1 feature leaves the range of 'train' by far in 'other 1'", train, sound(seed=1))
        .where[0]
        .startswith("X[:, 0] (")
    )


# ------------------------------------------------------------------------------------------- as a whole


def test_findings_come_worst_first_and_everything_is_plain():
    lists = make_lists(60)
    diagnosis = diagnose(lists, lists[:3])
    severities = [finding.severity for finding in diagnosis.findings]
    assert severities == sorted(severities, key=("problem", "warning", "note").index)
    assert set(severities) == {"problem", "warning", "note"}
    plain = json.loads(json.dumps(diagnosis.to_dict()))
    assert plain["facts"]["queries"] == 60
    assert plain["facts"]["others"]["other 1"]["queries"] == 3
    assert plain["findings"][0].keys() == {"severity", "what", "where", "advice", "unnamed", "columns"}
    assert len(plain["features"]["name"]) == 20


def test_a_diagnosis_can_be_read():
    text = repr(diagnose(make_lists(60)))
    assert text.startswith("60 queries, ")
    assert "WARNING: 2 features are constant within every query\n    where: query_words, idf_sum\n" in text
    html = diagnose(sound(feature_names=["<a>", "b", "c"]))._repr_html_()
    assert "&lt;a&gt;" in html
    assert "<a>" not in html


@pytest.mark.parametrize("jobs", [1, 3])
def test_threads_change_nothing(monkeypatch, jobs):
    lists = make_lists(50)
    expected = diagnose(lists).to_dict()
    monkeypatch.setattr(diagnose_features, "_BLOCK_VALUES", 2_000)
    several = [diagnose(lists, n_jobs=jobs).to_dict() for _ in range(2)]
    assert several[0] == several[1]
    assert several[0]["findings"] == expected["findings"]


def test_no_documents_are_a_problem():
    none = sound()[:0]
    assert found(none) == ["there are no documents"]
    assert found(none, sound()) == ["there are no documents"]


def test_wrong_arguments_are_refused_in_a_sentence():
    with pytest.raises(DataError, match="takes Queries, got ndarray for 'other 1'"):
        diagnose(sound(), np.zeros((3, 2)))
    with pytest.raises(DataError, match="two sets are called 'train'"):
        diagnose(sound(), {"train": sound()})
    with pytest.raises(DataError, match="got none"):
        diagnose({})
    with pytest.raises(RankwiseError, match="must be 'exp2', 'linear' or a table of gains by label"):
        diagnose(sound(), gain="exp")


def test_a_finding_names_ten_places_and_no_more():
    assert Finding.of("note", "what", iter(range(1_000)), "advice").where == tuple(range(10))


# ------------------------------------------------------------------------------------------- real data


def test_ohsumed_is_as_its_description_says(data_folder):
    parts = {
        part.name.partition(".")[0]: read_letor(part) for part in sorted((data_folder / "ohsumed").glob("S?.txt.gz"))
    }
    whole = Queries.concat(list(parts.values()))
    diagnosis = diagnose(whole)
    assert diagnosis.facts["queries"] == 106
    assert diagnosis.facts["documents"] == 16_140
    assert diagnosis.facts["queries_without_relevant"] == 1
    assert {"min": 35, "max": 320}.items() <= diagnosis.facts["documents_per_query"].items()
    assert (diagnosis.table()["zeros"] == 1).sum() == 9
    assert the("9 features have the same value everywhere", whole).severity == "note"
    assert found(parts, severity="problem") == []  # no query in two parts


def test_query_ids_of_the_lightgbm_example_begin_anew(data_folder):
    train, test = (read_letor(data_folder / "lightgbm-rank" / f"{part}.txt.gz") for part in ("train", "test"))
    assert (
        the("50 query ids have different documents in 'train' and 'test'", train, {"test": test}).severity == "warning"
    )


def test_places_beyond_ten_are_counted():
    lists = Queries.from_arrays(np.arange(12.0).reshape(-1, 1), np.ones(12), group=[1] * 12)
    (finding,) = diagnose(lists).findings
    assert (finding.where, finding.unnamed) == (tuple(range(10)), 2)
    assert finding.places() == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more"
