"""Free memory: the least of what the system, control groups and limits of the process leave."""

import resource

import pytest

from rankwise._kernels import memory
from rankwise._kernels.memory import available_memory, group_memory

V2 = "0::/user/job\n"
V1 = "9:memory:/user/job\n4:cpu,cpuacct:/user/job\n"


def group(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def test_a_group_and_those_above_it_leave_what_is_not_used(tmp_path):
    stat = "anon 10\nactive_file 30\ninactive_file 200"
    group(tmp_path / "user" / "job", memory__max=1000, memory__current=600, memory__stat=stat)
    group(tmp_path / "user", memory__max="max", memory__current=700, memory__stat=stat)
    group(tmp_path, memory__max=900, memory__current=850, memory__stat="")
    assert list(group_memory(tmp_path, V2)) == [1000 - 600 + 230, 50]


def test_groups_of_version_1(tmp_path):
    files = {"memory__limit_in_bytes": 2**40, "memory__usage_in_bytes": 2**20}
    group(tmp_path / "memory" / "user", **files, memory__stat="active_file 7\ntotal_inactive_file 5")
    assert list(group_memory(tmp_path, V1)) == [2**40 - 2**20 + 5]
    assert list(group_memory(tmp_path / "nothing", V1)) == []


def test_the_least_counts(monkeypatch):
    monkeypatch.setattr(memory, "_of_system", lambda: iter([1 << 40]))
    monkeypatch.setattr(memory, "_of_groups", lambda: iter([1 << 38, -5]))
    monkeypatch.setattr(memory, "_of_process", lambda: iter([]))
    assert available_memory() == 0
    monkeypatch.setattr(memory, "_of_groups", lambda: iter([]))
    assert available_memory() == 1 << 40
    monkeypatch.setattr(memory, "_of_system", lambda: iter([]))
    assert available_memory() is None


def test_the_limit_of_addresses_counts(monkeypatch):
    usual = available_memory()
    if usual is None:
        pytest.skip("this system does not say what is free")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1 << 62, 1 << 62))
    assert next(memory._of_process()) < 1 << 62
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1 << 20, 1 << 20))
    assert available_memory() == 0
