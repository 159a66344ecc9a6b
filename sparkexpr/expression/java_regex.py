r"""Java's regular expressions as RE2's, for the part on which both agree.

``RLIKE`` searches as ``java.util.regex`` does. Arrow has RE2, which reads some characters differently (``.``, ``\s``, ``(?i)``) and lacks
others (lookaround, back references). ``translate`` rewrites the former and refuses the latter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from sparkexpr.errors import InvalidFilter

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_LAST_LINE_END = rf"(?:\r\n|[{_LINE_ENDS}])\z"
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": r"\t-\r "}
_POSIX = {
    "Alpha": "A-Za-z",
    "Digit": "0-9",
    "Alnum": "A-Za-z0-9",
    "Upper": "A-Z",
    "Lower": "a-z",
    "XDigit": "0-9A-Fa-f",
    "Space": r"\t-\r ",
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_MOST_REPEATS = 1000


@dataclass(frozen=True, slots=True)
class TextPattern:
    """A pattern for Arrow.

    ``before_line_end``: the pattern ends with ``$``, which in Java also matches before a line end at the end of the text.
    """

    text: str
    before_line_end: bool


@lru_cache(maxsize=64)
def translate(pattern: str) -> TextPattern:
    r"""Return RE2's pattern that matches the same texts.

    Raises ``InvalidFilter`` for a pattern that is not valid, or that RE2 cannot search as Java does.

    >>> translate("^a.b$").text
    '\\Aa[^\\n\\r\\x{85}\\x{2028}\\x{2029}]b\\z'
    """
    try:
        translated = _Translator(pattern).translate()
    except RecursionError:
        raise InvalidFilter(f"RLIKE '{pattern:.60}' nests too deeply; write a simpler pattern") from None
    try:
        pc.match_substring_regex(pa.scalar("", pa.large_string()), translated.text)
    except pa.ArrowInvalid as error:
        raise InvalidFilter(f"RLIKE '{pattern}': the pattern is not valid or too large: {error}") from error
    return translated


def matches(values: Any, pattern: str) -> Any:
    r"""``values RLIKE pattern``.

    >>> matches(pa.array(["a1", "b", None], pa.large_string()), r"\d$").to_pylist()
    [True, False, None]
    """
    translated = translate(pattern)
    is_match = pc.match_substring_regex(values, translated.text)
    if not translated.before_line_end:
        return is_match
    return pc.or_(is_match, pc.match_substring_regex(pc.replace_substring_regex(values, _LAST_LINE_END, ""), translated.text))


class _Translator:
    """Reader of one pattern, from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.dots_match_all = False
        self.ignores_case = False
        self.has_dollar = self.has_end = False

    def translate(self) -> TextPattern:
        """Translate the whole pattern."""
        while self._take("(?i)") or self._take("(?s)"):
            if self.pattern[self.at - 2] == "i":
                self.ignores_case = True
            else:
                self.dots_match_all = True
        text = self._alternatives(is_last=True)
        if self.at < len(self.pattern):
            self._refuse("has a ')' without '('")
        if self.has_dollar and self.has_end:
            self._refuse(r"has both '$' and '\z'")
        return TextPattern(text, self.has_dollar)

    def _alternatives(self, *, is_last: bool) -> str:
        branches = [self._branch(is_last=is_last)]
        while self._take("|"):
            branches.append(self._branch(is_last=is_last))
        return "|".join(branches)

    def _branch(self, *, is_last: bool) -> str:
        parts: list[str] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            parts.append(self._piece(is_last=is_last))
        return "".join(parts)

    def _piece(self, *, is_last: bool) -> str:
        letter = self.pattern[self.at]
        self.at += 1
        match letter:
            case "^":
                return self._anchor(r"\A")
            case "$":
                if not (is_last and self._ends_here()):
                    self._refuse("has '$' before its end")
                self.has_dollar = True
                return self._anchor(r"\z")
            case "(":
                return self._group(is_last=is_last)
            case ".":
                return self._repeated("(?s:.)" if self.dots_match_all else f"[^{_LINE_ENDS}]")
            case "[":
                return self._repeated(self._class())
            case "\\":
                return self._escape()
            case "*" | "+" | "?" | "{":
                self._refuse(f"has '{letter}' without a part to repeat")
        return self._repeated(self._literal(letter))

    def _ends_here(self) -> bool:
        """Return whether the pattern, or its group, or its alternative ends at the position."""
        return self.at == len(self.pattern) or self.pattern[self.at] in "|)"

    def _anchor(self, text: str) -> str:
        if self._is_repeated():
            self._refuse("repeats an anchor")
        return text

    def _group(self, *, is_last: bool) -> str:
        if self._take("?"):
            named = self._take("<") and self._next() not in {"=", "!"}
            if named:
                end = self.pattern.find(">", self.at)
                name = self.pattern[self.at : end]
                if end < 0 or not (name.isascii() and name.isalnum() and name[0].isalpha()):
                    self._refuse("has an invalid group name")
                self.at = end + 1
            elif not self._take(":"):
                self._refuse("has lookaround, flags inside, or an atomic group")
        body = self._group_end(is_last=is_last)
        return self._repeated(f"(?:{body})")

    def _group_end(self, *, is_last: bool) -> str:
        start, had_dollar = self.at, self.has_dollar
        self.has_dollar = False
        body = self._alternatives(is_last=is_last)
        if not self._take(")"):
            self.at = start
            self._refuse("has a '(' without ')'")
        if self.has_dollar and not self._ends_here():
            self._refuse("has '$' before its end")
        self.has_dollar |= had_dollar
        return body

    def _escape(self) -> str:
        letter = self._read("a character after '\\'")
        if letter == "Q":
            end = self.pattern.find("\\E", self.at)
            quoted = self.pattern[self.at :] if end < 0 else self.pattern[self.at : end]
            self.at = len(self.pattern) if end < 0 else end + 2
            if self._is_repeated():
                self._refuse(r"repeats a text in \Q...\E")
            return "".join(map(self._literal, quoted))
        if letter == "A":
            return self._anchor(r"\A")
        if letter == "z":
            self.has_end = True
            return self._anchor(r"\z")
        if letter.lower() in _CLASSES:
            return self._repeated(f"[{'^' if letter.isupper() else ''}{_CLASSES[letter.lower()]}]")
        if letter in "pP":
            return self._repeated(f"[{'^' if letter == 'P' else ''}{self._posix()}]")
        return self._repeated(self._literal(self._escaped(letter)))

    def _posix(self) -> str:
        end = self.pattern.find("}", self.at)
        class_text = _POSIX.get(self.pattern[self.at + 1 : end]) if self._next() == "{" and end > 0 else None
        if class_text is None or self.ignores_case:
            self._refuse(rf"has a class \p other than {', '.join(_POSIX)}, or one with (?i)")
        self.at = end + 1
        return class_text

    def _escaped(self, letter: str) -> str:
        """Return the character of an escape."""
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter == "x" and self._take("{"):
            end = self.pattern.find("}", self.at)
            digits, self.at = self.pattern[self.at : max(end, self.at)], end + 1
            return self._code(digits)
        if letter in "xu":
            size = 2 if letter == "x" else 4
            digits, self.at = self.pattern[self.at : self.at + size], self.at + size
            return self._code(digits if len(digits) == size else "")
        if letter.isascii() and letter.isalnum():
            self._refuse(rf"has '\{letter}', which RE2 does not have or reads differently")
        return letter

    def _code(self, digits: str) -> str:
        if not digits or set(digits) - set("0123456789abcdefABCDEF") or int(digits, 16) > 0x10FFFF or 0xD800 <= int(digits, 16) < 0xE000:
            self._refuse("has an invalid code point")
        return chr(int(digits, 16))

    def _class(self) -> str:
        negated = self._take("^")
        items: list[str] = []
        while True:
            letter = self._read("']'")
            if letter == "]" and items:
                return f"[{'^' if negated else ''}{''.join(items)}]"
            if letter in "[]&" or (letter == "^" and not items):
                self._refuse(f"has '{letter}' in a character class; write '\\{letter}'")
            if letter == "\\" and self._next().lower() in {*_CLASSES, "p"} and self._next() != "P":
                items.append(self._class_of_escape())
                continue
            items.append(self._range(self._escaped(self._read("a character")) if letter == "\\" else letter, is_plain=letter != "\\"))

    def _class_of_escape(self) -> str:
        letter = self._read("a class")
        if letter == "p":
            return self._posix()
        if letter.isupper():
            return {"D": r"\D", "W": r"\W", "S": r"\x{0}-\x{8}\x{e}-\x{1f}!-\x{10ffff}"}[letter]
        return _CLASSES[letter]

    def _range(self, first: str, *, is_plain: bool) -> str:
        """Return a character of a class, or a range that begins with it."""
        if first == "-" and is_plain:
            if self._next() != "]" and self.pattern[self.at - 2] not in "[^":
                self._refuse("has '-' inside a character class; write '\\-'")
            return r"\-"
        if self._next() != "-" or self.pattern[self.at + 1 : self.at + 2] in {"]", ""}:
            return self._both_cases(first, first)
        self.at += 1
        last = self._read("the end of a range")
        if last == "\\":
            if self._next() in "dwspDWSP":
                self._refuse("has a class as the end of a range")
            last = self._escaped(self._read("a character"))
        elif last in "[&":
            self._refuse(f"has '{last}' in a character class; write '\\{last}'")
        if last < first:
            self._refuse(f"has the empty range {first}-{last}")
        return self._both_cases(first, last)

    def _both_cases(self, first: str, last: str) -> str:
        """Return a range, and with (?i) also that of the other case of its ASCII letters."""
        ranges = f"{_code_point(first)}-{_code_point(last)}" if last > first else _code_point(first)
        if not self.ignores_case:
            return ranges
        for low, high, change in (("a", "z", str.upper), ("A", "Z", str.lower)):
            start, end = max(first, low), min(last, high)
            if start <= end:
                ranges += f"{change(start)}-{change(end)}"
        return ranges

    def _literal(self, letter: str) -> str:
        if self.ignores_case and letter.isascii() and letter.isalpha():
            return f"[{letter.lower()}{letter.upper()}]"
        return letter if letter.isascii() and letter.isalnum() else _code_point(letter)

    def _repeated(self, part: str) -> str:
        """Return a part with the quantifier that follows it."""
        quantifier = self._quantifier()
        if not quantifier:
            return part
        if self._take("?"):
            quantifier += "?"
        if self._is_repeated():
            self._refuse("has a possessive or doubled quantifier")
        return part + quantifier

    def _quantifier(self) -> str:
        letter = self._next()
        if letter and letter in "*+?":
            self.at += 1
            return letter
        if letter != "{":
            return ""
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : max(end, self.at)].partition(",")
        if not _is_number(low) or (high and not _is_number(high)) or (high and int(high) < int(low)):
            self._refuse("has an invalid repetition")
        if max(int(low), int(high or 0)) > _MOST_REPEATS:
            self._refuse(f"repeats a part more than {_MOST_REPEATS} times")
        self.at = end + 1
        return f"{{{low}{comma}{high}}}"

    def _is_repeated(self) -> bool:
        return self._next() in {"*", "+", "?", "{"}

    def _next(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _read(self, expected: str) -> str:
        if self.at >= len(self.pattern):
            self._refuse(f"ends where {expected} is expected")
        self.at += 1
        return self.pattern[self.at - 1]

    def _take(self, text: str) -> bool:
        if not self.pattern.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def _refuse(self, what: str) -> NoReturn:
        raise InvalidFilter(
            f"RLIKE '{self.pattern}' {what} (at position {self.at}): filters cannot search it as Java does; "
            "write a simpler pattern, LIKE, or filter the result"
        )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _code_point(letter: str) -> str:
    return f"\\x{{{ord(letter):x}}}"
