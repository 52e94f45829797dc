"""Reports and pictures: one self-contained HTML file, PNG and SVG.

Needs the extras ``rise-core[charts,export]``.
"""

from __future__ import annotations

from rise_core.report.documents import comparison_report, evaluation_report
from rise_core.report.figures import chart_image
from rise_core.report.sections import RunReference

__all__ = ["RunReference", "chart_image", "comparison_report", "evaluation_report"]
