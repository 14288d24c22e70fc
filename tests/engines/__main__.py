"""``python3 run.py engines``: every engine that runs here ranks what rankwise ranks; ``--write`` stores the table."""

import argparse
import copy
import json
import sys
import time

import numpy as np

import rankwise as rw
from experiments import engines as page
from experiments.pages import write_block
from rankwise._files import writing
from rankwise.errors import RankwiseError
from rankwise.exports import targets
from rankwise.exports.parity import parity_of
from rankwise.measures import parse
from tests.engines import cases, java
from tests.engines.databases import DATABASES, Unavailable
from tests.engines.solr import Solr, whole_loop


class Row:
    """What one engine has shown: the sums and the largest of all comparisons."""

    def __init__(self, engine, version, proved):
        self.facts = {"engine": engine, "version": version, "proved": proved, "models": 0, "refused": 0}
        self.facts |= {
            "documents": 0,
            "pairs": 0,
            "inverted": 0,
            "beyond_float32": 0,
            "difference": 0.0,
            "unlike_check": 0.0,
        }
        self.wrong = []

    def add(self, queries, own, engine, done, what):
        """Compare the scores of one model: with the ranker's, and with those that the check of the export computes."""
        if not np.isfinite(engine).all():
            self.wrong.append(f"{what}: {np.sum(~np.isfinite(engine))} scores are not finite")
            return
        parity = parity_of(queries, own, engine, parse("nDCG@10"), "", done.dropped)
        facts = self.facts
        facts["models"] += 1
        facts["documents"] += parity.documents
        facts["pairs"] += parity.pairs
        facts["inverted"] += parity.inverted
        facts["beyond_float32"] += parity.inverted_beyond_float32
        checked = targets()[done.target]().score(done.files, queries.X, queries.feature_names)
        scale = max(1.0, parity.largest_score)
        unlike = float(np.max(np.abs(checked - engine))) / scale
        facts["difference"] = max(facts["difference"], parity.largest_difference / scale)
        facts["unlike_check"] = max(facts["unlike_check"], unlike)
        # features become float32 in some engines, which may invert a pair: the check of the export says so beforehand
        told = parity_of(queries, own, checked, parse("nDCG@10"), "", done.dropped).inverted_beyond_float32
        if parity.inverted_beyond_float32 > told or unlike > 1e-6:
            self.wrong.append(f"{what}: {parity.inverted_beyond_float32} pairs, {unlike:.1e} away from the check")

    def line(self):
        """One line for a person."""
        f = self.facts
        return (
            f"{f['engine']} {f['version']}: {f['models']} models ({f['refused']} it cannot hold), "
            f"{f['pairs']:,} pairs, {f['inverted']} inverted, {f['beyond_float32']} of them beyond float32; largest "
            f"difference {f['difference']:.1e}, {f['unlike_check']:.1e} from the check of the export"
        )


def exported(case, row, target, **options):
    """The files for a target; None for what it cannot hold, which is an error that says so."""
    ranker = case.ranker
    if target in ("solr", "ranklib", "elasticsearch") and case.gaps in ("", "zero"):  # which count gaps as 0
        ranker = copy.copy(ranker).set_params(missing="zero")
    if target in ("ranklib", "elasticsearch") and case.gaps == "median":  # the file has no defaults
        row.facts["refused"] += 1
        return None
    try:
        return rw.export(ranker, target, feature_names=case.test.feature_names, **options)
    except RankwiseError:
        row.facts["refused"] += 1
        return None


def title_of(case):
    return f"{case.name} on {case.data}"


def in_databases(kind, every):
    """The query in one database."""
    with kind() as base:
        row = Row(base.title, base.version, "the query, over a table with NULL for missing values")
        loaded = None
        for case in every:
            done = exported(case, row, "sql")
            if done is None:
                continue
            if loaded is not case.test:
                base.load(case.test.X, case.test.feature_names)
                loaded = case.test
            row.add(case.test, case.scores(), base.score(done.text), done, title_of(case))
    return row


def in_ranklib(every):
    """Models of RankLib, and those that the plugins hand to it."""
    program = java.ranklib()
    row = Row("RankLib (RankyMcRankFace)", program.version, "`ranklib` and `model/ranklib` files, loaded and scored")
    models = []
    for case in every:
        forms = [("ranklib", {})]
        forms += [("ranklib", {"form": "linear regression"})] if "Ridge" in case.name else []
        forms += [("elasticsearch", {"form": "ranklib"})]
        for target, options in forms:
            done = exported(case, row, target, **options)
            if done is None:
                continue
            text = done.text if target == "ranklib" else json.loads(done.text)["model"]["model"]["definition"]
            models.append((case, text, done, f"{title_of(case)}, {target} {options}"))
    found = program.score([(text, case.test.X, case.test.feature_names) for case, text, _, _ in models])
    for (case, _, done, what), scores in zip(models, found, strict=True):
        row.add(case.test, case.scores(), scores, done, what)
    return row


def in_vespa(every):
    """Every expression in Vespa's own evaluator."""
    program = java.vespa()
    row = Row("Vespa (searchlib)", program.version, "every expression parsed and evaluated, NaN for missing values")
    models = [(case, done) for case in every if (done := exported(case, row, "vespa")) is not None]
    tasks = []
    for case, done in models:
        names = [f"attribute({name})" for name in case.test.feature_names]
        tasks.append((java.expressions(done.text), case.test.X, names))
    for (case, done), scores in zip(models, program.score(tasks), strict=True):
        row.add(case.test, case.scores(), scores, done, title_of(case))
    return row


def in_solr(every):
    """Uploads to the stores and re-ranking; then the whole loop on every set."""
    with Solr() as solr:
        proved = "features and models uploaded to the stores, re-ranking, documents without a field"
        row = Row("Apache Solr, LTR module", solr.version, proved)
        loaded = None
        for case in every:
            done = exported(case, row, "solr", called="model")
            if done is None:
                continue
            if loaded is not case.test:
                solr.index(case.test)
                loaded = case.test
            solr.put(done.files)
            scores, ranked = solr.score("model")
            row.add(case.test, case.scores(), scores, done, title_of(case))
            if any((np.diff(scores[places]) > 0).any() for places in ranked):
                row.wrong.append(f"{title_of(case)}: Solr does not return its documents by score")
        proved = "the whole loop: index, log features, `read_ltr_log`, train, certify, export, upload, re-rank"
        loop = Row("Apache Solr, LTR module", solr.version, proved)
        for title, train, test in cases.generated():
            own, scores, done = whole_loop(solr, train, test)
            loop.add(test, own, scores, done, f"the loop on {title}")
    return [row, loop]


def main():
    parser = argparse.ArgumentParser(prog="run.py engines", description=__doc__.replace("``", ""))
    parser.add_argument("--write", action="store_true", help="store docs/engines.json, and write its table")
    parser.add_argument("engines", nargs="*", help="sqlite, duckdb, postgresql, ranklib, vespa or solr; all by default")
    options = parser.parse_args()
    began = time.monotonic()
    runs = {kind.name: lambda every, kind=kind: in_databases(kind, every) for kind in DATABASES}
    runs |= {"ranklib": in_ranklib, "vespa": in_vespa, "solr": in_solr}
    chosen = options.engines or list(runs)
    unknown = sorted(set(chosen) - set(runs))
    if unknown:
        parser.error(f"engines must be {', '.join(runs)}, got {', '.join(unknown)}")
    every = list(cases.cases())
    print(f"{len(every)} rankers in {time.monotonic() - began:.0f} s", flush=True)
    rows, absent = [], []
    for name in chosen:
        try:
            found = runs[name](every)
        except Unavailable as reason:
            absent.append(f"{name} ({reason})")
            continue
        for row in found if isinstance(found, list) else [found]:
            rows.append(row)
            print(f"{row.line()}; {time.monotonic() - began:.0f} s", flush=True)
    if absent:
        print(f"engines that did not run here: {'; '.join(absent)}", flush=True)
    wrong = [f"{row.facts['engine']}: {one}" for row in rows for one in row.wrong]
    for one in wrong:
        print(f"WRONG: {one}")
    if options.write and not wrong:
        if absent or options.engines:
            print("nothing is stored: the table is of all engines", file=sys.stderr)
            return 2
        with writing(page.RESULTS) as part:
            part.write_text(json.dumps([row.facts for row in rows], indent=1) + "\n", encoding="utf-8")
        write_block(page.PAGE, "engines", page.table([row.facts for row in rows]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
