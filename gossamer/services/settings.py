"""Read the settings from the four places where people write them, and say where each value came from.

A spider's code is weaker than `gossamer.toml`, the file than the environment, the environment than the command line.
One name for a setting in all four. What cannot be used is refused before anything is fetched, with the place where it
was written: a crawl that ran for a day by a misspelt setting has cost a day.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gossamer.model.errors import SettingsError
from gossamer.model.settings import Settings
from gossamer.services.values import FIELDS, Refused

FILE_NAME = "gossamer.toml"
ENV_PREFIX = "GOSSAMER_"
OPTIONS = frozenset({"GOSSAMER_FRONTIER", "GOSSAMER_NAMESPACE"})  # of the commands, which are no settings
MAX_FILE = 1024 * 1024

SECRET = frozenset({"headers", "proxy"})
"""Settings whose value may hold a password: neither an error nor a listing repeats it."""


class Given(NamedTuple):
    """A value as somebody wrote it, and where."""

    value: Any
    where: str


class Loaded(NamedTuple):
    """The settings of a task, and where each one that is not its default was written."""

    settings: Settings
    origin: dict[str, str]


class Described(NamedTuple):
    """One setting, for people."""

    name: str
    type: str
    default: str
    meaning: str
    bounds: str


def load(
    code: Mapping[str, Any],
    *,
    file: Path | None = None,
    env: Mapping[str, str] | None = None,
    cli: Mapping[str, Any] | None = None,
    spider: str | None = None,
) -> Loaded:
    """The settings by their order of strength; `spider` names the `[spiders.NAME]` table that counts.

    Values of `cli` may be plain or `Given`, so that an error can name the option that was typed.
    """
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    places = (_in_code(code), _in_file(file, spider), _in_environment(env or {}), _on_command_line(cli or {}))
    for place in places:
        for name, (value, where) in place:
            values[name] = convert(name, value, where)
            origin[name] = where
    return Loaded(Settings(**values), origin)


def find_file(named: Path | None = None, *, folder: Path | None = None) -> Path | None:
    """The file that was named, which must exist, or the folder's `gossamer.toml` if there is one."""
    if named is not None:
        if not named.is_file():
            raise SettingsError(
                "The settings file does not exist",
                where=str(named),
                hint="check the path given with --config",
            )
        return named
    here = (folder or Path.cwd()) / FILE_NAME
    return here if here.is_file() else None


def assignments(pairs: Iterable[str], option: str = "-s") -> dict[str, Given]:
    """What `-s NAME=VALUE` gave."""
    given: dict[str, Given] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise SettingsError(
                f"{pair!r} is no setting", where=f"option {option}", hint=f"write {option} NAME=VALUE"
            )
        if name in given and given[name].value != value:
            raise SettingsError(
                f"{name} is given twice", where=f"option {option}", hint="give it once, lists with commas"
            )
        given[name] = Given(value, f"option {option} {name}")
    return given


def convert(name: str, value: Any, where: str) -> Any:
    """The value in the setting's own type; raises SettingsError with what, where and what to do."""
    field = FIELDS.get(name)
    if field is None:
        near = nearest(name, FIELDS)
        hint = f"{near}, the nearest setting" if near else "`gossamer settings` lists all of them"
        raise SettingsError(f"There is no setting {name!r}", where=where, hint=hint)
    try:
        return field.read(value)
    except Refused as refused:
        said = "this value" if name in SECRET else _short(value)
        what = f"{name} cannot be {said}" + (f": {refused}" if str(refused) else "")
        raise SettingsError(what, where=where, hint=field.wanted) from None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant, if one is near."""
    known = list(known)
    flat = name.lower().replace("-", "_")
    if flat in known:
        return flat
    found = difflib.get_close_matches(flat, known, n=1, cutoff=0.6)
    return found[0] if found else None


def describe() -> list[Described]:
    """Every setting as the struct has it, in its order."""
    return [
        Described(name, field.type_name, field.default_text, field.meaning, field.bounds)
        for name, field in FIELDS.items()
    ]


def _in_code(code: Mapping[str, Any]) -> Iterator[tuple[str, Given]]:
    for name, value in code.items():
        yield name, value if isinstance(value, Given) else Given(value, f"the spider's code, {name}=…")


def _on_command_line(cli: Mapping[str, Any]) -> Iterator[tuple[str, Given]]:
    for name, value in cli.items():
        yield name, value if isinstance(value, Given) else Given(value, f"option -s {name}")


def _in_environment(env: Mapping[str, str]) -> Iterator[tuple[str, Given]]:
    for variable in sorted(env):
        # An empty variable is how shells and compose files unset one.
        if variable.startswith(ENV_PREFIX) and env[variable] != "":
            name = variable.removeprefix(ENV_PREFIX)
            if variable in OPTIONS:
                continue
            if name != name.upper() or name.lower() not in FIELDS:
                _unknown_variable(variable)
            yield name.lower(), Given(env[variable], f"environment variable {variable}")


def _unknown_variable(variable: str) -> None:
    near = nearest(variable.removeprefix(ENV_PREFIX), FIELDS)
    hint = f"{ENV_PREFIX}{near.upper()}" if near else "`gossamer settings` lists the names"
    raise SettingsError(
        f"{variable} names no setting", where=f"environment variable {variable}", hint=f"{hint}, or unset it"
    )


def _in_file(file: Path | None, spider: str | None) -> Iterator[tuple[str, Given]]:
    """The top-level table, then the spider's own, which is stronger. Tables of other spiders are checked too."""
    if file is None:
        return
    text = _read(file)
    table = _parse(file, text)
    spiders = table.pop("spiders", {})
    if not isinstance(spiders, dict) or not all(isinstance(own, dict) for own in spiders.values()):
        raise SettingsError(
            "`spiders` must hold one table a spider",
            where=str(file),
            hint="write [spiders.NAME] above its settings",
        )
    for name, value in table.items():
        yield name, Given(value, _place(file, text, name))
    for owner, own in spiders.items():
        for name, value in own.items():
            where = f"{_place(file, text, name, owner)} in [spiders.{owner}]"
            if owner == spider:
                yield name, Given(value, where)
            else:
                convert(name, value, where)


def _read(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_FILE:
            raise SettingsError(
                "The settings file is larger than 1 MiB", where=str(file), hint="name another file"
            )
        return file.read_text("utf-8")
    except OSError as error:
        raise SettingsError(
            f"The settings file cannot be read: {error.strerror}",
            where=str(file),
            hint="check its permissions",
        ) from None
    except UnicodeDecodeError:
        raise SettingsError(
            "The settings file is not UTF-8", where=str(file), hint="save it as UTF-8"
        ) from None


def _parse(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(
            f"The settings file is not valid TOML: {error}",
            where=str(file),
            hint='NAME = VALUE on each line, texts in quotes, lists as ["a", "b"]',
        ) from None


def _place(file: Path, text: str, key: str, spider: str | None = None) -> str:
    """File, line and key. The line is found by looking: tomllib keeps none."""
    inside: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line.startswith("["):
            head = line.partition("]")[0].strip("[ ").replace('"', "").replace("'", "")
            inside = head.removeprefix("spiders.").strip()
        elif inside == spider and line.partition("=")[0].strip(" \"'") == key:
            return f"{file}, line {number}, key {key}"
    return f"{file}, key {key}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
