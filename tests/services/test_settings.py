"""Settings come from four places in one order, and a wrong one says where it was written and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.model.errors import SettingsError
from gossamer.model.settings import Settings
from gossamer.services.options import RunOptions
from gossamer.services.settings import Given, assignments, convert, describe, find_file, load, nearest


@pytest.fixture
def toml(tmp_path: Path):
    """Writes gossamer.toml and gives its path."""

    def write(text: str) -> Path:
        path = tmp_path / "gossamer.toml"
        path.write_text(text, "utf-8")
        return path

    return write


def refused(name: str, value: object, where: str = "option -s x") -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        convert(name, value, where)
    return caught.value


def test_nothing_given_is_the_defaults():
    """Without any place that says something, the settings are the struct's own."""
    assert load({}) == (Settings(), {})


def test_the_later_place_wins(toml):
    """Code < file < environment < command line, each for the settings that it names."""
    file = toml("concurrency = 2\nper_host = 2\nretries = 2\n")
    loaded = load(
        {"concurrency": 1, "per_host": 1, "retries": 1, "max_pages": 1},
        file=file,
        env={"GOSSAMER_PER_HOST": "3", "GOSSAMER_RETRIES": "3", "HOME": "/nowhere"},
        cli={"retries": "4"},
    )
    assert [
        getattr(loaded.settings, name) for name in ("max_pages", "concurrency", "per_host", "retries")
    ] == [
        1,
        2,
        3,
        4,
    ]
    assert loaded.origin["per_host"] == "environment variable GOSSAMER_PER_HOST"
    assert loaded.origin["concurrency"] == f"{file}, line 1, key concurrency"


def test_a_spiders_own_table_is_stronger_than_the_file(toml):
    """[spiders.NAME] counts for that spider alone."""
    file = toml("delay = 1\n[spiders.books]\ndelay = 2\n[spiders.news]\ndelay = 3\n")
    assert load({}, file=file, spider="books").settings.delay == 2.0
    assert load({}, file=file).settings.delay == 1.0


def test_a_wrong_setting_of_another_spider_is_told_too(toml):
    """A file is either right or wrong, whichever spider happens to run."""
    file = toml("[spiders.news]\ndepht = 3\n")
    with pytest.raises(SettingsError, match=r"no setting 'depht'.*line 2.*\[spiders.news\].*depth"):
        load({}, file=file, spider="books")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("concurrency", "8", 8),
        ("max_links", "10_000", 10_000),
        ("max_links", "10,000", 10_000),
        ("robots", "No", False),
        ("robots", "on", True),
        ("robots", "1", True),
        ("delay", "250ms", 0.25),
        ("delay", "0.5", 0.5),
        ("timeout", "5m", 300.0),
        ("max_minutes", "2h", 120.0),
        ("max_minutes", "90", 90.0),
        ("max_body", "10MB", 10_000_000),
        ("max_body", "16 MiB", 16 * 1024 * 1024),
        ("depth", "none", None),
        ("delay", "", None),
        ("allow", "a.example, b.example", ("a.example", "b.example")),
        ("allow", "", ()),
        ("deny", '["re:a{1,2}"]', ("re:a{1,2}",)),
        ("deny", "['re:a,b']", ("re:a,b",)),
        ("headers", '{"Accept-Language": "en"}', {"Accept-Language": "en"}),
        ("headers", '{ Accept = "a" }', {"Accept": "a"}),
        ("headers", "Accept: a:b", {"Accept": "a:b"}),
        ("order", "Depth", "depth"),
        ("http_version", "2", "2"),
    ],
)
def test_text_becomes_the_settings_type(name: str, text: str, value: object):
    """What shells and environments can hold, a text, is enough for every type."""
    assert convert(name, text, "here") == value


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("http_version", 2, "2"),
        ("delay", 1, 1.0),
        ("allow", ["a"], ("a",)),
        ("allow", {"b", "a"}, ("a", "b")),
        ("depth", None, None),
    ],
)
def test_values_of_code_and_toml_fit_too(name: str, value: object, expected: object):
    """Types of Python and TOML that mean the same are taken."""
    assert convert(name, value, "here") == expected


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("concurrency", "0", "a whole number, 1 to 20,000"),
        ("concurrency", "20001", "a whole number"),
        ("concurrency", "many", "a whole number"),
        ("concurrency", "1.5", "a whole number"),
        ("concurrency", True, "a whole number"),
        ("concurrency", "10MB", "a whole number"),
        ("jitter", "1,5", "a number"),
        ("jitter", "30s", "a number"),
        ("delay", "-1", "duration such as 250ms"),
        ("delay", "nan", "duration"),
        ("timeout", "inf", "more than 0"),
        ("timeout", "0", "more than 0"),
        ("timeout", "5 weeks", "duration"),
        ("depth", "-1", "or none"),
        ("concurrency", None, "a whole number"),
        ("robots", "maybe", "yes or no"),
        ("order", "sideways", "one of breadth, depth, best"),
        ("headers", "nonsense", "a table"),
        ("headers", "{broken", "a table"),
        ("user_agent", "a\r\nEvil: 1", "a text"),
        ("user_agent", 3, "a text"),
        ("allow_net", "10.0.0/8", "commas"),
        ("deny", "re:(", "commas"),
        ("proxy", "ftp://proxy", "a text"),
        ("max_body", "0", "10MB"),
    ],
)
def test_what_cannot_be_is_refused_with_what_would_be_right(name: str, value: object, hint: str):
    """A wrong type, a value out of bounds and a broken text name the setting, the place and the wanted form."""
    error = refused(name, value, "option -s x")
    assert error.what.startswith(name)
    assert error.where == "option -s x"
    assert hint in (error.hint or "")


def test_a_secret_is_never_repeated():
    """The value of a header or a proxy, which may be a password, is in no error."""
    for name, value in (("proxy", "ftp://me:hunter2@proxy"), ("headers", {"Authorization": "hunter2\n"})):
        assert "hunter2" not in str(refused(name, value))


def test_a_misspelt_name_gets_the_nearest_and_the_place(toml):
    """In each of the four places a wrong name is found, before anything runs."""
    cases = [
        ({"code": {"concurency": 1}}, "the spider's code"),
        ({"file": toml("[spiders.a]\nretries = 1\n\n[other]\n")}, "no setting 'other'"),
        ({"env": {"GOSSAMER_CONCURENCY": "1"}}, "GOSSAMER_CONCURRENCY"),
        ({"cli": assignments(["concurency=1"])}, "option -s concurency"),
    ]
    for places, said in cases:
        with pytest.raises(SettingsError) as caught:
            load(places.pop("code", {}), **places)
        assert said in str(caught.value)


def test_an_unset_variable_may_be_empty():
    """Shells and compose files unset a variable by leaving it empty."""
    assert load({}, env={"GOSSAMER_PROXY": ""}).origin == {}


def test_nearest_knows_dashes_and_typos():
    """The option's spelling of a name leads to the setting's."""
    assert nearest("Max-Pages", ["max_pages", "max_items"]) == "max_pages"
    assert nearest("xyzzy", ["max_pages"]) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("delay = \n", "not valid TOML"),
        ("delay = 1\ndelay = 2\n", "not valid TOML"),
        ("spiders = 3\n", "one table a spider"),
        ("\ndelay = 'soon'\n", "line 2, key delay"),
    ],
)
def test_a_broken_file_is_told_with_its_place(toml, content: str, said: str):
    """Syntax, shape and values of the file are refused by its name, and by line where there is one."""
    file = toml(content)
    with pytest.raises(SettingsError) as caught:
        load({}, file=file)
    assert said in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path):
    """Bytes that are not UTF-8 are no reason for a traceback."""
    file = tmp_path / "gossamer.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="UTF-8"):
        load({}, file=file)


def test_the_file_is_found_in_the_folder_or_by_name(tmp_path: Path):
    """A named file must exist; the folder's own may be missing."""
    assert find_file(folder=tmp_path) is None
    (tmp_path / "gossamer.toml").touch()
    assert find_file(folder=tmp_path) == tmp_path / "gossamer.toml"
    with pytest.raises(SettingsError, match="does not exist"):
        find_file(tmp_path / "other.toml")


@pytest.mark.parametrize("pairs", [["delay"], ["=1"], ["delay=1", "delay=2"]])
def test_assignments_must_be_name_and_value_once(pairs: list[str]):
    """`-s` without a name, without a value or twice for one name is refused."""
    with pytest.raises(SettingsError):
        assignments(pairs)


def test_a_description_covers_every_setting():
    """The listing is the struct's own: each field with type, default and meaning."""
    rows = {row.name: row for row in describe()}
    assert list(rows) == list(Settings.__struct_fields__)
    assert all(row.type and row.default and row.meaning for row in rows.values())
    assert rows["concurrency"].bounds == "≥ 1, ≤ 20,000"
    assert rows["order"].bounds == "breadth · depth · best"
    assert rows["max_body"].default == "10 MiB"


def test_every_default_may_be_written_as_text():
    """What the listing shows as default is accepted from a keyboard, and means the same."""
    for row in describe():
        text = "" if row.default == "empty" else row.default
        assert convert(row.name, text, "here") == getattr(Settings(), row.name), row.name


def test_options_resolve_with_file_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`RunOptions.resolve` is the whole way from the spider's code to the command line."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gossamer.toml").write_text("per_host = 7\n")
    options = RunOptions(settings={"depth": Given("3", "option --depth")})
    loaded = options.resolve({"depth": 9, "retries": 1}, env={"GOSSAMER_DELAY": "1s"})
    given = loaded.settings
    assert (given.per_host, given.depth, given.retries, given.delay) == (7, 3, 1, 1.0)
    assert loaded.origin["depth"] == "option --depth"
