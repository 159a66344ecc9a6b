"""What must not be read in a message: credentials in URLs, and values whose names say that they are secrets.

Every typed error passes its text through here, and so does what is shown of options. Table files, filters and the values of
rows are data, not messages: they pass as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "***"
_NAME = r"secret|passw(?:or)?d|passphrase|token|credential|access[._-]?key|account[._-]?key|api[._-]?key|private[._-]?key|signature"
_SECRET_NAME = re.compile(_NAME, re.IGNORECASE)
_USER_IN_URL = re.compile(r"((?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,19}:/{1,2})[^/@\s'\"]{0,1000}@", re.IGNORECASE)
_CONTAINER_SCHEMES = frozenset({"abfs:", "abfss:"})
_PAIR = re.compile(
    rf"((?:{_NAME})[\w.-]{{0,60}}(?:['\"]\s{{0,4}}[=:]|\s{{0,4}}(?:=|:\s))\s{{0,4}})(?:'[^']{{0,1000}}'|\"[^\"]{{0,1000}}\"|(?!(?:is|are|has|cannot|must|needs|would)\b)[^\s'\",;&)}}\]]+)",
    re.IGNORECASE,
)
"""Both take time in proportion to the text, whatever it is: every repetition is bounded, but for the last."""


def redacted(text: str) -> str:
    """``text`` without secrets: neither ``user:password@`` of a URL nor what follows ``...token=`` and its like.

    >>> redacted("s3://key:secret@bucket/t is no table; sc://host:1/;token=abc;user_id=me")
    's3://***@bucket/t is no table; sc://host:1/;token=***;user_id=me'
    >>> redacted("{'fs.s3a.access.key': 'AKIA', 'bucket': '4'}")
    "{'fs.s3a.access.key': ***, 'bucket': '4'}"
    >>> redacted("abfss://container@account.dfs.core.windows.net/t, abfss://id:key@account.dfs.core.windows.net/t")
    'abfss://container@account.dfs.core.windows.net/t, abfss://***@account.dfs.core.windows.net/t'
    """
    return _PAIR.sub(rf"\1{HIDDEN}", _USER_IN_URL.sub(_without_user, text))


def _without_user(found: re.Match[str]) -> str:
    """The beginning of a URL without its user; Azure's have a container there, which everybody may read."""
    scheme, whole = found[1], found[0]
    container = scheme.lower().rstrip("/") in _CONTAINER_SCHEMES and ":" not in whole[len(scheme) :]
    return whole if container else f"{scheme}{HIDDEN}@"


def names_secret(option: str) -> bool:
    """Whether an option's name says that its value is a secret.

    >>> names_secret("fs.oss.accessKeySecret"), names_secret("primary-key"), names_secret("file-index.bloom-filter.columns")
    (True, False, False)
    """
    return _SECRET_NAME.search(option) is not None


def shown(options: Mapping[str, str]) -> dict[str, str]:
    """``options`` as they may be shown to people.

    >>> shown({"bucket": "4", "s3.secret-key": "x", "path": "oss://id:key@b/t"})
    {'bucket': '4', 's3.secret-key': '***', 'path': 'oss://***@b/t'}
    """
    return {name: HIDDEN if names_secret(name) else redacted(value) for name, value in options.items()}


__all__ = ["HIDDEN", "names_secret", "redacted", "shown"]
