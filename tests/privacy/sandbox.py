"""A place to run the program in: its own home, temporary folder and inputs, swept afterwards."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
import zstandard

from detector.cli.app import app
from detector.cli.exit import exit_code_of
from detector.sketch.token_table import TokenTable
from ingest.key_file import new_secret
from tests.e2e.program import PROGRAM, environment
from tests.e2e.traffic import pairs, write_config, write_jsonl, write_sglang, write_vllm
from tests.privacy.canary import IDS, TEXT, WORDS
from tests.privacy.sweep import Secrets, Sweep

PAIRS = 3


class Sandbox:
    """Holds inputs with the canary in `given`; everything else below `root` is output."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.given = root / "given"
        for name in ("given", "home", "tmp", "work"):
            (root / name).mkdir()
        self.key = self.given / "secret.key"
        secret = new_secret(self.key)
        traffic = pairs(PAIRS, content=IDS)
        self.jsonl = write_jsonl(self.given / "log.jsonl", traffic, TEXT)
        self.vllm = write_vllm(self.given / "vllm.log", traffic, TEXT)
        self.sglang = write_sglang(self.given / "sglang.log", traffic, TEXT)
        self.config = write_config(self.given / "config.yaml")
        self._secret = secret

    @property
    def work(self) -> Path:
        """Where the program runs and writes what it is told to write."""
        return self.root / "work"

    def run(self, *arguments: str | Path, code: int) -> bytes:
        """Run the program as a process; stdout and stderr become files, so the sweep sees them."""
        done = subprocess.run(
            [*PROGRAM, *map(str, arguments)],
            capture_output=True,
            cwd=self.work,
            env=environment(**self._variables()),
            check=False,
            timeout=120,
        )
        assert done.returncode == code, done.stderr.decode()
        return self._kept(done.stdout, done.stderr)

    def call(
        self, capture: pytest.CaptureFixture[bytes], *arguments: str | Path, code: int | None
    ) -> bytes:
        """Run the program inside this process, which is faster; code None is any but a crash."""
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("BLEEDWATCH_")]:
                patch.delenv(name)
            for name, value in self._variables().items():
                patch.setenv(name, value)
            patch.setattr(tempfile, "tempdir", None)
            patch.chdir(self.work)
            ended = exit_code_of(lambda: app([str(word) for word in arguments]))
        out = capture.readouterr()
        assert ended in ((0, 1, 2) if code is None else (code,)), out.err.decode()
        return self._kept(out.out, out.err)

    def _variables(self) -> dict[str, str]:
        return {
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "BLEEDWATCH_KEY_FILE": str(self.key),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def _kept(self, out: bytes, err: bytes) -> bytes:
        number = sum(1 for _ in self.root.glob("*.stdout"))
        (self.root / f"{number}.stdout").write_bytes(out)
        (self.root / f"{number}.stderr").write_bytes(err)
        return err

    def sweep(self) -> dict[str, set[str]]:
        """Return what of the canary and the keys stands anywhere but in the inputs."""
        given = list(self.given.rglob("*"))
        return Sweep(self.secrets()).tree(self.root, leave_out=given)

    def secrets(self) -> Secrets:
        """Return what must not be found."""
        keys = self._secret.keys()
        hashes = TokenTable(keys.hash_key).hash(IDS).tolist()
        raw = (bytes.fromhex(self.key.read_text()), keys.hash_key, keys.seal_key, keys.tag_key)
        spelled = [form for key in raw for form in (key.hex().encode(), key.hex().upper().encode())]
        return Secrets(words=WORDS, ids=(IDS,), hashes=(hashes,), keys=(*raw, *spelled))

    def labelled(self) -> Path:
        """Write the traffic as an evaluation set."""
        folder = self.given / "labelled"
        folder.mkdir()
        packed = zstandard.compress(self.jsonl.read_bytes())
        for name in ("requests", "planted", "history"):
            (folder / f"{name}.jsonl.zst").write_bytes(packed)
        ask, answer = pairs(PAIRS, content=IDS)[:2]
        (folder / "truth.jsonl").write_text(
            f'{{"victim_request_id": "{answer.request_id}", "source_request_id": '
            f'"{ask.request_id}", "source_tenant": "acme", "kind": "start", "L": {len(IDS)}}}\n'
        )
        return folder
