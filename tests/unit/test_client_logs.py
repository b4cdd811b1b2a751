"""Kafka's clients never log at debug level, whatever the level of the process."""

import logging
import sys
import threading
from collections.abc import Iterator

import pytest

from ingest.client_logs import LIBRARIES, Seldom, brief_logs, hold_client_logs, keep_to_errors

LOGGERS = (*LIBRARIES, *(f"{name}.protocol.parser" for name in LIBRARIES))


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    """Give every logger back as it was."""
    loggers = [logging.getLogger(name) for name in ("", *LOGGERS)]
    before = [(one, one.level, one.propagate, list(one.handlers)) for one in loggers]
    for one in loggers[1:]:
        one.setLevel(logging.NOTSET)
        one.propagate = True  # a program that ran in this process has kept it to errors
    yield
    for one, level, propagate, handlers in before:
        one.setLevel(level)
        one.propagate = propagate
        one.handlers[:] = handlers


class Listener(logging.Handler):
    """Remembers what it hears."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record.getMessage())


def debug_enabled() -> set[str]:
    return {name for name in LOGGERS if logging.getLogger(name).isEnabledFor(logging.DEBUG)}


@pytest.mark.parametrize("level", [logging.NOTSET + 1, logging.DEBUG])
def test_nothing_comes_at_debug_level(level: int) -> None:
    logging.getLogger().setLevel(level)
    assert debug_enabled() == set(LOGGERS)
    hold_client_logs()
    assert not debug_enabled()
    assert logging.getLogger("kafka.protocol.parser").isEnabledFor(logging.INFO)


def test_a_level_that_is_set_later_for_the_process_changes_nothing() -> None:
    logging.getLogger().setLevel(logging.WARNING)
    hold_client_logs()
    logging.getLogger().setLevel(logging.DEBUG)
    assert not debug_enabled()


def test_a_logger_with_a_level_of_its_own_is_raised_and_a_higher_one_stays() -> None:
    logging.getLogger("aiokafka.protocol.parser").setLevel(logging.DEBUG)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    hold_client_logs()
    assert not debug_enabled()
    assert logging.getLogger("kafka").level == logging.CRITICAL


def test_what_is_kept_to_errors_is_heard_by_listeners_only(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    listener = Listener()
    keep_to_errors("kafka")
    logging.getLogger("kafka").addHandler(listener)
    logging.getLogger("kafka.protocol.parser").error("refused")
    assert not caplog.records
    assert listener.heard == ["refused"]
    assert capsys.readouterr().err == ""


def _line(name: str, number: int) -> logging.LogRecord:
    told = (OSError, OSError("away"), None)
    return logging.LogRecord(name, logging.ERROR, "client.py", number, "no broker", (), told)


def test_a_line_of_a_client_is_told_once_in_a_while_and_without_traceback() -> None:
    now_s = 0.0
    seldom = Seldom(lambda: now_s)
    first, again, other = _line("aiokafka.conn", 7), _line("aiokafka.conn", 7), _line("kafka", 8)
    assert [seldom.filter(one) for one in (first, again, other)] == [True, False, True]
    assert first.exc_info is None
    now_s = 31.0
    assert seldom.filter(_line("aiokafka.conn", 7))


def test_lines_of_ours_always_pass_whole() -> None:
    seldom = Seldom(lambda: 0.0)
    lines = [_line("ingest.faust_app", 7) for _ in range(2)]
    assert all(seldom.filter(one) and one.exc_info for one in lines)


def test_what_fails_in_a_thread_is_told_by_kind_and_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = threading.excepthook, sys.unraisablehook
    brief_logs()
    try:
        thread = threading.Thread(target=int, args=("canary",))
        thread.start()
        thread.join()
    finally:
        threading.excepthook, sys.unraisablehook = before
    assert "ValueError" in caplog.text
    assert "canary" not in caplog.text


def test_a_coordinator_may_be_absent_while_a_cluster_is_new() -> None:
    now_s = 100.0
    seldom = Seldom(lambda: now_s)
    failed = "Group Coordinator Request failed: [Error 15] CoordinatorNotAvailableError"
    line = logging.LogRecord("aiokafka.group", logging.ERROR, "g.py", 1, failed, (), None)
    assert not seldom.filter(line)
    now_s = 131.0
    assert seldom.filter(line)
