"""Write ``counts.json``, the kernels that first calls and workloads load: ``python -m tests.kernels.make_counts``.

The file tells users how many kernels have to be compiled. Each call runs in a forked process, which holds every module
and no compiled code, so that what it loads is what a new process would load. A call that compiles is run again: a
process that compiles gets helpers together with the kernels that call them, one that loads does not.
"""

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rankwise._kernels.machine import compile_log, compile_progress
from rankwise._workloads import workloads

Calls = dict[str, Callable[[], object]]


def first_calls() -> Calls:
    """The plainest use of what takes long to compile, by the names that ``announce_kernels`` takes."""
    import rankwise as rw
    from rankwise.cli.demo import rehearse
    from rankwise.rankers._base import registered

    queries = rw.make_lists(15, documents=(2, 6), features=3)
    fitted = [kind.examples()[0] for kind in registered().values() if kind.__module__.startswith("rankwise.")]

    def read() -> None:
        with tempfile.NamedTemporaryFile(suffix=".txt") as file:
            rw.write_letor(queries, file.name)
            compile_log.record.clear()
            rw.read_letor(file.name)

    return {
        "evaluate": lambda: rw.evaluate(queries, queries.X[:, 0], ["nDCG@10", "AP", "RR"]),
        "read_letor": read,
        "demo": rehearse,
        **{ranker.name: partial(ranker.fit, queries) for ranker in fitted},
    }


def kernels_of(call: Callable[[], object], again: bool = True) -> Counter[str]:
    """How many forms of each kernel a process loads that makes this call and no other."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(reader)
            compile_log.record.clear()
            call()
            with os.fdopen(writer, "w") as pipe:
                json.dump([(origin.kernel, origin.signature, origin.source) for origin in compile_log.record], pipe)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        told = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    found = json.loads(told)
    if again and any(source == "compiler" for *_, source in found):
        return kernels_of(call, again=False)
    # two threads that need the same form at the same moment both load it
    return Counter(kernel for kernel, _ in {(kernel, signature) for kernel, signature, _ in found})


def parts() -> dict[str, Calls]:
    """What the file has a list of kernels for."""
    return {"first calls": first_calls(), "workloads": dict(workloads())}


def main() -> None:
    """Write the file."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for part, calls in parts().items():
        for name, call in calls.items():
            kernels = kernels_of(call)
            found.setdefault(part, {})[name] = dict(sorted(kernels.items()))
            print(f"{part}: {name}: {kernels.total()} kernels", file=sys.stderr)
    Path(compile_progress._COUNTS).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
