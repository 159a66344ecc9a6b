"""Line charts as SVG text, without a plotting library: a few panels side by side, one legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626")
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 300, 190, 46, 46, 62
_POINTS = 300


@dataclass(frozen=True)
class Chart:
    """One panel: lines by name, all over the same steps."""

    title: str
    lines: Mapping[str, Sequence[float]]


def svg(charts: Sequence[Chart], *, x_label: str) -> str:
    """The charts in a row; each line is thinned to the greatest values of equal stretches."""
    width = _LEFT + len(charts) * (_WIDTH + _GAP)
    body = [_panel(chart, _LEFT + at * (_WIDTH + _GAP), x_label) for at, chart in enumerate(charts)]
    legend = [
        f'<rect x="{_LEFT + at * 170}" y="8" width="12" height="12" fill="{_COLOURS[at % len(_COLOURS)]}"/>'
        f'<text x="{_LEFT + at * 170 + 18}" y="18">{escape(name)}</text>'
        for at, name in enumerate(charts[0].lines)
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_TOP + _HEIGHT + 44}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *legend, *body, "</svg>", ""])


def _panel(chart: Chart, left: int, x_label: str) -> str:
    top = max(max(line, default=0.0) for line in chart.lines.values()) or 1.0
    steps = max(len(line) for line in chart.lines.values())
    bottom = _TOP + _HEIGHT
    parts = [f'<text x="{left}" y="{_TOP - 8}" font-weight="bold">{escape(chart.title)}</text>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = bottom - share * _HEIGHT
        parts.append(f'<line x1="{left}" x2="{left + _WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{top * share:.3g}</text>')
    parts.append(f'<text x="{left}" y="{bottom + 18}">0</text>')
    parts.append(f'<text x="{left + _WIDTH}" y="{bottom + 18}" text-anchor="end">{steps:,} {escape(x_label)}</text>')
    for at, line in enumerate(chart.lines.values()):
        points = " ".join(f"{left + x * _WIDTH:.1f},{bottom - value / top * _HEIGHT:.1f}" for x, value in _thinned(line))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{_COLOURS[at % len(_COLOURS)]}" stroke-width="1.2"/>')
    return "\n".join(parts)


def _thinned(line: Sequence[float]) -> list[tuple[float, float]]:
    """At most ``_POINTS`` (place from 0 to 1, value)."""
    step = max(1, -(-len(line) // _POINTS))
    return [(at / max(1, len(line) - 1), max(line[at : at + step])) for at in range(0, len(line), step)]


__all__ = ["Chart", "svg"]
