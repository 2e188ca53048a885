"""How a worker's free slots are shared out between the tasks it serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gossamer.model.task import TaskSpec


def share(free: int, specs: Sequence[TaskSpec], held: Mapping[str, int]) -> dict[str, int]:
    """Slots to ask for, by task: the highest priority first, within it by weight, counting what each holds already.

    Every task is asked about, also with 0, so that its state is heard of.
    """
    want = {spec.name: 0 for spec in specs}
    for level in sorted({spec.priority for spec in specs}, reverse=True):
        group = [spec for spec in specs if spec.priority == level]
        if len(group) == 1:
            want[group[0].name] = max(free, 0)
            return want
        for _ in range(max(free, 0)):
            poorest = min(group, key=lambda spec: (held.get(spec.name, 0) + want[spec.name]) / spec.weight)
            want[poorest.name] += 1
            free -= 1
    return want
