"""Creation of jinja2 environments."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@lru_cache(maxsize=4)
def template_environment(package: str) -> Environment:
    """Return the templates in the folder ``templates`` of a package."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # load jinja2 only to render

    loader = PackageLoader(package)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


__all__ = ["template_environment"]
