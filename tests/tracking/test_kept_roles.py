"""What a person said once for an experiment holds for the next one: bands, conversion, table."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from rise_core import Predictions, evaluate, evaluate_predictions
from rise_core.columns import Roles
from rise_core.exceptions import ColumnError, UnreadableTableError
from rise_core.tracking import connect, log_predictions
from rise_core.tracking.new_run import log_new_run
from rise_core.tracking.writing import plan, write
from tests.tracking.test_load import log_table_file, put


@pytest.fixture
def aged(frame) -> pd.DataFrame:
    age = np.random.default_rng(8).integers(18, 80, len(frame)).astype(float)
    age[:9] = np.nan
    return frame.assign(age=age, y_prob=100 * frame["y_prob"])


ROLES = Roles(
    "y_true", "y_prob", ("sex", "age"), pos_label="yes", scale="percent", convert=True,
    bins={"age": (30.0, 45.5)}, intersections=(("sex", "age"),), table="second.csv",
)  # fmt: skip


def two_tables(workspace, frame, folder) -> str:
    run_id = workspace.run()
    first = frame.assign(y_prob=frame["y_prob"].iloc[::-1].to_numpy())
    log_table_file(workspace, run_id, first, folder, "predictions.csv")
    log_table_file(workspace, run_id, frame, folder, "second.csv")
    return run_id


def test_kept_here_and_in_the_tag_alike(workspace, aged, tmp_path) -> None:
    run_id = two_tables(workspace, aged, tmp_path / "out")
    store = connect(workspace.uri, cache_dir=tmp_path / "mine", writable=True)
    assert store.load(run_id).path == "predictions.csv"
    store.keep_roles(workspace.experiment_id, ROLES)
    again = connect(workspace.uri, cache_dir=tmp_path / "mine")
    assert again.kept_roles(workspace.experiment_id) == ROLES
    # the next person, on another machine, finds the tag
    write(store, plan(store, run_id, roles=ROLES))
    other = connect(workspace.uri, cache_dir=tmp_path / "theirs")
    other.experiments()
    assert other.kept_roles(workspace.experiment_id) == ROLES
    for reader in (store, again, other):
        table = reader.load(run_id)
        assert (table.path, table.roles, table.roles_from) == ("second.csv", ROLES, "experiment")
        made = Predictions.from_frame(table.frame, table.roles)
        assert made.y_prob == pytest.approx(aged["y_prob"].to_numpy() / 100)
        assert made.feature("age").labels == (
            "under 30", "[30, 45.5)", "45.5 and over", "(missing)",
        )  # fmt: skip
        assert "female × under 30" in made.feature("sex × age").labels


def test_what_was_kept_before_there_were_bands_is_read(on_sqlite, tmp_path) -> None:
    old = Roles("y_true", "y_prob", ("sex",), pos_label="yes")
    value = {k: v for k, v in old.to_dict().items() if k not in ("bins", "table")}
    on_sqlite.client.set_experiment_tag(
        on_sqlite.experiment_id, "rise.roles", json.dumps(value)
    )  # fmt: skip
    store = connect(on_sqlite.uri, cache_dir=tmp_path / "c")
    store.experiments()
    assert store.kept_roles(on_sqlite.experiment_id) == old


@pytest.mark.parametrize("bins", [{"age": [60, 30]}, {"age": "30"}, [30], {"age": [None]}])
def test_broken_bands_in_a_tag_are_as_good_as_none(on_sqlite, aged, tmp_path, bins) -> None:
    run_id = on_sqlite.run()
    log_table_file(on_sqlite, run_id, aged, tmp_path / "out", "p.csv")
    on_sqlite.client.set_experiment_tag(
        on_sqlite.experiment_id, "rise.roles", json.dumps(ROLES.to_dict() | {"bins": bins})
    )
    store = connect(on_sqlite.uri, cache_dir=tmp_path / "c")
    store.experiments()
    assert store.kept_roles(on_sqlite.experiment_id) is None
    assert store.load(run_id).roles_from == "guessed"


def test_a_kept_table_that_a_run_lacks(workspace, aged, tmp_path) -> None:
    with_it = two_tables(workspace, aged, tmp_path / "out")
    without = workspace.run()
    log_table_file(workspace, without, aged, tmp_path / "out", "predictions.csv")
    store = connect(workspace.uri, cache_dir=tmp_path / "c")
    store.keep_roles(workspace.experiment_id, ROLES)
    assert store.load(with_it).path == "second.csv"
    assert store.load(without).path == "predictions.csv"
    assert store.load(without).roles == ROLES  # the columns are the same
    # who names a table gets it; who forgets what was kept gets the likeliest
    assert store.load(with_it, "predictions.csv").path == "predictions.csv"
    loaded = store.load_many([store.run(with_it), store.run(without)])
    assert [table.path for table in loaded.values()] == ["second.csv", "predictions.csv"]
    store.keep_roles(workspace.experiment_id, None)
    assert store.load(with_it).path == "predictions.csv"


def test_a_picked_table_that_is_damaged_is_not_replaced_in_silence(on_sqlite, aged, tmp_path):
    run_id = two_tables(on_sqlite, aged, tmp_path / "out")
    put(on_sqlite, run_id, tmp_path / "out", "second.csv", b"<html>sign in</html>")
    store = connect(on_sqlite.uri, cache_dir=tmp_path / "c")
    store.keep_roles(on_sqlite.experiment_id, ROLES)
    with pytest.raises(UnreadableTableError, match=r"second\.csv"):
        store.load(run_id)


# ------------------------------------------------------------------- from a training script


def test_numbers_are_logged_with_their_edges(workspace, aged) -> None:
    run_id = workspace.run(status=None)
    options = {"sensitive_features": aged[["age", "sex"]], "bins": {"age": [30, 45]}}
    scores = aged["y_prob"] / 100
    log_predictions(aged["y_true"], scores, **options, run_id=run_id, tracking_uri=workspace.uri)
    workspace.client.set_terminated(run_id)
    store = connect(workspace.uri)
    table = store.load(run_id)
    assert table.frame["age"].equals(aged["age"])
    ev = evaluate_predictions(Predictions.from_frame(table.frame, table.roles))
    wanted = evaluate(aged["y_true"], scores, **options)
    assert ev.factor.labels == ("under 30", "30–44", "45 and over", "(missing)")
    assert ev.indicators == wanted.indicators
    assert store.run(run_id).metrics["rise.w1"] == pytest.approx(wanted.indicators.w1)


def test_edges_of_no_column_are_refused_and_a_measurement_is_warned_of(on_sqlite, aged) -> None:
    columns = {"y_true": aged["y_true"], "y_prob": aged["y_prob"] / 100}
    target = {"run_id": on_sqlite.run(), "tracking_uri": on_sqlite.uri}
    with pytest.raises(ColumnError, match="Did you mean 'age'"):
        log_predictions(**columns, sensitive_features=aged[["age"]], bins={"agee": [30]}, **target)
    height = {"height": np.random.default_rng(0).normal(1.7, 0.1, len(aged))}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        log_predictions(**columns, sensitive_features=height, **target)
    assert any("a measurement, no groups" in str(warning.message) for warning in caught)


def test_bands_stay_in_their_order_when_they_are_logged(on_sqlite, aged) -> None:
    made = Predictions.from_frame(aged, ROLES.corrected(bins={"age": (20, 30, 100)}))
    logged = log_new_run(made, tracking_uri=on_sqlite.uri, experiment="by hand", run_name="one")
    table = connect(on_sqlite.uri).load(logged.run_id)
    back = Predictions.from_frame(table.frame, table.roles)
    assert back.feature("age").labels == made.feature("age").labels
    assert back.feature("age").labels[0] == "under 20"
    assert back.feature("sex × age").labels == made.feature("sex × age").labels
