"""A spider file is loaded by its path, leaves nothing behind, and tells its mistakes with file and line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gossamer.model.errors import SpiderError
from gossamer.services.loading import load_module, load_spider

ONE = 'from gossamer.spiders import Spider\nbooks = Spider("books", start="https://a.example/")\n'
TWO = ONE + 'news = Spider("news", start="https://b.example/")\n'

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(source: str | bytes, name: str = "spider.py") -> Path:
        path = tmp_path / name
        path.write_bytes(source if isinstance(source, bytes) else source.encode())
        return path

    return write


@pytest.fixture(autouse=True)
def interpreter() -> Iterator[None]:
    """Whatever a test loads is forgotten after it."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def refused(target: Path | str) -> SpiderError:
    with pytest.raises(SpiderError) as caught:
        load_spider(str(target))
    return caught.value


def test_the_only_spider_is_the_one(write: Write):
    """A file with one spider needs no name."""
    assert load_spider(str(write(ONE))).name == "books"


def test_one_of_several_is_chosen_by_name(write: Write):
    """FILE:NAME chooses; without a name, or with a wrong one, the names are told."""
    path = write(TWO)
    assert load_spider(f"{path}:news").name == "news"
    assert refused(path).what.endswith("books, news")
    assert refused(path).hint == f"choose one: {path}:books"
    assert refused(f"{path}:nwes").hint == "one of: books, news"


def test_a_colon_in_the_path_is_no_name(write: Write):
    """What exists as a file is a file."""
    assert load_spider(str(write(ONE, "a:b.py"))).name == "books"


def test_a_file_without_spider_says_what_to_write(write: Write):
    """An empty file is told apart from a broken one."""
    error = refused(write("x = 1\n"))
    assert "no Spider" in error.what
    assert "Spider(" in (error.hint or "")


def test_nothing_is_left_in_the_folder(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No bytecode, neither of the file nor of a neighbour that it imports; later imports write theirs again."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    write("START = 'https://a.example/'\n", "neighbour_for_loading.py")
    path = write("import neighbour_for_loading\n" + ONE)
    load_spider(str(path))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["neighbour_for_loading.py", "spider.py"]
    assert sys.dont_write_bytecode is False


def test_a_neighbour_can_be_imported_later_too(write: Write):
    """A handler may import a neighbour when it runs, long after the file was loaded."""
    write("WORD = 'late'\n", "late_neighbour_for_loading.py")
    module = load_module(
        write("def word():\n    from late_neighbour_for_loading import WORD\n    return WORD\n")
    )
    assert module.word() == "late"


def test_the_name_of_a_file_hides_no_module(write: Write):
    """A spider file may be called json.py, and two may have one name."""
    import json

    module = load_module(write(ONE, "json.py"))
    assert sys.modules["json"] is json
    assert sys.modules[module.__name__] is module


def test_dataclasses_and_main_guards_work(write: Write):
    """The file is a module like any other, but not the main one."""
    module = load_module(
        write(
            "from __future__ import annotations\nfrom dataclasses import dataclass\n"
            "@dataclass\nclass Book:\n    title: str\nif __name__ == '__main__':\n    raise RuntimeError\n"
        )
    )
    assert module.Book("x").title == "x"


def test_our_own_future_imports_stay_ours(write: Write):
    """Annotations of the author's file are evaluated as the author's file says."""
    assert load_module(write("x: int = 1\n")).__annotations__ == {"x": int}


@pytest.mark.parametrize(
    ("source", "said", "place"),
    [
        ("x = 1\ndef broken(:\n", "not valid Python", ":2"),
        ("x = (\n", "not valid Python", ":1"),
        ("if x:\nprint()\n", "expected an indented block", ":2"),
        (b"x = '\xff'\n", "not valid Python", ""),
        ("\n\n1 / 0\n", "raised ZeroDivisionError: division by zero", ":3"),
        ("def f():\n    return {}['k']\n\nf()\n", "raised KeyError", ":2"),
        ("import json\n\njson.loads('{')\n", "raised JSONDecodeError", ":3"),
        ("import no_such_module_here\n", "No module named 'no_such_module_here'", ":1"),
        ("\nimport sys\nsys.exit(3)\n", "ended the program", ":3"),
        (ONE + "\nSpider('no name!')\n", "is no name for a spider", ":4"),
    ],
)
def test_a_mistake_is_told_with_its_line(write: Write, source: str | bytes, said: str, place: str):
    """Syntax errors, exceptions, missing modules and exits name the innermost line of the author's file."""
    path = write(source)
    error = refused(path)
    assert said in error.what
    assert (error.where or "").startswith(f"{path}{place}")
    assert error.hint


def test_a_syntax_error_of_a_neighbour_names_the_neighbour(write: Write, tmp_path: Path):
    """The line to correct may be in another file."""
    write("def broken(:\n", "broken_neighbour_for_loading.py")
    error = refused(write("\nimport broken_neighbour_for_loading\n"))
    assert error.where == f"{tmp_path / 'broken_neighbour_for_loading.py'}:1"


def test_the_line_itself_is_shown(write: Write):
    """A syntax error repeats the line, shortened."""
    assert "in `def broken(:`" in refused(write("def broken(:\n")).what
    assert len(refused(write("x = (" + "1," * 5000 + "]\n")).what) < 400


def test_a_failed_load_leaves_no_trace(write: Write):
    """Neither sys.modules nor sys.path keep a file that could not be loaded."""
    modules, path = set(sys.modules), list(sys.path)
    refused(write("1 / 0\n"))
    assert sys.path == path
    assert not [name for name in set(sys.modules) - modules if name.startswith("gossamer_spider")]


def test_an_interrupt_is_not_swallowed(write: Write):
    """Ctrl-C while a file loads is a Ctrl-C."""
    with pytest.raises(KeyboardInterrupt):
        load_spider(str(write("raise KeyboardInterrupt\n")))


def test_what_is_no_file_is_told(write: Write, tmp_path: Path):
    """A missing file names its neighbours, a folder is called one."""
    write(ONE, "books.py")
    error = refused(tmp_path / "boks.py")
    assert "does not exist" in error.what
    assert "books.py" in (error.hint or "")
    assert "folder" in refused(tmp_path).what
