"""The committed tables are what their cards say they are."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from demo.cards import ALGORITHMS, DATASETS, TEACHING
from demo.pack import INDICATORS, PREDICTIONS, Pack, PackRun, fingerprint, packs

PACKS = packs()
RUNS = [run for pack in PACKS for run in pack.runs]
SAME = ["row_id", "y_true", "environment", "split"]


def table(run: PackRun) -> pd.DataFrame:
    return pd.read_parquet(run.table)


def test_the_pack_is_whole() -> None:
    assert [pack.card.id for pack in PACKS] == list(DATASETS)
    compared = {(r.dataset, r.algorithm, r.seed) for r in RUNS if not r.teaching}
    eight = [name for name in ALGORITHMS if name != "exponentiated-gradient"]
    assert compared == {(d, a, s) for d in DATASETS for a in eight for s in (0, 1, 2)}
    assert {r.name for r in RUNS if r.teaching} == set(TEACHING)
    assert len(RUNS) == 122


def test_the_pack_is_below_12_mb_and_holds_nothing_else() -> None:
    files = [path for path in PREDICTIONS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 12e6
    settings = {PREDICTIONS / name / "runs.json" for name in DATASETS}
    assert set(files) == {run.table for run in RUNS} | settings | {INDICATORS}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.dataset}/{run.name}")
def test_a_table_is_what_its_card_says(run: PackRun) -> None:
    card = DATASETS[run.dataset]
    frame = table(run)
    groups = [column.name for column in card.sensitive]
    assert list(frame) == ["row_id", "y_true", "y_prob", *groups, "environment", "split"]
    assert len(frame) == card.evaluated_rows
    assert not frame.isna().any(axis=None)
    assert frame["row_id"].is_monotonic_increasing
    assert frame["row_id"].is_unique
    assert frame["y_prob"].dtype == "float32"
    assert frame["y_prob"].between(0, 1).all()
    assert set(frame["y_true"]) == {card.positive, card.negative}
    assert set(frame["environment"]) == {*card.train_environments, card.held_out}
    assert (frame["split"] == "held-out").sum() == card.held_out_rows
    assert ((frame["split"] == "held-out") == (frame["environment"] == card.held_out)).all()
    assert set(frame["split"]) == {"validation", "held-out"}
    for column in card.sensitive:
        assert set(frame[column.name]) == set(column.groups), column.name
    assert hashlib.sha256(run.table.read_bytes()).hexdigest() == run.sha256


@pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.card.id)
def test_all_models_of_a_data_set_are_about_the_same_rows(pack: Pack) -> None:
    groups = [column.name for column in pack.card.sensitive]
    first = table(pack.runs[0])[[*SAME, *groups]]
    for run in pack.runs[1:]:
        pd.testing.assert_frame_equal(table(run)[[*SAME, *groups]], first, obj=run.name)


@pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.card.id)
def test_validation_accuracy_is_that_of_the_table(pack: Pack) -> None:
    for run in pack.runs:
        frame = table(run)
        frame = frame[frame["split"] == "validation"]
        right = (frame["y_prob"] >= 0.5) == (frame["y_true"] == pack.card.positive)
        per_environment = right.groupby(frame["environment"]).mean()
        assert per_environment.mean() == pytest.approx(run.validation_accuracy, abs=1e-4), run.name


def test_the_collapsed_run_calls_nobody_positive_with_scores_that_hardly_differ() -> None:
    (run,) = [run for run in RUNS if run.name == "iga-collapsed-0"]
    score = table(run)["y_prob"]
    assert score.max() < 0.5
    assert score.max() - score.min() < 0.05


def test_the_mitigated_run_has_a_handful_of_scores_and_loses_its_parity_elsewhere() -> None:
    (run,) = [run for run in RUNS if run.name == "exponentiated-gradient-0"]
    frame = table(run)
    assert frame["y_prob"].nunique() <= 12
    rate = (frame["y_prob"] >= 0.5).groupby([frame["split"], frame["sex"]]).mean().unstack()
    ratio = rate["female"] / rate["male"]
    assert abs(ratio["held-out"] - 1) > abs(ratio["validation"] - 1)


def test_the_fingerprint_is_that_of_the_settings_files(tmp_path: Path) -> None:
    assert fingerprint() == fingerprint()
    assert fingerprint(tmp_path) != fingerprint()


def test_cards_and_pack_load_without_torch_and_mlflow() -> None:
    code = (
        "import sys, demo.cards, demo.pack, demo.load\n"
        "print(sorted({'torch', 'mlflow', 'streamlit'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("card", DATASETS.values(), ids=lambda card: card.id)
def test_a_card_says_where_the_data_come_from_and_what_is_made_up(card: object) -> None:
    for name, value in vars(card).items():
        assert value or name == "images", f"{name} is empty"
