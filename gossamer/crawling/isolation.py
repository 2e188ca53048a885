"""Handling a suspect in a child process, so that a page that kills, hangs or fills its process takes nothing with it.

A record becomes a suspect when an earlier lease of it ended without a verdict. Its page is fetched here like any other; only
the handler runs in the child, which is forked (so it has the spider, whatever way that was loaded), does this one thing, and
sends back a finished outcome. Only the death of that child counts against the record. A child never outlives its parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import resource
import signal
import socket
import struct
import warnings
from collections.abc import Awaitable, Callable

import msgspec

from gossamer.model.errors import UsageError
from gossamer.model.record import Outcome
from gossamer.ports.transport import Answer, FetchError

FETCH, OUTCOME, FAULT = b"F", b"O", b"E"
FAILED, REFUSED = b"X", b"R"  # what the child asked for: no answer came, or it must not be asked for
MAX_FRAME = 512 * 1024 * 1024
CHILD_MEMORY = 4 * 1024**3  # address space that a child may add to what its parent had
PR_SET_PDEATHSIG = 1

_frame = struct.Struct("<cQ")
_encode = msgspec.msgpack.encode

Fetch = Callable[[bytes], Awaitable[Answer]]


class ChildDied(Exception):  # noqa: N818  (a fact about a child, not a mistake)
    """The child ended, or was ended at its time limit, before it had a verdict."""


class ChildFault(Exception):  # noqa: N818  (the same)
    """The child lives and says that something is wrong with it, not with the page."""


async def in_child(work: Callable[[Fetch], Awaitable[Outcome]], fetch: Fetch, limit: float) -> Outcome:
    """The outcome of `work`, run in a child of its own; ChildDied if that dies or takes longer than `limit` seconds.

    `work` is given a fetch that asks this process, where politeness and the transport are.
    """
    ours, theirs = socket.socketpair()
    with warnings.catch_warnings():
        # The child does nothing but run the handler and leave by _exit: no lock of another thread is ever waited for.
        warnings.simplefilter("ignore", DeprecationWarning)
        parent = os.getpid()
        pid = os.fork()
    if pid == 0:
        ours.close()
        _child(work, theirs, parent)
    theirs.close()
    ended = False
    try:
        async with asyncio.timeout(limit) as timer:
            return await _converse(ours, fetch, timer)
    except (TimeoutError, EOFError, ConnectionError) as error:
        raise ChildDied(str(error) or type(error).__name__) from error
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        while not ended:  # killed or gone: reaping takes no time worth an executor
            ended = os.waitpid(pid, 0)[0] == pid  # noqa: ASYNC222  (see the line above)


async def _converse(ours: socket.socket, fetch: Fetch, timer: asyncio.Timeout) -> Outcome:
    """Serve the child until its outcome. What it fetches has limits of its own, and stops the clock of the handler."""
    now = asyncio.get_running_loop().time
    reader, writer = await asyncio.open_connection(sock=ours)
    try:
        while True:
            kind, size = _frame.unpack(await reader.readexactly(_frame.size))
            if size > MAX_FRAME:
                raise EOFError("the child sent more than a page can ask for")
            data = await reader.readexactly(size)
            if kind == OUTCOME:
                return msgspec.msgpack.decode(data, type=Outcome)
            if kind == FAULT:
                raise ChildFault(data.decode(errors="replace"))
            left = (timer.when() or now()) - now()
            timer.reschedule(None)
            kind, answer = await _answered(fetch, data)
            timer.reschedule(now() + left)
            writer.write(_frame.pack(kind, len(answer)) + answer)
            await writer.drain()
    except asyncio.IncompleteReadError as error:
        raise EOFError("the child ended without a verdict") from error
    finally:
        writer.close()


async def _answered(fetch: Fetch, data: bytes) -> tuple[bytes, bytes]:
    """The answer for the child, or the error that its handler is to see as it would see it here."""
    try:
        return FETCH, _encode(await fetch(data))
    except FetchError as error:
        return FAILED, _encode((error.code, error.detail))
    except UsageError as error:
        return REFUSED, _encode((error.what, error.where, error.hint))


def _child(work: Callable[[Fetch], Awaitable[Outcome]], theirs: socket.socket, parent: int) -> None:
    """The child's whole life."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        _limit_memory()
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_DFL if name == signal.SIGTERM else signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        # A thread of the parent may have held a lock of its log, or of its panel, when this child was made.
        log = logging.getLogger("gossamer")
        log.handlers[:], log.propagate = [_Plain()], False
        asyncio._set_running_loop(None)  # noqa: SLF001  (the parent's loop stays the parent's)
        asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())

        async def ask(request: bytes) -> Answer:
            theirs.sendall(_frame.pack(FETCH, len(request)) + request)
            return _as_here(*_receive(theirs))

        async def main() -> Outcome:
            return await work(ask)

        data = _encode(asyncio.run(main()))
        theirs.sendall(_frame.pack(OUTCOME, len(data)) + data)
    except BaseException as error:  # noqa: BLE001  (nothing may unwind into the parent's stack)
        with contextlib.suppress(OSError):
            said = f"{type(error).__name__}: {error}".encode()
            theirs.sendall(_frame.pack(FAULT, len(said)) + said)
    finally:
        os._exit(0)


class _Plain(logging.Handler):
    """Log lines of a child: straight to standard error, past every lock that its parent may have held."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):
            os.write(2, f"{record.getMessage()}\n".encode(errors="replace"))


def _as_here(kind: bytes, data: bytes) -> Answer:
    """What the parent sent: an answer, or an error to raise."""
    if kind == FAILED:
        raise FetchError(*msgspec.msgpack.decode(data))
    if kind == REFUSED:
        what, where, hint = msgspec.msgpack.decode(data)
        raise UsageError(what, where=where, hint=hint)
    return msgspec.msgpack.decode(data, type=Answer)


def _limit_memory() -> None:
    """A page that fills memory ends its child, not the machine."""
    with contextlib.suppress(OSError, ValueError):
        used = int(_statm().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + CHILD_MEMORY, hard))


def _statm() -> str:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  (one read, in a child that must stay simple)
        return file.read()


def _receive(theirs: socket.socket) -> tuple[bytes, bytes]:
    def exactly(size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = theirs.recv(size - len(parts))
            if not part:
                os._exit(1)  # the parent is gone
            parts += part
        return parts

    kind, size = _frame.unpack(exactly(_frame.size))
    return kind, exactly(size)
