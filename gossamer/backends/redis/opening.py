"""What is asked of a server before it is trusted with a crawl: that it is there, new enough, and what it may lose."""

from __future__ import annotations

import asyncio
import logging

from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, RedisError, ResponseError

from gossamer.backends.redis.calling import explained
from gossamer.backends.redis.connection import Address
from gossamer.model.errors import StateError

log = logging.getLogger("gossamer")

WITHIN = 4.0  # seconds until a server that does not answer is called unreachable
OLDEST = (6, 2)


async def check(client: Redis, address: Address, *, telling: bool) -> None:
    """Raise StateError where the server cannot be used; where that is wanted, say in one warning what of the promise it weakens."""
    try:
        async with asyncio.timeout(WITHIN):
            about = await client.info("server")
            replication = await client.info("replication")
    except (AuthenticationError, ResponseError) as error:
        raise explained(error, address.shown) from error
    except (RedisError, OSError, TimeoutError) as error:
        raise StateError(
            f"The store cannot be reached ({_short(error)})",
            where=address.shown,
            hint="is it running, and is this its address? `redis-cli -u URL ping` tells",
        ) from error
    version = tuple(int(part) for part in str(about.get("redis_version", "0")).split(".")[:2])
    if version < OLDEST:
        raise StateError(
            f"The store is Redis {about.get('redis_version')}, which is too old",
            where=address.shown,
            hint="Redis 6.2 or newer, or Valkey",
        )
    if not telling:
        return
    weak = await weaknesses(client, replicas=int(replication.get("connected_slaves", 0)))
    if weak:
        log.warning("The store at %s promises less than it could: %s.", address.shown, "; ".join(weak))


async def weaknesses(client: Redis, replicas: int) -> list[str]:
    """What may be lost with this server's settings, each with what to set."""
    try:
        asked = {name: (await client.config_get(name)).get(name, "") for name in
                 ("maxmemory-policy", "appendonly", "appendfsync", "min-replicas-to-write")}  # fmt: skip
    except RedisError:
        return [
            "its settings may not be read (CONFIG GET), so nobody knows whether it keeps what it acknowledged"
        ]
    weak: list[str] = []
    if asked["maxmemory-policy"] not in ("noeviction", ""):
        weak.append(
            f"it throws keys away when it is full ({asked['maxmemory-policy']}; set maxmemory-policy noeviction)"
        )
    if asked["appendonly"] != "yes":
        weak.append("a restart loses everything since its last snapshot (set appendonly yes)")
    elif asked["appendfsync"] != "always":
        weak.append(
            f"a power cut may cost its last second, whose work is then repeated (appendfsync {asked['appendfsync']})"
        )
    if replicas and asked["min-replicas-to-write"] == "0":
        weak.append(
            "it takes writes that no replica has, which a failover repeats (set min-replicas-to-write 1)"
        )
    return weak


def _short(error: BaseException) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
