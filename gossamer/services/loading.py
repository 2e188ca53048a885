"""Load the spider of a file, as `gossamer run FILE` does.

The file is imported under a name of its own, so it may be called `json.py` and two files may have the same name. Its
folder is on `sys.path`, so that it can import its neighbours, also later from a handler. No bytecode is written: the
folder of an author's spiders stays as it was. What is wrong in the file is told with file and line, without the frames
of Gossamer around it.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from types import TracebackType

from gossamer.model.errors import GossamerError, SpiderError
from gossamer.spiders import Spider, find_spiders

_EXAMPLE = 'spider = Spider("name", start="https://…")'


def load_spider(target: str) -> Spider:
    """The spider that `FILE` or `FILE:NAME` names; raises SpiderError."""
    path, name = _split(target)
    return _choose(find_spiders(load_module(path)), path, name)


def load_module(path: Path) -> types.ModuleType:
    """Run the file as a module; raises SpiderError where it cannot be read, compiled or run."""
    source = _read(path)
    path = path.resolve()
    digest = blake2b(str(path).encode(), digest_size=6).hexdigest()
    module = types.ModuleType(f"gossamer_spider_{digest}_{path.stem}")
    module.__file__ = str(path)
    with _importing(module, path.parent):
        try:
            # compile() reads the bytes by the file's own encoding line, and `from __future__` of ours stays ours.
            exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102  (the author's own file)
        except SyntaxError as error:
            raise _syntax_error(error, path) from None
        except SystemExit as error:
            raise _exit_error(error, path) from None
        except GossamerError as error:
            # `Spider(…)` itself found something wrong: its words are better than any made here.
            where = "; ".join(said for said in (_place(error.__traceback__, path), error.where) if said)
            raise SpiderError(error.what, where=where, hint=error.hint) from None
        except Exception as error:
            raise _import_error(error, path) from error
    return module


def file_of(target: str) -> Path:
    """The file that `FILE` or `FILE:NAME` names."""
    return _split(target)[0]


def _split(target: str) -> tuple[Path, str | None]:
    """File and name. A colon may also be part of the path: what exists as a file is a file."""
    if Path(target).exists():
        return Path(target), None
    file, colon, name = target.rpartition(":")
    return (Path(file), name) if colon and file and name else (Path(target), None)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        near = sorted(path.parent.glob("*.py")) if path.parent.is_dir() else []
        hint = "check the path" + (f"; there is {', '.join(one.name for one in near[:5])}" if near else "")
        raise SpiderError("The spider file does not exist", where=str(path), hint=hint) from None
    except IsADirectoryError:
        raise SpiderError("This is a folder", where=str(path), hint="name a spider file in it") from None
    except OSError as error:
        raise SpiderError(
            f"The spider file cannot be read: {error.strerror}", where=str(path), hint="check its permissions"
        ) from None


@contextmanager
def _importing(module: types.ModuleType, folder: Path) -> Iterator[None]:
    """Known to `sys` while it runs (dataclasses look their module up); forgotten if it fails."""
    before, path = sys.dont_write_bytecode, list(sys.path)
    sys.dont_write_bytecode = True
    sys.modules[module.__name__] = module
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        yield
    except BaseException:
        del sys.modules[module.__name__]
        sys.path[:] = path
        raise
    finally:
        sys.dont_write_bytecode = before


def _choose(spiders: Sequence[Spider], path: Path, name: str | None) -> Spider:
    names = ", ".join(spider.name for spider in spiders)
    if not spiders:
        raise SpiderError("There is no Spider in this file", where=str(path), hint=f"write {_EXAMPLE} in it")
    if name is None:
        if len(spiders) == 1:
            return spiders[0]
        hint = f"choose one: {path}:{spiders[0].name}"
        raise SpiderError(f"There are several spiders in this file: {names}", where=str(path), hint=hint)
    for spider in spiders:
        if spider.name == name:
            return spider
    raise SpiderError(f"There is no spider {name!r} in this file", where=str(path), hint=f"one of: {names}")


def _syntax_error(error: SyntaxError, path: Path) -> SpiderError:
    """Of the spider file itself, or of a neighbour that it imports."""
    where = f"{error.filename or path}:{error.lineno}" if error.lineno else str(error.filename or path)
    line = (error.text or "").strip()
    return SpiderError(
        f"The spider file is not valid Python: {error.msg}" + (f", in `{_short(line)}`" if line else ""),
        where=where,
        hint="correct this line, or the one above it",
    )


def _exit_error(error: SystemExit, path: Path) -> SpiderError:
    return SpiderError(
        f"The spider file ended the program while it was loaded: exit {error.code!r}",
        where=_place(error.__traceback__, path),
        hint='put what shall not run at import under `if __name__ == "__main__":`',
    )


def _import_error(error: Exception, path: Path) -> SpiderError:
    said = _short(str(error))
    hint = "correct this line"
    if isinstance(error, ModuleNotFoundError) and error.name:
        hint = f"install the package that holds {error.name!r} into this Python, or correct the name"
    return SpiderError(
        f"The spider file raised {type(error).__name__}" + (f": {said}" if said else ""),
        where=_place(error.__traceback__, path),
        hint=hint,
    )


def _place(trace: TracebackType | None, path: Path) -> str:
    """The innermost frame of the file: where the author can do something about it."""
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return str(path) if line is None else f"{path}:{line}"


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"
