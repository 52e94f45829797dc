"""Fill an MLflow store with the demo: ``python -m demo.load [folder]``.

One experiment a data set, one run a model. The store is built in a folder of its own beside the
target and moved into place in one step, so nobody ever opens a half-filled one: two processes that
start at once both build, one of them wins, and both end up with the same store.

What a run looks like is what ``rise_core.tracking.log_predictions`` leaves (a test compares them);
it is not called here, since it would write to the folder that does not exist before the move.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo.cards import ALGORITHMS, TEACHING, DatasetCard
from demo.pack import PREDICTIONS, Pack, PackRun, fingerprint, indicators, packs, roles
from rise_core.exceptions import RiseError

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

__all__ = ["DemoError", "load_demo"]

Progress = Callable[[int, int, str], None]

MARKER = "demo.json"
DATABASE = "mlflow.db"
TABLE = "rise/predictions.parquet"
ROLES = "rise/roles.json"
LAYOUT = 1
"""Raised when this module writes a store in another way, so that older ones are rebuilt."""
_STALE = 3600.0


class DemoError(RiseError):
    """The demo pack is absent or damaged, or its store cannot be written."""


def load_demo(store_dir: Path, *, progress: Progress | None = None) -> str:
    """Make sure that ``store_dir`` holds the demo as an MLflow store, and return its address.

    A store that is complete and belongs to this version of the demo is left as it is, with
    whatever was added to it. Anything else at that place (half-filled, older, moved from another
    folder) is moved aside, never deleted, and a new store takes its place.

    Parameters
    ----------
    store_dir : folder for ``mlflow.db`` and the artifacts
    progress : called with (runs done, runs in all, text)

    Returns
    -------
    The tracking URI, ``sqlite:///…/mlflow.db``.

    Raises
    ------
    DemoError
        There are no prediction tables beside this module, one of them is missing, or the folder
        cannot be written.
    """
    store = store_dir.expanduser().resolve()
    uri = f"sqlite:///{(store / DATABASE).as_posix()}"
    wanted = _identity(store)
    if _holds(store, wanted):
        return uri
    tell = progress or (lambda done, total, text: None)
    try:
        store.parent.mkdir(parents=True, exist_ok=True)
        _sweep(store)
        building = Path(tempfile.mkdtemp(prefix=f".{store.name}-", dir=store.parent))
        # mkdtemp makes it private; a store is as open as any folder made here.
        building.chmod(0o755)
        try:
            _build(building, store, tell)
            (building / MARKER).write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
            _move_into_place(building, store, wanted)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    except OSError as error:
        raise DemoError(
            f"The demo store should be written to {store}; that failed: {error}. Check that the "
            "folder can be written and the disk is not full."
        ) from error
    return uri


# --- is it there? ---------------------------------------------------------------------------


def _identity(store: Path) -> dict[str, object]:
    """What a store must say of itself to be taken as this one."""
    from importlib.metadata import version

    # The path, because MLflow keeps absolute artifact addresses; MLflow's version, because
    # another one may want another database schema, and nothing here migrates.
    return {
        "layout": LAYOUT,
        "pack": fingerprint(),
        "mlflow": version("mlflow"),
        "store": str(store),
    }


def _holds(store: Path, wanted: Mapping[str, object]) -> bool:
    try:
        found = json.loads((store / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return found == wanted and (store / DATABASE).is_file() and (store / "artifacts").is_dir()


def _move_into_place(building: Path, store: Path, wanted: Mapping[str, object]) -> None:
    """Put the finished folder where it belongs; if another process was first, keep its store."""
    for _ in range(5):
        with contextlib.suppress(OSError):
            # Fails where the target exists and is not empty, which is what makes it safe.
            building.rename(store)
            return
        if _holds(store, wanted):
            return
        aside = store.with_name(f"{store.name}.before-{time.strftime('%Y%m%d-%H%M%S')}")
        with contextlib.suppress(OSError):
            store.rename(aside)
    raise DemoError(
        f"The demo store is built, but {store} cannot be replaced by it. Is another program "
        "holding that folder open?"
    )


def _sweep(store: Path) -> None:
    """Remove what builds left behind that were killed an hour ago or more."""
    for left in store.parent.glob(f".{store.name}-*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE:
                shutil.rmtree(left)


# --- building -------------------------------------------------------------------------------


def _build(building: Path, store: Path, tell: Progress) -> None:
    found = packs()
    runs = [run for pack in found for run in pack.runs]
    if not runs:
        raise DemoError(
            f"The demo's predictions should lie in {PREDICTIONS}; there are none. Check out the "
            "repository again, or make them with `make demo-train`."
        )
    missing = [str(run.table) for run in runs if not run.table.is_file()]
    if missing:
        raise DemoError(
            f"{len(missing)} of the demo's {len(runs)} tables are missing, the first is "
            f"{missing[0]}. Check out the repository again, or run `make demo-train`."
        )
    tell(0, len(runs), "Setting up the demo store")
    done, known = 0, indicators()
    with _client(building / DATABASE) as client:
        for pack in found:
            experiment = client.create_experiment(
                pack.card.title,
                artifact_location=(store / "artifacts" / pack.card.id).as_uri(),
                tags=_experiment_tags(pack.card),
            )
            for run in pack.runs:
                # The first of the list is the newest: MLflow's own order then is the pack's.
                start = int(time.time() * 1000) - 1000 * done
                values = known.get(run.dataset, {}).get(run.name, {})
                run_id = _log(client, experiment, pack, run, values, start)
                _put(run, pack.card, building / "artifacts" / pack.card.id / run_id / "artifacts")
                done += 1
                tell(done, len(runs), f"{pack.card.title}: {run.title}, seed {run.seed}")


@contextlib.contextmanager
def _client(database: Path) -> Iterator[MlflowClient]:
    """A client for a new database; its connections are closed before the folder moves."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    noise = logging.getLogger("mlflow.store.db.utils")
    level = noise.level
    from mlflow.tracking import MlflowClient

    noise.setLevel(logging.WARNING)
    try:
        client = MlflowClient(tracking_uri=f"sqlite:///{database.as_posix()}")
        yield client
        client._tracking_client.store.engine.dispose()
    finally:
        noise.setLevel(level)


def _log(
    client: MlflowClient,
    experiment: str,
    pack: Pack,
    run: PackRun,
    measured: Mapping[str, float],
    start: int,
) -> str:
    from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param

    from rise_core.tracking.training import METRIC_PREFIX

    card = pack.card
    name = f"{run.title}, seed {run.seed}"
    made = client.create_run(experiment, start_time=start, tags=_run_tags(card, run), run_name=name)
    run_id: str = made.info.run_id
    params = {
        "dataset": card.title,
        "algorithm": ALGORITHMS[run.algorithm].title,
        "seed": run.seed,
        **run.settings,
        # The reduction trains no network: the budget is not its own.
        **({} if run.algorithm == "exponentiated-gradient" else pack.budget),
    }
    metrics = {
        "train_accuracy": run.train_accuracy,
        "validation_accuracy": run.validation_accuracy,
        **{f"{METRIC_PREFIX}{key}": value for key, value in measured.items()},
    }
    client.log_batch(
        run_id,
        metrics=[Metric(key, value, start, 0) for key, value in metrics.items()],
        params=[
            Param(key, f"{value:g}" if isinstance(value, float) else str(value))
            for key, value in params.items()
        ],
    )
    source = json.dumps({"source": card.source, "archive": card.archive})
    evaluated = Dataset(
        card.title,
        pack.digest,
        "archive",
        source,
        profile=json.dumps({"num_rows": card.evaluated_rows}),
    )
    tags = [InputTag("mlflow.data.context", "evaluation")]
    client.log_inputs(run_id, [DatasetInput(evaluated, tags)])
    client.set_terminated(run_id, end_time=start)
    return run_id


def _put(run: PackRun, card: DatasetCard, artifacts: Path) -> None:
    table = artifacts / TABLE
    table.parent.mkdir(parents=True)
    shutil.copyfile(run.table, table)
    (artifacts / ROLES).write_text(
        json.dumps(roles(card).to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def _experiment_tags(card: DatasetCard) -> dict[str, str]:
    return {"rise.demo": "true", "rise.dataset_id": card.id, "mlflow.note.content": card.note()}


def _run_tags(card: DatasetCard, run: PackRun) -> dict[str, str]:
    from rise_core.tracking.cache import file_digest
    from rise_core.tracking.entities import TABLE_TAG

    tags = {
        "dataset": card.title,
        "algorithm": run.title,
        "seed": str(run.seed),
        "environment": card.held_out,
        "rise.positive_class": card.positive,
        "rise.demo": "true",
        "rise.dataset_id": card.id,
        "rise.algorithm_id": run.algorithm,
        "mlflow.note.content": ALGORITHMS[run.algorithm].text(),
        TABLE_TAG: json.dumps(
            {
                "path": TABLE,
                "size": run.table.stat().st_size,
                "digest": file_digest(run.table),
            }
        ),
    }
    if run.teaching:
        lesson = TEACHING[run.name]
        tags |= {"teaching": "true", "mlflow.note.content": f"{lesson.what} {lesson.lesson}"}
    return tags


def main(arguments: list[str] | None = None) -> int:
    import argparse

    parser = argparse.ArgumentParser(prog="python -m demo.load", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(".rise") / "demo")
    given = parser.parse_args(arguments)

    def show(done: int, total: int, text: str) -> None:
        end: Any = "\n" if done == total else "\r"
        print(f"{done:3d}/{total} {text:60.60s}", end=end, flush=True)

    try:
        print(load_demo(given.folder, progress=show))
    except RiseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
