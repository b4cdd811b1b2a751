"""Engines in the values of a Helm chart that is known: the production stack of vLLM.

The flags are those that its template makes of them (helm/templates/deployment-vllm-multi.yaml).
"""

from collections.abc import Iterator
from typing import Final

from detector.check.container import Container
from detector.check.placed import Placed
from detector.check.shell import Word

_FLAGS: Final = {
    "maxModelLen": "--max-model-len",
    "maxNumSeqs": "--max-num-seqs",
    "gpuMemoryUtilization": "--gpu-memory-utilization",
    "tensorParallelSize": "--tensor-parallel-size",
    "dtype": "--dtype",
}
_TRUE: Final = ("true", "True", "yes", "on")


def is_production_stack(root: Placed) -> bool:
    """Tell whether a document is values of that chart."""
    return root.get("servingEngineSpec") is not None


def containers(root: Placed) -> Iterator[Container]:
    """Yield the engine of each model."""
    for at in root.each("servingEngineSpec", "modelSpec"):
        config = at.get("vllmConfig")
        words = [Word("vllm", at.where), Word("serve", at.where)]
        words.append(Word(at.word("modelURL") or "model", at.where))
        words += _flags(config) if config is not None else []
        if config is None or config.word("enablePrefixCaching") not in _TRUE:
            words.append(Word("--no-enable-prefix-caching", (config or at).where))
        words += _lmcache(at)
        words += [Word(one.text or "", one.where) for one in at.each("vllmConfig", "extraArgs")]
        tag = at.word("tag")
        yield Container(
            name=f"model {at.word('name')}",
            where=at.where,
            image=f"{at.word('repository')}:{tag}",
            words=tuple(words),
            environment={one.word("name"): one.word("value") or None for one in at.each("env")},
        )


def _flags(config: Placed) -> Iterator[Word]:
    for name, flag in _FLAGS.items():
        value = config.get(name)
        if value is not None:
            yield Word(f"{flag}={value.text}", value.where)


def _lmcache(at: Placed) -> Iterator[Word]:
    """The chart turns LMCache on by the connector it gives to vLLM."""
    config = at.get("lmcacheConfig")
    if config is not None and config.word("enabled") in _TRUE:
        role = config.word("kvRole") or "kv_both"
        told = f'{{"kv_connector":"LMCacheConnectorV1","kv_role":"{role}"}}'
        yield Word("--kv-transfer-config", config.where)
        yield Word(told, config.where)
