"""The shape of the code: how long modules and functions are, and how much of them is documented.

    python tools/style.py PACKAGE [TESTS]

Prints the figures, and fails where one breaks the house rules. It only reads files.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MOST_LINES, MOST_IN_FUNCTION = 450, 50
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def length(function: Function) -> int:
    """Lines without the docstring, which may be as long as it is useful."""
    doc = ast.get_docstring(function, clean=False)
    head = function.body[0]
    return (
        function.end_lineno
        - function.lineno
        + 1
        - (head.end_lineno - head.lineno + 1 if doc is not None else 0)
    )


def spread(lengths: list[int]) -> str:
    ordered = sorted(lengths)
    return "/".join(str(ordered[int(share * (len(ordered) - 1))]) for share in (0.5, 0.95, 1))


def share(flags: list[bool]) -> str:
    return f"{sum(flags) / len(flags):.0%}" if flags else "-"


def main(package: Path, tests: Path | None) -> int:
    broken: list[str] = []
    modules, bodies, documented, plain = [], [], [], []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        modules.append(len(text.splitlines()))
        if modules[-1] > MOST_LINES:
            broken.append(f"{path}: {modules[-1]} lines")
        for node in functions(tree):
            bodies.append(length(node))
            if bodies[-1] > MOST_IN_FUNCTION:
                broken.append(f"{path}:{node.lineno} {node.name}: {bodies[-1]} lines")
            if not node.name.startswith("_"):
                plain.append(ast.get_docstring(node) is not None)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                documented.append(ast.get_docstring(node) is not None)
                if not documented[-1]:
                    broken.append(f"{path}:{node.lineno} {node.name}: a public class without docstring")
    lines = sum(modules)
    print(
        f"modules {len(modules)}, lines {lines}; median/95th/longest: module {spread(modules)}, function {spread(bodies)}"
    )
    print(f"documented: public classes {share(documented)}, public functions {share(plain)}")
    if tests is not None:
        sources = [path.read_text(encoding="utf-8") for path in tests.rglob("*.py")]
        named = [
            node for text in sources for node in functions(ast.parse(text)) if node.name.startswith("test")
        ]
        told = [ast.get_docstring(node) is not None for node in named]
        ratio = sum(len(text.splitlines()) for text in sources) / lines
        print(f"tests: {len(named)} functions, with a sentence {share(told)}, test:code lines {ratio:.2f}")
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None))
