"""Type checks of the arguments of public methods.

An argument of the wrong type would otherwise raise a Python error deep inside the call.
That error would name neither the method nor the argument.
The checks cover plain annotations: texts, numbers, flags, times, mappings, sequences of names.
The code that uses filters, rows, schemas and columns checks them.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import date, datetime, timedelta
from functools import cache, wraps
from numbers import Integral
from typing import Any

from pydantic import ValidationError

from fileindex.base.errors import InvalidArgument
from fileindex.base.time_zone import time_zone

Check = Callable[[Any], bool]


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in {"bool_", "bool"}


def _is_int(value: Any) -> bool:
    return isinstance(value, Integral) and not _is_flag(value)


def _is_time(value: Any) -> bool:
    return isinstance(value, date | datetime) and value == value  # noqa: PLR0124 -- pandas' NaT is a datetime, and not itself


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _are_names(value: Any) -> bool:
    """Return whether a value is a name or names.

    Some methods accept one name for a list of one. A one-shot iterator is not checked here.
    """
    return isinstance(value, str) or (
        _is_list(value) and (not isinstance(value, Collection) or all(isinstance(name, str) for name in value))
    )


def _are_mappings(value: Any) -> bool:
    return _is_list(value) and (not isinstance(value, Collection) or all(map(_is_mapping, value)))


def _is_list(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes | Mapping)


_KINDS: dict[str, tuple[str, Check]] = {
    "None": ("None", lambda value: value is None),
    "str": ("text", lambda value: isinstance(value, str)),
    "int": ("a whole number", _is_int),
    "bool": ("True or False", _is_flag),
    "datetime": ("a datetime", lambda value: isinstance(value, datetime) and _is_time(value)),
    "timedelta": ("a timedelta", lambda value: isinstance(value, timedelta) and value == value),  # noqa: PLR0124 -- as above
    "Time": ("milliseconds, a date, a datetime or ISO text", lambda value: isinstance(value, str) or _is_int(value) or _is_time(value)),
    "Sequence[str]": ("a list of names", _are_names),
    "Mapping[str, str]": ("a dict", _is_mapping),
    "Mapping[str, object]": ("a dict", _is_mapping),
    "Mapping[str, Any]": ("a dict", _is_mapping),
    "Sequence[Mapping[str, object]]": ("a list of dicts", _are_mappings),
    "tuple[Point, Point]": ("a pair (from, to)", lambda value: isinstance(value, tuple | list)),
    "Progress": ("a function", callable),
    "os.PathLike[str]": ("a path", lambda value: isinstance(value, os.PathLike)),
    "Depth": ("a depth", lambda value: isinstance(value, str)),
    "Mode": ("a mode's name", lambda value: isinstance(value, str)),
    "IncrementalModeName": ("a mode's name", lambda value: isinstance(value, str)),
    "ClusterStrategyName": ("a strategy's name", lambda value: isinstance(value, str)),
}
_BETWEEN = re.compile(r"\s*\|\s*(?![^\[]*\])")


def checked(method: Callable[..., Any]) -> Callable[..., Any]:
    """Check the arguments of ``method`` at each call.

    Raises ``InvalidArgument``, also in place of pydantic's ``ValidationError`` for requests.
    """

    @cache
    def wanted_of_it() -> tuple[dict[str, tuple[tuple[str, Check], ...]], list[str]]:
        """Return checks by argument, and positional arguments in order.

        Cached at the first call: most methods are never called.
        """
        parameters = inspect.signature(method).parameters
        checks = {name: found for name, wanted in parameters.items() if (found := _check_of(wanted.annotation)) is not None}
        return checks, [name for name, wanted in parameters.items() if wanted.kind is not wanted.KEYWORD_ONLY]

    @wraps(method)
    def called(*arguments: Any, **options: Any) -> Any:
        checks, order = wanted_of_it()
        for name, value in (*zip(order, arguments, strict=False), *options.items()):
            if (check := checks.get(name)) is not None and not any(fits(value) for _, fits in check):
                kinds = " or ".join(dict.fromkeys(said for said, _ in check))
                raise InvalidArgument(f"{method.__name__}: {name} is {kinds}, not {_shown(name, value)}")
        try:
            with _zone_of(arguments[0]) if arguments else nullcontext():
                return method(*arguments, **options)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "argument"
            raise InvalidArgument(f"{method.__name__}: {where}: {first['msg']}, not {first['input']!r}") from error
        except UnicodeEncodeError as error:
            raise InvalidArgument(f"{method.__name__}: {error.object!r} holds half a character, which no file can hold") from error

    return called


def _zone_of(owner: object) -> AbstractContextManager[None]:
    """Return the context of the object's Spark session time zone.

    Without a session the context changes nothing.
    """
    backend = getattr(owner, "_backend", None)
    spark = getattr(backend, "spark", None)
    if spark is None:
        return nullcontext()
    return time_zone(lambda: str(spark.conf.get("spark.sql.session.timeZone")))


class CheckedMethods:
    """Base class that applies ``checked`` to all public methods."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, member in list(vars(cls).items()):
            if name.startswith("_") and name != "__init__":
                continue
            if isinstance(member, classmethod):
                setattr(cls, name, classmethod(checked(member.__func__)))
            elif inspect.isfunction(member):
                setattr(cls, name, checked(member))


def _check_of(annotation: object) -> tuple[tuple[str, Check], ...] | None:
    """Return the kinds that an annotation allows.

    None: the annotation has a type that other code checks.
    """
    if not isinstance(annotation, str):
        return None
    kinds = tuple(_KINDS.get(part) for part in _BETWEEN.split(annotation) if not part.startswith("Literal["))
    return tuple(kind for kind in kinds if kind is not None) if kinds and None not in kinds else None


def _shown(name: str, value: object) -> str:
    """Return a value for an error message.

    Options may be secrets: only their type is shown.
    """
    if name.endswith("options"):
        return f"a value of type {type(value).__name__}"
    text = repr(value)
    return f"{text[:60]}..." if len(text) > 60 else text


__all__ = ["CheckedMethods", "checked"]
