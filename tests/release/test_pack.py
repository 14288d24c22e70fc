"""Packs of compiled kernels: nothing is compiled where one fits, and the same numbers come out where none does."""

import json
import random

import numba
import numpy as np
import pytest

from rankwise._kernels import dot_products
from rankwise._kernels.machine import compile_log, jit
from rankwise._kernels.machine import pack as packs
from rankwise._kernels.machine.pack import MAGIC, Pack, PackError, pack_bytes, pack_name
from tests.release.packs import FEW, built_pack, install, run

# A kernel of the pack of few workloads, as Scorer calls it.
X, W = np.arange(12.0).reshape(4, 3), np.array([1.0, 0.5, 0.25])
SCORES = (X @ W).tolist()


@pytest.fixture(scope="session")
def few():
    """The content of a pack of few workloads."""
    return built_pack(FEW).read_bytes()


@pytest.fixture(scope="session")
def every():
    """The content of the pack of all workloads."""
    return built_pack().read_bytes()


@pytest.fixture
def carry(tmp_path, monkeypatch):
    """Let this process find a pack of the given content in its installation, and no cache."""
    monkeypatch.setattr(packs, "FOLDER", tmp_path)
    monkeypatch.setattr(jit, "cache_folder", lambda: None)
    monkeypatch.delenv("RANKWISE_PACK", raising=False)

    def write(content):
        path = tmp_path / pack_name()
        path.write_bytes(content)
        packs.open_installed.cache_clear()
        return path

    yield write
    packs.open_installed.cache_clear()


def scored(function=dot_products.score_rows.py_func):
    """Compute scores by a dispatcher of its own: (the numbers, where the code came from, why not from the pack)."""
    before, out = len(compile_log.record), np.empty(4)
    jit.kernel(function)(X, 0, 4, W, out)
    outermost = compile_log.record[before:][-1]
    assert outermost.kernel.endswith(".score_rows")
    return out.tolist(), outermost.source, outermost.reason


def header_of(content):
    """The header of a pack, and its blobs by name."""
    begin = len(MAGIC) + 40
    length = int.from_bytes(content[begin - 8 : begin], "little")
    header = json.loads(content[begin : begin + length])
    blobs = {
        name: content[begin + length + offset : begin + length + offset + size]
        for name, (offset, size, _) in header.pop("entries").items()
    }
    return header, blobs


# ------------------------------------------------------------------------------------------- nothing is compiled

COUNT = """
import json, sys
from numba.core import event
import rankwise
from rankwise._kernels.machine import compile_log
from rankwise._workloads import workloads

class Count(event.Listener):
    compiled = 0
    def on_start(self, event):
        self.compiled += 1
    def on_end(self, event):
        pass

count = Count()
event.register("numba:compile", count)
every = workloads()
for name in sys.argv[1:] or every:
    every[name]()
sources = [one.source for one in compile_log.record]
print(json.dumps({"events": count.compiled, "from": rankwise.__file__, **{s: sources.count(s) for s in set(sources)}}))
"""


def counted_by(code, variables, *names):
    return json.loads(run(code, variables, *names))


def counted(variables, *names):
    return counted_by(COUNT, variables, *names)


def test_with_the_pack_nothing_is_compiled(few, tmp_path):
    found = counted(install(tmp_path, few), *FEW)
    assert found.pop("from").startswith(str(tmp_path))
    assert found.pop("pack") >= 30
    assert found == {"events": 0}
    assert not list(tmp_path.glob("cache/**/*.kernel"))


@pytest.mark.thorough
def test_with_the_pack_of_all_workloads_nothing_is_compiled_in_any_of_them(every, tmp_path):
    found = counted(install(tmp_path, every))
    assert found.pop("from").startswith(str(tmp_path))
    assert found.pop("pack") >= 100
    assert found == {"events": 0}


OWN = """
from numba import types
from rankwise._kernels.machine.jit import kernel, typed_function

@kernel
def doubled(x):
    return 2.0 * x

def use():
    assert doubled(21.0) == 42.0
    assert typed_function(doubled, types.float64(types.float64)).ctypes(21.0) == 42.0
"""


def test_what_is_compiled_is_counted(few, tmp_path):
    code = OWN + COUNT.replace("every = workloads()", "every = {'own': use}")
    found = counted_by(code, install(tmp_path, few), "own")
    assert found["events"] == 1  # the C function fires no event
    assert (found["compiler"], found.get("pack")) == (2, None)
    again = counted_by(code, {**install(tmp_path / "again", few), "RANKWISE_CACHE_DIR": str(tmp_path / "cache")}, "own")
    assert (again["events"], again["cache"]) == (0, 2)


# ------------------------------------------------------------------------------------------- the same bits

RANKERS = """
import hashlib, sys, numpy as np
import rankwise as rw
from sklearn.base import clone
from rankwise.rankers._base import registered
for kind in registered().values():
    for example in kind.examples():
        for dtype in ("float64", "float32"):
            queries = rw.make_lists(40, documents=(2, 30), features=9, random_state=5)
            queries = queries.map_features(lambda X: X.astype(dtype))
            model = clone(example).fit(queries)
            scores = model.predict(queries)
            weights = getattr(model, "coef_", scores)
            print(kind.name, dtype, hashlib.sha256(scores.tobytes() + weights.tobytes()).hexdigest())
"""
MEASURES = """
import rankwise as rw, numpy as np
rng = np.random.default_rng(0)
labels, scores, qid = rng.integers(0, 4, 900), rng.normal(size=900).round(1), np.repeat(np.arange(30), 30)
for ties in ("expected", "pessimistic", "stable"):
    found = rw.evaluate(labels, scores, ["nDCG@10", "AP", "ERR@20", "Pairs", "RBP"], qid=qid, ties=ties)
    print(found.values.tobytes().hex())
"""


@pytest.mark.parametrize(
    ("code", "content"), [(MEASURES, "few"), pytest.param(RANKERS, "every", marks=pytest.mark.thorough)]
)
def test_code_of_the_pack_has_the_bits_of_code_for_this_processor(code, content, request, tmp_path):
    here = install(tmp_path, request.getfixturevalue(content))
    shared = jit.cache_folder()  # what other runs compiled for this processor
    native = {**here, "RANKWISE_PACK": "0", "RANKWISE_CACHE_DIR": str(shared and shared.rpartition("/")[0])}
    assert run(code, here) == run(code, native)


# ------------------------------------------------------------------------------------------- guards


def test_a_pack_that_fits_is_used(few, carry):
    carry(few)
    assert scored() == (SCORES, "pack", "")


@pytest.mark.parametrize("name", ["python", "numba", "llvmlite", "llvm", "triple", "numba.config.OPT"])
def test_a_pack_for_another_version_or_setting_is_not_used(few, carry, name):
    header, blobs = header_of(few)
    here = header["conditions"][name]
    header["conditions"][name] = "another"
    carry(pack_bytes(header, blobs))
    numbers, source, reason = scored()
    assert (numbers, source) == (SCORES, "compiler")
    assert f"it was made for {name} another, and this is {here}" in reason


@pytest.mark.parametrize(
    ("name", "value"), [("BOUNDSCHECK", 1), ("DEBUGINFO_DEFAULT", 1), ("ENABLE_AVX", 0), ("LOOP_VECTORIZE", 0)]
)
def test_a_pack_is_not_used_under_other_settings(few, carry, monkeypatch, name, value):
    monkeypatch.setattr(numba.config, name, value)
    carry(few)
    numbers, source, reason = scored()
    assert (numbers, source) == (SCORES, "compiler")
    assert f"numba.config.{name}" in reason


@pytest.mark.parametrize("name", ["CPU_NAME", "CPU_FEATURES"])
def test_a_pack_is_not_used_where_the_user_names_a_processor(few, carry, monkeypatch, name):
    monkeypatch.setattr(numba.config, name, "")
    carry(few)
    assert packs.open_installed() == f"the pack {pack_name()} is not used: NUMBA_{name} is set"


def test_a_pack_is_not_used_on_a_processor_without_its_features(few, carry, monkeypatch):
    lacking = packs.host_features() - {"avx2"}
    monkeypatch.setattr(packs, "host_features", lambda: lacking)
    carry(few)
    numbers, source, reason = scored()
    assert (numbers, source) == (SCORES, "compiler")
    assert "this processor lacks avx2" in reason


EDITED = """
def score_rows(X, first, last, w, out):
    for row in range(first, last):
        out[row] = dot(X[row], w) + 1.0
"""


def test_a_pack_is_not_used_for_edited_sources(few, carry):
    carry(few)
    edited = {}
    exec(EDITED, vars(dot_products), edited)
    numbers, source, reason = scored(edited["score_rows"])
    assert (numbers, source) == ([score + 1.0 for score in SCORES], "compiler")
    assert "the pack does not hold it for these types and this source" in reason


def test_a_pack_is_turned_off_by_a_variable(few, carry, monkeypatch):
    monkeypatch.setenv("RANKWISE_PACK", "0")
    carry(few)
    assert scored() == (
        SCORES,
        "compiler",
        "RANKWISE_PACK=0 turns packs off; there is no cache folder that could be used",
    )


def test_no_variable_names_another_place(few, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / pack_name()).write_bytes(few)
    cache = tmp_path / "cache" / "packs"
    cache.mkdir(parents=True)
    (cache / pack_name()).write_bytes(few)
    code = "from rankwise._kernels.machine import pack; print(pack.open_installed())"
    for value in ("1", str(elsewhere), str(elsewhere / pack_name())):
        said = run(code, {**install(tmp_path / f"site{len(value)}"), "RANKWISE_PACK": value})
        assert said.startswith("this installation has no pack for ")


# ------------------------------------------------------------------------------------------- damage


def inside_own(content):
    """A place in the middle of the code of score_rows, wherever the pack has it."""
    begin = len(MAGIC) + 40
    length = int.from_bytes(content[begin - 8 : begin], "little")
    entries = json.loads(content[begin : begin + length])["entries"]
    ((offset, size, _),) = (
        entry for name, entry in entries.items() if ".score_rows|" in name and name.split("|")[2] == OWN_TYPES
    )
    return begin + length + offset + size // 2


DAMAGES = {
    "empty": lambda content: b"",
    "no pack": lambda content: b"x" * 500,
    "header cut": lambda content: content[:200],
    "truncated": lambda content: content[: inside_own(content)],
    "a bit of the header": lambda content: content[:100] + bytes([content[100] ^ 1]) + content[101:],
    "zeros for blobs": lambda content: content[: inside_own(content)] + bytes(len(content) - inside_own(content)),
    "another version": lambda content: content.replace(b"pack 1\n", b"pack 9\n", 1),
    "a huge header": lambda content: content[: len(MAGIC) + 32] + b"\xff" * 8 + content[len(MAGIC) + 40 :],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_pack_gives_the_same_numbers(few, carry, damage):
    carry(damage(few))
    numbers, source, _ = scored()
    assert (numbers, source) == (SCORES, "compiler")


@pytest.mark.parametrize("name", ["sha256", "blob", "entry"])
def test_what_does_not_belong_to_the_name_is_not_used(few, carry, name):
    header, blobs = header_of(few)
    (own,) = (one for one in blobs if ".score_rows|" in one and one.split("|")[2] == OWN_TYPES)
    other = next(one for one in blobs if one != own)
    if name == "blob":  # code of another kernel, under a right digest
        blobs[own] = blobs[other]
    content = pack_bytes(header, blobs)
    if name == "sha256":
        content = content.replace(blobs[own], blobs[own][:-1] + b"x")
    if name == "entry":
        del blobs[own]
        content = pack_bytes(header, blobs)
    carry(content)
    numbers, source, reason = scored()
    assert (numbers, source) == (SCORES, "compiler")
    said = {"sha256": "damaged there", "blob": "something else there", "entry": "does not hold it"}[name]
    assert said in reason


OWN_TYPES = "(array(float64, 2d, C), int64, int64, array(float64, 1d, C), array(float64, 1d, C))"


def test_a_pack_that_is_truncated_after_it_was_opened_gives_the_same_numbers(few, carry):
    path = carry(few)
    assert isinstance(packs.open_installed(), Pack)
    with open(path, "r+b") as file:
        file.truncate(inside_own(few))
    numbers, source, reason = scored()
    assert (numbers, source) == (SCORES, "compiler")
    assert "damaged there" in reason


def mutated(content, rng):
    """The content after one to three changes: bytes, pieces moved, cut out, doubled or inserted."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        # most of the changes hit the header, which is a small part of the file
        at = rng.randrange(min(len(changed), 2_000) if rng.random() < 0.6 else len(changed))
        size = rng.choice((1, 1, 2, 8, 40, 400))
        kind = rng.randrange(5)
        if kind == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[at : at + size] = rng.randbytes(size)
        elif kind == 2:
            del changed[at : at + size]
        elif kind == 3:
            changed[at:at] = changed[at : at + size]
        else:
            begin = rng.randrange(len(changed))
            changed[at : at + size] = changed[begin : begin + size]
        if not changed:
            break
    return bytes(changed)


def small_pack(content, count=3):
    """A pack of the smallest kernels of another one, and the blobs by name."""
    header, blobs = header_of(content)
    smallest = dict(sorted(blobs.items(), key=lambda one: len(one[1]))[:count])
    return pack_bytes(header, smallest), smallest


def test_no_mutation_of_a_pack_hands_out_anything_but_what_was_put_in(few, tmp_path):
    """What is unpickled is what a builder wrote: 10,000 hostile packs either fail or give the very bytes."""
    content, blobs = small_pack(few)
    rng, path, given, refused = random.Random(0), tmp_path / "mutated.pack", 0, 0
    for _ in range(10_000):
        path.write_bytes(mutated(content, rng))
        try:
            pack = Pack(path)
        except PackError:
            refused += 1
            continue
        for name, blob in blobs.items():
            try:
                assert pack.blob(name) == blob
                given += 1
            except PackError:
                refused += 1
    assert given > 1_000  # changes that hit another blob
    assert refused > 5_000


def test_kernels_of_mutated_packs_give_the_same_numbers(few, carry):
    header, blobs = header_of(few)
    own = {name: blob for name, blob in blobs.items() if ".score_rows|" in name}
    content, rng, sources = pack_bytes(header, own), random.Random(1), set()
    for _ in range(40):
        carry(mutated(content, rng))
        numbers, source, _ = scored()
        assert numbers == SCORES
        sources.add(source)
    assert sources == {"pack", "compiler"}
