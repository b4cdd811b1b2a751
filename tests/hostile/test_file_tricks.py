"""Who may write into the folder of a log makes links and odd names: no other file is harmed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest import sidecar_inputs
from tests.e2e.traffic import pairs, write_sglang
from tests.unit.growing_log import Follower, GrowingLog, wide
from tests.unit.sidecars import Station

CONTENT = wide(b"one") + wide(b"two")


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_what_a_link_leads_to_is_read_and_never_emptied(
    tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    victim = tmp_path / "checkpoint"
    victim.write_bytes(CONTENT)
    link(victim, tmp_path / "server.log")
    follower = Follower(tmp_path / "server.log", owned=True)
    assert follower.read() == [b"one", b"two"]
    follower.log.release(follower.log.next_at)
    follower.log.close()
    assert victim.read_bytes() == CONTENT


def test_a_link_that_is_named_as_a_rotated_file_is_all_that_is_deleted(tmp_path: Path) -> None:
    victim = tmp_path / "elsewhere" / "precious"
    victim.parent.mkdir()
    victim.write_bytes(CONTENT)
    log = GrowingLog(tmp_path / "server.log")
    follower = Follower(log.path, owned=True)
    log.write(wide(b"three"))
    follower.read()
    (tmp_path / "server.log.1").symlink_to(victim)
    log.rotate()
    log.write(wide(b"four"))
    follower.read()
    follower.log.release(follower.log.next_at)
    follower.log.close()
    log.close()
    assert victim.read_bytes() == CONTENT


ODD_NAMES = (
    "a\nb.log",
    "\x1b[2J.log",
    "$(touch never).log",
    "--own-logs.log",
    "..log",
    "\udcff.log",
    "é.log",
)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_log_of_an_odd_name_costs_no_other_and_its_name_stays_inside(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    write_sglang(folder / name, pairs(2, seed=9))
    sound = write_sglang(folder / "sound.log", pairs(2))
    station = Station(tmp_path, str(folder / "*.log"))
    station.start()
    station.turns(4)
    station.stop()
    assert station.expected(sound) <= set(station.told())
    out, err = capfd.readouterr()
    assert "\x1b" not in out + err
    assert not list(tmp_path.rglob("never"))


def test_a_pipe_that_nobody_may_read_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(sidecar_inputs, "open_fifo", refused)  # root may read everything
    sound = write_sglang(tmp_path / "sound.log", pairs(2))
    os.mkfifo(tmp_path / "trap.log")
    station = Station(tmp_path, str(tmp_path / "*.log"))
    station.start()
    station.turns(4)
    station.stop()
    assert station.expected(sound) == set(station.told())
    assert "trap.log' is not followed: cannot be read: permission denied" in caplog.text
