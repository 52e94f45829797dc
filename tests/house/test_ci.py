from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

MAKE = """#!/bin/sh
echo "================= 1 failed, 41 passed, 2 skipped in 3.21s ================="
echo "ruff: 7 passed in spirit"
echo "=============== 5 passed, 1 warning in 61.00s (0:01:01) ==================="
exit {status}
"""


@pytest.mark.parametrize("status", [0, 2])
def test_the_last_line_adds_the_closing_lines_up(root: Path, tmp_path: Path, status: int) -> None:
    make = tmp_path / "make"
    make.write_text(MAKE.format(status=status), "utf-8")
    make.chmod(0o755)
    done = subprocess.run(
        [root / ".ci" / "run"],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == status, done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith("===== 1 failed, 46 passed, 2 skipped in ")
