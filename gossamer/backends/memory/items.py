"""The item log and its readers' cursors."""

from __future__ import annotations

from gossamer.backends.memory.lives import Lives
from gossamer.model.record import LoggedItem
from gossamer.ports.frontier import check_stand, within_log


class Items(Lives):
    """`ports.frontier.ItemLog` in memory. There is one partition, so its number is not looked at."""

    async def read(self, task: str, partition: int, after: int, limit: int) -> list[LoggedItem]:  # noqa: ARG002
        row = self._task(task)
        within_log(task, "", after, self._last_item)
        return [item for item in row.items if item.number > after][:limit]

    async def cursor(self, task: str, partition: int, sink: str) -> tuple[int, bytes]:  # noqa: ARG002
        row = self._task(task)
        within_log(task, sink, row.sinks.get(sink, (0, b""))[0], self._last_item)
        self._enter()
        return row.sinks.setdefault(sink, (0, b""))

    async def advance(
        self,
        task: str,
        partition: int,  # noqa: ARG002
        sink: str,
        number: int,
        state: bytes = b"",
        *,
        after: int | None = None,
    ) -> None:
        row = self._task(task)
        within_log(task, sink, number, self._last_item)
        check_stand(task, sink, row.sinks.get(sink, (0, b""))[0], number, after)
        self._enter()
        if number >= row.sinks.get(sink, (0, b""))[0]:
            row.sinks[sink] = (number, state)
        held = min(number for number, _ in row.sinks.values())
        row.items = [item for item in row.items if item.number > held]
