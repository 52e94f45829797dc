"""Who may import what, read from the source without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PLACES = ("app.py", "pages", "rise_app", "rise_core", "demo", "benchmarks")


@dataclass(frozen=True)
class Layer:
    """A part of the tree: what is its own, what it may use."""

    name: str
    paths: tuple[str, ...]
    own: frozenset[str]  # layers below it, itself included
    libraries: frozenset[str]  # guarded libraries it may import anywhere
    late: frozenset[str] = field(default_factory=frozenset)  # only inside functions


# Libraries that have one place each; all others are nobody's concern here.
GUARDED = frozenset(
    {
        "altair", "fairlearn", "kneed", "mlflow", "polars", "pyarrow", "scipy", "sklearn",
        "streamlit", "torch", "vl_convert",
    }
)  # fmt: skip

# The first layer whose path fits is the one.
LAYERS = (
    Layer(
        "charts",
        ("rise_core/charts/",),
        frozenset({"numerics", "charts"}),
        frozenset({"altair"}),
        frozenset({"vl_convert"}),
    ),
    Layer(
        "tracking",
        ("rise_core/tracking/",),
        frozenset({"numerics", "tracking"}),
        frozenset(),
        frozenset({"mlflow", "pyarrow"}),
    ),
    Layer(
        "report",
        ("rise_core/report/", "rise_core/__main__.py", "rise_core/cli.py"),
        frozenset({"numerics", "charts", "tracking", "report"}),
        frozenset(),
        frozenset({"altair", "vl_convert"}),
    ),
    Layer("numerics", ("rise_core/",), frozenset({"numerics"}), frozenset(), frozenset({"kneed"})),
    Layer(
        "app",
        ("rise_app/",),
        frozenset({"numerics", "charts", "tracking", "report", "app", "demo"}),
        frozenset({"streamlit"}),
        frozenset({"pyarrow"}),  # what Streamlit sends tables as
    ),
    Layer(
        "pages",
        ("pages/", "app.py"),
        frozenset({"numerics", "charts", "tracking", "report", "app", "pages"}),
        frozenset({"streamlit"}),
    ),
    Layer(
        "training",
        ("demo/train/", "demo/check.py"),
        frozenset({"numerics", "tracking", "demo", "training"}),
        frozenset({"torch", "sklearn", "fairlearn", "scipy", "pyarrow"}),
    ),
    Layer(
        "demo",
        ("demo/",),
        frozenset({"numerics", "tracking", "demo"}),
        frozenset(),
        frozenset({"mlflow", "pyarrow"}),
    ),
    Layer(
        "benchmarks",
        ("benchmarks/",),
        frozenset({"numerics", "charts", "tracking", "report", "benchmarks", "demo"}),
        frozenset(),
        GUARDED - {"streamlit"},
    ),
)


@dataclass(frozen=True)
class Import:
    """One imported module, where, and whether it waits until a function runs."""

    module: str
    line: int
    late: bool


def sources(root: Path) -> Iterator[Path]:
    for place in PLACES:
        path = root / place
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def layer_of(relative: str) -> Layer:
    return next(layer for layer in LAYERS if relative.startswith(layer.paths))


def imports(source: str, package: str) -> list[Import]:
    """Every module that ``source`` imports; ``package`` resolves relative imports."""
    found: list[Import] = []

    def visit(node: ast.AST, late: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, node.lineno, late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            # `from rise_core import charts` imports a module too, if there is one of that name.
            found.append(Import(base, node.lineno, late))
            found.extend(Import(f"{base}.{alias.name}", node.lineno, late) for alias in node.names)
        inner = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        inner = inner or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        for child in ast.iter_child_nodes(node):
            visit(child, inner)

    visit(ast.parse(source), late=False)
    return found


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])


def faults(relative: str, source: str, root: Path) -> list[str]:
    """What a file imports and may not, each as a line that says where."""
    layer = layer_of(relative)
    package = ".".join(Path(relative).parent.parts)
    found = []
    for imported in imports(source, package):
        top = imported.module.split(".")[0]
        where = f"{relative}:{imported.line}"
        if top in GUARDED:
            if top not in layer.libraries | layer.late:
                found.append(f"{where} {layer.name} may not import {top}")
            elif not imported.late and top not in layer.libraries:
                found.append(f"{where} {top} may be imported inside functions only")
        elif (path := _own_file(imported.module, root)) is not None:
            below = layer_of(path).name
            if below not in layer.own:
                found.append(f"{where} {layer.name} may not import {below} ({imported.module})")
    return sorted(set(found))


def _own_file(module: str, root: Path) -> str | None:
    path = module.replace(".", "/")
    for candidate in (f"{path}.py", f"{path}/__init__.py"):
        if candidate.startswith(PLACES) and (root / candidate).is_file():
            # A package's bare __init__ of the engine stands for its numerics.
            return candidate
    return None
