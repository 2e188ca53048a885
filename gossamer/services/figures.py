"""How figures and foreign words are written for people: short, aligned, and harmless to a terminal."""

from __future__ import annotations

MINUTE, HOUR, DAY = 60, 3600, 86400


def count(number: int) -> str:
    return f"{number:,}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 page`, `3 pages`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def rate(per_second: float) -> str:
    return f"{per_second:,.0f}/s" if per_second >= 10 or per_second == 0 else f"{per_second:.1f}/s"


def size(octets: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if octets < 999.5:
            return f"{octets:.0f} {unit}" if unit == "B" or octets >= 99.95 else f"{octets:.1f} {unit}"
        octets /= 1000
    return f"{octets:,.1f} TB"


def duration(seconds: float) -> str:
    """`20ms`, `0.4s`, `9s`, `1m 12s`, `2h 03m`, `3d 4h`."""
    if 0 < seconds < 0.0995:
        return f"{max(1, round(1000 * seconds))}ms"
    if 0 < seconds < 9.95 and seconds != int(seconds):
        return f"{seconds:.1f}s"
    whole = max(0, round(seconds))
    if whole < MINUTE:
        return f"{whole}s"
    if whole < HOUR:
        return f"{whole // MINUTE}m {whole % MINUTE:02}s"
    if whole < DAY:
        return f"{whole // HOUR}h {whole % HOUR // MINUTE:02}m"
    return f"{whole // DAY}d {whole % DAY // HOUR}h"


def about(seconds: float) -> str:
    """An estimate, no more exact than it is: it must not tremble from frame to frame."""
    if seconds < 10:
        return "a few seconds"
    if seconds < 57:
        return f"{5 * round(seconds / 5)}s"
    if seconds < 10 * MINUTE:
        seconds = 10 * round(seconds / 10)
        return f"{seconds // MINUTE}m {seconds % MINUTE:02}s"
    return duration(MINUTE * round(seconds / MINUTE)).removesuffix(" 00s")


def ago(seconds: float) -> str:
    """`just now`, `12s ago`, `3h ago`: one unit is enough for an age."""
    if seconds < 1:
        return "just now"
    first = f"{int(seconds)}s" if seconds < MINUTE else duration(seconds).partition(" ")[0]
    return f"{first} ago"


def plain(text: str) -> str:
    """Without anything that a terminal would obey."""
    return "".join(sign if sign.isprintable() else "�" for sign in text)


def causes(codes: dict[str, int], most: int = 5) -> str:
    """`http_503 2 · timeout 1`, the most frequent first."""
    ranked = sorted((item for item in codes.items() if item[1]), key=lambda item: (-item[1], item[0]))
    said = [f"{plain(code)} {number:,}" for code, number in ranked[:most]]
    if len(ranked) > most:
        said.append(f"{len(ranked) - most} more")
    return " · ".join(said)
