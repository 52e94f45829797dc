"""Listing runs and fetching tables, against the bare MLflow client on the same server."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.timing import Goal, Settings, Table, together
from rise_core import Predictions, evaluate_predictions
from rise_core.tracking import Listing, Run, Search, Store, connect, log_predictions
from rise_core.tracking import Table as Predicted
from rise_core.tracking.search import Sources

WORKERS = 8
LISTING = 1.5
COLD = 1.5
WARM_SECONDS = 1.0


def run(settings: Settings) -> Table:
    """Time the Experiments page's data and many tables, each beside what MLflow alone takes.

    A run of fewer rows than 100,000 is a trial: fewer runs and tables.
    """
    full = settings.rows >= 100_000
    runs, tables, rows = (1000, 100, 50_000) if full else (40, 6, min(settings.rows, 50_000))
    with tempfile.TemporaryDirectory(prefix="rise-bench-") as name:
        folder = Path(name)
        many, few = _fill(folder, runs, tables, rows, settings.seed)
        with _server(folder) as uri:
            return _measure(uri, folder, many, few, runs, tables, rows, settings.repeats)


def _measure(
    uri: str, folder: Path, many: str, few: str, runs: int, tables: int, rows: int, repeats: int
) -> Table:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    fresh = count()

    def listed() -> int:
        store = connect(uri, cache_dir=folder / "listing")
        store.experiments()
        listing = Listing(store, many, Search(), Sources())
        return _must_be(len(listing.reach(runs)), runs)

    def bare_listing() -> int:
        return _must_be(len(client.search_runs([many], max_results=runs)), runs)

    chosen = list(connect(uri).runs(few, max_results=tables).runs)
    warm_store = connect(uri, cache_dir=folder / "warm")

    def cold() -> int:
        store = connect(uri, cache_dir=folder / f"cold {next(fresh)}")
        return _evaluated(store, chosen, tables)

    def warm() -> int:
        return _evaluated(warm_store, chosen, tables)

    def bare_download() -> int:
        return _must_be(_download(uri, chosen, folder / f"bare {next(fresh)}"), tables)

    # every action is tried once before it is timed, so that the warm cache is warm
    few_repeats = min(repeats, 3)
    lines = [
        *together({"bare search_runs": bare_listing, "Experiments page": listed}, repeats),
        *together({f"bare download, {WORKERS} at a time": bare_download,
                   "fetched and evaluated, cold": cold,
                   "fetched and evaluated, warm": warm}, few_repeats),
    ]  # fmt: skip
    search, page, download, first, second = lines
    return Table(
        f"A tracking server: {runs:,} runs listed, {tables} tables of {rows:,} rows",
        tuple(lines),
        (
            Goal("Experiments page in search_runs", page.seconds / search.seconds, LISTING, True),
            Goal("cold in bare downloads", first.seconds / download.seconds, COLD, True),
            Goal("warm, seconds", second.seconds, WARM_SECONDS, True),
        ),
    )


def _evaluated(store: Store, runs: list[Run], wanted: int) -> int:
    def use(_: Run, table: Predicted) -> float:
        found = Predictions.from_frame(table.frame, table.roles)
        return evaluate_predictions(found).indicators.w1

    results = store.load_many(runs, workers=WORKERS, use=use)
    failed = [result for result in results.values() if isinstance(result, Exception)]
    if failed:
        raise failed[0]
    return _must_be(len(results), wanted)


def _download(uri: str, runs: list[Run], folder: Path) -> int:
    """What a careful script does: one file a run, eight at a time."""
    import mlflow

    def fetch(run: Run) -> str:
        target = folder / run.id
        target.mkdir(parents=True)
        return str(
            mlflow.artifacts.download_artifacts(
                artifact_uri=f"{run.artifact_uri}/rise/predictions.parquet",
                tracking_uri=uri,
                dst_path=str(target),
            )
        )

    with ThreadPoolExecutor(WORKERS) as pool:
        return len(list(pool.map(fetch, runs)))


def _must_be(found: int, wanted: int) -> int:
    if found != wanted:
        raise RuntimeError(f"{found} came, {wanted} were wanted: the times would mean nothing")
    return found


# ------------------------------------------------------------------------------------ the store


def _fill(folder: Path, runs: int, tables: int, rows: int, seed: int) -> tuple[str, str]:
    """Write a database: many runs without files, and some with tables; ids of both experiments."""
    import mlflow
    from mlflow.entities import Metric, Param, RunTag

    uri = f"sqlite:///{folder}/mlflow.db"
    with contextlib.chdir(folder):
        client: Any = mlflow.MlflowClient(tracking_uri=uri)
        many = client.create_experiment("many runs", artifact_location="mlflow-artifacts:/many")
    rng = np.random.default_rng(seed)
    for i in range(runs):
        run_id = client.create_run(many, run_name=f"run {i}").info.run_id
        client.log_batch(
            run_id,
            metrics=[Metric(f"rise.{m}", rng.random(), 0, 0) for m in "abcdefgh"],
            params=[Param(f"param {p}", str(i)) for p in range(5)],
            tags=[RunTag("dataset", f"d{i % 4}"), RunTag("algorithm", f"a{i % 9}"),
                  RunTag("seed", str(i))],
        )  # fmt: skip
        client.set_terminated(run_id)
    # written as a training script would, but past the server
    place = folder / "artifacts" / "few"
    few = client.create_experiment("tables", artifact_location=str(place))
    for i in range(tables):
        frame = _rows(rows, rng)
        run_id = client.create_run(few, run_name=f"table {i}").info.run_id
        log_predictions(frame["y_true"], frame["y_prob"], sensitive_features=frame[["sex"]],
                        run_id=run_id, tracking_uri=uri)  # fmt: skip
        client.set_terminated(run_id)
    _behind_the_proxy(folder / "mlflow.db", str(place))
    return str(many), str(few)


def _behind_the_proxy(database: Path, place: str) -> None:
    """Let the server hand out the files that were written into its artifact folder."""
    import sqlite3

    with contextlib.closing(sqlite3.connect(database)) as link, link:
        for table, column in (("runs", "artifact_uri"), ("experiments", "artifact_location")):
            link.execute(
                f"UPDATE {table} SET {column} = replace({column}, ?, 'mlflow-artifacts:/few')",
                (place,),
            )


def _rows(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    sex = rng.random(rows) < 0.35
    label = rng.random(rows) < np.where(sex, 0.3, 0.5)
    score = 1 / (1 + np.exp(-(2.5 * label - 1.2 + rng.normal(0, 1, rows))))
    names = pd.Series(np.where(sex, "female", "male"), dtype="str")
    return pd.DataFrame({"y_true": label.astype(int), "y_prob": score, "sex": names})


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    uri = f"http://127.0.0.1:{port}"
    environment = os.environ | {
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # else fifteen processes more
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    command = [
        sys.executable, "-m", "mlflow", "server", "--workers", "1", "--host", "127.0.0.1",
        "--port", str(port), "--backend-store-uri", f"sqlite:///{folder}/mlflow.db",
        "--artifacts-destination", str(folder / "artifacts"), "--serve-artifacts",
    ]  # fmt: skip
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _wait(f"{uri}/health", process, folder / "log.txt")
        yield uri
    finally:
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + 90
    while time.monotonic() < ends and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2):
            return
        time.sleep(0.2)
    raise RuntimeError(f"the MLflow server did not start: {log.read_text()[-2000:]}")
