"""Parts of log lines as engines wrote them, which a repr must not show."""

import msgspec


class Unshown(msgspec.Struct):
    """Base of what lines are decoded into: the fields may hold text and token ids."""

    def __repr__(self) -> str:
        """Return the type's name alone."""
        return f"{type(self).__name__}(...)"
