"""The robots.txt files of a known web, in several styles, all denying /private/ where there is one."""

from __future__ import annotations

from gossamer.testing.web.mix import Mix
from gossamer.testing.web.reply import Reply, plain

_DENY = "Disallow: /private/\n"
_STYLES = (
    f"User-agent: *\n{{delay}}{_DENY}",
    f"# a comment\r\nUser-Agent: somebody-else\r\nDisallow: /\r\n\r\nuser-agent: *\r\n{{delay}}{_DENY}\r\n",
    None,  # there is no robots.txt: everything may be read
    f"User-agent: *\n{{delay}}Disallow: /tmp\n{_DENY}Allow: /\n",
)


class RobotsOf:
    """Which rules each host has. The first two hosts always have some."""

    def __init__(self, hosts: int, mix: Mix) -> None:
        self._hosts = hosts
        self._mix = mix
        self.closed = frozenset(number for number in range(hosts) if self.text(number) is not None)

    def delay(self, host: int) -> float:
        slowed = host >= self._hosts - self._mix.crawl_delay_hosts
        return self._mix.crawl_delay if slowed else 0.0

    def text(self, host: int) -> str | None:
        delay = self.delay(host)
        style = _STYLES[host % len(_STYLES)]
        if style is None:
            if not delay:
                return None
            style = _STYLES[0] or ""
        return style.format(delay=f"Crawl-delay: {delay}\n" if delay else "")

    def answer(self, host: int, attempt: int) -> Reply:
        if attempt <= self._mix.robots_fails:
            return plain(503, "no rules today\n")
        text = self.text(host)
        return plain(404, "no rules\n") if text is None else plain(200, text)
