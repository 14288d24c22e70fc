"""The pages of the API reference, docs/api/, made of the public names when the documentation is built.

A name belongs to the section whose module, or package, its object comes from, so that a new name is on a page without
an entry here. A name whose module fits no section is an error of the build.
"""

import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rankwise

FOLDER = Path(__file__).parents[1] / "api"


@dataclass(frozen=True)
class Section:
    """Names on a page: those from these modules of rankwise, or from modules below them."""

    title: str
    modules: tuple[str, ...]
    text: str = ""
    first: tuple[str, ...] = ()  # names that stand before the others, which are in order of the alphabet


@dataclass(frozen=True)
class Page:
    """One page of the reference."""

    name: str
    title: str
    text: str
    sections: tuple[Section, ...]


PAGES = (
    Page(
        "data",
        "Data",
        "The container of judged queries, its files, and what is done before training. Readers return `Queries`, "
        "writers take them ([judged queries](../data.md)).",
        (
            Section("Judged queries", ("queries", "_load_saved.load"), first=("Queries", "Query", "load")),
            Section("LETOR text", ("io.letor", "io.folds")),
            Section("Tables", ("io.tables",)),
            Section("TREC files", ("io.trec",)),
            Section("Files of other tools", ("io",)),
            Section("Larger than memory", ("queries.parts", "io.convert"), "[Data sets in parts](../scale.md)."),
            Section("Division and scaling", ("queries.folds", "queries.scaling"), first=("split", "kfold")),
            Section("Diagnosis", ("_diagnose",)),
            Section("With scikit-learn", ("sklearn", "queries.grouped_labels"), "[scikit-learn](../sklearn.md)."),
            Section("Simulated queries", ("synthetic",), first=("make_lists", "make_hybrid")),
        ),
    ),
    Page(
        "features",
        "Features",
        "From the columns of a table to features ([features from a table](../features.md)), and maps to other spaces.",
        (Section("Builders and maps", ("features",), first=("FeatureBuilder",)),),
    ),
    Page(
        "measures",
        "Measures",
        'Measures to report and to select by. `evaluate` also takes them as text, such as `"nDCG@10"` '
        "([measures](../measures.md)).",
        (Section("Measures", ("measures",)),),
    ),
    Page(
        "losses",
        "Losses",
        "Losses that rankers minimize, with their facts ([losses](../losses.md)).",
        (Section("Losses", ("losses",)),),
    ),
    Page(
        "rankers",
        "Rankers",
        "Rankers are scikit-learn estimators with `fit`, `predict`, `rank`, `score`, `save` and `certificate`. "
        "[Which ranker](../choose_ranker.md) helps to choose.",
        (
            Section("To begin with", ("rankers.auto", "rankers.committee"), "Chosen for you, or joined."),
            Section("Every ranker", ("rankers._base",), "What all rankers have.", first=("Ranker",)),
            Section("One query at a time", ("rankers.scorer",)),
        ),
    ),
    Page(
        "rankers_batch",
        "Rankers (linear, smooth, permutations)",
        "`LossRanker` minimizes any convex loss; `RankSVM`, `SLAMRanker`, `MaxPairRanker`, `SVMMap` and "
        "`StructuredNDCG` are its presets.",
        (
            Section("Linear", ("rankers.linear",), "[Direct optimization](../direct.md).", first=("LossRanker",)),
            Section("Smoothed measures", ("rankers.smooth",), "[SmoothRank](../direct.md#smoothrank)."),
            Section("Permutations", ("rankers.permutation",)),
        ),
    ),
    Page(
        "rankers_boosting",
        "Rankers (boosting)",
        "Boosted trees, thresholds and features, and objectives for LightGBM and XGBoost "
        "([boosted trees](../boosting.md)).",
        (Section("Boosting", ("rankers.boosting",), first=("BoostedRanker",)),),
    ),
    Page(
        "rankers_online",
        "Rankers (online)",
        "Rankers that learn one query at a time and keep a ledger ([online learning](../online.md)). `ListNet` also "
        "has an online solver.",
        (Section("Online", ("rankers.online", "solvers.online"), first=("SLAMPerceptron", "MaxPairPerceptron")),),
    ),
    Page(
        "rankers_others",
        "Rankers (hybrid search, maps, networks)",
        "Weights of sub-queries ([hybrid search](../hybrid.md)), any ranker on mapped features "
        "([kernels](../neural.md#kernels-and-maps)), and a small network ([networks](../neural.md)).",
        (
            Section("Hybrid search", ("rankers.fusion",)),
            Section("Maps", ("rankers.mapped",)),
            Section("Networks", ("rankers.neural",)),
        ),
    ),
    Page(
        "guarantees",
        "Guarantees",
        "Bounds, intervals and certificates: numbers in, numbers out ([guarantees](../guarantees.md)).",
        (
            Section("Certificates", ("guarantees",), first=("Certificate", "certify")),
            Section("Hold-out queries", ("guarantees.holdout",), "[Hold-out bounds](../bounds_holdout.md)."),
            Section("Online runs", ("guarantees.bounds.online",), "[Online bounds](../bounds.md#online-runs)."),
            Section(
                "Training queries", ("guarantees.bounds.training",), "[Training](../bounds.md#on-the-training-queries)."
            ),
            Section("In expectation", ("guarantees.bounds.batch",), "[Expectation](../bounds.md#in-expectation)."),
            Section("Uniform", ("guarantees.bounds",), "[Uniform bounds](../bounds.md#uniform), and an adversary."),
        ),
    ),
    Page(
        "evaluation",
        "Evaluation",
        "Measures with intervals, paired tests, comparisons over folds and their report, and analyses of errors.",
        (
            Section("Evaluation", ("evaluation.evaluation", "evaluation.files"), first=("evaluate", "Evaluation")),
            Section(
                "Comparison",
                ("evaluation.comparison", "_compare_rankers.compare", "report"),
                first=("compare", "Comparison"),
            ),
            Section("Intervals and tests", ("evaluation.statistics",)),
            Section("Analysis", ("analysis",), first=("explain",)),
            Section("Others", ("evaluation",)),
        ),
    ),
    Page(
        "clicks",
        "Click logs",
        "Logs, position models, values with bounds, learning and interleaving ([click logs](../clicks.md)).",
        (Section("Click logs", ("clicks",), first=("ClickLog",)),),
    ),
    Page(
        "exports",
        "Exports",
        "Rankers for search engines, databases and programs, and models of other tools "
        "([production](../production.md)).",
        (Section("Exports", ("exports",), first=("export", "read_model")),),
    ),
    Page(
        "serve",
        "Service",
        "The service and its clients ([a service that learns](../serve.md)).",
        (Section("Service", ("serve",), first=("Client", "AsyncClient")),),
    ),
    Page(
        "torch",
        "PyTorch",
        "Losses, measures and batches for networks of your own; the extra `torch` ([networks](../neural.md)).",
        (Section("PyTorch", ("torch",)),),
    ),
    Page(
        "errors",
        "Errors and warnings",
        "All errors are subclasses of `RankwiseError`.",
        (Section("Errors and warnings", ("errors",), first=("RankwiseError",)),),
    ),
)

# What autodoc is told about single names, beside "members".
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "rankwise.Committee": (":members: of",),
    "rankwise.Parts": (":exclude-members: shape, n_documents, n_features",),
    "rankwise.SLAMPerceptron": (":inherited-members: BaseEstimator",),
    "rankwise.rankers._base.Ranker": (":members: fit, predict, rank, score, certificate, save",),
    **{f"rankwise.torch.{name}": (":special-members: __call__",) for name in ("RankingLoss", "RankingMetric")},
}


# ------------------------------------------------------------------------------------------------------- public names


@dataclass(frozen=True)
class Name:
    """A public name: how it is written, and the module of rankwise that its object comes from."""

    path: str
    home: str
    value: Any = field(repr=False)

    def directive(self) -> str:
        """What documents it."""
        if not inspect.isclass(self.value):
            return "autofunction" if callable(self.value) else "autodata"
        return "autoexception" if issubclass(self.value, BaseException) else "autoclass"


def public_names() -> Iterator[Name]:
    """Every public name of rankwise and of its public modules, once; the base class of rankers is one of them."""
    modules = [name for name in dir(rankwise) if inspect.ismodule(getattr(rankwise, name))]
    own = [name for name in rankwise.__all__ if name != "__version__"]
    yield from (_name("rankwise", name) for name in own)
    for module in (*modules, "serve"):
        for name in sorted(importlib.import_module(f"rankwise.{module}").__all__):
            found = _name(f"rankwise.{module}", name)
            if name not in own or found.value is not getattr(rankwise, name):  # else it is there already
                yield found
    yield _name("rankwise.rankers._base", "Ranker")


def _name(module: str, name: str) -> Name:
    value = getattr(importlib.import_module(module), name)
    home = getattr(value, "__module__", module).removeprefix("rankwise.")
    return Name(f"{module}.{name}", home, value)


# -------------------------------------------------------------------------------------------------------------- pages


def place_of(name: Name) -> tuple[Page, Section]:
    """The section with the longest module that the name comes from."""
    short = name.path.rpartition(".")[2]
    fitting = [
        (len(module), page, section)
        for page in PAGES
        for section in page.sections
        for module in section.modules
        if f"{name.home}.{short}.".startswith(f"{module}.")
    ]
    if not fitting:
        raise LookupError(f"{name.path} comes from {name.home}, which no section of docs/site/reference.py names")
    _, page, section = max(fitting, key=lambda one: one[0])
    return page, section


def pages() -> dict[str, str]:
    """The text of every page, by its name."""
    placed: dict[tuple[str, str], list[Name]] = {}
    for name in public_names():
        page, section = place_of(name)
        placed.setdefault((page.name, section.title), []).append(name)
    texts = {}
    for page in PAGES:
        parts = [f"# API: {page.title}", page.text]  # apart from the guide's page of the same name, also in a search
        for section in page.sections:
            names = placed.get((page.name, section.title), [])
            if not names:
                continue
            parts += [f"## {section.title}"] if len(page.sections) > 1 else []
            parts += [section.text] if section.text else []
            parts.append(_block(sorted(names, key=lambda name: _rank(name, section))))
        texts[page.name] = "\n\n".join(parts) + "\n"
    return texts


def _rank(name: Name, section: Section) -> tuple[int, str]:
    short = name.path.rpartition(".")[2]
    return (section.first.index(short) if short in section.first else len(section.first), short.lower())


def _block(names: list[Name]) -> str:
    """A table of names with their first lines, and the whole of each below it."""
    lines = ["```{eval-rst}", ".. list-table::", "   :class: names", ""]
    for name in names:
        lines += [
            f"   * - :py:obj:`~{name.path}`",
            f"     - {_summary(name.value)}",
        ]
    for name in names:
        lines += ["", f".. {name.directive()}:: {name.path}"]
        lines += [f"   {option}" for option in OPTIONS.get(name.path, ())]
    return "\n".join([*lines, "```"])


def _summary(value: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())


def write(folder: Path = FOLDER) -> None:
    """Write the pages that have changed, and remove those that are no longer there."""
    folder.mkdir(exist_ok=True)
    texts = pages()
    for path in folder.glob("*.md"):
        if path.stem not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
