"""The command line on files: what it prints, and the status a pipeline reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rise_core import evaluate
from rise_core.cli import FAILED, HELD, UNREADABLE, USAGE, main


@pytest.fixture
def frame() -> pd.DataFrame:
    """300 rows, text labels, unequal groups, one label missing."""
    rng = np.random.default_rng(3)
    sex = np.where(rng.random(300) < 0.3, "female", "male")
    label = rng.random(300) < np.where(sex == "female", 0.3, 0.6)
    score = np.clip(label * 0.3 + rng.random(300) * 0.7, 0, 1)
    frame = pd.DataFrame({"label": np.where(label, "yes", "no"), "score": score, "sex": sex,
                          "site": rng.choice(["north", "south"], 300)})  # fmt: skip
    frame.loc[7, "label"] = None
    return frame


@pytest.fixture
def file(frame: pd.DataFrame, tmp_path: Path) -> str:
    path = tmp_path / "erm.csv"
    frame.to_csv(path, index=False)
    return str(path)


def run(*words: str) -> int:
    """Run the command; argparse leaves by an exception."""
    try:
        return main(words)
    except SystemExit as left:
        return int(left.code or 0)


def wanted(frame: pd.DataFrame, **options: object) -> dict[str, float]:
    ev = evaluate(frame["label"], frame["score"], sensitive_features=frame["sex"],
                  pos_label="yes", **options)  # fmt: skip
    return dict(ev.indicators)


def test_table(file: str, frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("evaluate", file, "--sensitive-features", "sex") == HELD
    head, line, *rest = capsys.readouterr().out.splitlines()
    assert head.split()[:5] == ["model", "by", "rows", "Acc", "↑"]
    values = wanted(frame)
    cells = line.split()
    assert cells[:3] == ["erm.csv", "sex", "299"]
    assert cells[3:] == [f"{value:.3f}" for value in values.values()]
    text = "\n".join(rest)
    assert "label label, score score of class yes (guessed)" in text
    assert "female against male" in text
    assert "1 of 300 rows left out" in text


def test_json_is_what_evaluate_gives(
    file: str, frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--threshold", "0.4", "--residual", "decision_gap", "--base-rates", "equal"]
    assert run("evaluate", file, "--json", "--sensitive-features", "sex", *words) == HELD
    (found,) = json.loads(capsys.readouterr().out)
    values = wanted(frame, threshold=0.4, residual="decision_gap", base_rates="equal")
    assert found["indicators"] == pytest.approx(values)
    assert found["settings"]["threshold"] == 0.4
    assert found["roles"]["sensitive_features"] == ["sex"]
    assert (found["name"], found["run_id"], found["n"]) == ("erm.csv", None, 299)


def test_each_sensitive_column_and_intervals(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    columns = ["--sensitive-features", "sex", "site"]
    assert run("evaluate", file, *columns, "--json", "--intervals") == HELD
    by_sex, by_site = json.loads(capsys.readouterr().out)
    assert (by_sex["feature"], by_site["feature"]) == ("sex", "site")
    accuracy = by_sex["estimates"][0]
    assert accuracy["low"] < accuracy["value"] < accuracy["high"]
    assert run("evaluate", file, *columns, "--intervals") == HELD
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith("erm.csv") and " to " in line]) == 16


def test_columns_by_hand(
    file: str, frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--y-true", "label", "--y-prob", "score", "--pos-label", "no",
               "--sensitive-features", "sex", "--environment", "site"]  # fmt: skip
    assert run("evaluate", file, "--json", *options, "--in-environment", "north") == HELD
    (found,) = json.loads(capsys.readouterr().out)
    assert found["pos_label"] == "no"
    north = frame[frame["site"] == "north"]
    ev = evaluate(north["label"], north["score"], sensitive_features=north["sex"], pos_label="no")
    assert found["indicators"] == pytest.approx(dict(ev.indicators))


def test_a_column_that_is_not_there(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("evaluate", file, "--y-prob", "scor") == UNREADABLE
    assert "Did you mean 'score'" in capsys.readouterr().err


def test_percentages_are_converted_only_when_asked(
    frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "percent.csv"
    frame.assign(score=frame["score"] * 100).to_csv(path, index=False)
    words = ["evaluate", str(path), "--sensitive-features", "sex", "--json"]
    assert run(*words) == UNREADABLE
    assert "percent" in capsys.readouterr().err
    assert run(*words, "--scale", "percent") == HELD
    (found,) = json.loads(capsys.readouterr().out)
    assert found["indicators"] == pytest.approx(wanted(frame))
    assert any("divided by 100" in note for note in found["notes"])


def test_hard_predictions_are_scores_and_said_so(
    frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hard.csv"
    hard = frame.assign(prediction=np.where(frame["score"] >= 0.5, "yes", "no"))
    hard.drop(columns="score").to_csv(path, index=False)
    assert run("evaluate", str(path), "--sensitive-features", "sex") == HELD
    assert "hard predictions; they are analysed as scores 0 and 1" in capsys.readouterr().out


def test_one_class_against_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    scores = rng.dirichlet([1, 1, 1], 120)
    frame = pd.DataFrame(scores, columns=["p_cat", "p_cow", "p_dog"])
    frame["label"] = rng.choice(["cat", "cow", "dog"], 120)
    frame["group"] = rng.choice(["a", "b"], 120)
    path = tmp_path / "wide.csv"
    frame.to_csv(path, index=False)
    assert run("evaluate", str(path), "--pos-label", "dog", "--json") == HELD
    (found,) = json.loads(capsys.readouterr().out)
    ev = evaluate(frame["label"] == "dog", frame["p_dog"], sensitive_features=frame["group"])
    assert found["indicators"] == pytest.approx(dict(ev.indicators))
    assert any("against all other labels" in note for note in found["notes"])


def test_files_of_one_name_keep_names_of_their_own(
    frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("erm", "irm"):
        (tmp_path / folder).mkdir()
        frame.to_csv(tmp_path / folder / "p.csv", index=False)
    files = [str(tmp_path / folder / "p.csv") for folder in ("erm", "irm")]
    assert run("evaluate", *files, "--sensitive-features", "sex", "--json") == HELD
    names = [found["name"] for found in json.loads(capsys.readouterr().out)]
    assert names == ["p.csv", "irm/p.csv"]


def test_roles_beside_a_file_are_used(
    frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame.to_csv(tmp_path / "p.csv", index=False)
    roles = {"y_true": "label", "y_prob": "score", "sensitive_features": ["site"],
             "pos_label": "no"}  # fmt: skip
    (tmp_path / "roles.json").write_text(json.dumps(roles))
    assert run("evaluate", str(tmp_path / "p.csv"), "--json") == HELD
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["roles_from"], found["feature"], found["pos_label"]) == ("logged", "site", "no")


# -------------------------------------------------------------------------------------- check


def test_bounds_that_hold_and_break(
    file: str, frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    w1 = wanted(frame)["w1"]
    words = ["check", file, "--sensitive-features", "sex"]
    assert run(*words, "--max", f"w1={w1 + 0.001}", "--min", "accuracy=0.1") == HELD
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in out] == ["ok", "ok"]
    assert run(*words, "--max", f"w1={w1 - 0.001}", "--min", "accuracy=0.1") == FAILED
    out = capsys.readouterr().out
    assert f"FAIL  erm.csv by sex: w1 = {w1:.4f}, wanted ≤ " in out
    assert run(*words, "--max", f"rise.w1={w1}", "--json") == HELD
    (verdict,) = json.loads(capsys.readouterr().out)
    assert verdict["held"] is True


def test_an_undefined_indicator_fails_with_its_reason(
    frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "one.csv"
    frame.assign(sex="female").to_csv(path, index=False)
    words = ["check", str(path), "--sensitive-features", "sex"]
    for bound in (("--max", "w1=9"), ("--min", "w1=0")):
        assert run(*words, *bound) == FAILED
        assert "w1 is undefined: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "needs a bound"),
        (("--max", "w1"), "is not NAME=VALUE"),
        (("--max", "f_accc=1"), "no indicator 'f_accc'"),
        (("--max", "w1=low"), "not a number"),
        (("--max", "w1=nan"), "finite"),
        (("--max", "w1=1", "--threshold", "2"), "threshold must lie in"),
        (("--max", "w1=1", "--residual", "square"), "invalid choice"),
    ],
)
def test_wrong_arguments(
    file: str, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check", file, *words) == USAGE
    assert message in capsys.readouterr().err


def test_an_unreadable_source_is_no_pass(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--sensitive-features", "sex", "--max", "w1=9"]
    assert run("check", file, str(tmp_path / "gone.csv"), *words) == UNREADABLE
    out, err = capsys.readouterr()
    assert "ok    erm.csv" in out
    assert "There is no file" in err
    assert run("check", str(tmp_path), *words) == UNREADABLE
    assert "is a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"label,score,sex\n", "The table is empty"),
        (b"", "is empty (0 bytes)"),
        (b"\x89PNG\r\n\x00\x00", "binary file"),
        (b"label,score,sex\nno,0.25,f\nyes,0.75,f\n", "'sex' holds 'f' only"),
        (b"label;score;sex\nno;zwei;f\nyes;drei;m\n", "'score' is named like a score, but holds"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(
    content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.csv").write_bytes(content)
    assert run("check", str(tmp_path / "p.csv"), "--max", "w1=9") == UNREADABLE
    out, err = capsys.readouterr()
    assert not out
    assert words in err


# ------------------------------------------------------------------------------------- report


def test_reports(
    file: str, frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("vl_convert")
    other = tmp_path / "irm.csv"
    frame.assign(score=frame["score"] ** 2).to_csv(other, index=False)
    target = tmp_path / "report.html"
    words = ["-o", str(target), "--sensitive-features", "sex"]
    assert run("report", file, *words, "--title", "One <model>") == HELD
    one = target.read_text("utf-8")
    assert "One &lt;model&gt;" in one
    assert run("report", file, str(other), *words, "--choice", "irm.csv", "--note", "why") == HELD
    two = target.read_text("utf-8")
    data = json.loads(two.split('id="data">')[1].split("</script>")[0])
    assert list(data["models"]) == ["erm.csv", "irm.csv"]
    assert data["choice"] == "irm.csv"
    assert "2 models" in capsys.readouterr().out
    assert run("report", file, str(other), *words, "--choice", "nobody") == USAGE
    target.unlink()
    assert run("report", file, "gone.csv", *words) == UNREADABLE
    assert not target.exists()


def test_a_file_cannot_be_written_to(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("write", file) == USAGE
    assert "write needs runs" in capsys.readouterr().err


# ------------------------------------------------------------------------------------ process


def test_files_need_no_mlflow_and_no_chart_library(file: str, root: Path) -> None:
    code = (
        "import sys; from rise_core.cli import main; status = main(sys.argv[1:]);"
        "bad = {'mlflow', 'altair', 'streamlit', 'scipy'} & set(sys.modules);"
        "sys.exit(f'imported {bad}' if bad else status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "check", file, "--max", "w1=9"],
        cwd=root, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == HELD, done.stderr


def test_as_a_module_on_a_terminal_without_unicode(file: str, root: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "rise_core", "check", file, "--max", "w1=0"],
        cwd=root, capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.returncode == FAILED, done.stderr
    assert "FAIL" in done.stdout
    assert not done.stderr


def test_the_status_that_a_pipeline_reads(file: str, root: Path) -> None:
    for words, status in (
        (["check", file, "--max", "w1=9"], HELD),
        (["check", file], USAGE),
        (["check", f"{file}.gone", "--max", "w1=9"], UNREADABLE),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "rise_core", *words], cwd=root, capture_output=True, text=True
        )
        assert done.returncode == status, done.stderr
        assert bool(done.stderr) is (status != HELD)
        assert "Traceback" not in done.stderr


def test_names_cannot_steer_the_terminal(
    frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "\x1b[31mred.csv"
    frame.to_csv(path, index=False)
    assert run("evaluate", str(path)) == HELD
    assert run("evaluate", str(path), "--y-prob", "no") == UNREADABLE
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
