"""`gossamer crawl` and `gossamer run`: from what was typed to a running crawl."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from cyclopts import Parameter

from gossamer.model.errors import UsageError
from gossamer.services.commands.flags import RESULTS, SPIDER, WHAT, Flags, pairs
from gossamer.services.options import RunOptions

NONE = Flags()


def crawl(
    *urls: Annotated[
        str, Parameter(metavar="URL", help="Where to start. Without --allow their hosts are the scope.")
    ],
    select: Annotated[
        list[str] | None,
        Parameter(
            group=RESULTS,
            metavar="NAME=CSS",
            help="A field of the items: text of the first match.",
        ),
    ] = None,
    follow: Annotated[
        bool | None,
        Parameter(negative="--no-follow", group=WHAT, help="Follow links, as is the default, or not."),
    ] = None,
    flags: Flags = NONE,
) -> int:
    """Crawl from these URLs, and leave one item per page.

    The same command goes on where it was stopped, however it was stopped.
    """
    if not urls:
        raise UsageError(
            "No URL was given", where="gossamer crawl", hint="gossamer crawl https://example.com/"
        )
    options = flags.options(follow=follow)
    options.urls = list(urls)
    options.select = pairs(select or (), "--select", "title=h1")
    name_at_keyboard(options, urls)
    from gossamer.services import running

    return int(running.crawl(options))


def run(
    file: Annotated[
        str, Parameter(metavar="FILE", help="A Python file with a Spider; FILE:NAME if it has several.")
    ],
    /,
    *,
    argument: Annotated[
        list[str] | None,
        Parameter(
            name=["-a", "--arg"], group=SPIDER, metavar="NAME=VALUE", help="An argument of the spider."
        ),
    ] = None,
    follow: Annotated[bool | None, Parameter(negative="--no-follow", show=False)] = None,
    flags: Flags = NONE,
) -> int:
    """Run the spider of a file.

    The same command goes on where it was stopped, however it was stopped.
    """
    if follow is not None:  # taken only to be refused with a better reason than "unknown option"
        raise UsageError(
            "`run` follows the links that the spider's handlers yield, and no others",
            where="option --follow" if follow else "option --no-follow",
            hint="leave it out; --depth 0 fetches only the seeds. It is an option of `gossamer crawl`",
        )
    options = flags.options()
    options.file = file
    options.args = pairs(argument or (), "-a", "name=value")
    name_at_keyboard(options, ())
    from gossamer.services import running

    return int(running.run(options))


def name_at_keyboard(options: RunOptions, urls: Iterable[str]) -> None:
    """Hosts that were typed may have a private address; --allow adds to what is allowed without it."""
    from gossamer.model.scope import seed_hosts
    from gossamer.model.url import canonical, origin_of
    from gossamer.services.settings import Given

    seeds = [canonical(url) for url in urls]
    allow = options.settings.get("allow")
    typed = [] if allow is None or not isinstance(allow.value, list) else list(allow.value)
    if seeds and typed:
        own = [entry for seed in seeds for entry in seed_hosts(seed)]
        options.settings["allow"] = Given(list(dict.fromkeys([*own, *typed])), "option --allow")
    elif typed:  # what the spider allows is known when its file has been loaded
        options.also_allow = options.settings.pop("allow")
    names = [origin_of(seed).host for seed in seeds] + [host for entry in typed if (host := _host(entry))]
    if names and "private_hosts" not in options.settings:
        options.settings["private_hosts"] = Given(list(dict.fromkeys(names)), "the command line")


def _host(entry: str) -> str | None:
    """The one host that an `--allow` names; patterns name none."""
    from gossamer.model.errors import InvalidURL
    from gossamer.model.url import canonical, origin_of

    if "*" in entry or entry.startswith(("/", "re:")):
        return None
    try:
        return origin_of(canonical(entry if "://" in entry else f"http://{entry}")).host
    except InvalidURL:
        return None  # the scope says what is wrong with it
