"""A call of the script: packed, sent, asked again while the store is away, and its refusals put into words."""

from __future__ import annotations

import asyncio
import logging
import time
from hashlib import sha1
from importlib.resources import files
from typing import Any

import msgspec
from redis.asyncio import Redis
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,  # noqa: A004  (the driver's name)
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TimeoutError,  # noqa: A004
)

from gossamer.model.errors import GossamerError, StateError
from gossamer.model.task import IllegalChange, SessionLost, TaskEnded, UnknownTask
from gossamer.ports.frontier import CursorMoved, within_log

log = logging.getLogger("gossamer")

FORMAT = 1
SETTLING = (
    2.5  # seconds in which every living worker calls: so long nothing is granted after the server began anew
)
PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4)  # between two attempts; the last one for ever
SAID_AFTER = 1.0
AWAY = (ConnectionError, TimeoutError, BusyLoadingError, ReadOnlyError, OutOfMemoryError, OSError)
# What a server says that is there and cannot serve now; the last two until somebody makes room.
AWAY_WORDS = (
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "NOREPLICAS",
    "UNBLOCKED",
    "OOM",
    "MISCONF",
)

encode = msgspec.msgpack.encode


class CannotServe(ConnectionError):  # noqa: N818  (a fact about a server)
    """The server is there, and says why it takes nothing now."""


class PatternsWanted(Exception):  # noqa: N818  (no error: the call is asked again with more)
    """The task has a budget of patterns, and the links came without theirs."""


def source() -> str:
    """The whole script."""
    folder = files("gossamer.backends.redis") / "lua"
    texts = sorted(
        (file.name, file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if file.name.endswith(".lua")
    )
    return "\n".join(text for _, text in texts)


class Calls:
    """Calls to one partition."""

    def __init__(self, client: Redis, prefix: str, shown: str) -> None:
        self._client = client
        self._prefix = prefix.encode()
        self._shown = shown
        self._script = source().encode()
        self._sha = sha1(self._script, usedforsecurity=False).hexdigest().encode()
        self.life = -1  # the store's incarnation, as it was told last
        self._is_away = False  # which was said, once for all the calls that wait
        # How many calls the store had taken at our last one, and which process it was then: one that has taken fewer has lost its end.
        self._highest = 0
        self._run: bytes | None = None

    async def __call__(self, call: str, /, **arguments: Any) -> list[Any]:
        """The script's answer: one packed value, and what came beside it as it is."""
        packed = encode(
            {
                "call": call,
                "format": FORMAT,
                "settling": SETTLING,
                "highest": self._highest,
                "run": self._run and self._run.decode(),
            }
            | arguments
        )
        began, attempt = time.monotonic(), 0
        while True:
            try:
                answer = await self._send(packed)
            except AWAY as error:
                if isinstance(error, AuthenticationError):
                    raise _refused(error, self._shown) from error
                if not self._is_away and time.monotonic() - began > SAID_AFTER:
                    self._is_away = True
                    log.warning(
                        "the store at %s %s; waiting for it (nothing is lost)", self._shown, _ailing(error)
                    )
                await asyncio.sleep(PAUSES[min(attempt, len(PAUSES) - 1)])
                attempt += 1
                continue
            if self._is_away:
                self._is_away = False
                log.warning("the store at %s answers again", self._shown)
            self.life = int(answer[1])
            if answer[2] >= 0:
                self._highest, self._run = int(answer[2]), answer[3]
            return [answer[0], *answer[4:]]

    async def _send(self, packed: bytes) -> list[Any]:
        try:
            try:
                return await self._client.execute_command("EVALSHA", self._sha, 1, self._prefix, packed)  # type: ignore[no-any-return, no-untyped-call]
            except NoScriptError:
                return await self._client.execute_command("EVAL", self._script, 1, self._prefix, packed)  # type: ignore[no-any-return, no-untyped-call]
        except AWAY:
            raise
        except RuntimeError as error:
            # uvloop's word for a connection that was reset while nobody looked; the driver takes it for a living one.
            await self._client.connection_pool.disconnect(inuse_connections=False)
            raise ConnectionError(str(error)) from error
        except RedisError as error:
            raise explained(error, self._shown) from error


def _ailing(error: BaseException) -> str:
    if isinstance(error, OutOfMemoryError):
        return "has no memory left (raise its maxmemory, or forget old tasks)"
    if isinstance(error, CannotServe):
        return f"cannot serve ({str(error)[:200]})"
    return "does not answer"


def explained(error: RedisError, shown: str) -> Exception:
    """What the script or the server refused, in our words."""
    word, _, rest = str(error).partition(" ")
    if word == "GOSSAMER":
        code, _, what = rest.partition(" ")
        refusal: Exception = _REFUSALS[code](what)
        return refusal
    if word in AWAY_WORDS:
        return CannotServe(str(error))
    return _refused(error, shown)


def _refused(error: RedisError, shown: str) -> Exception:
    text = str(error)
    for signs, what, hint in FAULTS:
        if any(sign in text for sign in signs):
            return StateError(f"{what} ({text[:200]})", where=shown, hint=hint)
    if isinstance(error, ResponseError):
        return StateError(f"The store refuses: {text[:500]}", where=shown, hint="its log may say more")
    return error


FAULTS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("NOAUTH", "WRONGPASS", "invalid username", "invalid password"), "The store wants other credentials",
     "redis://user:password@host; check the user with ACL LIST"),
    (("NOPERM",), "The store's user may not do this", "it needs +@all -@admin on keys gossamer:*, and INFO"),
    (("unknown command", "wrong number of arguments"), "The store is too old", "Redis 6.2 or newer, or Valkey"),
)  # fmt: skip


def _ahead(what: str) -> Exception:
    stands, last = what.split()
    try:
        within_log("", "", int(float(stands)), int(float(last)))
    except GossamerError as error:
        return error
    raise AssertionError(what)


_REFUSALS: dict[str, Any] = {
    "UNKNOWN": lambda name: UnknownTask(f"There is no task named {name!r}", hint="`gossamer tasks` lists them"),
    "ENDED": lambda state: TaskEnded(
        f"The task is {state} and takes no more URLs", hint="submit a new task, or reopen this one with retry-failed"
    ),
    "SESSION": lambda session: SessionLost("The session has ended", where=session, hint="open a new one"),
    "ILLEGAL": lambda state: IllegalChange(
        f"The task is {state} and cannot do that", hint="an ended task is only reopened by retry-failed"
    ),
    "WORKED_ON": lambda name: IllegalChange(
        f"The task {name!r} is being worked on", hint="stop its workers first, or cancel it and wait"
    ),
    "AHEAD": _ahead,
    "MOVED": lambda what: CursorMoved("The sink stands at item {}, not at {}".format(*what.split())),
    "PATTERNS": PatternsWanted,
    "FORMAT": lambda written: StateError(
        f"The store was written by a newer Gossamer (format {written}, this one knows {FORMAT})",
        hint="upgrade Gossamer on this machine, or use another namespace",
    ),
}  # fmt: skip
