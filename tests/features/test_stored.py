"""What was learned goes into a file without code and comes back with the same bits; damaged files raise one error."""

import json
import resource
import subprocess
import sys
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn import impute, kernel_approximation, preprocessing
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

import rankwise as rw
from rankwise.errors import FileFormatError
from rankwise.features import kernel_maps
from rankwise.features.codec import STORABLE, NotStorableError, Packed, unpack
from rankwise.features.state import digest_of, digest_of_state
from tests.features.shop import ROLES, shop
from tests.rankers.mutations import ALL, HOSTILE, parts, places, put
from tests.strategies import at_length

RNG = np.random.default_rng(7)
NUMBERS = RNG.lognormal(size=(80, 2))
GAPS = np.where(RNG.random((80, 2)) < 0.2, np.nan, NUMBERS)
LEVELS = RNG.choice(np.array(["a", "b", "c", "rare"], dtype=object), (80, 2), p=[0.4, 0.3, 0.28, 0.02])

TRANSFORMERS = [
    (impute.SimpleImputer(strategy="median", add_indicator=True), GAPS),
    (impute.SimpleImputer(strategy="constant", fill_value="?", missing_values=None), LEVELS),
    (impute.MissingIndicator(), GAPS),
    (preprocessing.OneHotEncoder(handle_unknown="ignore"), LEVELS),
    (preprocessing.OneHotEncoder(min_frequency=5, handle_unknown="infrequent_if_exist", sparse_output=False), LEVELS),
    (preprocessing.OneHotEncoder(drop="first", sparse_output=False), LEVELS),
    (preprocessing.OneHotEncoder(drop="if_binary", min_frequency=5), LEVELS),
    (preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, min_frequency=5), LEVELS),
    (preprocessing.OrdinalEncoder(), LEVELS),
    (preprocessing.QuantileTransformer(n_quantiles=20, subsample=None), NUMBERS),
    (preprocessing.QuantileTransformer(n_quantiles=20, output_distribution="normal"), NUMBERS),
    (preprocessing.PowerTransformer(), NUMBERS),
    (preprocessing.PowerTransformer("box-cox", standardize=False), NUMBERS),
    (preprocessing.StandardScaler(), NUMBERS),
    (preprocessing.MinMaxScaler((-1, 1), clip=True), NUMBERS),
    (preprocessing.MaxAbsScaler(), NUMBERS),
    (preprocessing.RobustScaler(), NUMBERS),
    (preprocessing.SplineTransformer(n_knots=4), NUMBERS),
    (preprocessing.SplineTransformer(knots="quantile", extrapolation="periodic"), NUMBERS),
    (preprocessing.KBinsDiscretizer(4, encode="onehot", quantile_method="averaged_inverted_cdf"), NUMBERS),
    (preprocessing.KBinsDiscretizer(4, encode="ordinal", strategy="uniform"), NUMBERS),
    (preprocessing.PolynomialFeatures(3, interaction_only=True), NUMBERS),
    (kernel_approximation.Nystroem(n_components=10, random_state=0), NUMBERS),
    (kernel_approximation.RBFSampler(n_components=10, random_state=0), NUMBERS),
    (kernel_approximation.PolynomialCountSketch(n_components=16, random_state=0), NUMBERS),
    (kernel_maps.FourierFeatures(n_features=16), NUMBERS),
    (kernel_maps.KernelPCAMap("poly"), NUMBERS),
    (rw.Scaler("log"), NUMBERS),
    (rw.Scaler("normal"), NUMBERS),
    (make_pipeline(impute.SimpleImputer(), preprocessing.SplineTransformer(), preprocessing.StandardScaler()), GAPS),
]


def dense(found):
    return found.toarray() if hasattr(found, "toarray") else np.asarray(found)


def through_json(value):
    """What a file gives back: JSON as a text, arrays as bytes."""
    packed = Packed()
    facts = packed.pack(value, "a test")
    arrays = {name: np.frombuffer(array.tobytes(), array.dtype) for name, array in packed.arrays.items()}
    return unpack(json.loads(json.dumps(facts)), arrays)


@pytest.mark.parametrize(("transformer", "values"), TRANSFORMERS, ids=lambda value: type(value).__name__)
def test_every_listed_transformer_comes_back_with_its_bits(transformer, values):
    transformer.fit(values)
    again = through_json(transformer)
    expected = dense(transformer.transform(values))
    found = dense(again.transform(values))
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes() if expected.dtype != object else found.tolist() == expected.tolist()
    assert repr(again) == repr(transformer)


def test_every_class_of_the_list_is_tried():
    assert {type(transformer).__name__ for transformer, _ in TRANSFORMERS} == set(STORABLE)


class Harmless(preprocessing.StandardScaler):
    """A class of the user's own, whatever it is called."""


Harmless.__name__ = "StandardScaler"


@pytest.mark.parametrize(
    "value", [PCA(), preprocessing.FunctionTransformer(np.log), Harmless(), lambda: 1, np.random.RandomState(0), 1j]
)
def test_what_is_not_listed_cannot_be_stored(value):
    with pytest.raises(NotStorableError, match="cannot be saved"):
        Packed().pack(value, "a test")


@pytest.mark.parametrize(
    "facts",
    [
        {"is": "transformer", "class": "os.system", "parameters": {}, "learned": {}},
        {"is": "transformer", "class": "PCA", "parameters": {}, "learned": {}},
        {"is": "transformer", "class": "StandardScaler", "parameters": {"copy": "no"}, "learned": {}},
        {"is": "transformer", "class": "StandardScaler", "parameters": {"deepcopy": True}, "learned": {}},
        {"is": "transformer", "class": "StandardScaler", "parameters": {}, "learned": {"transform": 1}},
        {"is": "transformer", "class": "StandardScaler", "parameters": {}, "learned": {"__class__": 1}},
        {"is": "transformer", "class": "StandardScaler", "parameters": {}, "learned": {"mean": 1}},
        {"is": "array", "name": "features.0", "shape": [3], "order": "C"},
        {"is": "objects", "shape": [10**9], "items": []},
        {"is": "dtype", "name": "void"},
        {"is": "float", "value": "__import__('os')"},
        {"is": "dict", "items": [[{"is": "list", "items": []}, 1]]},
        {"is": "spline", "t": None, "c": None, "k": 3, "extrapolate": True},
        {"is": "nothing"},
        {"is": ["list"]},
        [1, 2],
    ],
)
def test_facts_that_nobody_wrote_are_refused(facts):
    with pytest.raises((FileFormatError, ValueError)):
        unpack(facts, {"features.0": np.zeros(2)})


def test_an_encoder_with_other_columns_than_levels_is_refused():
    # a sparse matrix with an index beyond its width would write outside of its memory
    encoder = preprocessing.OneHotEncoder(min_frequency=5, handle_unknown="infrequent_if_exist").fit(LEVELS)
    for attribute, value in (("_n_features_outs", [1, 1]), ("_n_features_outs", [3, 3, 3])):
        wrong = deepcopy(encoder)
        setattr(wrong, attribute, value)
        with pytest.raises(FileFormatError, match="OneHotEncoder"):
            through_json(wrong)
    wrong = deepcopy(encoder)
    wrong._default_to_infrequent_mappings[0] = np.array([0, 1, 2, 2**62])
    with pytest.raises(FileFormatError, match="rare levels"):
        through_json(wrong)


def test_polynomials_without_end_are_refused():
    huge = preprocessing.PolynomialFeatures(3).fit(NUMBERS)
    huge.degree, huge.n_features_in_ = 19, 400
    with pytest.raises(FileFormatError, match="outputs"):
        through_json(huge)


# --------------------------------------------------------------------------------------------------- files of models


def own_transformers():
    return {
        "size": preprocessing.SplineTransformer(n_knots=4),
        ("views", "rating"): make_pipeline(impute.SimpleImputer(), preprocessing.PowerTransformer()),
        "words": preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    }


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """(model, file, table) of a model with every kind of treatment."""
    frame = shop()
    builder = rw.FeatureBuilder(
        transformers=own_transformers(), per_query={"price": ["value", "zscore"]}, numbers="robust"
    ).fit(frame, **ROLES)
    model = rw.RidgeRanker(alpha=1.0).fit(builder.transform(frame))
    path = tmp_path_factory.mktemp("saved") / "model.rankwise"
    model.save(path)
    return model, path, frame


def test_a_fresh_process_gives_the_same_bits_without_pickle(saved, tmp_path):
    model, path, frame = saved
    table = tmp_path / "later.csv"
    later = frame.sample(frac=1, random_state=3)[frame.columns[::-1]].assign(extra=1)
    later.loc[later.index % 5 == 0, ["brand", "words"]] = "never seen"
    later.to_csv(table, index=False)
    program = """
import sys
class Without:  # a CSV file needs none of them
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "polars", "pyarrow"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Without())
import rankwise as rw
rw.load(sys.argv[1])  # imports of other packages unpickle their own data
events = []
sys.addaudithook(lambda event, _: events.append(event))
model = rw.load(sys.argv[1])
assert "pickle.find_class" not in events
table = rw.io.read_columns(sys.argv[2])
print(model.predict(table).tobytes().hex())
print(model.features_.digest_)
"""
    printed = subprocess.run(
        [sys.executable, "-c", program, str(path), str(table)], capture_output=True, text=True, check=True
    ).stdout.split()
    assert printed == [model.predict(later).tobytes().hex(), model.features_.digest_]


def test_a_loaded_builder_says_what_the_saved_one_said(saved):
    model, path, frame = saved
    again = rw.load(path).features_
    assert again.report_ == model.features_.report_
    assert again.plan_ == model.features_.plan_
    assert again.get_feature_names_out().tolist() == model.features_.get_feature_names_out().tolist()
    assert repr(again) == repr(model.features_)
    assert again.transform(frame).X.tobytes() == model.features_.transform(frame).X.tobytes()
    assert digest_of(again) == again.digest_


def test_queries_keep_their_builder_in_a_file(saved, tmp_path):
    model, _, frame = saved
    model.features_.transform(frame).save(tmp_path / "queries.rankwise")
    again = rw.load(tmp_path / "queries.rankwise")
    assert again.built_by.digest_ == model.features_.digest_
    assert np.array_equal(rw.RidgeRanker(alpha=1.0).fit(again).predict(frame), model.predict(frame))


def test_two_thousand_damaged_files_give_one_clear_error_or_the_same_scores(saved, tmp_path):
    model, path, frame = saved
    whole, expected = path.read_bytes(), model.predict(frame)
    rng, damaged, refused = np.random.default_rng(11), tmp_path / "damaged.rankwise", 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(at_length(2_000, 4)):
        damaged.write_bytes(ALL[number % len(ALL)](whole, rng))
        try:
            again = rw.load(damaged)
        except FileFormatError as error:
            assert "\n" not in str(error)  # noqa: PT017
            refused += 1
            continue
        if again.features_.digest_ == model.features_.digest_ and number % 10 == 0:
            X = again.features_.transform(frame).X
            assert X.tobytes() == model.features_.transform(frame).X.tobytes()
    assert refused > at_length(1_000, 4)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
    assert np.array_equal(rw.load(path).predict(frame), expected)


def test_a_forged_file_with_its_own_digest_is_refused_or_makes_as_many_features(saved):
    """A stranger can write the right digest of wrong numbers, so that it protects from accidents alone."""
    model, path, _ = saved
    _, about, _ = parts(path.read_bytes())
    facts, (_, arrays) = about["facts"]["features"], model.features_.to_state()
    rng, refused, found = np.random.default_rng(13), 0, [place for place in places(facts) if place]
    row = shop(n_queries=2)
    for _ in range(400):
        forged = deepcopy(facts)
        put(forged, found[rng.integers(len(found))], deepcopy(HOSTILE[rng.integers(len(HOSTILE))]))
        changed = {name: array.copy() for name, array in arrays.items()}
        one = list(changed)[rng.integers(len(changed))]
        if rng.random() < 0.3 and len(changed[one]):
            changed[one].view(np.uint8)[: changed[one].itemsize] = 255
        try:
            forged["digest"] = digest_of_state(forged, changed)
            again = rw.FeatureBuilder.from_state(forged, changed)
        except FileFormatError:
            refused += 1
            continue
        try:
            X = again.transform(row).X
        except (ValueError, TypeError, KeyError, ArithmeticError):
            continue
        assert X.shape[1] == len(again.feature_names_out_)
    assert refused > 100


def test_a_saved_model_on_numbers_alone_is_plain(tmp_path):
    frame = pd.DataFrame({"qid": [1, 1, 2, 2], "label": [1, 0, 0, 1], "a": [3.0, 1.0, 2.0, 4.0], "b": [1, 5, 3, 3]})
    model = rw.RidgeRanker(alpha=1.0).fit(rw.FeatureBuilder().fit_transform(frame))
    assert model.features_.is_plain
    model.save(tmp_path / "plain.rankwise")
    assert np.array_equal(rw.load(tmp_path / "plain.rankwise").predict(frame), model.predict(frame[["b", "a"]]))
