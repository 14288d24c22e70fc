"""Help that tells the truth: every example runs, options mean the same everywhere, and the shell completes."""

import gzip
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import lightgbm
import numpy as np
import pytest
import typer

import rankwise as rw
from rankwise.cli import app, main
from rankwise.cli import wording as completion
from rankwise.cli.wording import in_shell
from rankwise.rankers._base import registered

COMMANDS = {command.name: command for command in app.registered_commands}
EXAMPLES = [
    (name, line.removeprefix("Example: "))
    for name, command in COMMANDS.items()
    for line in command.help.split("\n\n")
    if line.startswith("Example: ")
]
ENDLESS = ("rankwise serve",)  # tests/serve/test_commands.py runs it
SLOW = ("rankwise compare", "rankwise report", "rankwise demo", "rankwise train", "rankwise warm")
IN_LINES = ("rankwise demo", "rankwise warm")  # print their progress where there is no terminal


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Small files under the names that the examples use."""
    folder = tmp_path_factory.mktemp("examples")
    lists = rw.make_lists(24, documents=(3, 8), features=4, random_state=3)
    lists = lists._replace(feature_names=None)
    parts = dict(zip(("train", "vali", "test"), rw.split(lists, (0.5, 0.25, 0.25), random_state=0), strict=True))
    (folder / "OHSUMED" / "Fold1").mkdir(parents=True)
    for name, part in parts.items():
        rw.write_letor(part, folder / f"{name}.txt")
        rw.write_letor(part, folder / "OHSUMED" / "Fold1" / f"{name}.txt")
        (folder / f"{name}.txt.gz").write_bytes(gzip.compress((folder / f"{name}.txt").read_bytes()))
    rw.write_letor(lists, folder / "judged.txt")
    (folder / "clicks.txt.gz").write_bytes(gzip.compress((folder / "judged.txt").read_bytes()))
    owner, names = lists.query_of_row, lists.names()
    rows = [f"{names[owner[i]]},u{i},{lists.y[i]:.0f},{','.join(map(repr, x))}" for i, x in enumerate(lists.X.tolist())]
    (folder / "my.csv").write_text("\n".join(["query,url,grade,a,b,c,d", *rows]) + "\n")
    (folder / "new.csv").write_text(
        "\n".join(["query,a,b,c,d", *(",".join(np.array(row.split(","))[[0, 3, 4, 5, 6]]) for row in rows)]) + "\n"
    )
    table_with_texts(folder, lists)
    test = parts["test"]
    trees = lightgbm.Dataset(parts["train"].X, parts["train"].y, group=parts["train"].sizes)
    settings = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 2}
    lightgbm.train(settings, trees, 2).save_model(folder / "lightgbm.txt")
    for name, column in (("bm25", 0), ("model", 1), ("other", 2)):
        (folder / f"{name}.scores").write_text("".join(f"{score!r}\n" for score in test.X[:, column].tolist()))
    (folder / "all.scores").write_text("".join(f"{score!r}\n" for score in lists.X[:, 0].tolist()))
    model = rw.RidgeRanker().fit(parts["train"])
    model.save(folder / "model.rankwise")
    rw.cutoff(model, parts["test"], "recall>=0.2").save(folder / "cutoff.json")
    other = rw.make_lists(24, documents=(3, 8), features=4, random_state=4)  # evaluate warns of queries that were seen
    for name, some in (("m", other), ("new", other[:12]), ("old", other[12:])):
        rw.RidgeRanker().fit(some._replace(feature_names=("a", "b", "c", "d"))).save(folder / f"{name}.rankwise")
    service_state(folder)
    return folder


def table_with_texts(folder, lists):
    """A table with the names of columns that need no options, and tables about its documents and queries."""
    names = lists.names()
    rows = {"judged.csv": ["qid,docid,label,a,b,c,d"], "titles.csv": ["docid,title"], "texts.csv": ["qid,text,country"]}
    for row, x in enumerate(lists.X.tolist()):
        query = names[lists.query_of_row[row]]
        rows["judged.csv"].append(f"{query},u{row},{lists.y[row]:.0f},{','.join(map(repr, x))}")
        rows["titles.csv"].append(f"u{row},Page {row}")
    for place, query in enumerate(names):
        rows["texts.csv"].append(f"{query},words of {query},{('north', 'south')[place % 2]}")
    for name, lines in rows.items():
        (folder / name).write_text("\n".join(lines) + "\n")


def service_state(folder):
    """The state of a service with some events, for commands that read one."""
    from rankwise.serve.service import Service
    from rankwise.serve.structs import Feedback, RankRequest

    rw.SLAMPerceptron().fit(rw.make_lists(5, features=2, random_state=0)).save(folder / "learner.rankwise")
    service = Service(folder / "state.db", {"learner": folder / "learner.rankwise"})
    for number in range(24):
        shown = service.rank(RankRequest(ids=["a", "b"], x=[[1.0, number], [number, 1.0]]))
        service.feedback(Feedback(f"event {number}", shown.ranking, grades={"b": 1.0})).result(10)
    service.close()


def test_every_command_has_an_example():
    assert {name for name, _ in EXAMPLES} == set(COMMANDS)
    assert len(COMMANDS) >= 11


@pytest.mark.parametrize("example", [line for _, line in EXAMPLES if not line.startswith(SLOW + ENDLESS)])
def test_an_example_runs_as_it_stands(example, files, tmp_path, monkeypatch, capsys):
    run_example(example, files, tmp_path, monkeypatch, capsys)


PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"
ON_PAGE = [line for line in re.findall(r"`(rankwise [^`]*)`", PAGE.read_text()) if line.split()[1] in COMMANDS]
NO_EXAMPLE = ("--help", "MODEL")


def test_the_page_of_the_documentation_names_every_command():
    assert {line.split()[1] for line in ON_PAGE} == set(COMMANDS)


@pytest.mark.parametrize(
    "example",
    [line for line in ON_PAGE if not line.startswith(SLOW + ENDLESS) and not any(word in line for word in NO_EXAMPLE)],
)
def test_an_example_of_the_page_runs_as_it_stands(example, files, tmp_path, monkeypatch, capsys):
    run_example(example, files, tmp_path, monkeypatch, capsys)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "example", [line for line in [*ON_PAGE, *(line for _, line in EXAMPLES)] if line.startswith(SLOW)]
)
def test_a_longer_example_runs_as_it_stands(example, files, tmp_path, monkeypatch, capsys):
    run_example(example, files, tmp_path, monkeypatch, capsys)


def run_example(example, files, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "here"
    shutil.copytree(files, folder)
    monkeypatch.chdir(folder)
    command = example
    if example.startswith("zcat "):
        packed, _, command = example.removeprefix("zcat ").partition(" | ")
        unpacked = io.BytesIO(gzip.decompress((folder / packed).read_bytes()))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(unpacked))
    if command.startswith("rankwise train"):
        (folder / "model.rankwise").unlink()
    if "bm25=bm25.scores" in command:  # scores of the lists that are compared on
        (folder / "all.scores").rename(folder / "bm25.scores")
    if command.startswith("rankwise train lists/"):
        rw.io.write_parts(folder / "judged.txt", folder / "lists")
    if "svm_rank.model" in command:
        pytest.importorskip("rankwise.exports")
        lines = ("SVM-light Version V6.20", "0 # kernel type", "0 # threshold b", "1 1:0.5 2:-1.5 3:0.25 4:1 #")
        (folder / "svm_rank.model").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    code = main()
    said = capsys.readouterr().err
    # a model that does not pass is an answer, too, and so is a demand that a few queries cannot show
    answers = {"rankwise gate": (0, 1), "rankwise cutoff": (0, 3)}
    assert code in answers.get(" ".join(command.split()[:2]), (0,)), said
    if command.startswith("rankwise train lists/"):  # says how long it will take
        assert re.fullmatch(r"rankwise: about [\d,]+ passes .*\n", said)
    else:
        assert "rankwise:" not in said if command.startswith(IN_LINES) else said == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_into_eighty_columns(run, name):
    code, out, _ = run(name, "--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out


def every_command():
    """Each command by its words, those of clicks too."""
    group = typer.main.get_command(app)
    clicks = group.commands["clicks"]
    return {
        **{(): group, ("clicks",): clicks},
        **{(name,): command for name, command in group.commands.items()},
        **{("clicks", name): command for name, command in clicks.commands.items()},
    }


def test_a_flag_has_no_type_in_help(run):
    for words in every_command():
        out = run(*words, "--help")[1]
        assert "bool" not in out, words


def test_commands_stand_in_panels(run):
    out = run("--help")[1]
    panels = re.findall(r"^╭─ (\w+) ─+╮$", out, re.MULTILINE)
    assert panels == ["Options", "Start", "Data", "Model", "Online", "Output"]


def test_no_panel_is_a_heap():
    for words, command in every_command().items():
        options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
        lacking = [one.opts[0] for one in options if one.rich_help_panel is None]
        assert len(lacking) <= 8, f"{words}: declare some by model_option or another function of cli/options.py"


def test_the_options_of_train_come_in_the_order_of_panels(run):
    out = run("train", "--help")[1]
    panels = [name.split(" (")[0] for name in re.findall(r"^╭─ (.+?) ─+╮$", out, re.MULTILINE)]
    assert panels == ["Arguments", "Data", "Columns of a table", "Model", "Online", "Parts", "Output"]


def test_options_mean_the_same_in_every_command():
    known: dict[str, set[str]] = {}
    for command in typer.main.get_command(app).commands.values():
        for parameter in command.params:
            for option in parameter.opts:
                if re.fullmatch("-[a-zA-Z]", option):
                    known.setdefault(option, set()).update(o for o in parameter.opts if o.startswith("--"))
    assert known["-m"] == {"--measure"}
    assert known["-j"] == {"--jobs"}
    assert known["-r"] == {"--ranker"}


def test_every_command_that_prints_results_has_json():
    commands = typer.main.get_command(app).commands
    clicks = commands.pop("clicks").commands  # a command with commands of its own
    for name, command in {**commands, **{f"clicks {name}": one for name, one in clicks.items()}}.items():
        assert "--json" in {option for parameter in command.params for option in parameter.opts}, name


def completions(words):
    """What the shell is offered after these words, as bash asks for it."""
    environment = {**os.environ, "_RANKWISE_COMPLETE": "complete_bash", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(len(words.split(" ")) - 1)
    done = subprocess.run(
        [sys.executable, "-c", "from rankwise.cli import main; main()"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("rankwise ra", {"rank"}),
        ("rankwise evaluate --tie", {"--ties", "--tie-range"}),
        ("rankwise inspect x --missing ", {"error", "zero", "min", "keep"}),
        ("rankwise train x --ranker Smo", {"SmoothRank"}),
        ("rankwise train x -m nD", {"nDCG@10", "nDCG"}),
    ],
)
def test_the_shell_completes(words, offered):
    assert offered == set(completions(words))


def test_completion_can_be_shown_and_installed(tmp_path):
    command = f"{shlex.quote(sys.executable)} -m rankwise"
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", f"{command} --show-completion; {command} --install-completion; true"],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert "_RANKWISE_COMPLETE=complete_bash" in done.stdout
    assert "rankwise.sh" in (tmp_path / ".bashrc").read_text()


def test_completion_knows_every_ranker_of_the_package():
    own = {name for name, kind in registered().items() if kind.__module__.startswith("rankwise.")}
    assert own <= set(completion.rankers(""))


def test_help_starts_no_compiler():
    code = "import sys, rankwise.cli; print({'numba', 'sklearn', 'scipy'}.intersection(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("give missing='zero' or missing='min'", "give --missing zero or --missing min"),
        ("declare row_radius= and longest=", "declare --row-radius and --longest"),
        ("mean by grades={'bad': 0, 'very good': 1}", "mean by --labels 'bad=0,very good=1'"),
        ("leave it out by ignore=['url']", "leave it out by --ignore url"),
        ("give qid='its name'", "give --qid NAME"),
        ("take it for docid='the url'", "take it for --docid 'the url'"),
        ("is beyond n_features=4", "is beyond --features 4"),
        ("pass zero_based=True", "pass --first-id 0"),
        ("labels must be 0 or more", "labels must be 0 or more"),
    ],
)
def test_arguments_are_told_as_options(sentence, said):
    assert in_shell(sentence) == said


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("choose empty='skip', 'zero' or 'one' when evaluating", "choose --empty skip, zero or one when evaluating"),
        ("give missing='zero' or 'min', or clean it", "give --missing zero or min, or clean it"),
        ("give unjudged='drop' or 'zero'", "give --unjudged drop or zero"),
        ("give missing='zero' or missing='min'", "give --missing zero or --missing min"),
        ("give label='a b', 'c' and more", "give --label 'a b', c and more"),
        ("feature 'x' is 'y' or 'z'", "feature 'x' is 'y' or 'z'"),
        ("pass n_features=7 to allow it", "pass --features 7 to allow it"),
    ],
)
def test_n9_the_values_of_an_option_are_typed_without_quotes(said, typed):
    assert in_shell(said) == typed


EXPORT = {"shift": "--shift", "sample": "--sample", "names": "--features", "option": "--option"}


@pytest.mark.parametrize(
    ("said", "typed", "options"),
    [
        ("export with shift='sample' (or a number)", "export with --shift sample (or a number)", EXPORT),
        ("above 0: give sample=", "above 0: give --sample", EXPORT),
        ("leave out shift=", "leave out --shift", EXPORT),
        ("bm25(title); give feature_names=", "bm25(title); give --features", EXPORT),
        ("or give scaling='none' if", "or give --option scaling=none if", EXPORT),
        ("form='linear regression' keeps it", "--option 'form=linear regression' keeps it", EXPORT),
        ("use scale='auto'", "use --set scale=auto", {"setting": "--set"}),
        (
            "use the linear gain, nDCG(dcg='log2'), or",
            "use the linear gain, nDCG(dcg='log2'), or",
            {"setting": "--set"},
        ),
        ("choose random_state=3", "choose --seed 3", {"seed": "--seed"}),
        ("harvest requires two or more", "--how harvest requires two or more", {}),
        ("a good harvest", "a good harvest", {}),
        ("shift must be a number or 'sample', got 'x'", "--shift must be a number or 'sample', got 'x'", EXPORT),
        ("feature_names must be unique, got 'a' twice", "--features must be unique, got 'a' twice", EXPORT),
        ("n_jobs must be at least 1, got 0", "--jobs must be at least 1, got 0", {"jobs": "--jobs"}),
        ("The 'sizes' parameter of split must be floats", "--parts must be floats", {"parts": "--parts"}),
        ("sizes must add up to 1, got [0.5]", "--parts must add up to 1, got [0.5]", {"parts": "--parts"}),
        ("queries_needed: sd must be above 0, got -1", "certify: --sd must be above 0, got -1", {"sd": "--sd"}),
        ("features must be finite, got nan", "features must be finite, got nan", {"features": "--features"}),
        ("weights must be 3 numbers", "weights must be 3 numbers", {"weights": "--weights"}),
        ("weights must be one of 'a', 'b'", "--weights must be one of 'a', 'b'", {"weights": "--weights"}),
        ("delta must be between 0 and 1", "delta must be between 0 and 1", {}),
        ("ClickLog.join: session 3 has one: pass unknown='drop' to", "session 3 has one: pass --drop-unknown to", {}),
    ],
)
def test_w19_messages_name_the_options_of_the_command(said, typed, options):
    assert in_shell(said, options) == typed


def test_w19_an_error_names_the_options_of_the_command_that_ran(run, files, monkeypatch):
    monkeypatch.chdir(files)
    code, _, error = run("export", "model.rankwise", "--to", "solr", "--shift", "sample")
    assert code == 2
    assert "--shift sample makes the scores of a sample positive: pass --sample" in error
    assert "shift=" not in error


def test_n8_a_warning_on_the_command_line_is_a_sentence(run, tmp_path):
    text = "".join(f"1 qid:{row // 5} 1:{row} 2:{row % 4}\n" for row in range(50))
    (tmp_path / "a.txt").write_text(text)
    model = tmp_path / "m.rankwise"
    code, _, err = run("train", tmp_path / "a.txt", "--ranker", "RidgeRanker", "--set", "alpha=1.0", "-o", model)
    assert code == 0, err
    assert err.startswith("rankwise: warning: RidgeRanker has nothing to learn: no query holds documents with")
    assert err.count("\n") == 1
