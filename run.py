#!/usr/bin/env python3
"""Every task of the project, on a machine that has nothing but Python: python3 run.py TASK [arguments].

The first task makes a private environment in .rankwise-env/, one for each interpreter, from the lock files; later
ones find it ready. Only the standard library is used here, and the syntax stays readable for older Pythons, so that
they can say that a newer one is needed.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit(f"run.py: Python 3.11 or newer is needed, and {sys.executable} is {sys.version.split()[0]}")

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parent
LOCKS = {"core": ROOT / "requirements.lock", "dev": ROOT / "requirements-dev.lock"}  # dev holds all of core
PROJECT = [ROOT / "pyproject.toml", ROOT / "src" / "rankwise" / "_version.py"]  # what the installed metadata says
WINDOWS = os.name == "nt"
INTERRUPTED = 130  # what shells report after Ctrl-C
NO_SETTINGS: Mapping[str, str] = {}
SILENCE = 5  # seconds after which a set-up without a terminal says that it goes on

# Settings that would lead the children into another environment than ours.
FOREIGN = "VIRTUAL_ENV CONDA_PREFIX PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX UV_TARGET UV_PREFIX UV_SYSTEM_PYTHON"


class Refused(Exception):  # noqa: N818  a refusal is a sentence to the person who called, not a fault
    """The task cannot go on, for the reason that the text gives in one sentence."""


# ------------------------------------------------------------------------------------------------ running commands


def call(command: Sequence[Any], *, interactive: bool = False, doing: str = "", **options: Any) -> int:
    """Run a command to its end; its exit code as a shell gives it: 128 + n after signal n, 130 after Ctrl-C.

    An interactive program may have its own idea of Ctrl-C: if it ends well after one, it ended well. A silent program
    has its work named in ``doing``, every few seconds.
    """
    process = subprocess.Popen([str(part) for part in command], **options)
    interrupted = False
    began = time.monotonic()
    while True:
        try:
            if interrupted and not told_by_terminal() and still_running(process, seconds=1):
                process.send_signal(signal.SIGINT)
            while doing and still_running(process, seconds=SILENCE):
                say(f"{doing}: {time.monotonic() - began:.0f} s")
            code = process.wait()
            break
        except KeyboardInterrupt:  # the child has its last words
            interrupted = True
        except SystemExit:  # we were told to end
            process.terminate()
            process.wait()
            raise
    if interrupted and (code or not interactive):
        return INTERRUPTED
    return 128 - code if code < 0 else code


def told_by_terminal() -> bool:
    """Whether Ctrl-C reaches the child by itself: a terminal sends it to every process of its group."""
    return WINDOWS or (sys.stdin is not None and sys.stdin.isatty())


def still_running(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether the process is there after so many seconds."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def say(sentence: str) -> None:
    """Tell the person who called, beside the task's own output."""
    print(f"run.py: {sentence}", file=sys.stderr, flush=True)


# ------------------------------------------------------------------------------------------------ the environment


class Environment:
    """The project's private environment for the interpreter that runs this file.

    A stamp says what it was made from. The stamp is removed before anything changes and written last, so an
    environment without one is half-made, and is made anew.
    """

    def __init__(self) -> None:
        version = ".".join(map(str, sys.version_info[:3]))
        name = f"{sys.implementation.name}-{version}-{sysconfig.get_platform()}"
        self.folder = ROOT / ".rankwise-env" / name
        self.scripts = self.folder / ("Scripts" if WINDOWS else "bin")
        self.python = self.script("python")
        self.stamp = self.folder / "rankwise-stamp.json"

    def script(self, name: str) -> Path:
        """Where one of the environment's programs is."""
        return self.scripts / (f"{name}.exe" if WINDOWS else name)

    def variables(self) -> dict[str, str]:
        """The caller's variables, without those that lead elsewhere, and with our programs found first."""
        kept = {name: value for name, value in os.environ.items() if name not in FOREIGN.split()}
        kept["PATH"] = os.pathsep.join([str(self.scripts), kept.get("PATH", os.defpath)])
        return kept

    def run(self, program: str, *arguments: Any, settings: Mapping[str, str] = NO_SETTINGS, **options: Any) -> int:
        """Run one of the environment's programs for a task, with these variables beside the caller's."""
        return call([self.script(program), *arguments], env={**self.variables(), **settings}, **options)

    @contextmanager
    def in_use(self, dev: bool) -> Iterator[None]:
        """Ready (made first if need be), and left alone by every other run.py until the block ends."""
        self.folder.parent.mkdir(exist_ok=True)
        with open(f"{self.folder}.lock", "a+") as file:
            while True:
                hold(file, exclusive=False)
                if self.is_ready(dev):
                    break
                hold(file, exclusive=True)
                if not self.is_ready(dev):
                    self.make(dev)
            yield

    def wanted(self) -> dict[str, Any]:
        """What the environment should have been made from."""
        return {
            # A moved checkout, or another Python of the same version: nothing can be kept.
            "place": [str(self.folder), sys.base_prefix, sys.version],
            "core": digest(LOCKS["core"]),
            "dev": digest(LOCKS["dev"]),
            "project": digest(*PROJECT),
        }

    def stamped(self) -> dict[str, Any]:
        """What it was made from: nothing if it is half-made, or its interpreter is gone."""
        try:
            return dict(json.loads(self.stamp.read_text())) if self.python.exists() else {}
        except (OSError, ValueError):
            return {}

    def is_ready(self, dev: bool) -> bool:
        """Whether it was made from what the checkout holds now."""
        wanted, stamped = self.wanted(), self.stamped()
        return all(stamped.get(part) == wanted[part] for part in wanted if dev or part != "dev")

    def make(self, dev: bool) -> None:
        """Make it, or bring it up to date; whoever calls holds the lock alone."""
        wanted, stamped = self.wanted(), self.stamped()
        can_be_kept = stamped.get("place") == wanted["place"]
        if not can_be_kept:
            refuse_without_installer()
        kind = "dev" if dev or stamped.get("dev") else "core"  # what was once asked for is kept up
        packages = LOCKS[kind].read_text().count("==")
        place = self.folder.relative_to(ROOT)
        say(f"{'bringing up to date' if can_be_kept else 'making'} {place}, an environment of {packages} packages")
        self.stamp.unlink(missing_ok=True)
        if not can_be_kept:
            self.make_empty()
            self.bring_uv()
        self.uv("sync", "--require-hashes", "--compile-bytecode", LOCKS[kind])
        self.uv("install", "--no-deps", "--no-build-isolation", "--editable", ROOT)
        if kind == "core":
            wanted["dev"] = None
        fresh = self.stamp.with_suffix(".new")
        fresh.write_text(json.dumps(wanted, indent=1))
        os.replace(fresh, self.stamp)

    def make_empty(self) -> None:
        """An environment with an interpreter and nothing else."""
        import venv

        if self.folder.exists():  # renamed first: children of an interrupted set-up may still write into it
            os.rename(self.folder, f"{self.folder}.old-{os.getpid()}")
        for old in self.folder.parent.glob(f"{self.folder.name}.old-*"):
            shutil.rmtree(old, ignore_errors=True)
        venv.create(self.folder, symlinks=not WINDOWS, with_pip=False)

    def bring_uv(self) -> None:
        """Install uv exactly as locked, by this Python's pip or by the one that it carries for new environments."""
        pin = self.folder / "uv-pin.txt"
        pin.write_text(pinned("uv"))
        install = ["install", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
        install += ["--require-hashes", "--requirement", str(pin)]
        with open(self.folder / "uv-install.log", "w+") as log:
            doing = "installing the installer, uv"
            pip = [sys.executable, "-m", "pip", "--python", self.python]
            if has("pip") and self.sets_up(*pip, *install, output=log, doing=doing):
                return
            if (
                has("ensurepip")
                and self.sets_up(self.python, "-m", "ensurepip", output=log, doing=doing)
                and self.sets_up(self.python, "-m", "pip", *install, output=log, doing=doing)
            ):
                self.uv("uninstall", "pip", "setuptools")  # the environment holds what is locked, and no more
                return
            log.seek(0)
            print(log.read(), file=sys.stderr)
        raise Refused("uv could not be installed: the reason is above")

    def uv(self, verb: str, *arguments: Any) -> None:
        """Run ``uv pip`` on the environment."""
        talk, doing = ([], "") if sys.stderr.isatty() else (["--quiet"], "installing packages")
        if not self.sets_up(self.script("uv"), "pip", verb, "--python", self.python, *talk, *arguments, doing=doing):
            raise Refused(f"uv pip {verb} failed: the reason is above")

    def sets_up(self, *command: Any, output: TextIO = sys.stderr, doing: str = "") -> bool:
        """Whether a command of the set-up succeeds; what it prints stays out of the task's own output."""
        # pip's "user = true", from a variable or a file, is not meant for environments.
        variables = {**self.variables(), "PIP_USER": "0"}
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
        code = call(command, env=variables, cwd=ROOT, doing=doing, **streams)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code == 0


def has(module: str) -> bool:
    """Whether this Python comes with a module; Debian packs some of the standard ones apart."""
    return importlib.util.find_spec(module) is not None


def refuse_without_installer() -> None:
    """Say which package is missing before anything is made."""
    if not (has("venv") and (has("pip") or has("ensurepip"))):
        raise Refused(
            f"{sys.executable} cannot install anything, for want of venv or of both pip and ensurepip: "
            "on Debian and Ubuntu, install the package python3-venv"
        )


def digest(*files: Path) -> str:
    """One hash of the contents of the files."""
    parts = []
    for file in files:
        if not file.exists():
            raise Refused(f"{file.relative_to(ROOT)} is missing: the checkout is not complete")
        parts.append(hashlib.sha256(file.read_bytes()).digest())
    return hashlib.sha256(b"".join(parts)).hexdigest()


def pinned(name: str) -> str:
    """The lines of the lock that state one package's version and hashes."""
    lines = LOCKS["core"].read_text().splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith(f"{name}==")), None)
    if first is None:
        raise Refused(f"{LOCKS['core'].name} states no version of {name}")
    last = first
    while lines[last].endswith("\\"):
        last += 1
    return "\n".join(lines[first : last + 1]) + "\n"


def hold(file: TextIO, exclusive: bool) -> None:
    """Hold the lock on ``file`` until it is closed: together with others who use the environment, or alone."""
    if sys.platform == "win32":
        import msvcrt

        if exclusive:  # there is no shared lock here: only two who make it keep out of each other's way
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        return
    import fcntl

    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"waiting for another run.py that {'uses' if exclusive else 'makes'} the environment")
        fcntl.flock(file, kind)


# ------------------------------------------------------------------------------------------------ the tasks


def demo(environment: Environment, arguments: list[str]) -> int:
    """show what rankwise does, on generated queries"""
    again = f"python3 {sys.argv[0]} python -m rankwise"  # how a caller without rankwise on the path goes on
    return environment.run("python", "-m", "rankwise", "demo", "--called", again, *arguments)


# Where compiled code runs on every kind of input. Numba's bounds checks turn an index outside of an array, which
# reads or overwrites foreign memory otherwise, into an IndexError. One that is raised inside a formula cannot
# pass through the compiled loop that calls it: Python reports it as unraisable, and pytest has to fail on that.
CHECKED_TESTS = ["kernels", "measures", "losses", "solvers", "queries", "io", "synthetic", "diagnose", "rankers"]
CHECKED_OPTIONS = ["-W", "error::pytest.PytestUnraisableExceptionWarning"]
# Facts, files and Ctrl-C take long, on kernels that the others have run.
UNCHECKED_TESTS = ["losses/test_every_fact.py"]
UNCHECKED_TESTS += [
    f"rankers/{name}.py" for name in ("test_saved", "certificate/test_certificates", "test_interrupted")
]


# The tests start many interpreters. Without bytecode on disk each of them compiles the package, and pytest all tests.
KEEP_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
# File by file, in the order that tests/conftest.py gives them.
ON_EVERY_CORE = ["--numprocesses=auto", "--dist=loadfile", "--no-loadscope-reorder"]


def run_pytest(environment: Environment, arguments: Sequence[Any], **settings: str) -> int:
    """Run pytest in the root of the checkout."""
    variables = {**KEEP_BYTECODE, **settings}
    return environment.run("python", "-m", "pytest", *arguments, settings=variables, cwd=ROOT)


def test(environment: Environment, arguments: list[str]) -> int:
    """run the tests; --quick: one example of each; --thorough: the long ones too; --boundscheck: indices in kernels"""
    own = ("--quick", "--thorough", "--boundscheck")
    rest = [argument for argument in arguments if argument not in own]
    quick, thorough, checked = (option in arguments for option in own)
    options = ["--quick"] if quick else []
    options += ["-m", "thorough or not thorough", "--hypothesis-profile=thorough"] if thorough else []
    if not rest:  # all of them: on every core, file by file
        long = "more than an hour" if thorough else "about a minute" if quick else "less than ten minutes"
        say(f"running {'one example of every test' if quick else 'every test'}; on two cores this takes {long}")
        options = [*ON_EVERY_CORE, *options]
    if checked:
        return test_with_bounds_checks(environment, [*options, *rest])
    code = run_pytest(environment, [*options, *rest])
    if thorough and not rest and code != INTERRUPTED:
        say("the kernels' tests again, with bounds checks")
        code = test_with_bounds_checks(environment, ON_EVERY_CORE) or code
    return code


def test_with_bounds_checks(environment: Environment, arguments: list[str]) -> int:
    """Run the files that the arguments name, or every test of kernels, on kernels that check each index."""
    tests = ROOT / "tests"
    places = [(ROOT / argument.partition("::")[0]).resolve() for argument in arguments]
    named = any(place.exists() and place.is_relative_to(tests) for place in places)
    files: list[Any] = []
    if not named:
        files = [tests / folder for folder in CHECKED_TESTS] + [f"--ignore={tests / name}" for name in UNCHECKED_TESTS]
    return run_pytest(environment, [*CHECKED_OPTIONS, *arguments, *files], NUMBA_BOUNDSCHECK="1")


def bench(environment: Environment, arguments: list[str]) -> int:
    """run the benchmarks, or those that are named"""
    return environment.run("python", "-m", "benchmarks", *arguments, cwd=ROOT)


def pack(environment: Environment, arguments: list[str]) -> int:
    """compile the kernels for the wheel of this platform; --wheel builds wheels with and without them into dist/"""
    return environment.run("python", "-m", "wheels.pack", *arguments, cwd=ROOT)


# Files that services read, by the schema that they have to follow.
FORMS = {
    "github-workflows": sorted(map(str, (ROOT / ".github" / "workflows").glob("*.yml"))),
    "dependabot": [".github/dependabot.yml"],
    "github-issue-forms": [".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/feature.yml"],
    "github-issue-config": [".github/ISSUE_TEMPLATE/config.yml"],
    "readthedocs": [".readthedocs.yaml"],
    "citation-file-format": ["CITATION.cff"],
}


def lint(environment: Environment, arguments: list[str]) -> int:
    """check format, style, types, layers and workflows; --fix first mends what can be mended"""
    if arguments not in ([], ["--fix"]):
        raise Refused(f"lint takes no argument but --fix: found {' '.join(arguments)}")
    if arguments:
        environment.run("ruff", "check", "--fix-only", "--quiet", cwd=ROOT)
        environment.run("ruff", "format", "--quiet", cwd=ROOT)
    failure = 0
    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.py"))
    checks = [
        ["ruff", "format", "--check"],
        ["ruff", "check"],
        ["mypy"],
        ["lint-imports", "--no-logo"],
        ["numpydoc", "lint", *sources],
        ["zizmor", "--offline", "--quiet", "--pedantic", ".github"],
        *(["check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files] for schema, files in FORMS.items()),
    ]
    for program, *options in checks:
        code = environment.run(program, *options, cwd=ROOT)
        if code == INTERRUPTED:
            return code
        failure = failure or code
    return failure


def docs(environment: Environment, arguments: list[str]) -> int:
    """build the documentation into build/docs; --write fills in measured numbers, --check checks pages and examples"""
    if arguments == ["--write"]:
        return environment.run("python", "-m", "experiments.written", "--write", cwd=ROOT)
    if arguments == ["--check"]:
        return run_pytest(environment, [*ON_EVERY_CORE, "tests/docs"])
    options = ["--fail-on-warning", "--keep-going", "--quiet", *arguments]
    code = environment.run("python", "-m", "sphinx", *options, "docs", "build/docs", cwd=ROOT)
    code = code or environment.run("python", "-m", "docs.site.links", "build/docs", cwd=ROOT)
    if code == 0:
        print(ROOT / "build" / "docs" / "index.html")
    return code


def engines(environment: Environment, arguments: list[str]) -> int:
    """rank exported models in databases, RankLib, Vespa's evaluator and Solr; --write stores the table of the page"""
    absent = [program for program in ("mvn", "javac", "java") if shutil.which(program) is None]
    if absent and not arguments:
        say(f"the engines did not run: {' and '.join(absent)} not installed")  # the tests run the databases
        return 0
    return environment.run("python", "-m", "tests.engines", *arguments, cwd=ROOT)


def release_check(environment: Environment, arguments: list[str]) -> int:
    """build the distributions and try them in fresh environments, as after a release; --help lists the options"""
    if not {"-h", "--help"} & set(arguments):
        code = run_pytest(environment, ["tests/release"])
        if code:
            return code
    return environment.run("python", "-m", "wheels.release_check", *arguments, cwd=ROOT)


def python(environment: Environment, arguments: list[str]) -> int:
    """run the environment's interpreter with the arguments that follow"""
    return environment.run("python", *arguments, interactive=True)


def lock(environment: Environment, arguments: list[str]) -> int:
    """write the lock files anew; --upgrade and other arguments go to uv pip compile"""
    form = "--universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet"
    with tempfile.TemporaryDirectory(dir=environment.folder.parent) as beside:
        fresh = {kind: Path(shutil.copy(path, beside)) for kind, path in LOCKS.items()}  # uv keeps versions it finds
        sources = {
            # the demo writes the report, and compares with the boosted trees that most people use
            "core": ["--group", "setup", "--extra", "report", "--extra", "lightgbm"],
            "dev": ["--group", "dev", "--constraints", str(fresh["core"])],
        }
        for kind in ("core", "dev"):
            options = [*sources[kind], *form.split(), *arguments, "--output-file", str(fresh[kind])]
            code = environment.run("uv", "pip", "compile", "pyproject.toml", *options, cwd=ROOT)
            if code:
                return code
            if "://" in fresh[kind].read_text():
                raise Refused(f"uv wrote an address into {LOCKS[kind].name}: nothing was changed")
        for kind, path in LOCKS.items():
            os.replace(fresh[kind], path)
    return 0


TASKS = {
    task.__name__.replace("_", "-"): task
    for task in (demo, test, engines, bench, pack, lint, docs, release_check, python, lock)
}
CONTENT_WITH_CORE = ("demo", "lock")


def main(arguments: list[str]) -> int:
    """Run the task that the arguments name."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python3 run.py TASK [arguments]\n")
        for name, task in TASKS.items():
            print(f"  {name:15}{task.__doc__}")
        return 0
    name, rest = arguments[0], arguments[1:]
    if name not in TASKS:
        say(f"there is no task {name!r}: the tasks are {', '.join(TASKS)}")
        return 2
    environment = Environment()
    with environment.in_use(dev=name not in CONTENT_WITH_CORE):
        return TASKS[name](environment, rest)


def end(signum: int, frame: Any) -> None:
    """Told to end: the exception makes ``call`` end its child too."""
    sys.exit(128 + signum)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    try:
        sys.exit(main(sys.argv[1:]))
    except Refused as refusal:
        say(str(refusal))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
