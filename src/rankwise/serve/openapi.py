"""The OpenAPI 3.1 description of the interface, from the table of operations and the structs of their bodies."""

from collections.abc import Sequence
from typing import Any

from rankwise._extras import require
from rankwise._version import __version__
from rankwise.serve import structs

msgspec = require("msgspec")

_PATH = {"name": "The name of a model or of an experiment.", "ranking": "The id of a ranking."}
_QUERY = {
    "min_seq": ("Wait until this event is in the published models.", {"type": "integer", "minimum": 0}),
    "model": ("The model; without it the default one.", {"type": "string"}),
    "delta": ("The probability with which a bound may fail.", {"type": "number", "exclusiveMinimum": 0}),
    "gamma": ("A margin that is claimed, for mistake bounds.", {"type": "number", "exclusiveMinimum": 0}),
    "id": ("The id of this event, which makes retries harmless.", {"type": "string", "minLength": 1}),
}
_REFUSALS = ("400", "401", "403", "404", "405", "408", "409", "413", "415", "422", "503")


def description(operations: Sequence[Any]) -> dict[str, Any]:
    """Describe the interface.

    Parameters
    ----------
    operations : sequence of Operation
        The operations.

    Returns
    -------
    dict of str to object
        The OpenAPI document.
    """
    kinds = list({id(one): one for each in operations for one in (each.body, each.answer) if _is_struct(one)}.values())
    schemas, components = msgspec.json.schema_components(
        [*kinds, structs.Problem], ref_template="#/components/schemas/{name}"
    )
    known = dict(zip(map(repr, [*kinds, structs.Problem]), schemas, strict=True))
    paths: dict[str, Any] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rankwise serve",
            "version": __version__,
            "description": "An online ranking service that learns from feedback and loses nothing it acknowledged.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _is_struct(kind: Any) -> bool:
    return kind not in (None, str, dict, bytes)


def _schema(kind: Any, known: dict[str, Any]) -> dict[str, Any]:
    if kind is bytes:
        return {"type": "string", "format": "binary"}
    if not _is_struct(kind):
        return {"type": "object"} if kind is dict else {"type": "string"}
    return dict(known[repr(kind)])


def _operation(one: Any, known: dict[str, Any]) -> dict[str, Any]:
    """One operation."""
    lines = (one.run.__doc__ or "").strip().splitlines()
    named = [part[1 : part.index("}")] for part in one.path.split("/") if part.startswith("{")]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, "description": _PATH[name]}
        for name in named
    ]
    for name in one.query:
        text, schema = _QUERY[name]
        parameters.append({"name": name, "in": "query", "required": False, "schema": schema, "description": text})
    answer, kind = _schema(one.answer, known), "application/json"
    if one.many:
        answer = {"anyOf": [answer, {"type": "array", "items": answer}]}
    if one.answer is str:
        kind = "text/html" if one.path == "/" else "text/plain"
    found: dict[str, Any] = {
        "operationId": one.run.__name__,
        "summary": lines[0] if lines else one.path,
        "responses": {
            "200": {"description": "Done.", "content": {kind: {"schema": answer}}},
            **{
                status: {
                    "description": "Refused; the body says why.",
                    "content": {"application/problem+json": {"schema": known[repr(structs.Problem)]}},
                }
                for status in _REFUSALS
            },
        },
        "security": [{"token": []}] if one.scope is not None else [],
    }
    if parameters:
        found["parameters"] = parameters
    if one.body is not None:
        schema = _schema(one.body, known)
        content: dict[str, Any] = {}
        for name in one.kinds:
            of = schema if name == "application/json" or one.body is bytes else {"type": "string"}
            if one.many and name == "application/json":
                of = {"anyOf": [schema, {"type": "array", "items": schema}]}
            content[name] = {"schema": of}
        required = one.path in ("/v1/rank", "/v1/feedback", "/v1/experiments") or one.body is bytes
        found["requestBody"] = {"required": required, "content": content}
    return found
