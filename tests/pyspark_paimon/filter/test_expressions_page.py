"""The page of expressions lists every function."""

from __future__ import annotations

import re
from pathlib import Path

from sparkexpr.expression.functions import FUNCTION_RULES

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "expressions.md"


def test_the_page_lists_every_function() -> None:
    text = PAGE.read_text().rpartition("```")[2].replace("&#124;", "|").replace("<code>", "`").replace("</code>", "`")
    assert {name for name in FUNCTION_RULES if not name.startswith("@")} - set(re.findall("`([^`]+)`", text)) == set()
