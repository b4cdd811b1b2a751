"""On which volume a path lies, by the text of the system and by the system itself."""

import os
from pathlib import Path

import pytest

from detector.doctor.volumes import volume_of

MOUNTS = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:25 / /logs rw,nosuid - tmpfs tmpfs rw,size=65536k
31 22 0:26 / /logs/kept rw - xfs /dev/vdb rw
32 22 0:27 / /with\\040space rw - ramfs none rw
33 22 0:28 / /over rw - xfs /dev/vdc rw
34 22 0:29 / /over rw - tmpfs tmpfs rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind", "is_memory"),
    [
        ("/logs/server.log", "tmpfs", True),
        ("/logs", "tmpfs", True),
        ("/logs/kept/server.log", "xfs", False),
        ("/logsome/server.log", "ext4", False),
        ("/with space/a", "ramfs", True),
        ("/over/a", "tmpfs", True),
    ],
)
def test_the_innermost_volume_counts(path: str, kind: str, *, is_memory: bool) -> None:
    found = volume_of(Path(path), MOUNTS)
    assert found is not None
    assert (found.kind, found.is_memory) == (kind, is_memory)


def test_links_are_followed(tmp_path: Path) -> None:
    link = tmp_path / "server.log"
    link.symlink_to("/logs/server.log")
    found = volume_of(link, MOUNTS)
    assert found is not None
    assert found.kind == "tmpfs"


def test_without_volumes_nothing_is_said() -> None:
    assert volume_of(Path("/a"), "") is None


def test_this_system_tells_its_volumes() -> None:
    if not Path("/proc/self/mountinfo").exists():
        assert volume_of(Path("/")) is None
        return
    root = volume_of(Path("/"))
    assert root is not None
    assert root.mounted_at == "/"
    assert os.path.ismount(root.mounted_at)
