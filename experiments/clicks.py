"""Values, bounds and interleaving on simulated click logs: ``python3 run.py python -m experiments.clicks``.

Bias of estimates against sessions, coverage of bounds over 1,000 logs in each of ten cases, power, exploration,
candidates that are never explored, type I error of interleaving over 2,000 runs, and learning. Writes docs/clicks.json,
docs/figures/clicks.png and the tables of docs/clicks.md; ``--redraw`` only draws and writes what was measured. About
ten minutes of one core.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments import clicks_runs as runs
from experiments.pages import DOCS, markdown_table, write_block
from rankwise._figures import COLORS, FAINT, house_style, new_figure, save_png
from rankwise._files import writing
from rankwise._progress import track

RESULTS, FIGURE, PAGE = DOCS / "clicks.json", DOCS / "figures" / "clicks.png", DOCS / "clicks.md"


def binomial_limit(n: int, chance: float) -> int:
    """The largest count that a binomial draw exceeds with probability 0.001 at most."""
    from scipy.stats import binom

    return int(binom.ppf(0.999, n, chance))


def measure() -> dict[str, Any]:
    """All that is measured."""
    setting = runs.Setting.make()
    found: dict[str, Any] = {
        "setting": {name: setting.true(getattr(setting, name)) for name in ("logged", "better", "worse")},
        "delta": runs.DELTA,
        "tau": runs.TAU,
        "coverage": {},
    }
    for case in track(runs.CASES, "coverage", len(runs.CASES)):
        found["coverage"][case.name] = runs.coverage(setting, case)
    steps: dict[str, Callable[[], Any]] = {
        "naive": lambda: runs.naive_errors(setting),
        "ends": lambda: runs.ends_by_sessions(setting),
        "power": lambda: runs.power(setting),
        "bias": lambda: runs.biases(setting),
        "exploration": lambda: runs.exploring(runs.Setting.make(20, gain=0.3)),
        "pool": lambda: {name: runs.beyond_pool(one) for name, one in runs.POOLS.items()},
        "null": lambda: runs.null_runs(setting),
        "deciding": lambda: runs.deciding(setting),
        "learning": runs.learning,
    }
    for name, step in track(steps.items(), "other parts", len(steps)):
        found[name] = step()
    return found


# --------------------------------------------------------------------------------------------------------------- page


def coverage_table(found: dict[str, Any]) -> str:
    """Misses and certificates of every case."""
    rows = []
    for name, case in found["coverage"].items():
        n = case["logs"]
        rows.append([
            name, {"no": "**no**"}.get(case["met"], case["met"]), f"{n:,}", f"{case['missed']['value'] / n:.3f}",
            f"{case['missed']['gain'] / n:.3f}", f"{case['missed']['worse'] / n:.3f}",
            f"{case['certified']['better'] / n:.3f}",
            f"{case['certified']['worse'] / n:.3f}", f"{case['lower']['gain']:+.3f}",
        ])  # fmt: skip
    titles = ["case", "preconditions met", "logs", "value missed", "gain missed", "loss missed", "better certified",
              "worse certified", "mean gain >="]  # fmt: skip
    return markdown_table(titles, rows)


def propensity_table(found: dict[str, Any]) -> str:
    """Ends over truth by sessions per position."""
    rows = []
    for each, ways in found["ends"].items():
        for how, places in ways.items():
            cells = [f"{low:.2f} to {high:.2f} ({theta:.2f})" for low, theta, high in places.values()]
            rows.append([f"{int(each):,}", how, *cells])
    return markdown_table(["sessions per position", "how", "position 2", "position 5", "position 10"], rows)


def power_table(found: dict[str, Any]) -> str:
    """Certified share and mean bound by sessions and tau."""
    rows = []
    for key, cell in found["power"].items():
        sessions, tau = key.split()
        rows.append([f"{int(sessions):,}", tau, f"{cell['lower']:+.3f}", f"{100 * cell['certified']:.0f}%"])
    return markdown_table(["sessions", "tau", "mean gain >=", "certified better"], rows)


def exploration_table(found: dict[str, Any]) -> str:
    """Mean bound by exploration and sessions."""
    table: dict[str, list[str]] = {}
    for key, cell in found["exploration"]["rows"].items():
        share, _ = key.split()
        table.setdefault(share, [f"{cell['cost']:.3f}"]).append(f"{cell['lower']:+.3f}")
    rows = [[f"{100 * float(share):g}%", *cells] for share, cells in table.items()]
    return markdown_table(["shuffled pages", "cost in DCG", "1,000 sessions", "10,000", "50,000"], rows)


def pool_table(found: dict[str, Any]) -> str:
    """Misses where the other ranking shows candidates that are never explored."""
    rows = [
        [name, f"{cell['truth']:+.3f}", f"{cell['lower']:+.3f}", f"{cell['missed'] / cell['logs']:.3f}"]
        for name, cell in found["pool"].items()
    ]
    return markdown_table(["the other ranking", "true gain", "mean gain >=", "missed"], rows)


def deciding_table(found: dict[str, Any]) -> str:
    """Impressions and sessions to decide."""
    made = found["deciding"]
    rows = [["interleaving, always looking", f"{made['median']:,.0f}", f"{made['80%']:,.0f}"]]
    names = {"clicked": "share of sessions with a click", "first": "1/position of the first click"}
    for outcome, cell in made["A/B"].items():
        fixed = cell["fixed"]
        rows.append([f"A/B at a fixed horizon, {names[outcome]}", f"{fixed['0.5']:,.0f}", f"{fixed['0.8']:,.0f}"])
        rows.append([f"A/B, always looking, {names[outcome]}", f"{cell['sequential median']:,.0f}", ""])
    return markdown_table(["test", "half of the runs have decided", "80%"], rows)


def interval(values: list[float]) -> tuple[float, float, float]:
    """Mean and 95% t interval over seeds."""
    from scipy.stats import t

    x = np.array(values)
    half = float(t.ppf(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x)))
    return float(x.mean()), float(x.mean()) - half, float(x.mean()) + half


def learning_table(found: dict[str, Any]) -> str:
    """True DCG of learned rankers, and their differences to the logger with intervals."""
    made, rows = found["learning"], []
    for sessions in ("2000", "20000"):
        for name, values in made[sessions]["values"].items():
            mean, low, high = interval([one - made["logger"] for one in values])
            rows.append(
                [f"{int(sessions):,}", name, f"{np.mean(values):.4f}", f"{mean:+.4f} ({low:+.4f} to {high:+.4f})"]
            )
    return markdown_table(["sessions", "learned", "true DCG@10", "over the logged ranker (95% over seeds)"], rows)


PARTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "coverage": coverage_table,
    "ends": propensity_table,
    "power": power_table,
    "exploration": exploration_table,
    "pool": pool_table,
    "deciding": deciding_table,
    "learning": learning_table,
}


# ------------------------------------------------------------------------------------------------------------- figure


def draw(found: dict[str, Any]) -> Any:
    """Four panels: bias, coverage, exploration, interleaving against A/B."""
    figure = new_figure(8.4, 6.2)
    with house_style():
        panels = figure.subplots(2, 2)
        _draw_bias(panels[0, 0], found["bias"])
        _draw_coverage(panels[0, 1], found)
        _draw_exploration(panels[1, 0], found["exploration"])
        _draw_deciding(panels[1, 1], found["deciding"])
    return figure


def _draw_bias(axes: Any, found: dict[str, Any]) -> None:
    sessions = [int(key) for key in found if key.isdigit()]
    for color, name in zip(COLORS, found[str(sessions[0])], strict=False):
        mean, spread = np.array([found[str(n)][name] for n in sessions]).T
        axes.plot(sessions, mean, "o--" if name == "bound" else "o-", color=color, label=name)
        axes.fill_between(sessions, mean - spread, mean + spread, color=color, alpha=0.12, linewidth=0)
    axes.axhline(found["true"], color=FAINT, linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("sessions")
    axes.set_ylabel("value of the better ranking")
    axes.set_title("Estimates against sessions (line: truth)")
    axes.set_ylim(0.1, 1.6)
    axes.legend(loc="lower center", fontsize=6, ncol=2)


def _draw_coverage(axes: Any, found: dict[str, Any]) -> None:
    names = list(found["coverage"])[::-1]
    for place, name in enumerate(names):
        case = found["coverage"][name]
        bars = ((0.25, "value", COLORS[0]), (0.0, "gain", COLORS[1]), (-0.25, "worse", COLORS[3]))
        for shift, what, color in bars:
            name = {"worse": "gain of a worse ranking"}.get(what, what)
            axes.barh(place + shift, case["missed"][what] / case["logs"], 0.22, color=color,
                      label=name if place == 0 else None)  # fmt: skip
    axes.axvline(found["delta"], color="black", linewidth=1, linestyle=":")
    axes.set_yticks(range(len(names)), names, fontsize=6)
    axes.set_xlabel("share of logs whose bound misses the truth")
    axes.set_title("Coverage (dotted: delta)")
    axes.legend(loc="upper right")


def _draw_exploration(axes: Any, found: dict[str, Any]) -> None:
    shares = list(dict.fromkeys(key.split()[0] for key in found["rows"]))
    for color, sessions in zip(COLORS, ("10000", "50000"), strict=False):
        lower = [found["rows"][f"{share} {sessions}"]["lower"] for share in shares]
        axes.plot([100 * float(one) for one in shares], lower, "o-", color=color, label=f"{int(sessions):,} sessions")
    cost = [found["rows"][f"{share} 50000"]["cost"] for share in shares]
    axes.plot([100 * float(one) for one in shares], cost, "s--", color=COLORS[3], label="what shuffling costs")
    axes.axhline(found["gain"], color=FAINT, linewidth=1)
    axes.set_xlabel("shuffled pages in %")
    axes.set_ylabel("mean lower bound on the gain")
    axes.set_title(f"{found['pool']} candidates, {runs.SHOWN} shown (line: truth)")
    axes.legend(loc=(0.5, 0.6))


def _draw_deciding(axes: Any, found: dict[str, Any]) -> None:
    names = ["interleaving", "A/B first click, fixed", "A/B first click, looking", "A/B any click, fixed",
             "A/B any click, looking"]  # fmt: skip
    ab = found["A/B"]
    heights = [found["median"], ab["first"]["fixed"]["0.5"], ab["first"]["sequential median"],
               ab["clicked"]["fixed"]["0.5"], ab["clicked"]["sequential median"]]  # fmt: skip
    axes.barh(range(5)[::-1], heights, color=[COLORS[2], *[COLORS[0], COLORS[5]] * 2])
    axes.set_yticks(range(5)[::-1], names, fontsize=7)
    axes.set_xlabel("impressions until half of the runs decide")
    axes.set_title("Interleaving against A/B tests")


def main(arguments: list[str]) -> int:
    """Measure, draw and write; the exit code."""
    if arguments not in ([], ["--redraw"]):
        print("--redraw is the only argument", file=sys.stderr)
        return 2
    if not arguments:
        with writing(RESULTS) as part:
            part.write_text(json.dumps(measure()) + "\n", encoding="utf-8")
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    save_png(draw(found), FIGURE)
    if PAGE.exists():
        for name, part_of in PARTS.items():
            write_block(PAGE, name, part_of(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
