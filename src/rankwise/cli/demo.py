"""``rankwise demo``: the whole way on embedded lists: make, inspect, split, measure, compare."""

from typing import Annotated

import typer


def demo(
    queries: Annotated[int, typer.Option(min=20, help="Queries to make.")] = 400,
    seed: Annotated[int, typer.Option(help="Seed of the lists.")] = 0,
) -> None:
    """Make web-search-like judged lists, rank them by single features, and say how sure the difference is.

    Example: rankwise demo --queries 200
    """
    import numpy as np
    from rich.console import Console

    from rankwise._tables import Table
    from rankwise.data.diagnose import diagnose
    from rankwise.data.folds import split
    from rankwise.data.synthetic import make_lists
    from rankwise.evaluation.evaluate import evaluate
    from rankwise.evaluation.significance import significance

    console = Console(highlight=False)
    lists = make_lists(queries, random_state=seed)
    console.print("[bold]1. Judged lists, made by a documented generator (rankwise.make_lists)[/bold]\n")
    print(diagnose(lists))

    train, _, test = split(lists, (0.6, 0.2, 0.2), random_state=seed)
    names = lists.feature_names or ()
    on_train = {name: evaluate(train, train.X[:, place], "nDCG@10").mean["nDCG@10"] for place, name in enumerate(names)}
    best = sorted(names, key=lambda name: -on_train[name])[:3]
    rankers = {
        **{name: test.X[:, names.index(name)] for name in best},
        "chance": np.random.default_rng(seed).normal(size=test.n_documents),
    }
    results = {name: evaluate(test, scores, ["nDCG@10", "AP", "RR"]) for name, scores in rankers.items()}

    console.print(
        f"\n[bold]2. Baselines: the three features that rank the {len(train)} training queries best, "
        f"on the {len(test)} test queries[/bold]"
    )
    bounds = {name: result.interval(0.95)["nDCG@10"] for name, result in results.items()}
    league = {
        "ranked by": list(results),
        "nDCG@10": [result.mean["nDCG@10"] for result in results.values()],
        "low": [low for low, _ in bounds.values()],
        "high": [high for _, high in bounds.values()],
        "AP": [result.mean["AP"] for result in results.values()],
        "RR": [result.mean["RR"] for result in results.values()],
    }
    console.print(Table(league).rich())
    skipped = results[best[0]].skipped["AP"]
    print(f"Means over {len(test) - skipped} queries; {skipped} without a relevant document are skipped.")

    console.print(
        f"\n[bold]3. Is the difference to {best[0]} real?[/bold] Fisher's randomisation test, Holm's correction"
    )
    tests = significance(results, baseline=best[0])
    shown = ("measure", "ranker", "difference", "low", "high", "p_corrected", "wins", "losses")
    console.print(Table({column: tests[column] for column in shown}).rich())
    console.print(
        "\nNext: [bold]rankwise inspect[/bold] YOUR.txt, [bold]rankwise evaluate[/bold] YOUR.txt YOUR.scores, "
        "[bold]rankwise convert[/bold] YOUR.txt YOUR.rankwise"
    )
