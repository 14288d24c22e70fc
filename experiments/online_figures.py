"""The figures and the tables of docs/online.md, from the numbers that :mod:`experiments.online` has found."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments.pages import DOCS, markdown_table
from rankwise._figures import COLORS, FAINT, INK, house_style, new_figure, save_png
from rankwise.evaluation.simulation import PRINTED

FOLDER = DOCS / "figures"

SLAM, MAX_PAIR, LISTNET, PAPERS = COLORS[0], COLORS[1], COLORS[2], COLORS[4]
TITLES = {"ListNet": "ListNet, step selected", PRINTED: f"{PRINTED} as printed, step selected"}
DASHED, DOTTED = (0, (5, 2)), (0, (1, 1.5))


def thin_and_mean(panel: Any, x: Sequence[float], runs: Sequence[Sequence[float]], color: str, **how: Any) -> None:
    """Every run as a thin line, their mean as a thick one."""
    for run in runs:
        panel.plot(x, run, color=color, linewidth=0.5, alpha=0.35)
    panel.plot(x, np.mean(runs, axis=0), color=color, **how)


# ------------------------------------------------------------------------------------------------------ simulation


def draw_simulation(numbers: dict[str, Any]) -> None:
    looks: dict[str, dict[str, Any]] = {
        "SLAMPerceptron": {"color": SLAM},
        PRINTED: {"color": PAPERS},
        "MaxPairPerceptron": {"color": MAX_PAIR},
        "ListNet": {"color": LISTNET},
        "ListNet, step of theory": {"color": LISTNET, "linestyle": DASHED},
        "ListNet, step 1": {"color": LISTNET, "linestyle": DOTTED},
    }
    with house_style():
        figure = new_figure(8.0, 3.4)
        left, right = figure.subplots(1, 2)
        for name, look in looks.items():
            curve = numbers["curves"][name]
            label = TITLES.get(name, name)
            thin_and_mean(left, numbers["rounds"], curve["mean"], **look)
            thin_and_mean(right, numbers["rounds"], curve["loss"], label=label, **look)
        left.set(xscale="log", xlabel="round", ylim=(0.55, 1.005), title="NDCG@10, mean of the rounds so far")
        bound = float(np.mean(numbers["bound"]))
        right.axhline(bound, color=SLAM, linewidth=0.9, linestyle=DASHED)
        right.text(1, bound / 1.15, "Theorem S, SLAMPerceptron", color=SLAM, fontsize=7, va="top")
        right.plot(numbers["rounds"], numbers["rounds"], color=FAINT, linewidth=0.9)
        right.text(700, 900, "a loss of 1 every round", color=FAINT, fontsize=7, ha="right")
        right.set(xscale="log", yscale="log", xlabel="round", ylim=(0.25, 2e4), title="cumulative loss of NDCG@10")
        handles, labels = right.get_legend_handles_labels()
        left.legend(handles, labels, loc="lower right")
        save_png(figure, FOLDER / "online_simulation.png")


def simulation_tables(numbers: dict[str, Any]) -> dict[str, str]:
    return {
        "simulation": simulation_table(numbers),
        "margins": margins_table(numbers),
        "gaussians": gaussians_table(numbers),
    }


def simulation_table(numbers: dict[str, Any]) -> str:
    shown = (100, 1_000, 10_000)
    at = [numbers["rounds"].index(t) for t in shown]
    rows = []
    for name, curve in numbers["curves"].items():
        mean, loss, mistakes = (np.mean(curve[what], axis=0) for what in ("mean", "loss", "mistakes"))
        steps = {"ListNet": numbers["eta"], PRINTED: numbers["eta_printed"]}
        title = TITLES.get(name, name) + (f" ({_all(steps[name])})" if name in steps else "")
        rows.append([title, *(f"{mean[place]:.4f}" for place in at), f"{loss[-1]:.1f}", f"{mistakes[-1]:.0f}"])
    return markdown_table(["ranker", *(f"NDCG@10 to round {t:,}" for t in shown), "total loss", "mistakes"], rows)


def margins_table(numbers: dict[str, Any]) -> str:
    names = list(numbers["curves"])
    rows = []
    for margin, found in numbers["by_margin"].items():
        steps = [_all(found[which]) for which in ("eta", "eta_printed")]
        rows.append([margin, *(f"{np.mean(found['loss'][name]):.1f}" for name in names), *steps])
    titles = [TITLES.get(name, name) for name in names]
    return markdown_table(["margin", *titles, "selected step, ListNet", f"selected step, {PRINTED}"], rows)


def gaussians_table(numbers: dict[str, Any]) -> str:
    """Running NDCG@10 where only the hidden vector tells grades apart, and with one Gaussian per grade."""
    found = numbers["gaussians"]
    at = [numbers["rounds"].index(t) for t in found["rounds"]]
    rows = []
    for name, each in found["mean"].items():
        ours = np.mean(numbers["curves"][name]["mean"], axis=0)[at]
        rows.append([TITLES.get(name, name), *(f"{value:.4f}" for value in (*ours, *np.mean(each, axis=0)))])
    rounds = [f"to round {t:,}" for t in found["rounds"]]
    heads = [f"{stream}, {t}" for stream in ("our stream", "one Gaussian per grade") for t in rounds]
    return markdown_table(["ranker", *heads], rows)


def _all(values: Sequence[float]) -> str:
    """Each value once."""
    return " or ".join(f"{value:g}" for value in sorted(set(values)))


# ------------------------------------------------------------------------------------------------------ bounds


def draw_bounds(numbers: dict[str, Any]) -> None:
    with house_style():
        figure = new_figure(8.0, 3.6)
        left, right = figure.subplots(1, 2)
        draw_length(left, numbers["length"])
        draw_margin(right, numbers["margin"])
        save_png(figure, FOLDER / "online_bounds.png")


def draw_length(panel: Any, found: dict[str, Any]) -> None:
    m = found["m"]
    looks: dict[str, dict[str, Any]] = {
        "paper_bound": {"color": PAPERS, "linestyle": DASHED, "label": "printed bound, equation (19)"},
        "bound": {"color": SLAM, "linestyle": DASHED, "label": "Theorem S"},
        "paper_loss": {"color": PAPERS, "marker": "s", "label": "loss, the paper's Algorithm 2"},
        "loss": {"color": SLAM, "marker": "o", "label": "loss, SLAMPerceptron"},
    }
    for name, look in looks.items():
        panel.plot(m, np.mean(found[name], axis=1), **look)
    panel.set(xscale="log", yscale="log", xlabel="documents per query, m", ylim=(0.2, 1e11))
    panel.set_title("cumulative loss of NDCG")
    panel.set_xticks(m, [str(each) for each in m])
    panel.minorticks_off()
    panel.legend(loc="upper left")


def draw_margin(panel: Any, found: dict[str, Any]) -> None:
    gamma = np.array(found["gamma"])
    panel.plot(
        gamma,
        4 / gamma**2,
        color=INK,
        linewidth=0.9,
        linestyle=DASHED,
        label="$4 R^2/\\gamma^2$: the lower bound",
    )
    games = gamma[: len(found["forced"]["ListNet"])]
    panel.plot(
        games, found["forced"]["ListNet"], "x", color=INK, markersize=5, label="forced by the adversary, on all three"
    )
    panel.plot(
        gamma,
        np.mean(found["bounds"]["SLAMPerceptron"], axis=1),
        color=SLAM,
        linestyle=DASHED,
        label="bound, SLAMPerceptron",
    )
    for name, color, marker in (("MaxPairPerceptron", MAX_PAIR, "s"), ("SLAMPerceptron", SLAM, "o")):
        for run in np.transpose(found["mistakes"][name]):
            panel.plot(gamma, run, color=color, linewidth=0.5, alpha=0.35)
        panel.plot(
            gamma, np.mean(found["mistakes"][name], axis=1), color=color, marker=marker, label=f"mistakes, {name}"
        )
    panel.set(xscale="log", yscale="log", xlabel="margin $\\gamma$, for rows of length R = 1 at most", ylim=(0.5, 1e9))
    panel.set_title("mistakes, AP")
    panel.set_xticks(gamma, [f"{each:g}" for each in gamma])
    panel.minorticks_off()
    panel.legend(loc="upper right")


# ------------------------------------------------------------------------------------------------------ step


def draw_step(numbers: dict[str, Any]) -> None:
    rounds, one, none = numbers["rounds"], numbers["margin 1"], numbers["margin 0"]
    with house_style():
        figure = new_figure(5.4, 3.2)
        panel = figure.subplots()
        panel.plot(rounds, one["loss"], color=PAPERS, label="loss, margin 1 and step 1")
        panel.plot(rounds, none["loss"], color=SLAM, label="loss, margin 0 (scale-free)")
        for value, color, text in (
            (one["slam_loss"], PAPERS, "Theorem S, margin 1"),
            (one["printed"], COLORS[1], "as printed, for this step"),
            (none["slam_loss"], SLAM, "Theorem S, margin 0"),
        ):
            panel.axhline(value, color=color, linewidth=0.9, linestyle=DASHED)
            panel.text(1.2, value * 1.15, f"{text}: {value:,.0f}", color=color, fontsize=7, va="bottom")
        panel.set(xscale="log", yscale="log", xlabel="round", title="cumulative loss of AP", ylim=(0.1, 3e6))
        panel.legend(loc="lower right", bbox_to_anchor=(1.0, 0.12))
        save_png(figure, FOLDER / "online_step.png")


# ------------------------------------------------------------------------------------------------------ data


def draw_data(numbers: dict[str, Any]) -> None:
    looks: dict[str, dict[str, Any]] = {
        "ListNet": {"color": LISTNET},
        "SLAMPerceptron": {"color": SLAM},
        "SLAMPerceptron, papers' weights, margin 1": {"color": PAPERS},
        "MaxPairPerceptron": {"color": MAX_PAIR},
    }
    with house_style():
        figure = new_figure(8.0, 3.4)
        for panel, (name, found) in zip(figure.subplots(1, 2), numbers.items(), strict=True):
            for ranker, look in looks.items():
                thin_and_mean(panel, found["rounds"], found["curves"][ranker], label=ranker, **look)
            nothing = found["plain"]["no order"]["nDCG@10"]
            panel.axhline(nothing, color=FAINT, linewidth=0.9, linestyle=DASHED)
            panel.annotate(
                "equal scores",
                (found["rounds"][-1], nothing),
                xytext=(0, 2),
                textcoords="offset points",
                color=FAINT,
                fontsize=7,
                ha="right",
            )
            panel.set(xlabel="round", title=f"{name.upper()}: NDCG@10, mean of the rounds so far")
        figure.axes[1].legend(loc="lower right")
        save_png(figure, FOLDER / "online_data.png")


PLAIN = {"no order": "equal scores"}  # stored name -> its name in tables


def data_rows(found: dict[str, Any]) -> list[list[str]]:
    """The table of one set of judged queries: one row per ranker."""
    rows = []
    for name, row in found["rows"].items():
        held = [spread(row[f"held out, {averaging}"]) for averaging in ("none", "uniform")]
        steps = ", ".join(_power(eta) for eta in row["eta"].values()) if "eta" in row else ""
        rows.append([name, steps, spread(row["nDCG@10"]), spread(row["AP"]), *held])
    for name, values in found["plain"].items():
        rows.append([f"({PLAIN.get(name, name)})", "", f"{values['nDCG@10']:.3f}", f"{values['AP']:.3f}", "", ""])
    return rows


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation, to three decimals, on one line."""
    return f"{np.mean(values):.3f}\u00a0±\u00a0{np.std(values, ddof=1):.3f}"


def _power(eta: float) -> str:
    """A power of two."""
    return f"{eta:g}" if eta >= 1 else f"1/{1 / eta:g}"


def data_table(found: dict[str, Any]) -> str:
    titles = ["ranker", "step", "running NDCG@10", "running AP", "held out, last weights", "held out, averaged"]
    return markdown_table(titles, data_rows(found))


def order_table(numbers: dict[str, Any]) -> str:
    """The rules that give equal labels other weights by their order: shuffled documents, and the order of the file."""
    rows = []
    for data, found in numbers.items():
        for name, row in found["rows"].items():
            if "file order" in row:
                pairs = [(row[what], row["file order"][what]) for what in ("nDCG@10", "held out, uniform")]
                rows.append([data.upper(), name, *(spread(values) for pair in pairs for values in pair)])
    orders = ("shuffled", "in file order")
    heads = [f"{what}, {order}" for what in ("running NDCG@10", "held out, averaged") for order in orders]
    return markdown_table(["set", "ranker", *heads], rows)


def data_tables(numbers: dict[str, Any]) -> dict[str, str]:
    return {name: data_table(found) for name, found in numbers.items()} | {"order": order_table(numbers)}


FIGURES: dict[str, Callable[[dict[str, Any]], None]] = {
    "simulation": draw_simulation,
    "bounds": draw_bounds,
    "step": draw_step,
    "data": draw_data,
}
# the parts of the page that a part's numbers fill
TABLES: dict[str, Callable[[dict[str, Any]], dict[str, str]]] = {
    "simulation": simulation_tables,
    "data": data_tables,
}
