"""Values in the one form that their column's kind has, whatever form a database keeps them in.

SQLite keeps instants as text and truths as numbers, MariaDB a time of day as a duration; of what differs a person is
told in the same words.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

from guardrail.declare.values import is_list, is_object
from guardrail.state.comparison import Comparison, Incomparable


def presented(value: object, how: Comparison) -> object:
    """A column's value as its kind has it; the value itself where it is none of that kind."""
    match how.kind:
        case "integer" | "decimal" | "float" if type(value) is str:
            number = how.number(value)
            return value if number is None else number
        case "boolean" | "date" | "uuid":
            return how.read(value)
        case "instant":
            return _instant(value, how)
        case "time":
            return _time_of_day(value)
        case "json" if type(value) is str:
            return _document(value, how)
        case _:
            return value


def _instant(value: object, how: Comparison) -> object:
    """An instant in the declared zone, else in UTC, so that two are seen to be one or not."""
    if type(value) is str:
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return value
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        return value if how.zone is None else value.replace(tzinfo=how.zone)
    try:
        return value.astimezone(how.zone or UTC)
    except OverflowError:  # the first or the last day of the calendar
        return value


def _time_of_day(value: object) -> object:
    if isinstance(value, timedelta) and timedelta() <= value < timedelta(days=1):
        return (datetime.min + value).time()
    if type(value) is str:
        try:
            return time.fromisoformat(value)
        except ValueError:
            return value
    return value


def _document(text: str, how: Comparison) -> object:
    """The document that a text is; a text or a number of JSON stays as it is written, so that it is not taken for none."""
    try:
        document = how.document(text)
    except Incomparable:
        return text
    return document if is_object(document) or is_list(document) else text
