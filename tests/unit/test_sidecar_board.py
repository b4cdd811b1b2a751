"""What a sidecar shows over HTTP: probes with reasons, and metrics without names of anybody."""

import urllib.error
import urllib.request
from pathlib import Path

from exporters.sidecar_metrics import SIDECAR
from tests.e2e.traffic import pairs, write_vllm
from tests.unit.sidecars import Station

PAIRS = 4


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return int(error.code), error.read().decode()


def test_it_is_live_and_ready_and_its_metrics_say_what_was_read(tmp_path: Path) -> None:
    log = write_vllm(tmp_path / "server.log", pairs(PAIRS))
    station = Station(tmp_path, str(log))
    running = station.start()
    with running.board.serving() as server:
        assert get(server.port, "/readyz")[0] == 503
        station.turns(3)
        running.board.look_again()
        assert get(server.port, "/readyz") == (200, '{"ok": true, "reasons": []}\n')
        assert get(server.port, "/livez")[0] == 200
        status, page = get(server.port, "/metrics")
    station.stop()
    assert status == 200
    assert f"bleedwatch_sidecar_requests_total {2 * PAIRS}.0" in page
    assert f'bleedwatch_sidecar_records_total{{kind="sequence"}} {4 * PAIRS}.0' in page
    names = {line.split("{")[0].split(" ")[0] for line in page.splitlines() if line[0] != "#"}
    assert names <= {metric.name for metric in SIDECAR}
    assert not [name for name in names if "spool" in name], "there is no spool"
    assert not [word for word in ("acme", "globex", "req-", str(log)) if word in page]


def test_it_is_not_ready_while_messages_are_refused(tmp_path: Path) -> None:
    log = write_vllm(tmp_path / "server.log", pairs(PAIRS))
    station = Station(tmp_path, str(log))
    running = station.start()
    with running.board.serving() as server:
        station.gate.refuses = True
        station.turns(3)
        running.board.look_again()
        status, reasons = get(server.port, "/readyz")
        assert (status, "messages are refused" in reasons) == (503, True)
        assert get(server.port, "/livez")[0] == 200
    station.crash()
