"""Features that engines log into their search responses: the learning to rank plugins of Elasticsearch and OpenSearch,
and Solr's transformer of documents.

A search with an ``sltr`` query and ``ext.ltr_log`` returns, with every hit, ``fields._ltrlog[0].NAME``, a list of
{"name": feature, "value": number}. One of Solr with ``fl=id,[features]`` returns, with every document, a text
``feature=number,feature=number``. :func:`read_ltr_log` joins such responses with judgments. The response does not say
which query it answers: each is given under its query id.
"""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rankwise._parameters import validated
from rankwise.errors import DataError, FileFormatError
from rankwise.io.json_text import items_of, member, number_of, read_json, text_of
from rankwise.io.sources import plain_number
from rankwise.io.trec import as_qrels, by_query, with_judgments
from rankwise.queries.checks import Missing
from rankwise.queries.queries import Queries

logger = logging.getLogger(__name__)

Document = tuple[str, dict[str, float]]

_EXTRA = "extra_logging"  # what scripts of features log besides; its value is an object


@validated
def read_ltr_log(
    responses: Any,
    judgments: Any = None,
    *,
    qid: Sequence[Any] | None = None,
    log: str | None = None,
    features: Sequence[str] | None = None,
    missing: Missing = "error",
    unjudged: Literal["error", "drop", "zero"] = "error",
) -> Queries:
    """Read logged features and judgments as queries.

    Parameters
    ----------
    responses : path, binary file object, mapping or sequence of mappings
        Search responses: an object of query id to response; or one response per line (or per element), each with its
        query id as an additional member ``qid``; or, with ``qid=``, one response, a list of them, or the answer of
        ``_msearch``, in the order of ``qid``. Several responses of one query are put together.
    judgments : Qrels, path, data frame or mapping, default=None
        Judgments by query id and document id, as :func:`rankwise.io.from_trec` takes them, or a mapping of query id to
        mapping of document id to label. None: queries without labels, to be ranked.
    qid : sequence, default=None
        The query ids of responses that do not hold them.
    log : str, default=None
        The name of the log entry, ``name`` in ``log_specs``; in Solr the name of the member, ``[features]`` or its
        alias. None takes the only one.
    features : sequence of str, default=None
        The features to read, in this order; None takes all, in the order of their first appearance.
    missing : {"error", "zero", "min", "keep"}, default="error"
        What to do with features that did not match a document, which the plugin logs without a value, and with those
        that an entry lacks, as in :meth:`rankwise.Queries.from_arrays`. The plugin's models compute with 0 for them.
        Solr's dense format has defaults in their place, its sparse one leaves them out.
    unjudged : {"error", "drop", "zero"}, default="error"
        What to do with a hit that has no judgment: an error; leave it out; or label 0, marked as not judged.

    Returns
    -------
    queries : Queries
        In the order of the responses, with document ids and feature names.

    Raises
    ------
    FileFormatError
        If something is no search response with logged features; the message names the query and the document.
    DataError
        If a document is twice in a query, or has no judgment.

    Examples
    --------
    >>> logged = {"log_entry1": [{"name": "title", "value": 9.5}, {"name": "body"}]}
    >>> response = {"hits": {"hits": [{"_id": "1370", "fields": {"_ltrlog": [logged]}}]}}
    >>> read_ltr_log({"rambo": response}, {"rambo": {"1370": 3}}, missing="zero")
    Queries(1 query, 1 document, 2 features, labels 3 to 3)
    """
    documents: dict[str, dict[str, dict[str, float]]] = {}
    for query, response, where in _by_query_id(responses, qid):
        own = documents.setdefault(query, {})
        read = _solr_documents if isinstance(response, dict) and "response" in response else _hits
        for docid, values in read(response, log, where):
            if docid in own:
                raise DataError(f"{where}: document {docid!r:.60} occurs twice in query {query!r:.60}")
            own[docid] = values
    labels = None if judgments is None else _labels(judgments)
    if labels is not None:
        _report(labels, documents)
    rows = [
        (query, docid, values, None if labels is None else labels.get(query, {}).get(docid))
        for query, own in documents.items()
        for docid, values in own.items()
    ]
    if labels is not None and unjudged != "zero":
        rows = [row for row in rows if _keep(row, unjudged)]
    if not rows:
        raise DataError("the responses hold no judged documents")
    names = _names(rows, features)
    # a feature without a value is NaN here, whatever becomes of it
    X = np.array([[values.get(name, np.nan) for name in names] for _, _, values, _ in rows]).reshape(len(rows), -1)
    queries = Queries.from_arrays(
        X, qid=[row[0] for row in rows], docid=[row[1] for row in rows], feature_names=names, missing=missing
    )
    if labels is None:
        return queries
    return with_judgments(queries, [label for _, _, _, label in rows])


# ------------------------------------------------------------------------------------------- responses


def _by_query_id(given: Any, qid: Sequence[Any] | None) -> Iterator[tuple[str, Any, str]]:
    """(query id, response, its place) of every response."""
    named: list[tuple[str, Any]]
    if isinstance(given, (str, os.PathLike)) or hasattr(given, "read"):
        named = read_json(given)
    elif isinstance(given, Sequence):
        named = [(f"response {place:,}", one) for place, one in enumerate(given)]
    else:
        named = [("the response", given)]
    if len(named) == 1:
        where, value = named[0]
        if isinstance(value, dict) and isinstance(value.get("responses"), list):
            value = value["responses"]
        if isinstance(value, list):
            named = [(f"{where}, response {place:,}", one) for place, one in enumerate(value)]
    if qid is not None:
        ids = [qid] if isinstance(qid, str) else list(qid)
        if len(ids) != len(named):
            raise DataError(
                f"qid must hold one query id per response, got {len(ids):,} ids for {len(named):,} responses"
            )
        for one, (where, value) in zip(ids, named, strict=True):
            yield text_of(one, "a query id", where), value, f"{where} (query {str(one)!r:.60})"
        return
    for where, value in named:
        if isinstance(value, dict) and "qid" in value:
            query = text_of(value["qid"], "qid", where)
            yield query, value, f"{where} (query {query!r:.60})"
        elif isinstance(value, dict) and ("hits" in value or "responseHeader" in value):
            raise DataError(f"{where} does not say which query it answers: expected a member 'qid', or give qid=")
        else:
            for query, response in items_of(value, "responses by query id", where):
                yield query, response, f"{where}, query {query!r:.60}"


def _hits(response: Any, log: str | None, where: str) -> Iterator[Document]:
    """(document id, features) of every hit."""
    if isinstance(response, dict) and "error" in response:
        raise FileFormatError(f"{where} is an error of the engine, expected hits: {response['error']!r:.200}")
    if isinstance(response, dict) and response.get("timed_out") is True:
        raise FileFormatError(f"{where} timed out in the engine, and hits may be missing: search again")
    for hit in member(member(response, "hits", dict, where), "hits", list, f"{where}, hits"):
        docid = text_of(dict(items_of(hit, "a hit", where)).get("_id"), "the _id of a hit", where)
        place = f"{where}, document {docid!r:.60}"
        entries = member(member(hit, "fields", dict, place), "_ltrlog", list, f"{place}, fields")
        # one object per log entry, or all of them in one object
        logged = [pair for one in entries for pair in items_of(one, "_ltrlog", place)]
        logs = dict(logged)
        if len(logs) < len(logged):
            raise FileFormatError(f"{place}: a log entry occurs twice in _ltrlog")
        if log is None and len(logs) != 1:
            raise DataError(f"{place} has the log entries {', '.join(map(repr, logs)) or 'none'}: choose one by log=")
        name = next(iter(logs)) if log is None else log
        yield docid, _values(member(logs, name, list, f"{place}, _ltrlog"), place)


def _solr_documents(response: Any, log: str | None, where: str) -> Iterator[Document]:
    """(document id, features) of every document of Solr."""
    if isinstance(response.get("error"), dict):
        raise FileFormatError(f"{where} is an error of the engine, expected documents: {response['error']!r:.200}")
    documents = member(member(response, "response", dict, where), "docs", list, f"{where}, response")
    for document in documents:
        members = dict(items_of(document, "a document", where))
        docid = text_of(members.get("id"), "the id of a document", where)
        place = f"{where}, document {docid!r:.60}"
        logs = [name for name in members if name.startswith("[features")] if log is None else [log]
        if len(logs) != 1 or not isinstance(members.get(logs[0]), str):
            raise FileFormatError(f"{place} has no logged features: ask for fl=id,[features], or name them by log=")
        values: dict[str, float] = {}
        for pair in filter(None, members[logs[0]].split(",")):
            name, equals, value = pair.rpartition("=")
            number = plain_number(value) if equals else None
            if number is None or name in values:
                raise FileFormatError(f"{place}: expected feature=number, each once, got {pair!r:.60}")
            values[name] = number
        yield docid, values


def _values(entry: list[Any], where: str) -> dict[str, float]:
    """feature -> value, NaN where it did not match."""
    values: dict[str, float] = {}
    for one in entry:
        name = member(one, "name", str, where)
        if name == _EXTRA and isinstance(one.get("value"), dict):
            continue
        if name in values:
            raise FileFormatError(f"{where}: feature {name!r:.60} occurs twice in the log entry")
        values[name] = number_of(one["value"], f"the value of {name!r:.60}", where) if "value" in one else np.nan
    return values


# ------------------------------------------------------------------------------------------- joining


def _labels(judgments: Any) -> Mapping[str, Mapping[str, float]]:
    """query -> document -> label."""
    if isinstance(judgments, Mapping):
        return {
            str(query): {
                str(docid): number_of(label, f"the label of document {docid!r:.60}", f"query {query!r:.60}")
                for docid, label in items_of(documents, "labels by document", f"query {query!r:.60}")
            }
            for query, documents in judgments.items()
        }
    qrels = as_qrels(judgments)
    return by_query(qrels.qid, qrels.docid, qrels.label)


def _keep(row: tuple[str, str, Any, float | None], unjudged: str) -> bool:
    """Whether a hit was judged; under "error" one that was not is an error."""
    query, docid, _, label = row
    if unjudged == "error" and (label is None or label < 0):
        raise DataError(
            f"document {docid!r:.60} of query {query!r:.60} has no judgment: pass unjudged='drop' or unjudged='zero'"
        )
    return label is not None and label >= 0


def _report(labels: Mapping[str, Mapping[str, float]], documents: Mapping[str, Mapping[str, Any]]) -> None:
    """Log how many judged documents no response holds; nothing in common at all is an error."""
    every = sum(map(len, labels.values()))
    found = sum(docid in documents.get(query, {}) for query, own in labels.items() for docid in own)
    if every and documents and not found:
        raise DataError(
            f"the responses and the judgments have no document in common: the responses begin with query "
            f"{next(iter(documents))!r:.60}, the judgments with {next(iter(labels))!r:.60}"
        )
    if found < every:
        logger.warning("%d of %d judged documents have no logged features, left out", every - found, every)


def _names(rows: list[tuple[str, str, dict[str, float], Any]], features: Sequence[str] | None) -> list[str]:
    """The features to read."""
    there = dict.fromkeys(name for _, _, values, _ in rows for name in values)
    if features is None:
        return list(there)
    for name in features:
        if name not in there:
            raise DataError(f"feature {name!r:.60} was never logged, only {', '.join(map(repr, there)):.200}")
    return list(features)
