"""Background work: a failure is told, asked for again, and never takes a page with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from rise_app import jobs as jobs_module
from rise_app import runs_table, views
from rise_app.jobs import Jobs
from rise_app.loaders import ALL_ROWS, Analysis
from rise_core import Evaluation, RiseError, Settings, evaluate
from rise_core.estimates import Estimate
from rise_core.exceptions import ServerUnreachableError, UnreadableTableError


@pytest.fixture
def work() -> Iterator[Jobs]:
    made = Jobs()
    yield made
    made._pool.shutdown()


class Flaky:
    """Fails once, then works."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        if self.calls == 1:
            raise OSError("the disk was full")
        return self.calls


def test_a_failure_is_not_kept(work: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "_FAILURE_SECONDS", 0.0)
    flaky = Flaky()
    with pytest.raises(OSError, match="full"):
        work.ask(("key",), flaky).result()
    work.ask(("key",), flaky)
    assert work.ask(("key",), flaky).result() == 2
    assert work.ask(("key",), flaky).result() == 2


def test_a_page_that_waits_sees_the_failure_instead_of_asking_for_ever(work: Jobs) -> None:
    flaky = Flaky()
    first = work.ask(("key",), flaky)
    with pytest.raises(OSError, match="full"):
        first.result()
    assert work.ask(("key",), flaky) is first
    assert flaky.calls == 1


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Evaluation:
    """An evaluation whose resampling has a fault."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(Evaluation, "uncertainty", fail)
    rng = np.random.default_rng(0)
    return evaluate(rng.integers(0, 2, 80), rng.random(80), sensitive_features=["a", "b"] * 40)


def test_values_are_shown_when_their_noise_fails(broken: Evaluation) -> None:
    known, sentences = views._verdict(broken)
    assert sentences == ()
    assert known["w1"].value == broken.indicators.w1
    assert "ZeroDivisionError" in str(known["w1"].reason)
    assert views.cards_html(views.card_rows(broken, known), "light")


def test_one_run_does_not_take_the_table_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Store:
        uri = "http://store"

        def load(self, _: object) -> None:
            raise KeyError("a fault of ours")

    analysis = Analysis(ALL_ROWS, None, Settings())
    line = runs_table._line(Store(), None, analysis)  # type: ignore[arg-type]
    assert "KeyError" in line.problem
    assert "KeyError" in runs_table._facts(Store(), None).problem  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        runs_table._noise(Store(), None, analysis)  # type: ignore[arg-type]
    failed: Future[dict[str, Estimate]] = Future()
    failed.set_exception(KeyError("x"))
    assert runs_table.finished({"id": failed}) == {}


@pytest.mark.parametrize(
    ("error", "again"),
    [(ServerUnreachableError("gone"), True), (UnreadableTableError("no table"), False)],
)
def test_a_run_is_asked_again_only_when_that_may_help(
    work: Jobs, monkeypatch: pytest.MonkeyPatch, error: RiseError, again: bool
) -> None:
    monkeypatch.setattr(jobs_module, "_FAILURE_SECONDS", 0.0)
    calls = []

    class Store:
        uri = "http://store"

        def load(self, _: object) -> None:
            calls.append(1)
            raise error

    analysis = Analysis(ALL_ROWS, None, Settings())
    for _ in range(4):
        line = work.ask(
            ("key",),
            lambda: runs_table._line(Store(), None, analysis),  # type: ignore[arg-type]
            runs_table._passing,
        )
        assert line.result().problem == str(error)
    assert (len(calls) > 1) is again


def test_our_own_errors_speak_for_themselves() -> None:
    assert views.problem_of(RiseError("Give a label.")) == "Give a label."


ENDING = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from rise_app.jobs import Jobs
from rise_app.messages import problem_of

def work():
    time.sleep(3)  # longer than a slow machine takes to ask for all
    print("begun", flush=True)
    try:
        with ThreadPoolExecutor(1) as pool:
            return list(pool.map(int, "12"))
    except Exception as error:
        return problem_of(error)

jobs = Jobs()
for place in range(400):
    jobs.ask((place,), work)
time.sleep(0.1)
"""


def test_a_server_that_ends_neither_complains_nor_works_off_its_queue(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDING], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert done.stderr == ""
    # What was under way is finished; the rest is not begun.
    assert done.stdout.count("begun") <= jobs_module._AT_ONCE


def test_of_work_that_holds_rows_only_the_last_few_are_kept(work: Jobs) -> None:
    first = work.ask(("comparison", 0), lambda: 0)
    other = work.ask(("line", 0), lambda: 0)
    for number in range(1, 9):
        work.ask(("comparison", number), partial(int, number))
    assert work.ask(("line", 0), lambda: 1) is other
    assert work.ask(("comparison", 8), lambda: -1).result() == 8
    assert work.ask(("comparison", 0), lambda: -1) is not first
