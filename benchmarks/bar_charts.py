"""Ratios to the floor as SVG text: a panel a workload, a bar a contender, all on one logarithmic scale that starts at the floor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_COLUMNS, _PANEL, _NAMES, _VALUES, _GAP = 3, 190, 104, 62, 26
_BAR, _STEP, _TITLE, _TOP = 11, 16, 24, 46
_CELL = _NAMES + _PANEL + _VALUES + _GAP
_TITLE_SIZE, _LETTER = 12.0, 0.58
"""Font size of a panel's title, and how wide its letters are on average, in font sizes."""
_OURS, _OTHER, _LINE, _GRID = "#2563eb", "#a8b3c4", "#374151", "#eceff3"


@dataclass(frozen=True)
class Bar:
    """A contender's ratio to the floor, and what stands beside it."""

    name: str
    ratio: float
    label: str
    ours: bool = False


@dataclass(frozen=True)
class Panel:
    """A workload. Its title is short; ``floor`` tells what the floor needed."""

    title: str
    floor: str
    bars: tuple[Bar, ...]


def svg(panels: Sequence[Panel], *, title: str) -> str:
    """The panels in rows; a bar to the right is slower than the floor, to the left faster."""
    ratios = [bar.ratio for panel in panels for bar in panel.bars] or [1.0]
    low, high = (math.floor(math.log10(min(0.5, *ratios))), math.ceil(math.log10(max(2.0, *ratios))))
    rows = [panels[at : at + _COLUMNS] for at in range(0, len(panels), _COLUMNS)]
    body, top = [], float(_TOP)
    for row in rows:
        body += [_panel(panel, at * _CELL + 8, top, low, high) for at, panel in enumerate(row)]
        top += _TITLE + max(len(panel.bars) for panel in row) * _STEP + 30
    width = _COLUMNS * _CELL
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top:.0f}" font-family="sans-serif" font-size="11" fill="#1f2937">'
    )
    lines = [
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="20" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    lines.append(
        '<text x="8" y="36" fill="#6b7280">time as a multiple of the floor (the line at 1x), logarithmic; left of it is faster</text>'
    )
    return "\n".join([head, *lines, *body, "</svg>", ""])


def _panel(panel: Panel, left: float, top: float, low: int, high: int) -> str:
    start = left + _NAMES

    def place(ratio: float) -> float:
        return start + (math.log10(ratio) - low) / (high - low) * _PANEL

    bottom = top + _TITLE + len(panel.bars) * _STEP
    floor = f'<tspan font-weight="normal" fill="#6b7280" dx="6">floor {escape(panel.floor)}</tspan>'
    letters = len(f"{panel.title} floor {panel.floor}")
    size = min(_TITLE_SIZE, (_CELL - _GAP) / (letters * _LETTER))  # so that no title runs into its neighbour
    parts = [f'<text x="{left}" y="{top + 14:.1f}" font-weight="bold" font-size="{size:.1f}">{escape(panel.title)}{floor}</text>']
    for power in range(low, high + 1):
        x = place(10.0**power)
        colour = _LINE if power == 0 else _GRID
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top + _TITLE - 4:.1f}" y2="{bottom:.1f}" stroke="{colour}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 11:.1f}" text-anchor="middle" font-size="9" fill="#6b7280">{10.0**power:g}x</text>')
    for at, bar in enumerate(panel.bars):
        y = top + _TITLE + at * _STEP
        one, other = sorted((place(1.0), place(bar.ratio)))
        weight = ' font-weight="bold"' if bar.ours else ""
        parts.append(f'<text x="{start - 6}" y="{y + 9:.1f}" text-anchor="end"{weight}>{escape(bar.name)}</text>')
        colour = _OURS if bar.ours else _OTHER
        parts.append(f'<rect x="{one:.1f}" y="{y:.1f}" width="{max(other - one, 1.0):.1f}" height="{_BAR}" fill="{colour}"/>')
        parts.append(f'<text x="{start + _PANEL + 6}" y="{y + 9:.1f}"{weight}>{escape(bar.label)}</text>')
    return "\n".join(parts)


__all__ = ["Bar", "Panel", "svg"]
