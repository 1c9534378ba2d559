"""How JSON becomes the fields of an event. What comes in is not trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple


class Mismatch(Exception):
    """A value is missing or of another type."""


class Field(NamedTuple):
    name: str
    attribute: str
    value: Callable[[Any], Any]
    required: bool


def decode(raw: Mapping[str, Any], fields: Iterable[Field]) -> dict[str, Any]:
    """Return the attributes that fields name. Those that may be absent are left out."""
    out: dict[str, Any] = {}
    for name, attribute, value, required in fields:
        if name in raw:
            try:
                out[attribute] = value(raw[name])
            except Mismatch as problem:
                raise Mismatch(f"{name}: {problem}") from None
        elif required:
            raise Mismatch(f"{name} is missing")
    return out


def string(value: Any) -> str:
    if not isinstance(value, str):
        raise Mismatch("expected a string")
    return value


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Mismatch("expected true or false")
    return value


def integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Mismatch("expected an integer")
    return value


def number(value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise Mismatch("expected a number")
    return value


def any_json(value: Any) -> Any:
    return value


def nullable(inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else inner(value)


def array(item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def values(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise Mismatch("expected an array")
        return tuple(item(each) for each in value)

    return values


def part(kind: type, fields: tuple[Field, ...]) -> Callable[[Any], Any]:
    def value(raw: Any) -> Any:
        if not isinstance(raw, dict):
            raise Mismatch("expected an object")
        return kind(**decode(raw, fields))

    return value
