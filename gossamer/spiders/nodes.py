"""Elements of a page, as `page.css` finds them.

`Nodes` is a list that also answers for its first element, because most selectors mean one: `page.css("h1").text`. What is
not on the page is None, not "": an absent price and an empty one are different facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from gossamer.model.errors import UsageError


class Node:
    """One element."""

    __slots__ = ("node",)

    def __init__(self, node: LexborNode) -> None:
        self.node = node
        """The parser's own element (selectolax), for what is not here: parents, siblings, removal."""

    @property
    def tag(self) -> str:
        """The name of the element, in lower case."""
        return self.node.tag or ""

    @property
    def text(self) -> str:
        """All text inside, with runs of white space made one blank, as a browser would show it."""
        return text_of(self.node)

    @property
    def raw_text(self) -> str:
        """All text inside, exactly as it is written in the source."""
        return self.node.text()

    @property
    def html(self) -> str:
        """The element and all inside it, as HTML."""
        return self.node.html or ""

    @property
    def attrs(self) -> dict[str, str]:
        """All attributes; one without a value is ""."""
        return {name: value or "" for name, value in self.node.attributes.items()}

    def attr(self, name: str) -> str | None:
        """One attribute; None if the element does not have it."""
        return attribute_of(self.node, name)

    def css(self, selector: str) -> Nodes:
        """The elements inside this one that match."""
        return Nodes(inside(self.node, selector))

    def __repr__(self) -> str:
        return f"<Node {self.tag}>"


class Nodes(Sequence[Node]):
    """The elements that a selector matched, in the order of the page; may be none."""

    __slots__ = ("_found",)

    def __init__(self, found: list[LexborNode]) -> None:
        self._found = found

    @property
    def first(self) -> Node | None:
        return Node(self._found[0]) if self._found else None

    def one(self) -> Node:
        """The only element; raises if there is none or more than one, where a guess would be a wrong value."""
        if len(self._found) != 1:
            raise UsageError(
                f"{len(self._found)} elements match where one is expected",
                hint="make the selector more precise",
            )
        return Node(self._found[0])

    @property
    def text(self) -> str | None:
        """Text of the first element, white space tidied; None if nothing matched."""
        return text_of(self._found[0]) if self._found else None

    @property
    def raw_text(self) -> str | None:
        """Text of the first element as written; None if nothing matched."""
        return self._found[0].text() if self._found else None

    @property
    def html(self) -> str | None:
        """HTML of the first element; None if nothing matched."""
        return Node(self._found[0]).html if self._found else None

    @property
    def attrs(self) -> dict[str, str]:
        """Attributes of the first element; empty if nothing matched."""
        return Node(self._found[0]).attrs if self._found else {}

    def attr(self, name: str) -> str | None:
        """An attribute of the first element; None if nothing matched or it has no such attribute."""
        return attribute_of(self._found[0], name) if self._found else None

    @property
    def texts(self) -> list[str]:
        """Text of every element."""
        return [text_of(node) for node in self._found]

    def each_attr(self, name: str) -> list[str]:
        """The attribute of every element that has it."""
        return [value for node in self._found if (value := attribute_of(node, name)) is not None]

    def css(self, selector: str) -> Nodes:
        """What matches inside any of these elements, each once."""
        if len(self._found) == 1:
            return Nodes(inside(self._found[0], selector))
        seen = {node.mem_id: node for outer in self._found for node in inside(outer, selector)}
        return Nodes(list(seen.values()))

    @property
    def raw(self) -> list[LexborNode]:
        """The parser's own elements (selectolax)."""
        return self._found

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> Nodes: ...
    def __getitem__(self, index: int | slice) -> Node | Nodes:
        return Nodes(self._found[index]) if isinstance(index, slice) else Node(self._found[index])

    def __iter__(self) -> Iterator[Node]:
        return map(Node, self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"<Nodes {[node.tag for node in self._found[:5]]}{' …' if len(self._found) > 5 else ''}>"


def text_of(node: LexborNode) -> str:
    return " ".join(node.text().split())


def attribute_of(node: LexborNode, name: str) -> str | None:
    # The parser says None both for an attribute without a value and for none at all.
    value = node.attrs.get(name)
    return "" if value is None and name in node.attributes else value


def inside(node: LexborNode, selector: str) -> list[LexborNode]:
    """Descendants that match; the parser would count the element itself among them."""
    found = select(node, selector)
    return found[1:] if found and found[0].mem_id == node.mem_id else found


def select(tree: LexborNode | LexborHTMLParser, selector: str) -> list[LexborNode]:
    """The parser's `css`, with an error that names the selector."""
    try:
        return tree.css(selector)
    except SelectolaxError:
        raise UsageError(
            "The CSS selector cannot be read",
            where=selector,
            hint="take text and attributes by .text and .attr(name); ::text, ::attr and XPath belong to page.selector",
        ) from None
