"""Saved rankers: the same after loading, refused in a sentence when damaged, never a way to run a stranger's code."""

import json
import resource
import struct
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from sklearn.base import clone

import rankwise as rw
from rankwise._store import FORMAT
from rankwise.errors import FileFormatError, RankwiseError
from rankwise.losses import registered as losses
from rankwise.measures._base import parse
from rankwise.rankers._base import Ranker, registered
from rankwise.rankers.online.online_ranker import OnlineRanker
from rankwise.rankers.online.perceptron import SLAMPerceptron
from tests.rankers import mutations
from tests.rankers.make_fixtures import FOLDER, judged, rows
from tests.rankers.test_every_ranker import (
    FIRST,
    RANKERS,
    learned,
    lists,
    over_all_kinds,
    over_every_kind_of_ranker,
)
from tests.strategies import at_length


def saved(ranker, path):
    ranker.save(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("ranker", "names"), [*((one, None) for one in RANKERS), *((one, ("é", "b c", "漢", "d")) for one in FIRST)]
)
def test_a_saved_ranker_is_the_same_ranker(ranker, names, tmp_path):
    queries = lists(names=names)
    model = clone(ranker).fit(queries)
    first = saved(model, tmp_path / "one.rankwise")
    loaded = rw.load(tmp_path / "one.rankwise")
    assert type(loaded) is type(model)
    assert repr(loaded) == repr(model)
    assert parameters(loaded) == parameters(model)
    assert learned(loaded) == learned(model)
    np.testing.assert_array_equal(loaded.predict(queries), model.predict(queries))
    assert loaded.score(queries) == model.score(queries)
    assert loaded.n_features_in_ == 4
    assert getattr(loaded, "feature_names_in_", None) is None or tuple(loaded.feature_names_in_) == names
    assert hasattr(loaded, "feature_names_in_") == (names is not None)
    assert saved(loaded, tmp_path / "two.rankwise") == first
    assert learned(clone(loaded).fit(queries)) == learned(model)


def parameters(model):
    """Its parameters, those of rankers among them too; rankers themselves by their repr, since no two are equal."""
    return {name: repr(one) if isinstance(one, Ranker) else one for name, one in model.get_params().items()}


@over_every_kind_of_ranker
def test_a_file_that_is_cut_short_is_refused(ranker, tmp_path):
    path = tmp_path / "model.rankwise"
    whole = saved(clone(ranker).fit(lists()), path)
    places = {0, 1, 7, 8, 9, len(whole) - 1, *np.linspace(2, len(whole) - 2, 30).astype(int).tolist()}
    for place in sorted(places):
        path.write_bytes(whole[:place])
        with pytest.raises(FileFormatError) as error:
            rw.load(path)
        assert "\n" not in str(error.value)


def one_query(X):
    """The rows as one query, which every ranker takes."""
    return rw.Queries.from_arrays(X, group=[len(X)])


@cache
def file_of(kind):
    """The file of a fitted ranker, and what it learned: fitted once, for all that can happen to a file."""
    model = clone(kind.examples()[0]).fit(lists())
    with TemporaryDirectory() as folder:
        return saved(model, Path(folder) / "model.rankwise"), learned(model)


@over_all_kinds
def test_flipped_bytes_give_a_ranker_or_a_sentence(kind, tmp_path):
    """Numbers are numbers, and a flipped bit may give another one; anything else is refused as a damaged file."""
    path = tmp_path / "model.rankwise"
    whole, _ = file_of(kind)
    header = 8 + int.from_bytes(whole[:8], "little")
    text = len(whole[8:header].rstrip())
    rng = np.random.default_rng(0)
    in_text, in_data = at_length(150, 2), at_length(60, 2)
    places = [*range(8), *rng.integers(8, 8 + text, in_text), *rng.integers(header, len(whole), in_data)]
    refused = 0
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(damaged))
        try:
            loaded = rw.load(path)
        except FileFormatError as error:
            assert "\n" not in str(error)  # noqa: PT017
            refused += 1
        else:
            loaded.predict(one_query(np.zeros((1, loaded.n_features_in_))))
    assert refused > at_length(50, 2)


def rewritten(whole, change):
    """The file with its facts changed."""
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    about = json.loads(header["__metadata__"]["rankwise"])
    change(about["facts"], header)
    header["__metadata__"]["rankwise"] = json.dumps(about)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + whole[8 + length :]


HOSTILE = {
    "another ranker": lambda facts, _: facts.update(ranker="os.system"),
    "no ranker": lambda facts, _: facts.pop("ranker"),
    "a newer layout": lambda facts, _: facts.update(layout=99),
    "a parameter that it has not": lambda facts, _: facts["parameters"].update(shell="rm"),
    "parameters that are none": lambda facts, _: facts.update(parameters=[1, 2]),
    "a measure that is none": lambda facts, _: facts["parameters"].update(measure="nDCG(dcg=__import__('os'))"),
    "a measure that is a number": lambda facts, _: facts["parameters"].update(measure={"measure": 5}),
    "a loss that is none": lambda facts, _: facts["parameters"].update(measure={"loss": "eval", "parameters": {}}),
    "a loss without parameters": lambda facts, _: facts["parameters"].update(measure={"loss": "SLAM", "parameters": 3}),
    "a dictionary of nothing": lambda facts, _: facts["parameters"].update(measure={}),
    "a list for a measure": lambda facts, _: facts["parameters"].update(measure={"list": 4, "tuple": True}),
    "no features": lambda facts, _: facts.update(n_features=-1),
    "too many features": lambda facts, _: facts.update(n_features=10**12),
    "features by another type": lambda facts, _: facts.update(n_features="4"),
    "names of other features": lambda facts, _: facts.update(feature_names=["a"]),
    "names that are lists": lambda facts, _: facts.update(feature_names=[[], [], [], []]),
    "a name twice": lambda facts, _: facts.update(feature_names=["a", "a", "b", "c"]),
    "nothing learned": lambda facts, _: facts.update(learned=None),
    "an array by another name": lambda _, header: header.update(
        {"x": header.pop(next(name for name in header if name != "__metadata__"))}
    ),
}


@over_all_kinds
@pytest.mark.parametrize("case", HOSTILE)
def test_what_no_ranker_would_have_written_is_refused(kind, case, tmp_path):
    path = tmp_path / "model.rankwise"
    whole, own = file_of(kind)
    path.write_bytes(rewritten(whole, lambda facts, header: None))
    assert learned(rw.load(path)) == own
    path.write_bytes(rewritten(whole, HOSTILE[case]))
    with pytest.raises(FileFormatError) as error:
        rw.load(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda facts, _: facts["learned"].update(eta=0),
        lambda facts, _: facts["learned"].update(eta="big"),
        lambda facts, _: facts["learned"].update(stride=0),
        lambda facts, _: facts["learned"].update(stride=1.5),
        lambda facts, _: facts["parameters"].update(averaging="all"),
        lambda facts, _: facts["parameters"].update(averaging={"pairs": []}),
        lambda facts, _: facts["parameters"].update(weights=["ndcg_003"]),
        lambda facts, _: facts["parameters"].update(margin="wide"),
    ],
)
def test_a_run_that_could_not_be_is_refused(change, tmp_path):
    path = tmp_path / "model.rankwise"
    whole = saved(SLAMPerceptron().fit(lists()), path)
    path.write_bytes(rewritten(whole, change))
    with pytest.raises(FileFormatError) as error:
        rw.load(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["state.w", "state.sums", "state.counts", "state.sizes", "account"])
def test_numbers_that_no_run_has_are_refused(name, tmp_path):
    path = tmp_path / "model.rankwise"
    whole = bytearray(saved(SLAMPerceptron(averaging="uniform").fit(lists()), path))
    length = int.from_bytes(whole[:8], "little")
    first = 8 + length + json.loads(whole[8 : 8 + length])[name]["data_offsets"][0]
    whole[first : first + 8] = struct.pack("<q", -5) if name == "state.counts" else struct.pack("<d", np.nan)
    path.write_bytes(bytes(whole))
    with pytest.raises(FileFormatError, match="the state of its run is impossible"):
        rw.load(path)


@pytest.mark.parametrize("loss", [loss for kind in losses().values() for loss in kind.examples()], ids=repr)
def test_losses_and_measures_are_parameters_like_any_other(loss, tmp_path):
    measure = parse("nDCG(dcg='log2')@3")
    if loss.noisy:  # which streams refuse
        model = rw.BoostedRanker(measure, loss=loss, trees=3, patience=None, depth=2).fit(lists())
    else:
        model = OnlineRanker(loss, measure=measure, eta=np.float64(0.01)).fit(lists())
    model.save(tmp_path / "model.rankwise")
    loaded = rw.load(tmp_path / "model.rankwise")
    assert loaded.loss == loss
    assert loaded.measure == model.measure
    assert learned(loaded) == learned(model)


def test_what_is_no_number_text_measure_or_loss_cannot_be_saved(tmp_path):
    path = tmp_path / "model.rankwise"
    SLAMPerceptron().fit(lists()).save(path)
    before = path.read_bytes()
    model = SLAMPerceptron(random_state=np.random.default_rng(0)).fit(lists())
    with pytest.raises(RankwiseError, match=r"the parameter random_state=Generator.* cannot be saved"):
        model.save(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["model.rankwise"]


def test_other_files_are_no_rankers(tmp_path):
    path = tmp_path / "lists.rankwise"
    lists().save(path)
    assert isinstance(rw.load(path), rw.Queries)
    for name, content in {"empty": b"", "text": b"1 qid:1 1:0.5\n" * 50, "pickle": b"\x80\x04\x95" * 40}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FileFormatError):
            rw.load(tmp_path / name)


@pytest.mark.parametrize("scaler", [rw.Scaler(), rw.Scaler("minmax", per="query")], ids=repr)
def test_the_scaling_of_its_lists_is_part_of_a_ranker(scaler, tmp_path):
    path = tmp_path / "model.rankwise"
    model = rw.RidgeRanker(alpha=1.0).fit(scaler.fit(lists()).transform(lists()))
    model.record_ = replace(model.record_, scaler=scaler)
    whole = saved(model, path)
    assert rw.load(path).record_.scaler == scaler
    for change in (
        lambda facts, _: facts.update(scaling=None),
        lambda facts, _: facts["scaling"].update(how="log2"),
        lambda facts, _: facts["scaling"].update(n_features=10**9),
        lambda facts, _: facts["scaling"].update(per=["set"]),
        lambda _, header: header.update({"scaling.scales": header.pop("scaling.scale", None)}),
    ):
        path.write_bytes(rewritten(whole, change))
        with pytest.raises(FileFormatError):
            rw.load(path)


# ------------------------------------------------------------------------------------------- files of every format

FIXTURES = sorted(FOLDER.glob("format_*.rankwise"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_file_of_any_format_is_read_for_ever(path):
    form, name = path.stem.removeprefix("format_").split("_", 1)
    scores = json.loads((FOLDER / f"format_{form}_scores.json").read_text())
    model = rw.load(path)
    assert model.name == name.partition("_")[0]
    assert tuple(model.feature_names_in_) == ("bm25", "age", "clicks")
    np.testing.assert_allclose(model.predict(one_query(rows())), scores[name], rtol=1e-12, atol=1e-14)


def test_parameters_that_had_other_names_in_version_0_1_are_read_under_those_of_today():
    old = {name: rw.load(FOLDER / f"format_1_{name}.rankwise") for name in ("SVMMap_ball", "RankSVM_center")}
    assert (old["SVMMap_ball"].penalty, old["SVMMap_ball"].max_norm, old["SVMMap_ball"].max_norm_) == ("l1", 1.0, 1.0)
    assert list(old["RankSVM_center"].prior_coef) == [0.5, 0.0, -0.5]
    assert old["RankSVM_center"].alpha == (1.0, 0.1)
    assert old["RankSVM_center"].alpha_ in (1.0, 0.1)
    online = rw.load(FOLDER / "format_1_OnlineRanker_ball.rankwise")
    assert (online.projection, online.max_norm, online.ledger_.config.max_norm) == ("l2", 0.5, 0.5)
    queries = judged()
    for model in (*old.values(), online):  # what a certificate rests on is found again under its new name
        assert "changed" not in " ".join(model.certificate(queries).notes)


def test_every_ranker_has_a_file_of_the_current_format():
    """A new ranker: run ``python -m tests.rankers.make_fixtures``."""
    written = {path.stem for path in FIXTURES}
    assert {f"format_{FORMAT}_{name}" for name in registered()} <= written


# ------------------------------------------------------------------------------------------- files of strangers

_RUN = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pickle.find_class", "marshal.loads")
_seen: list[str] = []  # what a hook saw while it was listening
_listening = False


def _hook(event, _):
    if _listening and event in _RUN:
        _seen.append(event)


def damage(count, seed, path):
    """Load so many damaged files; how many were refused. Everything else than a ranker or a sentence is an error."""
    global _listening
    files = {one.stem: one.read_bytes() for one in FIXTURES}
    for one in FIXTURES:  # whatever is loaded and compiled at first use
        rw.load(one).predict(one_query(rows()))
    rng, names, refused = np.random.default_rng(seed), list(files), 0
    for number in range(count):
        change = mutations.ALL[rng.integers(0, len(mutations.ALL))]
        name = names[number % len(names)]
        path.write_bytes(change(files[name], rng))
        _listening = True
        try:
            model = rw.load(path)
            assert repr(model)
            model.predict(one_query(np.zeros((1, model.n_features_in_))))
        except RankwiseError as error:
            assert "\n" not in str(error)  # noqa: PT017
            assert len(str(error)) < 500  # noqa: PT017
            refused += 1
        except Exception as error:
            pytest.fail(f"{name}, {change.__name__}, number {number} of seed {seed}: {error!r}")
        finally:
            _listening = False
    return refused


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
@pytest.mark.parametrize("width", [2**28, 2**31, 2**62])
def test_a_number_of_features_that_is_a_lie_takes_no_memory(path, width, tmp_path):
    def lie(facts, _):
        facts.update(n_features=width, feature_names=None)
        facts["learned"].update({"features": width} if "features" in facts["learned"] else {})

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (tmp_path / "model.rankwise").write_bytes(rewritten(path.read_bytes(), lie))
    try:
        model = rw.load(tmp_path / "model.rankwise")
    except FileFormatError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:  # steps are as many as they are, whatever the number of features
        with pytest.raises(RankwiseError, match=f"fitted on {width} features, got 3"):
            model.predict(rows())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


@pytest.mark.parametrize(
    ("count", "seed"),
    [(at_length(10_000, 5), 0), *(pytest.param(10_000, seed, marks=pytest.mark.thorough) for seed in (1, 2, 3))],
)
def test_damaged_files_give_a_ranker_or_a_sentence_and_run_nothing(count, seed, tmp_path):
    sys.addaudithook(_hook)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = damage(count, seed, tmp_path / "model.rankwise")
    assert count * 0.6 < refused < count * 0.95, "most are refused, and some are still models"
    assert _seen == []
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 400_000, f"memory grew by {grown:,} kB"


def with_numbers(whole, name, value, only_first):
    """The file with this number in place of the first or of all of an array."""
    header, _, data = mutations.parts(whole)
    first, last = header[name]["data_offsets"]
    word = struct.pack("<d", value)
    new = word + data[first + 8 : last] if only_first else word * ((last - first) // 8)
    return mutations.joined(header, None, data[:first] + new + data[last:])


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_l1_learned_numbers_that_are_finite_but_score_nothing_are_refused(path, tmp_path):
    """L1: a perceptron with a scale of 1e308 loaded, scored NaN, and its certificate divided by 0."""
    whole, target = path.read_bytes(), tmp_path / "model.rankwise"
    header = mutations.parts(whole)[0]
    learned = [name for name, facts in header.items() if facts.get("dtype") == "F64" and facts["data_offsets"][1] > 0]
    X = np.random.default_rng(0).normal(size=(20, 4))
    for name in learned:
        for only_first in (True, False):
            target.write_bytes(with_numbers(whole, name, 1e308, only_first))
            try:
                with np.errstate(over="ignore"):
                    model = rw.load(target)
            except FileFormatError as error:
                assert "\n" not in str(error)  # noqa: PT017
                continue
            held = rw.Queries.from_arrays(X[:, : model.n_features_in_], (X[:, 0] > 0) * 1.0, group=[4] * 5)
            with np.errstate(over="ignore"):
                assert np.isfinite(model.predict(held.X if not model.scores_by_query else held)).all(), name


def test_l1_a_scale_of_1e308_is_refused(tmp_path):
    model = SLAMPerceptron(scale="standard").fit(lists(20))
    whole = saved(model, tmp_path / "model.rankwise")
    (tmp_path / "model.rankwise").write_bytes(with_numbers(whole, "state.scale", 1e308, only_first=False))
    with pytest.raises(FileFormatError, match="is damaged: what it learned is beyond what float64 can compute with"):
        rw.load(tmp_path / "model.rankwise")
