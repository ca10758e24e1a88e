"""The names against the installed semantic conventions, where they still have them."""

from __future__ import annotations

import importlib
import warnings

import pytest
from opentelemetry.semconv.attributes import db_attributes, error_attributes

from guardrail import attributes

_CONVENTIONS = (
    "opentelemetry.semconv._incubating.attributes.gen_ai_attributes",
    "opentelemetry.semconv._incubating.attributes.db_attributes",
    "opentelemetry.semconv._incubating.attributes.session_attributes",
    "opentelemetry.semconv.attributes.error_attributes",
    "opentelemetry.semconv.attributes.http_attributes",
    "opentelemetry.semconv.attributes.server_attributes",
    "opentelemetry.semconv._incubating.attributes.url_attributes",
)


def _ours() -> dict[str, str]:
    return {name: value for name, value in vars(attributes).items() if name.isupper() and isinstance(value, str)}


def _theirs() -> set[object]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = [importlib.import_module(name) for name in _CONVENTIONS]
    return {value for module in modules for name, value in vars(module).items() if name.isupper()}


# Not attributes: the names of an event and of a metric, and an environment variable.
_NOT_IN_THE_PACKAGE = {"EVALUATION_RESULT", "TOOL_DURATION", "CAPTURE_CONTENT", "TOOL_ERROR", "OTHER"}


@pytest.mark.parametrize("name", sorted(_ours().keys() - _NOT_IN_THE_PACKAGE))
def test_a_name_is_the_librarys_own_or_one_of_the_conventions(name: str) -> None:
    value = _ours()[name]
    if value.startswith("guardrail") or name in ("INVOKE_AGENT", "EXECUTE_TOOL"):
        return
    assert value in _theirs()


def test_the_operations_are_those_of_the_conventions() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        operations = importlib.import_module(_CONVENTIONS[0]).GenAiOperationNameValues
        known = {operation.value for operation in operations}
    assert {attributes.INVOKE_AGENT, attributes.EXECUTE_TOOL} <= known


def test_the_stable_names_are_the_stable_ones() -> None:
    assert attributes.ERROR_TYPE == error_attributes.ERROR_TYPE
    assert error_attributes.ErrorTypeValues.OTHER.value == attributes.OTHER
    assert attributes.DB_SUMMARY == db_attributes.DB_QUERY_SUMMARY
    assert attributes.DB_TEXT == db_attributes.DB_QUERY_TEXT


def test_no_name_is_written_twice() -> None:
    # The event of a decision bears the name of the attribute, as an event and its main attribute may.
    ours = [value for name, value in _ours().items() if name not in ("DECIDED", "SCOPE")]
    assert sorted(ours) == sorted(set(ours))
