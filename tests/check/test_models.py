"""A model's config.json: the context that each engine takes from it."""

import json
from pathlib import Path

import pytest

from detector.check.model_config import ModelConfig, read_model_config
from detector.errors import InputError
from tests.check.corpus_files import MODELS


@pytest.mark.parametrize(
    ("fields", "vllm", "sglang"),
    [
        ({"max_position_embeddings": 1048576}, 1048576, 1048576),
        ({}, 2048, 2048),
        # vLLM takes the least that any field says, SGLang the first field in its own order
        ({"max_position_embeddings": 8192, "seq_length": 4096}, 4096, 4096),
        ({"max_position_embeddings": 4096, "model_max_length": 8192}, 4096, 8192),
        ({"n_positions": 1024}, 1024, 2048),
        # scaling of positions lengthens, unless the field already counts it
        ({"max_position_embeddings": 8192, "rope_scaling": {"type": "linear", "factor": 4}},
         32768, 32768),
        ({"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8,
          "original_max_position_embeddings": 8192}}, 131072, 131072),
        ({"max_position_embeddings": 32768, "rope_scaling": {"rope_type": "yarn", "factor": 4}},
         32768, 131072),
        ({"max_position_embeddings": 32768, "rope_parameters": {"rope_type": "yarn", "factor": 4,
          "original_max_position_embeddings": 32768}}, 32768, 32768),
        ({"max_position_embeddings": 8192, "rope_parameters": {
          "full_attention": {"rope_type": "linear", "factor": 2.0},
          "sliding_attention": {"rope_type": "default"}}}, 16384, 16384),
        # the text of a multimodal model is nested, as is what its positions are
        ({"max_position_embeddings": 77, "text_config": {"max_position_embeddings": 262144}},
         262144, 262144),
        ({"max_position_embeddings": True, "seq_len": -1}, 2048, 2048),
        # no such numbers: of hundreds of digits, or beyond what a float holds
        ({"max_position_embeddings": 10**400}, 2048, 2048),
        *(
            ({"max_position_embeddings": 8192, "rope_scaling": {"factor": factor}}, 8192, 8192)
            for factor in (10**400, 1e308, float("inf"), float("nan"), -float("inf"))
        ),
    ],
)  # fmt: skip
def test_contexts(fields: dict[str, object], vllm: int, sglang: int) -> None:
    config = ModelConfig("config.json", fields)
    assert config.context("vllm").tokens == vllm
    assert config.context("sglang").tokens == sglang


def test_a_sliding_window_is_told_and_does_not_shorten_the_context() -> None:
    config = read_model_config(str(MODELS / "window.json"))
    assert (config.sliding_window, config.context("sglang").tokens) == (4096, 40960)
    unused = ModelConfig("c", {"sliding_window": 4096, "use_sliding_window": False})
    assert unused.sliding_window is None


def test_images_are_noticed() -> None:
    assert read_model_config(str(MODELS / "nested.json")).is_multimodal
    assert not read_model_config(str(MODELS / "llama.json")).is_multimodal


@pytest.mark.parametrize("content", ["", "[1]", "{", "\x00", "[" * 100_000, "text"])
def test_what_is_no_config_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(content)
    with pytest.raises(InputError, match=r"JSON.*config\.json that lies beside"):
        read_model_config(str(file))


def test_the_models_of_the_corpus_are_written_as_json() -> None:
    assert all(json.loads(path.read_text()) for path in MODELS.iterdir())
