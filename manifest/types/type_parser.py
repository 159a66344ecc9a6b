"""Parser of atomic and geo types.

For the text in schema files and DDL.
"""

from __future__ import annotations

import re

from paimon_base.errors import UnsupportedType, did_you_mean
from sparkexpr.values.column_type import Kind

LONGEST_TYPE = 2**31 - 1
Atomic = tuple[Kind, bool, int, int, int]

_SYNONYMS = {
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "SHORT": "SMALLINT",
    "BYTE": "TINYINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "DOUBLE PRECISION": "DOUBLE",
    "TIMESTAMP_NTZ": "TIMESTAMP",
}
_TEXT = re.compile(
    r"(?P<root>DOUBLE\s+PRECISION|[A-Z_]+)\s*(?:\(\s*(?P<arguments>[^)]*?)\s*\))?"
    r"(?P<zone>\s+WITH\s+LOCAL\s+TIME\s+ZONE|\s+WITHOUT\s+TIME\s+ZONE)?(?P<null>\s+NOT\s+NULL|\s+NULL)?",
)
_LENGTHS = {"CHAR": Kind.CHAR, "VARCHAR": Kind.VARCHAR, "BINARY": Kind.BINARY, "VARBINARY": Kind.VARBINARY}
_UNBOUNDED = {"STRING": Kind.VARCHAR, "BYTES": Kind.VARBINARY}
_BARE = {
    kind.value: kind
    for kind in (
        Kind.BOOLEAN,
        Kind.TINYINT,
        Kind.SMALLINT,
        Kind.INT,
        Kind.BIGINT,
        Kind.FLOAT,
        Kind.DOUBLE,
        Kind.DATE,
        Kind.VARIANT,
        Kind.BLOB,
    )
}
_GEO = re.compile(r"(?P<root>GEOMETRY|GEOGRAPHY)\s*(?:\((?P<detail>[^()]+)\))?(?P<null>\s+NOT\s+NULL|\s+NULL)?", re.IGNORECASE)
_GEO_DEFAULT = {Kind.GEOMETRY: "OGC:CRS84", Kind.GEOGRAPHY: "OGC:CRS84, spherical"}
_DEFAULT_PRECISION = {"TIME": 0, "TIMESTAMP": 6, "TIMESTAMP_LTZ": 6}
_OTHER_SYSTEMS = {"SERIAL": "BIGINT", "BIGSERIAL": "BIGINT", "DATETIME": "TIMESTAMP", "TEXT": "STRING", "UUID": "STRING", "JSON": "STRING"}
"""Types of other systems, for hints. A similar name would be a wrong hint."""
_ROOTS = (*_BARE, *_LENGTHS, *_UNBOUNDED, *_DEFAULT_PRECISION, *_SYNONYMS, "DECIMAL", "ARRAY", "MAP", "MULTISET", "ROW", "STRUCT")
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"[0-9]{1,10}")
_MAX_TEXT = 200


def parse_atomic(text: str) -> Atomic:
    """Parse an atomic type. Raises ``UnsupportedType``.

    Returns kind, nullability, length, precision and scale.

    >>> parse_atomic("decimal(10, 2) NOT NULL")
    (<Kind.DECIMAL: 'DECIMAL'>, False, 0, 10, 2)
    >>> parse_atomic("TIMESTAMP(3) WITH LOCAL TIME ZONE")[0]
    <Kind.TIMESTAMP_LTZ: 'TIMESTAMP_LTZ'>
    """
    match = _TEXT.fullmatch(text.strip().upper()) if len(text) < _MAX_TEXT else None
    if match is None:
        raise UnsupportedType(f"'{text[:_MAX_TEXT]}' is not a type")
    root = re.sub(r"\s+", " ", match["root"])
    root = _SYNONYMS.get(root, root)
    nullable = "NOT" not in (match["null"] or "")
    zone = match["zone"] or ""
    if root == "TIMESTAMP" and "LOCAL" in zone:
        root = "TIMESTAMP_LTZ"
    elif zone and ("LOCAL" in zone or root not in {"TIME", "TIMESTAMP"}):
        raise UnsupportedType(f"'{text}': the type has no time zone")
    arguments = [] if match["arguments"] is None else match["arguments"].split(",")
    if not all(_NUMBER.fullmatch(argument.strip()) for argument in arguments):
        raise UnsupportedType(f"'{text}': parameters must be whole numbers")
    numbers = [int(argument) for argument in arguments]
    return _atomic(text, root, nullable, numbers)


def parse_geo(text: str) -> tuple[Kind, bool, str] | None:
    """Parse a geo type, None for another type.

    Returns kind, nullability and coordinate system.

    >>> parse_geo("GEOMETRY(EPSG:3857) NOT NULL")
    (<Kind.GEOMETRY: 'GEOMETRY'>, False, 'EPSG:3857')
    """
    match = _GEO.fullmatch(text.strip()) if len(text) < _MAX_TEXT else None
    if match is None:
        return None
    kind = Kind(match["root"].upper())
    return kind, "NOT" not in (match["null"] or "").upper(), (match["detail"] or _GEO_DEFAULT[kind]).strip()


def quote_field(name: str) -> str:
    """Return a field's name for column lists.

    In backticks unless it is a plain word.

    >>> quote_field("id"), quote_field("my id")
    ('id', '`my id`')
    """
    return name if _WORD.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _atomic(text: str, root: str, nullable: bool, numbers: list[int]) -> Atomic:
    if root in _BARE and not numbers:
        return _BARE[root], nullable, 0, 0, 0
    if root in _UNBOUNDED and not numbers:
        return _UNBOUNDED[root], nullable, LONGEST_TYPE, 0, 0
    if root in _LENGTHS and len(numbers) <= 1:
        length = numbers[0] if numbers else 1
        if 1 <= length <= LONGEST_TYPE:
            return _LENGTHS[root], nullable, length, 0, 0
    elif root == "DECIMAL" and len(numbers) <= 2:
        precision, scale = (*numbers, 10, 0)[:2] if not numbers else (*numbers, 0)[:2]
        if 1 <= precision <= 38 and scale <= precision:
            return Kind.DECIMAL, nullable, 0, precision, scale
    elif root in _DEFAULT_PRECISION and len(numbers) <= 1:
        precision = numbers[0] if numbers else _DEFAULT_PRECISION[root]
        if precision <= 9:
            return Kind(root), nullable, 0, precision, 0
    else:
        hint = f", did you mean '{_OTHER_SYSTEMS[root]}'" if root in _OTHER_SYSTEMS else did_you_mean(root, _ROOTS)
        raise UnsupportedType(f"'{text}' is not a supported type{hint}")
    raise UnsupportedType(f"'{text}': a parameter is out of range")
