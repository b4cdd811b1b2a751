"""Makes the model that an engine serves in tests: two layers, dummy weights, its own tokenizer.

Run in the engine's environment: `python model.py FOLDER`. The tokenizer is trained on the texts of
the standard library, so that there is something to say; what the model says is gibberish.
"""

import json
import sys
import sysconfig
from pathlib import Path
from typing import Final

VOCABULARY: Final = 4096
CONTEXT: Final = 512
"""Tokens: short, so that a prompt that is too long is a short text."""

SPECIAL: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MODULES: Final = 60
"""Modules of the standard library that it learns from: about a megabyte."""

CHAT_TEMPLATE: Final = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

CONFIG: Final = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "torch_dtype": "bfloat16",
}

TOKENIZER_CONFIG: Final = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": SPECIAL[0],
    "eos_token": SPECIAL[2],
    "pad_token": SPECIAL[0],
    "model_max_length": CONTEXT,
    "chat_template": CHAT_TEMPLATE,
}


def main(folder: Path) -> None:
    """Write everything but weights: the engine is told to make these up."""
    from tokenizers import ByteLevelBPETokenizer  # noqa: PLC0415 - only this needs it

    modules = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:MODULES]
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train(
        list(map(str, modules)),
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        show_progress=False,
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER_CONFIG))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
