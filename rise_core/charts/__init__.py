"""Charts: an evaluation in, an Altair chart out. Needs the extra ``rise-core[charts]``."""

from __future__ import annotations

from rise_core.charts.rise import rise_chart

__all__ = ["rise_chart"]
