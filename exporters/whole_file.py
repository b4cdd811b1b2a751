"""A file that its readers see whole: as it was before, or as it is when all is written."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from detector.errors import InputError


@contextmanager
def whole_file(path: str) -> Iterator[str]:
    """Give the name of a new file to write, which takes the place of `path` when the block ends.

    It lies beside what `path` is, or links to, under a name that nobody can foresee, and only its
    owner may read it, unless what it replaces says otherwise. Raises InputError.
    """
    fresh = None
    try:
        target = os.path.realpath(path)
        mode = stat.S_IRUSR | stat.S_IWUSR
        if os.path.exists(target):
            mode = os.stat(target).st_mode
            if not stat.S_ISREG(mode):
                raise InputError("is no file that can be replaced", where=path, hint="name another")
        handle, fresh = tempfile.mkstemp(prefix=".bleedwatch-", dir=os.path.dirname(target))
        os.close(handle)
        yield fresh
        os.chmod(fresh, stat.S_IMODE(mode))
        os.replace(fresh, target)
    except OSError as error:
        reason = (error.strerror or "there may be no room").lower()
        hint = "name a file in a folder that this user may write to, on a disk with room"
        raise InputError(f"cannot be written: {reason}", where=path or "''", hint=hint) from None
    finally:
        if fresh is not None:
            Path(fresh).unlink(missing_ok=True)
