"""``rankwise doctor``: what is installed, where compiled code is kept and comes from, and why it does not."""

import json
import os
import sys

import numba
import pytest

from rankwise._kernels.machine import pack
from rankwise._kernels.parallel import cores
from rankwise.cli.doctor import _ADDS


@pytest.fixture
def doctor(run):
    def call(*arguments):
        code, out, err = run("doctor", *arguments, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return call


@pytest.fixture
def packs(tmp_path, monkeypatch):
    """The folder in which this process looks for packs, empty."""
    monkeypatch.setattr(pack, "FOLDER", tmp_path)
    monkeypatch.delenv("RANKWISE_PACK", raising=False)
    pack.open_installed.cache_clear()
    yield tmp_path
    pack.open_installed.cache_clear()


def test_versions_are_those_of_this_process(doctor):
    found = doctor()["versions"]
    assert found["numba"] == numba.__version__
    assert found["python"].startswith(sys.version.split()[0])


def test_the_cache_folder_is_named_and_counted(doctor, tmp_path, monkeypatch):
    monkeypatch.setenv("RANKWISE_CACHE_DIR", str(tmp_path))
    empty = doctor()["cache"]
    assert os.path.dirname(empty["folder"]) == str(tmp_path)
    assert empty["kernels"] == 0
    with open(os.path.join(empty["folder"], "dot-0.kernel"), "wb"):
        assert doctor()["cache"] == {"folder": empty["folder"], "kernels": 1, "reason": ""}


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_folder_that_is_not_used_gets_a_reason(doctor, run, tmp_path, monkeypatch):
    monkeypatch.setenv("RANKWISE_CACHE_DIR", str(tmp_path))
    os.chmod(doctor()["cache"]["folder"], 0o777)
    found = doctor()["cache"]
    assert found["folder"] is None
    assert "others can write to" in found["reason"]
    assert "others can write to" in run("doctor")[1]
    monkeypatch.setenv("RANKWISE_CACHE_DIR", "/proc/no/folder")
    assert "cannot be made or written to" in doctor()["cache"]["reason"]


def test_why_there_is_no_pack(doctor, run, packs, monkeypatch):
    assert doctor()["pack"]["reason"] == f"this installation has no pack for {pack.pack_name().removesuffix('.pack')}"
    (packs / pack.pack_name()).write_bytes(b"something else")
    pack.open_installed.cache_clear()
    found = doctor()["pack"]
    assert (found["found"], found["used"]) == (True, False)
    assert found["reason"].endswith("is not used: it is not a pack of this version")
    assert "pack   none came with the installation: the pack " in run("doctor")[1]
    monkeypatch.setenv("RANKWISE_PACK", "0")
    pack.open_installed.cache_clear()
    assert doctor()["pack"]["reason"] == "RANKWISE_PACK=0 turns packs off"


def test_a_pack_that_fits_is_used(doctor, packs):
    header = {"conditions": pack.conditions(), "features": []}
    (packs / pack.pack_name()).write_bytes(pack.pack_bytes(header, {"one": b"blob"}))
    found = doctor()["pack"]
    assert (found["found"], found["used"], found["kernels"], found["reason"]) == (True, True, 1, "")


def test_workloads_are_run_when_asked(doctor, run):
    found = doctor("--only", "permutation losses")["kernels"]
    assert found["pack"] + found["cache"] + found["compiler"] > 0
    assert all(one["reason"] for one in found["outside_pack"] if one["source"] == "compiler")
    code, _, err = run("doctor", "--only", "nothing")
    assert code == 2
    assert "--only must be one of evaluate, read_letor" in err


def test_extras_are_listed_with_the_command_for_those_that_are_missing(doctor, run, monkeypatch):
    assert doctor()["extras"]["lightgbm"] == "installed"
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    command = doctor()["extras"]["lightgbm"]
    assert "pip install " in command
    assert "[lightgbm]" in command
    out = run("doctor")[1]
    assert "  lightgbm    no   boosted trees grown by LightGBM\n" in out
    assert f"to install it: {command}\n" in out


def test_every_extra_says_what_it_adds(doctor):
    assert set(doctor()["extras"]) == set(_ADDS)


def test_threads_are_those_that_fits_use(doctor, monkeypatch, run):
    assert doctor()["threads"]["used"] == cores()
    monkeypatch.setattr("rankwise._kernels.parallel.cores", lambda: 3)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert "Threads       3, of 8 cores of this machine;" in run("doctor")[1]
