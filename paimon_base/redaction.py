"""Redaction of credentials in messages.

Hides the credentials of URLs, and values whose names mark them as secrets. Every typed error and every display of options
is redacted. Table files, filters and row values are data, not messages: they are not redacted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

HIDDEN = "***"
_SHORT = 4
_NAME = r"secret|passw(?:or)?d|passphrase|token|credential|access[._-]?key|account[._-]?key|api[._-]?key|private[._-]?key|signature"
_SECRET_NAME = re.compile(_NAME, re.IGNORECASE)
_USER_IN_URL = re.compile(r"((?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,19}:/{1,2})[^/@\s'\"]{0,1000}@", re.IGNORECASE)
_CONTAINER_SCHEMES = frozenset({"abfs:", "abfss:"})
_PAIR = re.compile(
    rf"((?:{_NAME})[\w.-]{{0,60}}(?:['\"]\s{{0,4}}[=:]|\s{{0,4}}(?:=|:\s))\s{{0,4}})(?:'[^']{{0,1000}}'|\"[^\"]{{0,1000}}\"|(?!(?:is|are|has|cannot|must|needs|would)\b)[^\s'\",;&)}}\]]+)",
    re.IGNORECASE,
)
"""Both patterns run in linear time on any text: every repetition except the last is bounded."""


def redact(text: str) -> str:
    """Return ``text`` without secrets.

    Hides ``user:password@`` in URLs, and the value after ``token=`` or a similar name.

    >>> redact("s3://key:secret@bucket/t is no table; sc://host:1/;token=abc;user_id=me")
    's3://***@bucket/t is no table; sc://host:1/;token=***;user_id=me'
    >>> redact("{'fs.s3a.access.key': 'AKIA', 'bucket': '4'}")
    "{'fs.s3a.access.key': ***, 'bucket': '4'}"
    >>> redact("abfss://container@account.dfs.core.windows.net/t, abfss://id:key@account.dfs.core.windows.net/t")
    'abfss://container@account.dfs.core.windows.net/t, abfss://***@account.dfs.core.windows.net/t'
    """
    return _PAIR.sub(rf"\1{HIDDEN}", _USER_IN_URL.sub(_without_user, text))


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return ``text`` without any of ``secrets``.

    Secrets of fewer than four characters are hidden only as whole words.

    >>> hide("not Bearer s3cr3t for tenant 1 of db1", ["s3cr3t", "Bearer s3cr3t", "1", ""])
    'not *** for tenant *** of db1'
    """
    # The longest first: another may be a part of it.
    longest_first = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
    patterns = [re.escape(secret) if len(secret) >= _SHORT else rf"(?<!\w){re.escape(secret)}(?!\w)" for secret in longest_first]
    return re.sub("|".join(patterns), HIDDEN, text) if patterns else text


def _without_user(user_match: re.Match[str]) -> str:
    """Return the beginning of a URL without its user."""
    scheme, authority = user_match[1], user_match[0]
    # Azure URLs have a container before the @, which is not secret.
    container = scheme.lower().rstrip("/") in _CONTAINER_SCHEMES and ":" not in authority[len(scheme) :]
    return authority if container else f"{scheme}{HIDDEN}@"


def names_secret(option: str) -> bool:
    """Return whether an option's name marks its value as secret.

    >>> names_secret("fs.oss.accessKeySecret"), names_secret("primary-key"), names_secret("file-index.bloom-filter.columns")
    (True, False, False)
    """
    return _SECRET_NAME.search(option) is not None


def shown(options: Mapping[str, str]) -> dict[str, str]:
    """Return ``options`` with secrets hidden.

    >>> shown({"bucket": "4", "s3.secret-key": "x", "path": "oss://id:key@b/t"})
    {'bucket': '4', 's3.secret-key': '***', 'path': 'oss://***@b/t'}
    """
    return {name: HIDDEN if names_secret(name) else redact(value) for name, value in options.items()}
