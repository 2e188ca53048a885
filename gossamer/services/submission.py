"""A task as it is kept with its records: what a worker needs to take part, whenever and wherever it starts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from hashlib import blake2b
from ipaddress import ip_address
from pathlib import Path

import msgspec

from gossamer.crawling.middlewares import CREDENTIALS
from gossamer.model.errors import SettingsError
from gossamer.model.pace import wish_of
from gossamer.model.scope import seed_hosts
from gossamer.model.settings import Settings
from gossamer.model.task import TaskSpec
from gossamer.model.url import canonical, host_key
from gossamer.spiders.seeds import STDIN
from gossamer.spiders.spider import Spider


class Code(msgspec.Struct, frozen=True):
    """What a worker must have to take part: a spider by name and digest, or nothing but what `gossamer crawl` was told."""

    spider: str
    digest: str = ""  # of the file and its neighbours; empty for `crawl`, whose spider comes with the program
    args: dict[str, str] = {}
    urls: tuple[str, ...] = ()
    select: dict[str, str] = {}
    follow: bool = True


class Kept(msgspec.Struct, frozen=True):
    """What `TaskSpec.settings` holds."""

    settings: Settings
    hosts: tuple[str, ...] = ()  # of the seeds: the scope where `allow` is empty
    output: str = ""  # where the items go
    home: tuple[str, ...] = ()  # origins of the seeds, where credentials among the headers may go
    code: Code | None = None  # whose handlers these are; None in a state of an older version
    machine: str = ""  # that submitted it, and holds the file of its items


def read_kept(spec: TaskSpec) -> Kept:
    return msgspec.json.decode(spec.settings, type=Kept)


def spec_of(
    name: str,
    spider: Spider,
    settings: Settings,
    output: Path,
    *,
    code: Code | None = None,
    machine: str = "",
    keep_open: bool = False,
    needs: tuple[str, ...] = (),
) -> TaskSpec:
    """The task of this spider under these settings."""
    hosts, eager = hosts_of_seeds(spider, settings)
    return TaskSpec(
        name=name,
        settings=msgspec.json.encode(
            Kept(
                settings,
                hosts,
                "-" if str(output) == "-" else str(output.resolve()),
                home_of(spider, settings),
                code,
                machine,
            )
        ),
        wish=wish_of(settings, eager),
        max_pages=settings.max_pages,
        max_items=settings.max_items,
        max_errors=settings.max_errors,
        pages_per_pattern=settings.pages_per_pattern,
        keep_open=keep_open or bool(spider.hooks.idle),
        needs=needs,
        log_limit=settings.max_waiting_items,
    )


def hosts_of_seeds(spider: Spider, settings: Settings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(scope entries of the seeds' hosts, host keys that need no slow start because they are this machine's)."""
    scope: dict[str, None] = {}
    keys: dict[str, None] = {}
    for url in readable_seeds(spider):
        try:
            seed = canonical(url)
        except ValueError:
            continue  # the feeder counts it with its reason
        except Exception:  # noqa: BLE001, S112  (the same: a bad seed is told when it is pushed)
            continue
        scope.update(dict.fromkeys(seed_hosts(seed)))
        keys[host_key(seed)] = None
    if not scope and not settings.allow:
        raise SettingsError(
            f"The spider {spider.name!r} has no hosts that it may crawl: its start is not a list of URLs",
            hint='say which: Spider(…, allow="example.com"), or --allow example.com',
        )
    ports = {key.rpartition(":")[2] for key in keys} | {"80", "443"}
    ours = [host for host in settings.private_hosts if is_this_machine(host)]
    eager = [f"{host}:{port}" for host in ours for port in ports]
    return tuple(scope), tuple(dict.fromkeys(eager))


def home_of(spider: Spider, settings: Settings) -> tuple[str, ...]:
    """The origins that the crawl starts from; nothing is read for them where there are no credentials to keep at home."""
    if not any(name.lower() in CREDENTIALS for name in settings.headers):
        return ()
    found: dict[str, None] = {}
    for url in readable_seeds(spider):
        with contextlib.suppress(Exception):  # the feeder counts a bad seed with its reason
            seed = canonical(url)
            scheme = seed.partition(":")[0]
            found.update(dict.fromkeys(f"{scheme}://{host}" for host in seed_hosts(seed)))
    return tuple(found)


def is_this_machine(host: str) -> bool:
    """True for names and addresses that never leave this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def readable_seeds(spider: Spider) -> Iterable[str]:
    """The URLs of a start that can be read twice: a URL, a list, a file."""
    start = spider.start
    if isinstance(start, Path):
        try:
            with start.open(encoding="utf-8-sig", errors="replace") as file:
                yield from (line.strip() for line in file if line.strip() and not line.startswith("#"))
        except OSError:
            return  # the feeder says why
    elif isinstance(start, str) and start != STDIN:
        yield start
    elif isinstance(start, list | tuple):
        yield from (seed if isinstance(seed, str) else seed.url for seed in start)


def name_with(base: str, *identity: object) -> str:
    """A task's name: what people recognise, and a few letters of everything that makes it this one."""
    digest = blake2b(repr(identity).encode(), digest_size=3).hexdigest()
    return f"{base}-{digest}"
