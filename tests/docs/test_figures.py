"""Figures: the same data give the same file, the caller's settings stay, and the pages say what the code says."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import matplotlib
import numpy as np
import pytest

from experiments import loss_costs, loss_facts, loss_shapes
from experiments.pages import DOCS, read_block, write_block
from rankwise._figures import house_style, new_figure, save_png
from rankwise.errors import MissingExtraError, RankwiseError
from rankwise.losses import Loss, registered

DRAW = """
import sys
from rankwise._figures import house_style, new_figure, save_png
with house_style():
    figure = new_figure(3, 2)
    axes = figure.subplots()
    axes.plot([1, 10, 100], [3, 1, 2], label="a curve")
    axes.set(xscale="log", title="a title")
    axes.legend()
save_png(figure, sys.argv[1])
"""


def drawn(path, data=(3, 1, 2)):
    with house_style():
        figure = new_figure(3, 2)
        axes = figure.subplots()
        axes.plot([1, 10, 100], data, label="a curve")
        axes.set(xscale="log", title="a title")
        axes.legend()
    save_png(figure, path)
    return path.read_bytes()


# ------------------------------------------------------------------------------------------------------- files


def test_the_same_data_give_the_same_bytes(tmp_path):
    assert drawn(tmp_path / "one.png") == drawn(tmp_path / "two.png")
    assert drawn(tmp_path / "three.png", data=(3, 1, 2.5)) != drawn(tmp_path / "one.png")


def test_another_process_and_other_settings_give_the_same_bytes(tmp_path):
    foreign = "import matplotlib\nmatplotlib.rcParams.update({'font.size': 20, 'lines.linewidth': 9, 'figure.dpi': 40})"
    subprocess.run([sys.executable, "-c", foreign + DRAW, tmp_path / "elsewhere.png"], check=True)
    assert (tmp_path / "elsewhere.png").read_bytes() == drawn(tmp_path / "here.png")


def test_a_figure_holds_no_date_and_no_version(tmp_path):
    assert drawn(tmp_path / "one.png").count(b"tEXt") == 0


def test_the_callers_settings_are_left_alone(tmp_path):
    with matplotlib.rc_context({"font.size": 17.5}):
        before = matplotlib.rcParams.copy()
        drawn(tmp_path / "one.png")
        assert matplotlib.rcParams.copy() == before
        with pytest.raises(ZeroDivisionError), house_style():
            _ = 1 / 0
        assert matplotlib.rcParams.copy() == before


def test_drawing_opens_no_window_and_needs_no_pyplot(tmp_path):
    code = DRAW + "\nassert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, tmp_path / "one.png"], check=True)


def test_a_figure_that_cannot_be_drawn_leaves_the_old_file_and_nothing_else(tmp_path):
    old = drawn(tmp_path / "one.png")
    with house_style():
        broken = new_figure(3, 2)
        broken.text(0.5, 0.5, r"$\no_such_command$")
    with pytest.raises(ValueError, match="no_such_command"):
        save_png(broken, tmp_path / "one.png")
    assert [path.name for path in tmp_path.iterdir()] == ["one.png"]
    assert (tmp_path / "one.png").read_bytes() == old


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RankwiseError, match="missing does not exist"):
        drawn(tmp_path / "missing" / "one.png")


@pytest.mark.parametrize("action", [lambda: new_figure(3, 2), lambda: house_style().__enter__()])
def test_the_missing_extra_is_named(monkeypatch, action):
    for module in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"^matplotlib is not installed; run .*pip install .*\[plot\]'"):
        action()


# ------------------------------------------------------------------------------------------------------- pages


def test_a_part_of_a_page_is_replaced_and_the_rest_stays(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("above\n\n<!-- part: by a script -->\n\nold\n\n<!-- end of part -->\n\nbelow\n")
    write_block(page, "part", "| new |")
    assert read_block(page, "part") == "| new |"
    assert page.read_text() == "above\n\n<!-- part: by a script -->\n\n| new |\n\n<!-- end of part -->\n\nbelow\n"
    with pytest.raises(RankwiseError, match=r"page.md has no part 'other'"):
        write_block(page, "other", "")


def test_every_loss_of_the_package_is_in_every_table():
    kinds = {kind for kind in registered().values() if kind.__module__.startswith("rankwise.")}
    assert {type(row.loss) for row in loss_facts.FACTS} == kinds
    assert {type(case.work) for case in loss_costs.cases() if isinstance(case.work, Loss)} == kinds
    measured = json.loads(loss_costs.NUMBERS.read_text())["families"]
    assert [curve["name"] for curves in measured.values() for curve in curves] == [c.label for c in loss_costs.cases()]


@pytest.mark.parametrize("row", loss_facts.FACTS, ids=lambda row: repr(row.loss))
def test_the_constants_of_the_page_are_those_of_the_code(row):
    variants = [row.loss]
    if hasattr(row.loss, "sigma"):
        variants += [replace(row.loss, sigma=sigma) for sigma in (0.25, 4.0)]
    if hasattr(row.loss, "margin"):
        variants += [replace(row.loss, margin=0.5)]
    for loss in variants:
        for m in (3, 4, 10, 100, 1001):
            assert row.steepness.number(loss, m) == pytest.approx(loss.lipschitz_l1(m), rel=1e-12)
            curved = np.inf if row.curvature is None else row.curvature.number(loss, m)
            assert curved == pytest.approx(loss.smoothness(m), rel=1e-12)
            for b in (0.5, 3.0):
                assert row.range.number(loss, b, m) == pytest.approx(loss.range(b, m), rel=1e-12)


@pytest.mark.parametrize(
    "case", [case for case in loss_costs.cases() if case.stated.startswith("O(")], ids=lambda case: case.label
)
def test_the_cost_of_the_page_is_the_one_that_the_docstring_states(case):
    where = case.work if hasattr(case.work, "__name__") else type(case.work)
    stated = f"{sys.modules[where.__module__].__doc__} {where.__doc__}"
    assert case.stated in " ".join(stated.split())


def test_the_bounds_of_the_figure_are_never_below_the_measure():
    drawn_bounds = 0
    for panel in loss_shapes.PANELS:
        missed = loss_shapes.along(lambda s, y, panel=panel: 1 - panel.measure(s, y, ties="pessimistic"))
        for curve in panel.curves:
            if "bound" in panel.title and "none" not in panel.title and curve.loss.convex:
                drawn_bounds += 1
                assert (loss_shapes.along(lambda s, y, curve=curve: curve.loss(s, y)[0]) >= missed - 1e-12).all()
    assert drawn_bounds >= 5


def test_every_figure_of_a_page_is_there_with_a_text_for_those_who_cannot_see_it():
    shown = set()
    for page in DOCS.glob("*.md"):
        for name, options in re.findall(r"\{(?:figure|image)\} (\S+)\n((?::\w+: .*\n)*)", page.read_text()):
            shown.add(DOCS / name)
            assert (DOCS / name).is_file()
            assert re.search(r"^:alt: .{80,}$", options, re.MULTILINE), f"{page.name}: {name}"
    assert {loss_costs.FIGURE, loss_shapes.FIGURE} <= shown


def drawing(text):
    """The source of the modules that a page names, and of the experiments that they import."""
    names = {f"experiments/{name}.py" for name in re.findall(r"experiments[./](\w+)", text)}
    names |= {"tests/report/pictures.py"} if "-m tests.report.pictures" in text else set()
    names |= {"benchmarks/page.py"} if "`python3 run.py bench --render`" in text else set()
    sources = [(DOCS.parent / name).read_text() for name in sorted(names) if (DOCS.parent / name).exists()]
    parts = re.findall(
        r"^from experiments import (.+)$|^from experiments\.(\w+) import", "".join(sources), re.MULTILINE
    )
    beside = {name.strip() for several, one in parts for name in (several or one).split(",")}
    paths = [DOCS.parent / "experiments" / f"{name}.py" for name in beside]
    return "".join([*sources, *(path.read_text() for path in paths if path.exists())])


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_a_page_names_what_draws_its_figures(page):
    text = page.read_text()
    words = set(re.findall(r"\w+", drawing(text)))
    for name in re.findall(r"figures/(\w+)\.png", text):
        assert {name, name.partition("_")[2] or name} & words, name


def test_slopes_are_those_of_the_longest_lists():
    lengths = list(loss_costs.LENGTHS)
    assert loss_costs.slope(lengths, [3e-9 * m**1.5 for m in lengths]) == pytest.approx(1.5)
    assert loss_costs.slope(lengths, [1e-3 if m < 3_000 else 1e-9 * m**2 for m in lengths]) == pytest.approx(2)
    assert loss_costs.slope([10, 22, 46], [1.0, 2.2, 4.6]) == pytest.approx(1)
