"""Line charts as SVG text, without a plotting library: a few panels side by side, one legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

_COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed")
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 300, 190, 46, 46, 62
_POINTS = 300


@dataclass(frozen=True)
class Chart:
    """One panel: lines by name, all over the same steps, or over ``places`` from 0 up that are marked."""

    title: str
    lines: Mapping[str, Sequence[float]]
    places: Sequence[float] | None = None


def svg(charts: Sequence[Chart], *, x_label: str) -> str:
    """The charts in a row; each line is thinned to the greatest values of equal stretches.

    One legend stands for all charts, unless a chart has lines of its own: then it has a legend, too.
    """
    width = _LEFT + len(charts) * (_WIDTH + _GAP)
    body = [_panel(chart, _LEFT + at * (_WIDTH + _GAP), x_label) for at, chart in enumerate(charts)]
    legend = _legend(charts[0], _LEFT)
    for at, chart in enumerate(charts):
        if chart.lines.keys() != charts[0].lines.keys():
            legend += _legend(chart, _LEFT + at * (_WIDTH + _GAP))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_TOP + _HEIGHT + 44}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *legend, *body, "</svg>", ""])


def _legend(chart: Chart, left: int) -> list[str]:
    step = min(170, max((_WIDTH + _GAP) // len(chart.lines), 120))
    return [
        f'<rect x="{left + at * step}" y="8" width="12" height="12" fill="{_COLOURS[at % len(_COLOURS)]}"/>'
        f'<text x="{left + at * step + 18}" y="18">{escape(name)}</text>'
        for at, name in enumerate(chart.lines)
    ]


def _panel(chart: Chart, left: int, x_label: str) -> str:
    top = max(max(line, default=0.0) for line in chart.lines.values()) or 1.0
    steps = max(chart.places) if chart.places else max(len(line) for line in chart.lines.values())
    bottom = _TOP + _HEIGHT
    parts = [f'<text x="{left}" y="{_TOP - 8}" font-weight="bold">{escape(chart.title)}</text>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = bottom - share * _HEIGHT
        parts.append(f'<line x1="{left}" x2="{left + _WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{_figure(top * share)}</text>')
    parts.append(f'<text x="{left}" y="{bottom + 18}">0</text>')
    parts.append(
        f'<text x="{left + _WIDTH}" y="{bottom + 18}" text-anchor="end">{steps:,.{0 if steps >= 10 else 1}f} {escape(x_label)}</text>'
    )
    for at, line in enumerate(chart.lines.values()):
        colour = _COLOURS[at % len(_COLOURS)]
        placed = (
            _thinned(line) if chart.places is None else [(place / steps, value) for place, value in zip(chart.places, line, strict=True)]
        )
        spots = [(left + x * _WIDTH, bottom - value / top * _HEIGHT) for x, value in placed]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.2"/>')
        if chart.places is not None:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in spots]
    return "\n".join(parts)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _thinned(line: Sequence[float]) -> list[tuple[float, float]]:
    """At most ``_POINTS`` (place from 0 to 1, value)."""
    step = max(1, -(-len(line) // _POINTS))
    return [(at / max(1, len(line) - 1), max(line[at : at + step])) for at in range(0, len(line), step)]


__all__ = ["Chart", "svg"]
