"""The declared workloads: every kernel of the package is reached by one of them, and each runs alone."""

import importlib
import json
import pkgutil
import subprocess
import sys

from numba.core.dispatcher import Dispatcher

import rankwise
from rankwise._kernels.machine.jit import KernelLoader
from rankwise._kernels.machine.keys import named_functions
from rankwise._workloads import workloads

RUN = """
import json
from rankwise._kernels.machine import compile_log
from rankwise._kernels.machine.jit import KernelLoader
from rankwise._workloads import workloads
for work in workloads().values():
    work()
print(json.dumps(sorted({one.kernel for one in compile_log.record})))
"""


def kernels():
    """Every plain function of the package that a kernel is made of, by name."""
    found = {}
    for info in pkgutil.walk_packages(rankwise.__path__, "rankwise."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        inside = [vars(kind) for kind in vars(module).values() if isinstance(kind, type)]  # losses hold closures
        for value in (value for names in (vars(module), *inside) for value in names.values()):
            value = getattr(value, "__func__", value)
            if isinstance(value, Dispatcher) and isinstance(value._cache, KernelLoader):
                function = value.py_func
                found[f"{function.__module__}.{function.__qualname__}"] = function
    return {name: function for name, function in found.items() if name.startswith("rankwise.")}


def test_every_kernel_is_reached_by_a_declared_workload():
    """By name: what workloads load or compile, and the kernels that those call."""
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    every, reached = kernels(), set(json.loads(done.stdout))
    # closures, as pair_loss makes them, cannot be looked up by name: they are reached from the kernels that hold them
    reached = {name for name in reached if name in every or "<locals>" not in name}
    waiting = [every[name] if name in every else function_of(name) for name in reached]
    while waiting:
        for function in named_functions(waiting.pop()):
            name = f"{function.__module__}.{function.__qualname__}"
            if name not in reached:
                reached.add(name)
                waiting.append(function)
    assert len(every) > 200
    assert sorted(set(every) - reached) == []


def function_of(name):
    """The plain function of this name; those that are compiled on demand stand undecorated in their module."""
    module, _, own = name.rpartition(".")
    found = getattr(importlib.import_module(module), own)
    return getattr(found, "py_func", found)


def test_workloads_bear_the_names_of_what_they_use():
    names = list(workloads())
    assert {"evaluate", "read_letor", "RidgeRanker", "SmoothRank", "SLAMPerceptron", "losses"} <= set(names)
