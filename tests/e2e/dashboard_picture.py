"""Draws the dashboard's panels from Prometheus' answers, as a small SVG: a stand-in for Grafana, which is not run here.

DASHBOARD_PICTURE=docs/pictures/dashboard.svg pytest tests/e2e/test_stack_ha.py
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from tests.e2e.prometheus import DASHBOARD, Prometheus, as_grafana_asks

COLUMN, ROW, GAP, MARGIN = 50, 17, 6, 26
"""Pixels: of Grafana's grid (24 columns), between panels, and around a graph."""
POINTS = 100
COLOURS = ("#3274d9", "#e0752d", "#37872d", "#c4162a", "#8f3bb8", "#b8860b", "#00838f", "#7a5230")
UNITS = {"s": " s", "d": " days", "reqps": "/s", "ops": "/s", "percent": " %"}

Line = tuple[str, list[tuple[float, float]]]
"""A series: its legend, and values by time."""


def draw_if_asked(server: Prometheus) -> None:
    """Draw what Prometheus has seen so far into the file that DASHBOARD_PICTURE names, if it is set."""
    if picture := os.environ.get("DASHBOARD_PICTURE"):
        Path(picture).write_text(_Picture(server, server.started, time.time()).draw())


@dataclass(frozen=True, slots=True)
class _Picture:
    server: Prometheus
    start: float
    end: float

    def draw(self) -> str:
        panels = json.loads(DASHBOARD.read_text())["panels"]
        height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) * ROW
        drawn = "\n".join(self._panel(panel) for panel in panels)
        caption = (
            "Drawn by tests/e2e/dashboard_picture.py from the answers of Prometheus, not by Grafana: "
            f"{self.end - self.start:.0f} seconds, rates over {self._step * 4:.0f} s."
        )
        return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {24 * COLUMN} {height + 24}" \
font-family="sans-serif" font-size="11" fill="#24292e"><rect width="100%" height="100%" fill="#f4f5f5"/>
{drawn}
<text x="6" y="{height + 16}">{caption}</text></svg>
"""

    @property
    def _step(self) -> float:
        return max(1.0, (self.end - self.start) / POINTS)

    def _panel(self, panel: Any) -> str:
        at = panel["gridPos"]
        x, y, width, height = at["x"] * COLUMN, at["y"] * ROW, at["w"] * COLUMN - GAP, at["h"] * ROW - GAP
        if panel["type"] == "row":
            return f'<text x="{x + 6}" y="{y + 13}" font-weight="bold">{escape(panel["title"])}</text>'
        lines = [line for target in panel["targets"] for line in self._lines(target) if line[1]]
        kind = self._number if panel["type"] == "stat" else self._graph
        body = kind(panel, lines, width, height) if lines else f'<text x="8" y="{height / 2}">none</text>'
        return (
            f'<g transform="translate({x},{y})"><rect width="{width}" height="{height}" fill="#fff" stroke="#d8d9da"/>'
            f'<text x="8" y="15" font-weight="bold">{escape(panel["title"])}</text>{body}</g>'
        )

    def _lines(self, target: Any) -> list[Line]:
        interval, span = f"{self._step * 4:.0f}s", f"{self.end - self.start:.0f}s"
        asked = as_grafana_asks(target["expr"], rate_interval=interval, time_range=span)
        return [
            (
                _legend(target["legendFormat"], labels),
                [(at, value) for at, value in values if math.isfinite(value)],
            )
            for labels, values in self.server.ask_range(asked, self.start, self.end, self._step)
        ]

    def _number(self, panel: Any, lines: list[Line], width: int, height: int) -> str:
        value = lines[0][1][-1][1]
        below, from_one = (step["color"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"])
        place = f'x="{width / 2}" y="{height / 2 + 18}" text-anchor="middle" font-size="26"'
        return f'<text {place} fill="{from_one if value >= 1 else below}">{value:g}</text>'

    def _graph(self, panel: Any, lines: list[Line], width: int, height: int) -> str:
        unit = panel["fieldConfig"]["defaults"]["unit"]
        top = max(value for _, values in lines for _, value in values) or 1.0
        shown = f"{top:.0%}" if unit == "percentunit" else f"{float(f'{top:.2g}'):g}{UNITS.get(unit, '')}"
        floor = height - MARGIN
        across, down = (width - 2 * MARGIN) / (self.end - self.start), (floor - MARGIN) / top
        parts = [
            f'<text x="8" y="{MARGIN + 4}" fill="#6e7781">{shown}</text>',
            f'<text x="8" y="{floor}" fill="#6e7781">0</text>',
            f'<path d="M{MARGIN},{floor}H{width - MARGIN}" stroke="#d8d9da"/>',
        ]
        legend = []
        for number, (name, values) in enumerate(lines):
            colour, path, before = COLOURS[number % len(COLOURS)], "", -math.inf
            for at, value in values:
                # As Grafana: no line across what has no answer.
                place = f"{MARGIN + (at - self.start) * across:.0f},{floor - value * down:.0f}"
                path += f"L{place}" if at - before < 1.5 * self._step else f"M{place}h0"
                before = at
            parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5" stroke-linecap="round"/>')
            legend.append(f'<tspan fill="{colour}">{escape(name)}</tspan>')
        clipped = f'<svg width="{width - 8}" height="{height}"><text x="8" y="{height - 8}" font-size="9">'
        return "".join(parts) + clipped + " · ".join(legend) + "</text></svg>"


def _legend(template: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda label: labels.get(label[1], ""), template)
