"""A progress bar is drawn on terminals only and leaves nothing behind."""

import os
import subprocess
import sys
import textwrap

import pytest

from rankwise import _progress
from rankwise._progress import progress, track

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")


def on_a_terminal(code: str) -> str:
    """Run code in a new Python whose standard error is a terminal; return what the terminal was sent."""
    reader, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stderr=terminal,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "80", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    os.close(terminal)
    sent = b""
    try:
        while part := os.read(reader, 4096):
            sent += part
    except OSError:  # how Linux says that the other side has closed
        pass
    os.close(reader)
    process.wait()
    return sent.decode()


CURSOR_HIDDEN, CURSOR_SHOWN, LINE_ERASED = "\x1b[?25l", "\x1b[?25h", "\x1b[2K"


def test_a_terminal_shows_a_bar_and_is_clean_afterwards():
    sent = on_a_terminal("""
        from rankwise._progress import track
        for _ in track(range(3), "counting [sheep]"):
            pass
    """)
    assert "counting [sheep]" in sent
    assert "100%" in sent
    assert sent.rindex(CURSOR_SHOWN) > sent.rindex(CURSOR_HIDDEN)
    assert sent.endswith(LINE_ERASED)


def test_the_terminal_is_clean_when_the_work_is_broken_off():
    sent = on_a_terminal("""
        import sys
        from rankwise._progress import track
        try:
            for item in track(range(3), "counting"):
                if item == 1:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)  # before the interpreter has a chance to tidy up
    """)
    bar, _, after = sent.rpartition("stopped")
    assert "counting" in bar
    assert bar.rindex(CURSOR_SHOWN) > bar.rindex(CURSOR_HIDDEN)
    assert bar.endswith(LINE_ERASED)
    assert after.strip() == ""


@pytest.mark.parametrize("setting", ["enabled=False", "total=None, enabled=False"])
def test_a_bar_can_be_switched_off_on_a_terminal(setting):
    assert (
        on_a_terminal(f"""
        from rankwise._progress import track
        list(track(range(3), "counting", {setting}))
    """)
        == ""
    )


def test_a_terminal_that_cannot_redraw_gets_no_bar():
    assert (
        on_a_terminal("""
        import os
        os.environ["TERM"] = "dumb"
        from rankwise._progress import track
        list(track(range(3), "counting"))
    """)
        == ""
    )


def test_work_of_unknown_length_is_shown_too():
    assert "counting" in on_a_terminal("""
        from rankwise._progress import track
        list(track(iter(range(3)), "counting"))
    """)


def test_away_from_a_terminal_nothing_is_drawn_and_nothing_imported():
    code = """
        import sys
        from rankwise._progress import progress, track
        assert list(track(range(3), "counting", enabled=True)) == [0, 1, 2]
        with progress("counting", 3) as bar:
            bar.advance(2)
        print([name for name in sys.modules if name.partition(".")[0] == "rich"])
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, env=environment, text=True
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[]", "")


def lines_of(code):
    """What a process without a terminal prints to standard error."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, env=environment, text=True, check=False
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_progress_in_lines_says_what_is_done_where_there_is_no_terminal():
    first, *between, last = lines_of("""
        import threading
        from rankwise import _progress
        _progress._LINE_EVERY = 0.01
        printed = threading.Event()
        say = _progress._say
        _progress._say = lambda text: (say(text), "2 of 3 done" in text and printed.set())
        with _progress.in_lines(), _progress.progress("counting", 3) as bar:
            bar.advance(2)
            assert _progress.remark("sheep")
            printed.wait(60)
        assert not _progress.remark("sheep")
    """)
    assert first == "counting: 3 to do"
    assert "counting: 2 of 3 done, 0 s, at most about 0 s left (sheep)" in between
    assert last == "counting: done in 0 s"


def test_w18_long_work_reports_its_innermost_part_now_and_then():
    between = lines_of("""
        import threading
        from rankwise import _progress
        _progress._REPORT_AFTER = _progress._REPORT_EVERY = 0.01
        printed = threading.Event()
        say = _progress._say
        _progress._say = lambda text: (say(text), "2 of 3 done" in text and printed.set())
        with _progress.report_progress("training X"), _progress.progress("counting", 3) as bar:
            bar.advance(2)
            assert printed.wait(60)
        with _progress.progress("counting", 3):
            pass
    """)
    assert "training X: 0 s; counting: 2 of 3 done, 0 s, at most about 0 s left" in between


def test_progress_in_lines_ends_without_a_word_on_an_error():
    said = lines_of("""
        from rankwise._progress import in_lines, progress
        try:
            with in_lines(), progress("counting"):
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
    """)
    assert said == ["counting ..."]


def test_a_bar_shows_what_it_waits_for():
    sent = on_a_terminal("""
        from rankwise._progress import progress, remark
        with progress("outer"), progress("inner", 3) as bar:
            assert remark("[a sheep]")
            bar._display._bar.refresh()
            remark("")
    """)
    assert "inner ([a sheep])" in sent


def test_an_error_in_the_work_is_not_swallowed():
    with pytest.raises(ZeroDivisionError), progress("dividing", 1):
        raise ZeroDivisionError


@pytest.mark.parametrize("stream", [None, "closed"])
def test_no_standard_error_means_no_bar(monkeypatch, tmp_path, stream):
    if stream == "closed":
        stream = (tmp_path / "closed").open("w")
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    assert list(track([1, 2], "counting")) == [1, 2]


def test_rows_and_bytes_per_second_are_shown(monkeypatch):
    shown, clock = [], iter([0.0, 0.1, 2.0, 4.0])

    class Silent:
        def __init__(self, what, total):
            pass

        def advance(self, amount):
            pass

        def stop(self, finished):
            pass

        def remark(self, text):
            shown.append(text)

    monkeypatch.setattr(_progress, "on_terminal", lambda: True)
    monkeypatch.setattr(_progress, "_Bar", Silent)
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(clock))
    with _progress.throughput("reading", 100e6) as bar:
        bar.advance_rows(0, 1e6)  # too soon
        bar.advance_rows(0, 3e6)
        bar.advance_rows(2000, 4e6)
    assert shown == ["2.0 MB/s", "500 rows/s, 2.0 MB/s"]
