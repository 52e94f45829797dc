"""The hand-written part of ``demo/RESULTS.md``. Numbers belong into the generated part."""

from __future__ import annotations

from collections.abc import Mapping

INTRODUCTION = """\
Written by `python -m demo.results` from the tables in `demo/predictions`; do not edit. Three seeds
a cell: mean, and the range over the seeds in brackets. Settings were fixed in `demo/train/grid.py`
beforehand and chosen on the validation part of the training environments; the held-out environment
was scored once, with the chosen ones. Residual `p − y`, threshold ½, first sensitive column. DP is
the positive rate of the first-named group over that of the second; 1 is parity. Higher F_mean, and
lower MD, F_shift, F_acc and W1 are fairer. The seeds share one data split: the range is that of the
training, not of the sample."""

PAPER = ""

FINDINGS: Mapping[str, str] = dict.fromkeys(
    ("ccmnist", "fashionweather", "adult", "crash", "nysf"), ""
)
