"""Apache Solr over HTTP: fields of documents, the stores of features and models, logged features, and re-ranking."""

import contextlib
import json
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import numpy as np

import rankwise as rw
from tests.engines.cases import filled
from tests.engines.java import HERE, prepare, version_of

MOST = 100_000  # documents of a query


class Solr:
    """A server with one core, and documents of one set of queries."""

    name, title = "solr", "Apache Solr"

    def __enter__(self):
        path = prepare("solr")
        self.version = version_of("solr")
        self.folder = Path(tempfile.mkdtemp(prefix="rankwise-solr-"))
        try:
            shutil.copytree(HERE / "solr" / "home", self.folder / "home")
            core = self.folder / "home" / "documents"
            core.mkdir()
            (core / "core.properties").write_text("name=documents\nconfigSet=ltr\n")
            self.log = (self.folder / "log").open("w")
            log = f"-Dsolr.log.dir={self.folder}"
            command = ["java", "-Xmx1g", "-Xss16m", log, "-cp", path, "SolrServer", str(self.folder / "home")]
            streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.log}
            self.process = subprocess.Popen(command, text=True, **streams)
            for line in self.process.stdout:
                if line.startswith("port "):
                    self.address = f"http://127.0.0.1:{line.split()[1]}/solr/documents"
                    return self
            raise RuntimeError((self.folder / "log").read_text()[-2000:])
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if hasattr(self, "process"):
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
            self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def send(self, path, body=None, method=None, **parameters):
        """What Solr answers; an error of Solr's is one here."""
        address = f"{self.address}{path}?{urllib.parse.urlencode({'wt': 'json', **parameters})}"
        data = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        headers = {"Content-type": "application/json"}
        request = urllib.request.Request(address, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"Solr refused {method or ''} {path}: {error.read().decode()[:500]}") from error

    def index(self, queries):
        """Documents with the features as fields; one that is missing is a field that is missing."""
        self.send("/update", {"delete": {"query": "*:*"}}, "POST", commit="true")
        self.rows = [range(low, high) for low, high in zip(queries.start[:-1], queries.start[1:], strict=True)]
        documents = []
        for query, places in enumerate(self.rows):
            for place in places:
                row = zip(queries.feature_names, queries.X[place].tolist(), strict=True)
                fields = {name: one for name, one in row if one == one}
                documents.append({"id": str(place), "query": f"q{query}", **fields})
        for first in range(0, len(documents), 2_000):
            self.send("/update", documents[first : first + 2_000], "POST")
        self.send("/update", {"commit": {}}, "POST")
        self.n_documents = len(documents)

    def put(self, files):
        """Upload features and a model, as the page on production does by curl."""
        features = json.loads(files["features.json"])
        self.forget(features[0]["store"], json.loads(files["model.json"])["name"])
        self.send("/schema/feature-store", files["features.json"], "PUT")
        self.send("/schema/model-store", files["model.json"], "PUT")

    def forget(self, store, model):
        """Remove what another test left."""
        for path in (f"/schema/model-store/{model}", f"/schema/feature-store/{store}"):
            with contextlib.suppress(RuntimeError):
                self.send(path, method="DELETE")

    def each_query(self, **parameters):
        """The documents of every query, in Solr's order."""
        for query in range(len(self.rows)):
            given = {"q": f"query:q{query}", "rows": MOST, **parameters}
            yield self.send("/select", **given)

    def score(self, model):
        """The scores of all documents, and those of every query in the order in which Solr returns them."""
        scores, ranked = np.full(self.n_documents, np.nan), []
        for answer in self.each_query(fl="id,score", rq=f"{{!ltr model={model} reRankDocs={MOST}}}"):
            documents = answer["response"]["docs"]
            places = [int(one["id"]) for one in documents]
            scores[places] = [one["score"] for one in documents]
            ranked.append(places)
        return scores, ranked

    def logged(self, store):
        """The answer to every query, with the features that Solr logged, by query id."""
        # sparse: a field that is missing is no member, and so NaN for whoever reads the log
        answers = self.each_query(fl=f"id,[features store={store} format=sparse]")
        return {str(query): answer for query, answer in enumerate(answers)}


def drafts(names, store="rankwise"):
    """The features of a log before there is a model: fields of their names."""
    kind = "org.apache.solr.ltr.feature.FieldValueFeature"
    return [{"store": store, "name": name, "class": kind, "params": {"field": name}} for name in names]


def whole_loop(solr, train, test):
    """Index, log, learn, certify, export, upload and re-rank: (scores of the ranker, Solr's, the export)."""
    solr.index(train)
    solr.forget("rankwise", "loop")
    solr.send("/schema/feature-store", drafts(train.feature_names), "PUT")
    labels = {
        str(query): {str(place): float(train.y[place]) for place in places} for query, places in enumerate(solr.rows)
    }
    log = rw.io.read_ltr_log(solr.logged("rankwise"), labels, features=train.feature_names, missing="zero")
    assert log.n_documents == train.n_documents
    seen = np.argsort([int(one) for one in log.docid])
    expected = filled(train).X.astype(np.float32)
    np.testing.assert_allclose(log.X[seen], expected, rtol=1e-6)  # the log has as many digits as a float32
    learned, held_out = log[: 3 * len(log) // 4], log[3 * len(log) // 4 :]
    ranker = rw.RidgeRanker("nDCG@10", missing="zero").fit(learned)
    assert ranker.certificate(held_out).rows
    done = rw.export(ranker, "solr", sample=held_out, called="loop")
    solr.index(test)
    solr.put(done.files)
    scores, _ = solr.score("loop")
    return ranker.predict(filled(test)), scores, done
