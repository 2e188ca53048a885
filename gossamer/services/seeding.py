"""A start that no crawl can come of is an error that says why, not a crawl of nothing: no handler, only addresses that are not
dialled, only seeds that are refused."""

from __future__ import annotations

from gossamer.crawling.outlinks import Refusals
from gossamer.model.addresses import AddressGuard, address_kind
from gossamer.model.errors import URL_REASONS, InvalidURL, SpiderError, UsageError
from gossamer.model.settings import Settings
from gossamer.model.url import canonical, is_address, origin_of
from gossamer.services.meanings import meaning
from gossamer.services.submission import readable_seeds
from gossamer.spiders.spider import Spider

HINTS = {
    "denied": "take the rule that fits it out of `deny`",
    "port": "-s allow_ports=PORT, if a web server really listens there",
}


def check_start(spider: Spider, settings: Settings) -> None:
    """Before anything is opened. Raises SpiderError or UsageError."""
    if not len(spider.routes) and not settings.keep_bodies and settings.cache is None:
        raise SpiderError(
            f"The spider {spider.name!r} has no handler, so nothing would become of its pages",
            hint='write one below @spider.page(), which takes every page, or @spider.page("/book/{slug}")',
        )
    closed = ""
    for url in readable_seeds(spider):  # up to the first one that may be dialled, for there may be millions
        try:
            host = origin_of(canonical(url)).host
        except InvalidURL:
            continue  # the feeder counts it with its reason
        if may_be_dialled(host, settings):
            return
        closed = closed or host
    if closed:
        raise _not_dialled(closed)


def may_be_dialled(host: str, settings: Settings) -> bool:
    """As far as the host alone tells; what a name stands for is judged when it is dialled."""
    if host == "localhost" or host.endswith(".localhost"):
        if settings.proxy:
            return True  # there the name is the proxy's to read
        address = "127.0.0.1"
    elif is_address(host):
        address = host.strip("[]")
    else:
        return True
    named = host in settings.private_hosts
    return AddressGuard(settings.allow_net).permits(address, allow_private=named)


def _not_dialled(host: str) -> UsageError:
    kind = address_kind(host.strip("[]")) if is_address(host) else "private"
    hints = {
        "private": f"--allow {host} at the keyboard, or private_hosts=[{host!r}] in a script",
        "metadata": "nothing opens the addresses where clouds hand out credentials",
    }
    return UsageError(
        f"The start is on {host}, which is no public address, so it would not be dialled",
        where="setting private_hosts, setting allow_net: neither names it",
        hint=hints.get(kind, "--allow-net CIDR with a network that holds it"),
    )


def nothing_to_start_from(refusals: Refusals) -> None:
    """Raise what to say where every seed was refused: the first with its cause."""
    samples, counts = refusals.samples, refusals.counts
    name, url = samples[0]
    cause = name.partition(":")[2]
    total = sum(counts.values())
    what = "The only seed is" if total == 1 else f"All {total:,} seeds are"
    why = URL_REASONS[cause][0] if cause in URL_REASONS else meaning(cause)
    raise UsageError(
        f"{what} refused, so there is nothing to crawl: {cause}"
        + (f" ({why[0].lower()}{why[1:]})" if why else ""),
        where=f"seed {url}",
        hint=_hint(cause, url),
    )


def _hint(cause: str, url: str) -> str:
    if cause == "offsite":
        # `host:port`, as a scope has it; a canonical URL names only ports that are special.
        host = origin_of(url).prefix.partition("://")[2]
        return f"--allow {host}, or allow={host!r} in the spider"
    if cause in HINTS:
        return HINTS[cause]
    return URL_REASONS[cause][1] if cause in URL_REASONS else "correct the start, or the scope"
