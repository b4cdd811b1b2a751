"""Whatever is given in place of a configuration: what, where, why and what next."""

import socket
import threading
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from detector.check import live
from detector.check.gather import Given, gather
from detector.check.plan import run
from detector.errors import InputError
from tests.check.corpus_files import FOLDER, MODELS
from tests.e2e.program import Capture, call
from tests.unit.engine_server import engine_server


def refused(capsys: Capture, *arguments: str | Path) -> str:
    """Return the message of an input that cannot be checked."""
    code, out, err = call(capsys, "check", "config", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "  next: " in err
    return err


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "nothing is in it"),
        ("\n  \n", "nothing is in it"),
        ("---\n---\n", "no container is in it"),
        ("kind: ConfigMap\ndata: {a: b}\n", "no container is in it"),
        ("spec:\n  containers:\n  - name: web\n    image: nginx\n",
         "no engine is started by its containers (web)"),
        ("spec:\n  containers:\n  - command: [trtllm-serve, m]\n", "it starts TensorRT-LLM"),
        ("services:\n  a:\n    command: llama-server -m x\n", "it starts llama.cpp"),
        ("kind: Pod\nspec:\n  containers:\n  - args: {{ .Values.args }}\n", "a template"),
        ("{{- if .Values.on }}\nkind: Pod\n{{- end }}\n", "a template"),
        ("kind: Pod\n<<<<<<< HEAD\na: b\n=======\n", "the marks of a merge conflict"),
        ("kind: Pod\nspec: [\n", "not YAML"),
        ("kind: Pod\nspec: &a\n  b: *a\n", "a value that holds itself"),
        ("kind: Pod\na: " + "[" * 200 + "]" * 200, "levels deep"),
        ("kind: Pod\na: " + "[" * 20000, "not YAML"),
        ("echo hello\nls -l\n", "no container is in it"),
    ],
)  # fmt: skip
def test_files(capsys: Capture, tmp_path: Path, content: str, what: str) -> None:
    file = tmp_path / "given.yaml"
    file.write_text(content)
    message = refused(capsys, file)
    assert what in message
    assert str(file) in message


def test_a_script_without_an_engine(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "start.sh"
    file.write_text("echo hello\nls -l\n")
    assert "no engine is started by its containers" in refused(capsys, file)


def test_a_value_that_is_still_a_template_is_told(capsys: Capture) -> None:
    line = "vllm serve m --max-model-len '{{ .Values.length }}'"
    _, out, _ = call(capsys, "check", "config", "--args", line)
    assert "unknown  all-flags" in out
    assert "{{ .Values.length }}" in out


def test_a_fault_of_syntax_has_its_line(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "given.yaml"
    file.write_text("kind: Pod\nspec:\n  containers: [}\n")
    assert f"{file}:3: not YAML" in refused(capsys, file)


def test_values_that_multiply_are_read_once(capsys: Capture, tmp_path: Path) -> None:
    lines = ["kind: Pod", "a0: &a0 {containers: [{name: x}]}"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    file = tmp_path / "given.yaml"
    file.write_text("\n".join(lines))
    assert "no engine is started" in refused(capsys, file)


def test_files_that_cannot_be_read(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00k")
    assert "not UTF-8" in refused(capsys, tmp_path / "bytes.yaml")
    (tmp_path / "large.yaml").write_bytes(b"a: b\n" * 2_000_000)
    assert "more than 8,388,608 bytes" in refused(capsys, tmp_path / "large.yaml")
    code, _, err = call(capsys, "check", "config", tmp_path / "absent.yaml")
    assert (code, "no such file" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((), "what is to be checked?"),
        (("--engine", "tgi", "--args", "--x"), "the flags of 'tgi' are not understood"),
        (("--args", "--max-total-tokens 1"), "which engine has these flags?"),
        (("--engine", "vllm", "--args", "--model 'x"), "a quote that is not closed"),
        (("--engine", "vllm", "--args", "x", "--vouch", "everything"), "nobody asks for"),
        (("--url", "ftp://host"), "no address of an engine"),
        (("--url", "http://user:secret@host:1"), "no address of an engine"),
        (("--url", "http://h:1", "--token-file", "/absent"), "the API key cannot be read"),
        (("--args", "vllm serve m", "--model-config", "x=/absent"), "no engine here serves 'x'"),
    ],
)
def test_options(capsys: Capture, arguments: tuple[str, ...], what: str) -> None:
    message = refused(capsys, *arguments)
    assert what in message
    assert "secret" not in message


def test_values_that_are_no_numbers_are_unknown_and_not_guessed(capsys: Capture) -> None:
    _, out, _ = call(
        capsys, "check", "config", "--model-config", MODELS / "small.json", "-o", "json",
        "--args", "sglang serve --max-total-tokens $POOL --page-size many --context-length",
    )  # fmt: skip
    assert '"verdict": "unknown"' in out
    assert "$POOL is no number" in out


def test_a_number_of_thousands_of_digits_is_unknown(capsys: Capture) -> None:
    flags = f"--max-model-len {'9' * 5000}"
    code, out, err = call(capsys, "check", "config", "--engine", "vllm", "--args", flags)
    assert code in {0, 1}
    assert "internal fault" not in out + err


def test_unreachable(capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    message = refused(capsys, "--url", f"http://127.0.0.1:{port}")
    assert "nothing answers: connection refused" in message
    assert f"127.0.0.1:{port}" in message


def test_no_tls(capsys: Capture) -> None:
    with engine_server() as server:
        message = refused(capsys, "--url", server.url.replace("http:", "https:"))
    assert "certificate or TLS is not as it must be" in message
    assert "--ca-file" in message


def test_an_endless_answer(capsys: Capture) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        with suppress(OSError):
            while True:
                handler.wfile.write(b"a" * 65536)

    with engine_server(metrics=endless) as server:
        message = refused(capsys, "--url", server.url)
    assert "larger than 8,388,608 bytes" in message


def test_an_answer_that_never_ends(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "TIMEOUT_MS", 300)
    done = threading.Event()

    def slow(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        with suppress(OSError):
            while not done.wait(0.02):
                handler.wfile.write(b"#")

    with engine_server(metrics=slow) as server:
        message = refused(capsys, "--url", server.url)
        done.set()
    assert "no whole answer in time" in message


def test_pages_of_something_else(capsys: Capture) -> None:
    with engine_server(metrics="<html>hello</html>") as server:
        assert "nothing there is known of any engine" in refused(capsys, "--url", server.url)
    with engine_server() as server:
        message = refused(capsys, "--url", server.url)
    assert "--enable-metrics" in message


@pytest.mark.parametrize("cut", [0.35, 0.7])
def test_halves_of_good_files(tmp_path: Path, cut: float) -> None:
    """A file that was cut anywhere is read, or refused with a message that names it."""
    outcomes = Counter[str]()
    for path in sorted(FOLDER.iterdir()):
        text = path.read_text()
        file = tmp_path / path.name
        file.write_text(text[: int(len(text) * cut)])
        try:
            outcomes["read"] += bool(list(run(gather(Given(files=[str(file)])))))
        except InputError as error:
            outcomes["refused"] += str(file) in error.where and bool(error.hint)
    assert outcomes.total() == len(list(FOLDER.iterdir()))
    assert min(outcomes.values()) > 0
