from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.timing import Goal, together


# One of them starts a server, and a busy machine takes its time for that.
@pytest.mark.timeout(240)
def test_the_benchmarks_run_and_write_their_numbers(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "numbers.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--rows", "3000", "--repeats", "1", "--json", file],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=220,
    )
    assert done.returncode == 0, done.stderr
    written = json.loads(file.read_text("utf-8"))
    assert "numpy" in written["machine"]
    for table in written["benchmarks"]:
        # What is extrapolated from two short runs is noise at this size.
        timed = [line for line in table["lines"] if "extrapolated" not in line["note"]]
        assert timed
        assert all(line["seconds"] > 0 for line in timed)
        assert table["title"] in done.stdout


@pytest.mark.parametrize(
    ("value", "at_most", "met"), [(9, True, True), (11, True, False), (9, False, False)]
)
def test_a_goal_is_met_on_its_own_side(value: float, at_most: bool, met: bool) -> None:
    assert Goal("ratio", value, bound=10, at_most=at_most).met is met


def test_actions_take_turns() -> None:
    order: list[str] = []
    lines = together({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, repeats=2)
    assert order == ["a", "b"] * 3
    assert [line.repeats for line in lines] == [2, 2]
