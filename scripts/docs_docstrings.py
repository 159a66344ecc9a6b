"""Prepare docstrings for the reference.

Doctests become code, because Markdown reads their prompts as quotations. Docstrings of modules, which are internal, are left out.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Module, Object

_DOCTEST = re.compile(r"(?:^>>>.*\n?(?:^(?!\s*$).*\n?)*)+", re.MULTILINE)
_SKIP = re.compile(r"\s*# doctest:.*$", re.MULTILINE)


class Doctests(Extension):
    """Put fences around the doctests of every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of an object."""
        if isinstance(obj, Module):
            obj.docstring = None
        if obj.docstring is not None and ">>>" in obj.docstring.value:
            obj.docstring.value = _DOCTEST.sub(lambda found: f"```pycon\n{_SKIP.sub('', found[0]).rstrip()}\n```\n", obj.docstring.value)
