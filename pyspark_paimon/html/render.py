"""The one place that makes jinja2 environments."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@lru_cache(maxsize=4)
def templates_of(package: str) -> Environment:
    """The templates in the folder ``templates`` of a package; whoever draws nothing need not load jinja2."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # as above

    loader = PackageLoader(package)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


__all__ = ["templates_of"]
