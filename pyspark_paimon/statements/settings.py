"""SET: settings for Paimon's tables are judged before Spark takes them."""

from __future__ import annotations

import re

from pyspark_paimon.spark.wire.session_settings import SETTINGS_PREFIX, check_setting
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.words import Words

_SETTING = re.compile(rf"`?({re.escape(SETTINGS_PREFIX)}[^\s=`]+)`?\s*=\s*(.*)", re.DOTALL)


def set_value(names: KnownTables, words: Words) -> None:  # noqa: ARG001  # as all statements
    """``SET key = value``, which is Spark's. Raises ``UnsupportedOption`` for an option that no read or write could have."""
    match = _SETTING.fullmatch(words.rest().strip())
    if match is not None:
        check_setting(match[1], match[2].strip().strip("'\"`"))


__all__ = ["set_value"]
