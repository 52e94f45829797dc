from __future__ import annotations

import inspect
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import rise_core

# Absolute paths of one person's machine.
MACHINE_PATH = re.compile(r"(?<![\w.~])/(?:home|root|Users|work|mnt|srv)/\w")
# Archives come through the ordinary package clients: a host named here would go round the mirror
# that a site has configured.
REGISTRY = re.compile(r"pythonhosted\.|registry\.npmjs|deb\.debian|pypi\.org/simple")


def tracked(root: Path) -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("not a git clone")
    return [path for name in done.stdout.split("\0") if name and (path := root / name).is_file()]


def texts(root: Path) -> list[tuple[Path, str]]:
    found = []
    for path in tracked(root):
        try:
            found.append((path, path.read_text("utf-8")))
        except UnicodeDecodeError:
            continue
    return found


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY], ids=["machine path", "registry"])
def test_no_file_names_this_machine(root: Path, pattern: re.Pattern[str]) -> None:
    this = Path(__file__).resolve()
    found = [
        f"{path.relative_to(root)}: {match.group()}"
        for path, text in texts(root)
        if path != this
        for match in pattern.finditer(text)
    ]
    assert not found, "\n" + "\n".join(found)


def test_a_machine_path_is_recognised() -> None:
    home = "/ho" + "me"
    assert MACHINE_PATH.search(f"open('{home}/anna/data.csv')")
    assert not MACHINE_PATH.search("https://example.org/home/page")


def test_no_file_is_large(root: Path) -> None:
    limit = 2_000_000
    found = [
        f"{path.relative_to(root)}: {path.stat().st_size:,} bytes"
        for path in tracked(root)
        if path.stat().st_size > limit
    ]
    assert not found, "\n".join(found)


def pyproject(root: Path) -> dict:  # type: ignore[type-arg]
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


def pins(path: Path) -> dict[str, Requirement]:
    lines = (line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    found = [Requirement(line) for line in lines if line and not line.startswith("-")]
    return {requirement.name: requirement for requirement in found}


def ranges(root: Path, *extras: str) -> dict[str, Requirement]:
    project = pyproject(root)["project"]
    found = list(project["dependencies"])
    for extra in extras:
        found += project["optional-dependencies"][extra]
    parsed = [Requirement(text) for text in found]
    return {r.name: r for r in parsed if r.name != project["name"]}


@pytest.mark.parametrize(
    ("file", "extras"),
    [
        ("requirements.txt", ("mlflow", "charts", "kneed", "export", "app")),
        ("requirements-dev.txt", ("test",)),
    ],
)
def test_pins_lie_inside_the_published_ranges(
    root: Path, file: str, extras: tuple[str, ...]
) -> None:
    pinned, wanted = pins(root / file), ranges(root, *extras)
    for name, requirement in pinned.items():
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", f"{name} is not pinned"
        if name in wanted:
            assert wanted[name].specifier.contains(specifier.version), f"{requirement}"
    named_by_the_app = set(wanted) - (set(ranges(root)) if file != "requirements.txt" else set())
    assert named_by_the_app <= set(pinned), f"not pinned: {named_by_the_app - set(pinned)}"


def test_training_uses_the_versions_of_the_tests(root: Path) -> None:
    tests = pins(root / "requirements.txt") | pins(root / "requirements-dev.txt")
    training = pins(root / "requirements-train.txt")
    shared = set(tests) & set(training)
    assert {name: str(training[name]) for name in shared} == {
        name: str(tests[name]) for name in shared
    }


def test_core_needs_numpy_and_pandas_alone(root: Path) -> None:
    assert set(ranges(root)) == {"numpy", "pandas"}


def test_every_excepted_warning_has_a_reason(root: Path) -> None:
    lines = (root / "pyproject.toml").read_text("utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("filterwarnings"))
    end = lines.index("]", start)
    assert lines[start + 1].strip() == '"error",'
    for i in range(start + 2, end):
        if not lines[i].strip().startswith("#"):
            assert lines[i - 1].strip().startswith("#"), f"why: {lines[i].strip()}"


def test_streamlit_knows_every_key_of_the_config(root: Path) -> None:
    from streamlit import config

    known = set(config.get_config_options())

    def keys(table: dict, prefix: str) -> list[str]:  # type: ignore[type-arg]
        found = []
        for key, value in table.items():
            name = f"{prefix}{key}"
            found += keys(value, f"{name}.") if isinstance(value, dict) else [name]
        return found

    settings = tomllib.loads((root / ".streamlit/config.toml").read_text("utf-8"))
    assert set(keys(settings, "")) <= known
    assert not {key for key in settings.get("theme", {}) if key not in {"light", "dark"}}, (
        "a key under a bare [theme] pins one theme for everybody"
    )


def test_nothing_leaves_the_machine_by_configuration(root: Path) -> None:
    text = (root / ".streamlit/config.toml").read_text("utf-8")
    settings = tomllib.loads(text)
    assert settings["browser"]["gatherUsageStats"] is False
    assert settings["server"]["address"] == "127.0.0.1"
    assert settings["client"]["showErrorDetails"] == "none"
    assert not re.search(r"^[^#]*https?://", text, re.MULTILINE)


def test_every_public_function_explains_its_arguments() -> None:
    faults = []
    for name in rise_core.__all__:
        thing = getattr(rise_core, name)
        text = inspect.getdoc(thing) or ""
        if callable(thing) and not text:
            faults.append(f"rise_core.{name} has no docstring")
        if inspect.isfunction(thing):
            faults += [
                f"rise_core.{name} does not explain {parameter}"
                for parameter in inspect.signature(thing).parameters
                if not re.search(rf"\b{parameter}\b", text)
            ]
    assert not faults, "\n" + "\n".join(faults)
