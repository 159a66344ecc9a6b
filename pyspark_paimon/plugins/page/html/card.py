"""Notebook cards with title, facts and small tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from pydantic import BaseModel

if TYPE_CHECKING:
    from jinja2 import Environment


MOST_ROWS = 50
_MOST_TEXT = 500
Facts: TypeAlias = Sequence[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class Grid:
    """A small table.

    more: Number of rows that are left out.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    more: int = 0

    @classmethod
    def of(cls, header: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> Grid:
        """Return a grid of the first rows."""
        shown = tuple(tuple(map(_text, row)) for row in rows[:MOST_ROWS])
        return cls(tuple(map(_text, header)), shown, title, max(len(rows) - MOST_ROWS, 0))


def card(title: str, facts: Facts = (), grids: Iterable[Grid] = (), error: str | None = None, *, fold: bool = False) -> str:
    """Return the HTML of a card. ``fold``: the facts are shown on a click.

    >>> "<td" in card("<t>", [("a", "<b>")]), "<b>&lt;t&gt;</b>" in card("<t>"), "&lt;b&gt;" in card("", [("a", "<b>")])
    (True, True, True)
    """
    shown = [(_text(name), _text(value)) for name, value in facts]
    template = template_environment("pyspark_paimon.plugins.page.html").get_template("card.html.j2")
    text: str = template.render(title=_text(title), facts=shown, grids=tuple(grids), error=error, fold=fold)
    return text


def card_of(value: BaseModel) -> str:
    """Return the card of a model.

    Scalar fields, also in nested models, are facts. Lists of models are tables. Empty fields are left out.
    A model with a sentence shows it, and folds its facts.
    """
    facts: list[tuple[str, object]] = []
    grids: list[Grid] = []
    _collect(value, "", facts, grids)
    has_sentence = type(value).__str__ is not BaseModel.__str__
    return card(f"{type(value).__name__}: {value}" if has_sentence else type(value).__name__, facts, grids, fold=has_sentence)


def _collect(value: BaseModel, prefix: str, facts: list[tuple[str, object]], grids: list[Grid]) -> None:
    for name in type(value).model_fields:
        member = getattr(value, name)
        if isinstance(member, BaseModel):
            _collect(member, f"{prefix}{name} ", facts, grids)
        elif isinstance(member, tuple) and member and isinstance(member[0], BaseModel):
            rows = [entry.model_dump(mode="json", exclude_none=True) for entry in member[: MOST_ROWS + 1]]
            header = list(dict.fromkeys(key for row in rows for key in row))
            grid = Grid.of(header, [[row.get(key, "") for key in header] for row in rows], f"{name}: {len(member):,}")
            grids.append(Grid(grid.header, grid.rows, grid.title, max(len(member) - MOST_ROWS, 0)))
        elif isinstance(member, Mapping):
            facts += [(f"{prefix}{name} {key}", entry) for key, entry in list(member.items())[:MOST_ROWS]]
            if len(member) > MOST_ROWS:
                facts.append((f"{prefix}{name}", f"and {len(member) - MOST_ROWS:,} more"))
        elif member is not None and member != ():
            facts.append((f"{prefix}{name}", member))


def or_error(title: str, draw: Callable[[], str]) -> str:
    """Return the result of ``draw``, or an error card."""
    try:
        return draw()
    except Exception as error:  # noqa: BLE001  # a notebook must show something for every value
        return card(title, error=f"{type(error).__name__}: {error}")


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}..."
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


@lru_cache(maxsize=4)
def template_environment(package: str) -> Environment:
    """Return the templates in the folder ``templates`` of a package."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # load jinja2 only to render

    loader = PackageLoader(package)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
