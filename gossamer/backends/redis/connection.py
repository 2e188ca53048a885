"""From a URL to a client: one server, or whoever the sentinels say is master."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from gossamer.model.errors import SettingsError

ANSWER_WITHIN = 5.0  # seconds for one answer; then the connection is given up, and the call asked again
CONNECT_WITHIN = 2.0
SCHEMES = ("redis", "rediss", "redis+sentinel", "rediss+sentinel")


class Address(NamedTuple):
    """A frontier's URL taken apart; `shown` holds no password."""

    scheme: str
    nodes: tuple[tuple[str, int], ...]
    user: str | None
    password: str | None
    master: str
    database: int
    namespace: str
    options: dict[str, str]

    @property
    def shown(self) -> str:
        nodes = ",".join(f"{host}:{port}" for host, port in self.nodes)
        return f"{self.scheme}://{nodes}/{self.master or self.database}"


def read_address(url: str, namespace: str = "") -> Address:
    """`redis://[user:password@]host[:port][/db]`, `redis+sentinel://host,host:port/master[/db]`; `?namespace=` and TLS options."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    sentinel = parts.scheme.endswith("+sentinel")
    credentials, _, hosts = parts.netloc.rpartition("@")
    user, _, password = credentials.partition(":")
    nodes = tuple(_node(entry, 26379 if sentinel else 6379, url) for entry in hosts.split(",") if entry)
    path = [step for step in parts.path.split("/") if step]
    master = unquote(path.pop(0)) if sentinel and path else ""
    if not nodes or (sentinel and not master) or len(path) > 1 or not all(step.isdigit() for step in path):
        raise _unreadable(url)
    return Address(
        scheme=parts.scheme,
        nodes=nodes,
        user=unquote(user) or None,
        password=unquote(password) or None,
        master=master,
        database=int(path[0]) if path else 0,
        namespace=namespace or options.pop("namespace", "") or "default",
        options=options,
    )


def _node(entry: str, port: int, url: str) -> tuple[str, int]:
    host, _, written = entry.rpartition(":") if entry.rpartition(":")[2].isdigit() else (entry, "", "")
    if not host:
        raise _unreadable(url)
    return host.strip("[]"), int(written) if written else port


def _unreadable(url: str) -> SettingsError:
    shown = url.rpartition("@")[2]  # never the password
    return SettingsError(
        "The frontier's URL cannot be read",
        where=shown,
        hint="redis://host:6379/0, rediss://user:password@host/0, or redis+sentinel://host1,host2/master-name",
    )


def open_client(address: Address) -> Redis:
    """A client that repeats nothing by itself: which call may be asked again is not its to know."""
    ours: dict[str, Any] = {
        "username": address.user,
        "password": address.password,
        "db": address.database,
        "socket_timeout": ANSWER_WITHIN,
        "socket_connect_timeout": CONNECT_WITHIN,
        "socket_keepalive": True,
        "health_check_interval": 0,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "max_connections": 16,
    }
    if address.scheme.startswith("rediss"):
        ours |= {"ssl": True, "ssl_ca_certs": address.options.get("ca_file"),
                 "ssl_certfile": address.options.get("cert_file"), "ssl_keyfile": address.options.get("key_file")}  # fmt: skip
    if address.master:
        asking = {name: ours[name] for name in ("socket_timeout", "socket_connect_timeout")}
        watchers = Sentinel(list(address.nodes), sentinel_kwargs=asking)  # type: ignore[no-untyped-call]
        found: Redis = watchers.master_for(address.master, **ours)
        return found
    (host, port), *_ = address.nodes
    return Redis(host=host, port=port, **ours)
