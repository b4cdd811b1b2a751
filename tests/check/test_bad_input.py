"""Whatever is given in place of a configuration: what, where, why and what next."""

import json
import shlex
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.check import live
from detector.check.gather import Given, gather
from detector.check.plan import run
from detector.check.shell import quote_after
from detector.errors import InputError
from tests.check.corpus_files import FOLDER, MODELS
from tests.e2e.program import Capture, call
from tests.unit.engine_server import endless, engine_server


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


POD = "kind: Pod\nspec:\n  containers:\n  - name: x\n    image: vllm/vllm-openai\n"


def block(script: str) -> str:
    """Return a pod that gives a script to a shell."""
    lines = "".join(f"      {line}\n" for line in script.split("\n"))
    return f"{POD}    command: [sh, -c]\n    args:\n    - |\n{lines}"


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("deep.json", "[" * 100_000 + "]" * 100_000, "not YAML"),
        ("deep.json", '{"a":' * 30_000 + "1" + "}" * 30_000, "not YAML"),
        ("deep.txt", '{"a":' * 30_000 + "1" + "}" * 30_000, "not YAML"),
        ("cut.json", '{"a": ' * 30_000, "not YAML"),
        ("cut.txt", '{"a": ' * 30_000, "not YAML"),
        ("long.sh", "A=$A " * 40_000, "a script of more than 65,536 characters"),
        ("words.sh", "A=$A " * 13_000, "no engine is started"),
        ("quotes.sh", "'\n" * 32_000, "no engine is started"),
        ("open.sh", 'a"\n' + "b\n" * 30_000, "no engine is started"),
        ("lines.sh", "\\a\\b\\\n" * 8_000, "no engine is started"),
        ("defaults.sh", "${a-" * 16_000, "no engine is started"),
        ("variables.sh", "".join(f"a{n}=1;b;" for n in range(6_000)), "no engine is started"),
        ("values.yaml", f"{POD}    args: [--x, {'y, ' * 50_000}]\n", "more than 4,096 words"),
        ("shell.yaml", f"{POD}    args: [sh, {'x, ' * 4_000}]\n", "no engine is started"),
        ("script.yaml", block("echo a\n" * 20_000), "a script of more than 65,536 characters"),
        ("containers.yaml", POD + "  - {name: a}\n" * 1_000, "more than 1,000 containers"),
        ("services.yaml",
         "---\nkind: Service\nspec: {type: NodePort, selector: {a: b}}\n" * 5_000 + "---\nkind: X",
         "no container is in it"),
    ],
    ids=lambda value: value if len(value) < 20 else "",
)  # fmt: skip
def test_what_is_large_or_deep_is_refused_within_seconds(
    capsys: Capture, tmp_path: Path, name: str, content: str, what: str
) -> None:
    """Each took minutes, or all memory, while some step went over all words for every word."""
    file = tmp_path / name
    file.write_text(content)
    began_s = time.process_time()
    message = refused(capsys, file)
    assert time.process_time() - began_s < 5
    assert what in message
    assert name in message


def test_variables_that_double_are_left_as_they_are(capsys: Capture, tmp_path: Path) -> None:
    doubling = "".join(f"A{n}=$A{n - 1}$A{n - 1}\n" for n in range(1, 200))
    file = tmp_path / "start.sh"
    file.write_text(f"A0=xxxxxxxxxx\n{doubling}vllm serve m $A199\n")
    _, out, _ = call(capsys, "check", "config", file)
    assert len(out) < 100_000
    assert "unknown  all-flags" in out
    large = "x" * 50_000
    file.write_text(f"A={large}\nvllm serve m --max-model-len 1 {'$A ' * 1_000}\n")
    began_s = time.process_time()
    call(capsys, "check", "config", file)
    assert time.process_time() - began_s < 5


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(["'", '"', "\\", " #", "a", ";", "\n"]), max_size=30).map("".join))
def test_an_open_quote_is_what_shlex_calls_one(text: str) -> None:
    """Lines that end with a backslash are joined before; there shlex has nothing to say.

    It takes a # inside of a word for a comment, as shells do not.
    """
    lines = [line.rstrip("\\") for line in text.split("\n")]
    lexer = shlex.shlex("\n".join(lines), posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    try:
        is_open = list(lexer) is None
    except ValueError:
        is_open = True
    quote = ""
    for line in lines:
        quote = quote_after(line, quote)
    assert bool(quote) is is_open


def test_json_is_read_as_a_manifest_by_whatever_name(capsys: Capture, tmp_path: Path) -> None:
    pod = {
        "kind": "Pod", "apiVersion": "v1", "metadata": {"name": "chat"},
        "spec": {"containers": [{"name": "e", "image": "vllm/vllm-openai:v0.11.0",
                                 "args": ["--model=m", "--max-model-len=4096"]}]},
    }  # fmt: skip
    for name, content in (("pod.json", json.dumps(pod)), ("pod", json.dumps([pod], indent=2))):
        (tmp_path / name).write_text(content)
        _, out, err = call(capsys, "check", "config", tmp_path / name, "-o", "json")
        assert '"Pod/chat e"' in out, err


def test_a_shell_without_a_script(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text("services:\n  a:\n    entrypoint: [bash, -c]\n    command: []\n")
    assert "no engine is started by its containers (service a)" in refused(capsys, file)


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
