"""Shows the doctests of docstrings as code: Markdown would take their prompts for quotations."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_DOCTEST = re.compile(r"(?:^>>>.*\n?(?:^(?!\s*$).*\n?)*)+", re.MULTILINE)
_SKIP = re.compile(r"\s*# doctest:.*$", re.MULTILINE)


class Doctests(Extension):
    """Puts fences around the doctests of every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the text of an object's docstring."""
        if obj.docstring is not None and ">>>" in obj.docstring.value:
            obj.docstring.value = _DOCTEST.sub(lambda found: f"```pycon\n{_SKIP.sub('', found[0]).rstrip()}\n```\n", obj.docstring.value)
