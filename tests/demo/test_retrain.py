"""One table data set, trained again, gives what is committed. Minutes; run by `make demo-check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.check import TOLERANCE, retrain
from demo.train.archives import ArchiveError

pytestmark = pytest.mark.slow


@pytest.mark.timeout(1800)
def test_nysf_trained_again_is_within_the_tolerance(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed (requirements-train.txt)")
    try:
        compared = list(retrain("nysf", tmp_path))
    except ArchiveError as error:
        pytest.skip(f"the archive cannot be fetched here: {error}")
    assert len(compared) == 24
    assert [one.name for one in compared if not one.within] == [], f"tolerance {TOLERANCE}"
