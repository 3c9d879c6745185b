"""Draws a figure against the number of waiting runs, as an SVG that fits a light and a dark page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

WIDTH, HEIGHT = 472, 240
LEFT, RIGHT, TOP, BOTTOM = 56, 108, 36, 34
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 } .title { font-weight: 600 } .faint { fill: #59636e }
  .grid { stroke: #d1d9e0 } .a { stroke: #0969da } .a-text { fill: #0969da }
  .b { stroke: #9a6700 } .b-text { fill: #9a6700 }
  @media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .faint { fill: #9198a1 } .grid { stroke: #3d444d }
    .a { stroke: #4493f8 } .a-text { fill: #4493f8 } .b { stroke: #d29922 } .b-text { fill: #d29922 } }
"""


def draw(path: Path, title: str, unit: str, waiting: Sequence[int], series: Mapping[str, Sequence[float]]) -> None:
    """Write one line per series. `series`: name -> its value at each number of waiting runs."""
    most = max(value for values in series.values() for value in values) * 1.15

    def x(step: int) -> float:
        return LEFT + step * (WIDTH - LEFT - RIGHT) / max(len(waiting) - 1, 1)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - value / most * (HEIGHT - TOP - BOTTOM)

    parts = [f'<text class="title" x="{LEFT}" y="20">{title}</text>']
    for part in (0.0, 0.5, 1.0):
        value = most * part
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>')
        label = f"{value:.0f}" if most >= 10 else f"{value:.1f}"
        parts.append(
            f'<text class="faint" x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{label} {unit}</text>'
        )
    for step, many in enumerate(waiting):
        parts.append(f'<text class="faint" x="{x(step):.1f}" y="{HEIGHT - 14}" text-anchor="middle">{many:,}</text>')
    for (name, values), mark in zip(series.items(), "ab", strict=False):
        points = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in enumerate(values))
        parts.append(f'<polyline class="{mark}" fill="none" stroke-width="2" points="{points}"/>')
        parts.append(f'<text class="{mark}-text" x="{WIDTH - RIGHT + 8}" y="{y(values[-1]) + 4:.1f}">{name}</text>')
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    label = f'role="img" aria-label="{title} against the number of waiting runs"'
    body = "\n".join(parts)
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {label}>\n<style>{STYLE}</style>\n{body}\n</svg>\n'
    path.write_text(svg, encoding="utf-8")
