"""Every setting, once: its name, its default and what it means.

A setting has the same name in a spider's code, in `gossamer.toml`, in the environment (GOSSAMER_CONCURRENCY) and on
the command line (--concurrency, or -s concurrency=8); the later of these wins. `services.settings` does the reading.
The settings travel with the task, so every worker of a task works by the same ones.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

USER_AGENT = "Gossamer/0.1 (+https://github.com/gossamer-crawl/gossamer)"


def doc(text: str, **bounds: Any) -> Meta:
    """What a setting means, and its bounds."""
    return Meta(description=text, **bounds)


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a task crawls."""

    # What is fetched
    allow: Annotated[
        tuple[str, ...], doc("Hosts or URL prefixes that may be fetched; empty: the hosts of the seeds")
    ] = ()
    deny: Annotated[tuple[str, ...], doc("Hosts, URL globs or `re:` patterns that are never fetched")] = ()
    depth: Annotated[int, doc("Links are followed so far from the seeds", ge=0)] | None = None
    same_site: Annotated[bool, doc("Subdomains of an allowed host are allowed too")] = False
    follow: Annotated[bool, doc("A page that no route takes has its links followed (`gossamer crawl`)")] = (
        True
    )
    order: Annotated[
        Literal["breadth", "depth", "best"], doc("Nearest pages first, deepest first, or by priority alone")
    ] = "breadth"
    sort_query: Annotated[bool, doc("URLs that differ in the order of their query are one page")] = False
    drop_params: Annotated[
        tuple[str, ...], doc("Query parameters that are removed from URLs; globs such as utm_*")
    ] = ()

    # When it stops
    max_pages: Annotated[int, doc("Ends after so many pages", ge=1)] | None = None
    max_items: Annotated[int, doc("Ends after so many items", ge=1)] | None = None
    max_minutes: Annotated[float, doc("Ends after so many minutes", gt=0)] | None = None
    max_errors: Annotated[int, doc("The task fails after so many FAILED pages", ge=1)] | None = None
    pages_per_host: Annotated[int, doc("Pages taken of one host", ge=1)] | None = None
    pages_per_pattern: (
        Annotated[int, doc("URLs taken of one URL pattern (/list?page={n}) of a host", ge=1)] | None
    ) = None

    # How politely
    concurrency: Annotated[int, doc("Open exchanges in one worker", ge=1, le=20_000)] = 64
    per_host: Annotated[int, doc("Open exchanges with one host, over all workers", ge=1, le=10_000)] = 4
    delay: (
        Annotated[
            float, doc("Seconds between two requests to a host; unset: adaptive, from 0.25 s", ge=0, le=3600)
        ]
        | None
    ) = None
    max_delay: Annotated[float, doc("The adaptive delay grows to no more than this", ge=0, le=3600)] = 60.0
    throttle: Annotated[bool, doc("Adapt the delay to latency and errors")] = True
    jitter: Annotated[float, doc("A delay is lengthened at random by up to this share", ge=0, le=1)] = 0.25
    robots: Annotated[bool, doc("Obey robots.txt")] = True
    host_patience: Annotated[
        float, doc("Seconds without a good answer after which a host's URLs are FAILED", gt=0)
    ] = 1800.0
    retries: Annotated[int, doc("Repeated attempts for one URL", ge=0, le=100)] = 4
    retry_delay: Annotated[
        float, doc("Seconds before the first repeated attempt; it doubles", ge=0, le=3600)
    ] = 1.0

    # How it is fetched
    user_agent: Annotated[str, doc("Who asks; robots.txt is read for its first word")] = USER_AGENT
    headers: Annotated[dict[str, str], doc("Sent with every request")] = {}
    cookies: Annotated[bool, doc("Keep cookies, by host")] = True
    cache: (
        Annotated[str, doc("A folder that answers are kept in and served from (for development)")] | None
    ) = None
    proxy: Annotated[str, doc("http, https, socks5 or socks5h URL of a proxy")] | None = None
    http_version: Annotated[Literal["auto", "1.1", "2", "3"], doc("HTTP version")] = "auto"
    verify_tls: Annotated[bool, doc("Check certificates")] = True
    ca_file: Annotated[str, doc("Certificates to trust instead of the system's")] | None = None
    allow_ports: Annotated[
        tuple[int, ...], doc("Ports of other services (such as 6379) that a web server really listens on")
    ] = ()
    allow_net: Annotated[
        tuple[str, ...], doc("Networks (CIDR) that may be dialled although they are not public")
    ] = ()
    private_hosts: Annotated[
        tuple[str, ...], doc("Hosts named at the keyboard: their address may be private")
    ] = ()
    connect_timeout: Annotated[float, doc("Seconds to connect", gt=0)] = 10.0
    header_timeout: Annotated[float, doc("Seconds from sending to the end of the headers", gt=0)] = 15.0
    timeout: Annotated[float, doc("Seconds for a whole exchange", gt=0)] = 60.0
    min_rate: Annotated[int, doc("Bytes per second below which, for 20 s, an exchange is ended", ge=0)] = 64
    max_body: Annotated[int, doc("Bytes of a body, on the wire and decoded", ge=1)] = 10 * 1024 * 1024
    max_links: Annotated[int, doc("Links taken of one page", ge=1)] = 50_000
    max_segments: Annotated[int, doc("A path with more segments is a trap", ge=1)] = 20
    max_repeats: Annotated[int, doc("A path that repeats a segment more often is a trap", ge=1)] = 2
    max_params: Annotated[int, doc("A query with more parameters is a trap", ge=1)] = 20

    # What is done with it
    max_waiting_items: Annotated[
        int, doc("Items that may wait for a slow output before no more pages are fetched", ge=1)
    ] = 1_000_000
    keep_bodies: Annotated[bool, doc("Keep page bodies as content-addressed blobs")] = False
    handler_soft: Annotated[float, doc("Seconds after which a handler that awaits is cancelled", gt=0)] = 60.0
    handler_hard: Annotated[
        float, doc("Seconds after which a process stuck in a handler is replaced", gt=0)
    ] = 180.0
    log_level: Annotated[Literal["debug", "info", "warning", "error"], doc("How much is logged")] = "info"
