"""Where the state folder keeps page bodies (`keep_bodies`), for those who want to look at one."""

from __future__ import annotations

from pathlib import Path

from gossamer.ports.blobs import parse_key

BLOBS = "blobs"


def body_path(state: Path, key: str) -> Path:
    """The file that holds the blob with this key: as it came, to be opened with any program."""
    kind, digest = parse_key(key)
    return state / BLOBS / kind / digest[:2] / digest[2:4] / digest
