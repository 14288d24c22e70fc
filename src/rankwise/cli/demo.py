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

    from rankwise.data.diagnose import diagnose
    from rankwise.data.folds import split
    from rankwise.data.synthetic import make_lists
    from rankwise.evaluation.evaluate import evaluate
    from rankwise.evaluation.significance import significance

    console = Console()
    lists = make_lists(queries, random_state=seed)
    console.print(f"[bold]1. Judged lists[/bold], made by a documented generator: {lists}", highlight=False)
    print(diagnose(lists))

    train, _, test = split(lists, (0.6, 0.2, 0.2), random_state=seed)
    names = lists.feature_names or ()
    measures = ["nDCG@10", "AP", "RR"]
    on_train = {
        name: evaluate(train, train.X[:, column], ["nDCG@10"]).mean["nDCG@10"] for column, name in enumerate(names)
    }
    order = sorted(names, key=lambda name: -on_train[name])
    console.print(
        f"\n[bold]2. Baselines[/bold]: each feature alone ranks the {len(train)} training queries; "
        f"the two best go to the {len(test)} test queries, beside chance",
        highlight=False,
    )
    rankers = {
        "chance": np.random.default_rng(seed).normal(size=test.n_documents),
        **{name: test.X[:, names.index(name)] for name in order[:2]},
    }
    results = {name: evaluate(test, scores, measures) for name, scores in rankers.items()}
    for name, result in results.items():
        console.print(f"ranked by [bold]{name}[/bold]", highlight=False)
        console.print(result.table().rich())

    console.print("\n[bold]3. Is the difference real?[/bold] Fisher's randomisation test, Holm's correction", highlight=False)
    console.print(significance(results, baseline=order[0]).rich())
    console.print(
        "\nNext: [bold]rankwise inspect[/bold] YOUR.txt, [bold]rankwise evaluate[/bold] YOUR.txt YOUR.scores, "
        "[bold]rankwise convert[/bold] YOUR.txt YOUR.rankwise",
        highlight=False,
    )
