"""A curve in the room of a table cell."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

import numpy as np

from rise_core.charts.panel import signed_domain
from rise_core.charts.theme import ThemeName, palette_for, theme_of
from rise_core.curve import Curve

if TYPE_CHECKING:
    from rise_core.evaluation import Evaluation

__all__ = ["spark_svg", "spark_values", "svg_uri"]

_DIGITS = 3


def spark_values(curve: Curve, n: int = 40) -> list[float]:
    """Sorted residuals at ``n`` even ranks, for a line chart column.

    Parameters
    ----------
    curve : the curve of all rows, or of a group
    n : how many values

    Returns
    -------
    rising residuals at ranks 0, 1/(n − 1), …, 1; empty for a curve without rows
    """
    if curve.n == 0:
        return []
    ranks = np.linspace(0, 1, n)
    return [round(float(value), _DIGITS) for value in curve.at(ranks)]


def spark_svg(
    ev: Evaluation,
    *,
    theme: ThemeName | None = None,
    width: int = 120,
    height: int = 32,
    points: int = 40,
) -> str:
    """Group curves in miniature, as an image for an image column.

    Two groups share one pair of axes with the whole range of the residual, so that rows of a
    table can be compared by eye; the area between them is what to look at.

    Parameters
    ----------
    ev : one evaluated model
    theme : "light" or "dark"; None draws colours that can be read on both
    width, height : pixels
    points : points of each curve

    Returns
    -------
    ``data:`` URI of an SVG; nothing is fetched to show it
    """
    look = theme_of(theme or "light")
    palette = palette_for(tuple(ev.groups), look)
    low, high = signed_domain(ev)
    ranks = np.linspace(0, 1, points)

    def xy(curve: Curve) -> list[str]:
        x = 1 + ranks * (width - 2)
        y = 1 + (high - np.clip(curve.at(ranks), low, high)) / (high - low) * (height - 2)
        return [f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True)]

    lines = {label: xy(curve) for label, curve in ev.groups.items() if curve.n}
    zero = 1 + high / (high - low) * (height - 2)
    parts = [f'<path d="M1,{zero:.1f}H{width - 1}" stroke="{look.zero}" stroke-opacity=".6"/>']
    if len(lines) == 2:
        first, second = lines.values()
        area = " ".join([*first, *second[::-1]])
        parts.append(f'<polygon points="{area}" fill="{look.pooled}" fill-opacity=".28"/>')
    for label, points_of in lines.items():
        dash = palette.dashes[palette.labels.index(label)]
        drawn = f' stroke-dasharray="{max(dash[0] / 3, 2.5):.1f} 1.5"' if dash != (1, 0) else ""
        parts.append(
            f'<polyline points="{" ".join(points_of)}" fill="none" '
            f'stroke="{palette.color(label)}" stroke-width="1.6"{drawn}/>'
        )
    return svg_uri("".join(parts), width, height)


def svg_uri(body: str, width: int, height: int, *, order: str = "") -> str:
    """Wrap SVG elements as a ``data:`` URI; a table of images sorts by ``order``."""
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">{body}</svg>'
    )
    # Base64, for the text may land inside any kind of quotes.
    return "data:image/svg+xml;base64," + b64encode(text.encode()).decode()
