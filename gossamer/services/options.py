"""What a person asked for at the keyboard, as the part of the program that runs it needs it.

The commands fill in a `RunOptions`; `services.running` takes nothing else, so a crawl can be started from a test, a
notebook or another service in the same way as from a terminal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # keeps `gossamer --help` free of msgspec and the settings
    from gossamer.model.settings import Settings
    from gossamer.services.settings import Given, Loaded

STATE = Path(".gossamer")
"""Where a crawl keeps its frontier unless told otherwise."""


@dataclass(kw_only=True)
class RunOptions:
    """One `gossamer crawl` or `gossamer run`."""

    urls: list[str] = field(default_factory=list)
    file: str | None = None
    """The spider file of `run`, perhaps as FILE:NAME; see `services.loading`."""
    args: dict[str, str] = field(default_factory=dict)
    """Spider arguments, `-a name=value`."""
    settings: dict[str, Given] = field(default_factory=dict)
    """What the command line sets, by the names of `model.settings.Settings`; read it through `resolve`."""
    also_allow: Given | None = None
    """Hosts that are added to the scope, whatever that is: `--allow` of `run`."""
    config: Path | None = None
    """The settings file that was named; None: `gossamer.toml` of the current folder, if there is one."""
    state: Path = STATE
    output: Path | None = None
    """None: `<task>.jsonl` in the current folder."""
    fresh: bool = False
    workers: int = 1
    json: bool = False
    quiet: bool = False
    frontier: str = ""
    """The URL of a frontier that many machines share; empty: the one in the state folder."""
    namespace: str = ""
    """Projects that share one store do not see each other."""
    task: str | None = None
    """The task's name, where it is not made from what is crawled."""
    works: bool = True
    """Whether this process fetches, or only submits, brings items to their file, and follows the task to its end."""
    keep_open: bool = False
    needs: tuple[str, ...] = ()
    keeps_nothing: bool = False
    """The output is gone when this is told, so it is not named: a measurement."""
    select: dict[str, str] = field(default_factory=dict)
    """Field name → CSS selector, in the order given."""

    def resolve(
        self,
        code: Mapping[str, Any] | None = None,
        *,
        spider: str | None = None,
        env: Mapping[str, str] | None = None,
        seed_hosts: Callable[[Settings], Iterable[str]] = lambda _: (),
    ) -> Loaded:
        """The settings of the task, from the spider's code up to this command line; raises SettingsError.

        `seed_hosts` is asked for the scope of a spider that says none, where hosts are to be added to it.
        """
        from gossamer.services.settings import Given, find_file, load

        def loaded(more: Mapping[str, Given]) -> Loaded:
            return load(
                code or {},
                file=find_file(self.config),
                env=os.environ if env is None else env,
                cli={**self.settings, **more},
                spider=spider,
            )

        if self.also_allow is None:
            return loaded({})
        typed = loaded({"allow": self.also_allow}).settings
        scope = loaded({}).settings.allow or tuple(seed_hosts(typed))
        hosts = list(dict.fromkeys([*scope, *typed.allow]))
        return loaded({"allow": Given(hosts, self.also_allow.where)})

    def output_for(self, task: str) -> Path:
        """Where the items of this task go."""
        return self.output if self.output is not None else Path(f"{task}.jsonl")
