"""The prompts of one completion call: `cmpl-X-0`, `cmpl-X-1` are requests of parent `cmpl-X`.

Prompt lines carry the child's id; output lines may carry the parent's, in the order of the prompts.
"""

import re

_CHILD = re.compile(r"(cmpl-.+)-\d{1,6}")


class Families:
    """Open children by parent. Holds nothing for requests that were removed."""

    def __init__(self) -> None:
        self._children: dict[str, dict[str, None]] = {}

    def add(self, request_id: str) -> str | None:
        """Register an open request and return its parent, None if it is no child."""
        parent = _parent(request_id)
        if parent is not None:
            self._children.setdefault(parent, {})[request_id] = None
        return parent

    def first_child(self, parent: str) -> str | None:
        """Return the open child that came first."""
        return next(iter(self._children.get(parent, ())), None)

    def size(self, parent: str) -> int:
        """Return how many children are open."""
        return len(self._children.get(parent, ()))

    def remove(self, request_id: str) -> None:
        """Forget a request that is over; unknown ids are fine."""
        parent = _parent(request_id)
        children = self._children.get(parent) if parent is not None else None
        if parent is None or children is None:
            return
        children.pop(request_id, None)
        if not children:
            del self._children[parent]


def _parent(request_id: str) -> str | None:
    found = _CHILD.fullmatch(request_id)
    return found[1] if found is not None else None
