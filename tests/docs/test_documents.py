"""What the documents promise: their code runs, their commands exist, their links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs import markdown

DOCUMENTS = markdown.documents(ROOT)
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
WORDS_A_MINUTE = 230

document = pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)


def run_block(block: markdown.Block, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python block as its reader would: in an empty folder, with MLflow's own defaults."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MLFLOW_")}
    environment |= {"PYTHONPATH": str(ROOT), "MLFLOW_DISABLE_TELEMETRY": "true"}
    return subprocess.run(
        [sys.executable, "-"],
        input=block.text,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )


# A tutorial starts a real MLflow store: the first import and the migrations take their time.
@pytest.mark.timeout(300)
@document
def test_python_blocks_run_and_print_what_they_show(path: Path, tmp_path: Path) -> None:
    for block in markdown.blocks(path.read_text("utf-8")):
        if block.language != "python":
            continue
        done = run_block(block, tmp_path)
        where = f"{path.name}, line {block.line}"
        assert done.returncode == 0, f"{where}:\n{done.stderr}"
        if block.output is not None:
            assert done.stdout.split() == block.output.split(), where
    if path.name == "README.md":
        assert_the_logged_run_can_be_read(tmp_path)


def assert_the_logged_run_can_be_read(folder: Path) -> None:
    """What the README's tutorial logged opens at the address that the README names."""
    from rise_core import Predictions, evaluate_predictions
    from rise_core.tracking import connect

    store = connect(f"sqlite:///{folder / 'mlflow.db'}", cache_dir=folder / "cache")
    (experiment,) = [found for found in store.experiments() if found.name == "income"]
    (run,) = store.runs(experiment.id).runs
    assert run.name == "logistic regression"
    table = store.load(run)
    evaluation = evaluate_predictions(Predictions.from_frame(table.frame, table.roles))
    assert evaluation.predictions.pos_label == "high"
    assert set(evaluation.groups) == {"female", "male"}
    assert run.metrics["rise.w1"] == pytest.approx(evaluation.indicators.w1)


@document
def test_shell_commands_exist(path: Path) -> None:
    faults = []
    for block in markdown.blocks(path.read_text("utf-8")):
        assert block.language in {"python", "sh", "text"}, f"line {block.line}: {block.language!r}"
        if block.language == "sh":
            faults += [fault for line in block.text.splitlines() if (fault := shell_fault(line))]
    assert not faults, "\n".join(faults)


def shell_fault(line: str) -> str | None:
    """Why a line of a shell block would not work in the project's folder, or None."""
    words = shlex.split(line, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)
    if not words:
        return None
    command, *arguments = words
    if command == "make":
        targets = [word for word in arguments if "=" not in word]
        unknown = [target for target in targets if target not in make_targets()]
        return f"{line}: no such target {unknown}" if unknown else None
    if command.endswith(("python3", "python")):
        return None if arguments[:2] == ["-m", "venv"] else python_fault(line, arguments)
    if command.endswith("pip"):
        return pip_fault(line, arguments)
    if command.endswith("streamlit"):
        return None if arguments[:2] == ["run", "app.py"] and (ROOT / "app.py").exists() else line
    return f"{line}: not a command that this test knows how to check"


def python_fault(line: str, arguments: list[str]) -> str | None:
    if arguments[:1] == ["-m"]:
        name = arguments[1].replace(".", "/")
        there = (ROOT / f"{name}.py").exists() or (ROOT / name / "__main__.py").exists()
        return None if there else f"{line}: no such module"
    # A script that the text tells the reader to save.
    return None if arguments and arguments[0].endswith(".py") else f"{line}: what does it run?"


def pip_fault(line: str, arguments: list[str]) -> str | None:
    extras = set(project()["optional-dependencies"])
    if arguments[:1] != ["install"]:
        return f"{line}: only pip install is checked"
    words = arguments[1:]
    while words:
        word = words.pop(0)
        if word == "-r":
            if not (ROOT / words.pop(0)).is_file():
                return f"{line}: no such file"
        elif match := re.fullmatch(r"\.(?:\[([\w,]+)\])?", word):
            named = set((match[1] or "").split(",")) - {""}
            if not named <= extras:
                return f"{line}: no such extra {named - extras}"
        else:
            return f"{line}: what is {word}?"
    return None


def project() -> dict:  # type: ignore[type-arg]
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def make_targets() -> set[str]:
    text = (ROOT / "Makefile").read_text("utf-8")
    return set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))


@pytest.mark.parametrize(
    "line",
    [
        "make fly",
        "pip install -r absent.txt",
        "pip install '.[nothing]'",
        "python3 -m absent.module",
        "curl https://example.org",
    ],
)
def test_a_command_that_cannot_work_is_found(line: str) -> None:
    assert shell_fault(line)


@document
def test_local_links_lead_somewhere(path: Path) -> None:
    faults = []
    for link in markdown.links(path.read_text("utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, fragment = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        if not file.exists():
            faults.append(f"{link}: no such file")
        elif fragment and fragment not in map(
            markdown.anchor, markdown.headings(file.read_text("utf-8"))
        ):
            faults.append(f"{link}: no such heading")
    assert not faults, "\n".join(faults)


def test_the_readme_is_read_in_three_minutes() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    words = len(re.findall(r"\w+", markdown.prose(text)))
    # Code is looked at, line by line, not read word by word.
    lines = sum(len(block.text.splitlines()) for block in markdown.blocks(text))
    minutes = words / WORDS_A_MINUTE + lines / 60
    assert minutes <= 3, f"{words} words and {lines} lines of code take {minutes:.1f} minutes"


def test_the_readme_names_both_commands_and_their_pip_equivalents() -> None:
    text = "\n".join(
        block.text
        for block in markdown.blocks((ROOT / "README.md").read_text("utf-8"))
        if block.language == "sh"
    )
    for wanted in ("make run", "make test", "pip install -r requirements.txt", "streamlit run"):
        assert wanted in text


def test_headings_that_the_code_cites_exist() -> None:
    known = markdown.headings((ROOT / "docs/method.md").read_text("utf-8"))
    faults = [
        f"{path.relative_to(ROOT)}: method, {cited!r}"
        for path in sorted((ROOT / "rise_core").rglob("*.py"))
        for cited in re.findall(r'method(?:\.md)?, "([^"]+)"', path.read_text("utf-8"))
        if cited not in known
    ]
    assert not faults, "\n".join(faults)
