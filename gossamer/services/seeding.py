"""A run whose seeds were all refused: that is no crawl of nothing, but a start or a scope that was written wrongly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gossamer.model.errors import URL_REASONS, UsageError
from gossamer.model.url import origin_of
from gossamer.services.meanings import meaning

HINTS = {
    "denied": "take the rule that fits it out of `deny`",
    "port": "-s allow_ports=PORT, if a web server really listens there",
}


def nothing_to_start_from(counts: Mapping[str, int], samples: Sequence[tuple[str, str]]) -> UsageError:
    """What to say where every seed was refused: `refused:CAUSE` → how many, and an example of each, the first first."""
    name, url = samples[0]
    cause = name.partition(":")[2]
    total = sum(counts.values())
    what = "The only seed is" if total == 1 else f"All {total:,} seeds are"
    why = URL_REASONS[cause][0] if cause in URL_REASONS else meaning(cause)
    return UsageError(
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
