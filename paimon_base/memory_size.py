"""Memory sizes in option values: ``16kb``, ``16 KB``, ``16384``."""

from __future__ import annotations

import re

from paimon_base.errors import UnsupportedOption

_TEXT = re.compile(r"\s*(\d{1,19})\s*([a-zA-Z]*)\s*", re.ASCII)
_POWERS = {
    **dict.fromkeys(["", "b", "bytes"], 0),
    **dict.fromkeys(["k", "kb", "kibibytes"], 1),
    **dict.fromkeys(["m", "mb", "mebibytes"], 2),
    **dict.fromkeys(["g", "gb", "gibibytes"], 3),
    **dict.fromkeys(["t", "tb", "tebibytes"], 4),
}
_MAX_LONG = 2**63 - 1


def parse_memory_size(text: str, option: str) -> int:
    """Return the bytes of a memory size.

    Digits, optional blanks, and an optional unit in any case: ``b k m g t`` or their long names.

    Raises:
        UnsupportedOption: Naming ``option``, if the text is malformed or exceeds 63 bits.

    >>> [parse_memory_size(text, "x") for text in ("16kb", "16 KB", "16384")]
    [16384, 16384, 16384]
    """
    match = _TEXT.fullmatch(text)
    power = _POWERS.get(match[2].lower()) if match else None
    if match is None or power is None:
        raise UnsupportedOption(option, f"'{text}' is not a memory size; write it as '16kb'")
    size = int(match[1]) << (10 * power)
    if size > _MAX_LONG:
        raise UnsupportedOption(option, f"'{text}' exceeds 63 bits; use a smaller size")
    return size
