"""Which code a spider is: a digest of its file and of the neighbours that it imports, the same wherever the folder lies.

A task that is worked on by many machines names its spider and this digest. A worker that has other code under that name
leaves the task alone: half of its pages handled by last week's code would be worse than a wait.
"""

from __future__ import annotations

import ast
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

from gossamer.model.errors import SpiderError
from gossamer.services.loading import load_module
from gossamer.spiders import Spider, find_spiders


class Project:
    """The spiders of a file, of a folder, or of a package that can be imported."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._files = files_of(target)

    def spiders(self) -> dict[str, tuple[Path, str]]:
        """Spider name → its file and digest. Raises SpiderError where a file cannot be loaded, or two give the same name."""
        found: dict[str, tuple[Path, str]] = {}
        for file in self._files:
            if not _may_define(file):
                continue
            for spider in find_spiders(load_module(file)):
                code = digest(file)
                if found.setdefault(spider.name, (file, code)) != (file, code):
                    raise SpiderError(
                        f"Two files define a spider {spider.name!r}", where=f"{found[spider.name][0]} and {file}",
                        hint="give each a name of its own",
                    )  # fmt: skip
        return found


def load(file: Path, name: str) -> Spider:
    """A spider of its own: two tasks of one spider do not share its arguments."""
    return next(spider for spider in find_spiders(load_module(file)) if spider.name == name)


def files_of(target: str) -> list[Path]:
    """The Python files that a path or a package name stands for."""
    path = Path(target)
    if not path.exists() and target.replace(".", "").isidentifier():
        spec = find_spec(target)
        if spec is not None and spec.origin:
            path = Path(
                spec.submodule_search_locations[0] if spec.submodule_search_locations else spec.origin
            )
    if path.is_file():
        return [path.resolve()]
    if path.is_dir():
        return sorted(file.resolve() for file in path.rglob("*.py") if not file.name.startswith((".", "_")))
    raise SpiderError(
        "There is no such project", where=target, hint="name a file, a folder or a package with spiders"
    )


def digest(file: Path) -> str:
    """Of the file and of what it imports from beside it, and so on; names count by their place from the file."""
    folder, hashed = file.resolve().parent, blake2b(digest_size=12)
    seen: dict[Path, bytes] = {}
    waiting = [file.resolve()]
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen[one] = one.read_bytes()
            waiting += _neighbours(seen[one], one, folder)
    for one in sorted(seen):
        name = "" if one == file.resolve() else one.relative_to(folder).as_posix()
        hashed.update(b"%b\0%d\0" % (name.encode(), len(seen[one])))
        hashed.update(seen[one])
    return hashed.hexdigest()


def _may_define(file: Path) -> bool:
    """Whether it is worth running: a module of helpers next to spiders may not be meant to be."""
    return b"Spider" in file.read_bytes()


def _neighbours(source: bytes, file: Path, folder: Path) -> list[Path]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []  # loading it says what is wrong
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names.update([base, *(f"{base}.{alias.name}".strip(".") for alias in node.names)])
    found = []
    for name in names:
        for root in {folder, file.parent}:
            place = root.joinpath(*name.split(".")) if name else root
            found += [
                one for one in (place.with_suffix(".py"), place / "__init__.py") if name and one.is_file()
            ]
    return [one.resolve() for one in found if one.resolve().is_relative_to(folder)]
