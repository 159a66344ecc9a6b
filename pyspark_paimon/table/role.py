"""The base of a table's roles: the backend that they call, and the errors for arguments of a wrong type."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from pydantic import ValidationError

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.request.backend import Backend


class TableRole:
    """One role of ``Table``. Roles do not know each other: ``Table`` is composed of them, and each could serve alone.

    Requests are strict models; what does not fit one leaves a public method as ``InvalidArgument`` that names method and argument.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, member in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            if isinstance(member, classmethod):
                setattr(cls, name, classmethod(_named(member.__func__)))
            elif callable(member):
                setattr(cls, name, _named(member))


def _named(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def called(*arguments: Any, **options: Any) -> Any:
        try:
            return method(*arguments, **options)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "argument"
            raise InvalidArgument(f"{method.__name__}: {where}: {first['msg']}, not {first['input']!r}") from error
        except UnicodeEncodeError as error:
            raise InvalidArgument(f"{method.__name__}: {error.object!r} holds half a character, which no file can hold") from error

    return called


__all__ = ["TableRole"]
