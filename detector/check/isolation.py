"""Checks of what keeps tenants apart: prefix caches in every tier, their keys, ids, endpoints."""

from collections.abc import Iterator
from typing import Final

from detector.check.engine import OFF, Engine
from detector.check.scope import Scope
from detector.check.verdict import Said, Verdict, passed

_SAFE_HASHES: Final = ("sha256", "sha256_cbor")
_BY_DEFAULT: Final = "sha256"
_SHA_SINCE: Final = "0.10.2"
"""The release in which vLLM's default became SHA-256; before it was Python's own hash."""

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
DEV_MODE: Final = "VLLM_SERVER_DEV_MODE"

_KEEPERS: Final = ("LMCache", "Stor", "Offload", "Cache", "FlexKV", "HF3FS", "UMBP")
"""Parts of the names of connectors that keep prefixes, not only hand them to a peer."""

DECODE_CACHE: Final = "disaggregation-decode-enable-radix-cache"

_SHARED: Final = (
    "one tenant's cached prefixes serve another: how fast an answer begins tells what others have "
    "asked, and every fault of the cache shows one tenant's content to another"
)


def prefix_cache(engine: Engine, scope: Scope) -> Iterator[Said]:
    """Tenants do not share cached prefixes, neither in the engine nor in a tier behind it."""
    off = engine.flag("disable-radix-cache", "no-enable-prefix-caching")
    if scope.vouches("single-tenant"):
        yield passed("one tenant alone is served, as stated", engine.where)
        return
    if (off is not None and off.is_on) or _is_switched_off(engine):
        where = engine.where if off is None else off.where
        yield passed("the engine caches no prefixes", where)
    elif engine.kind == "sglang" and engine.role == "decode" and not engine.is_on(DECODE_CACHE):
        yield passed("decode keeps no prefixes by default", engine.where)
    elif scope.vouches("salts"):
        yield passed("every request has its tenant's salt, as stated", engine.where)
    else:
        yield Said(
            Verdict.WARN,
            "prefixes are cached, and nothing that was given shows salts",
            engine.where,
            _SHARED,
            "let a gateway set cache_salt (SGLang also extra_key) to the tenant, and state it with "
            "--vouch salts; `bleedwatch run tap` can set it",
        )
    yield from _tiers(engine, scope)


def _tiers(engine: Engine, scope: Scope) -> Iterator[Said]:
    if engine.kind == "sglang":
        lmcache, storage = engine.flag("enable-lmcache"), engine.flag("hicache-storage-backend")
        if lmcache is not None and lmcache.is_on:
            yield Said(
                Verdict.FAIL,
                "--enable-lmcache",
                lmcache.where,
                "SGLang hands LMCache no salts, so its entries are shared between tenants whatever "
                "a gateway sets (BWA-2026-0004)",
                "use --enable-hierarchical-cache in its place, or one LMCache for each tenant",
            )
        if storage is not None and storage.is_on:
            yield _unproven(f"--hicache-storage-backend {storage.value}", storage.where, scope)
        return
    connectors = list(_connectors(engine.json_flag("kv-transfer-config")))
    flag = engine.flag("kv-transfer-config")
    for name in connectors:
        where = engine.where if flag is None else flag.where
        if name == "OffloadingConnector":
            yield passed("offloaded blocks keep the engine's keys, salts included", where)
        elif any(word in name for word in _KEEPERS):
            yield _unproven(name, where, scope)


def _unproven(tier: str, where: str, scope: Scope) -> Said:
    salted = ", although the requests have salts" if scope.vouches("salts") else ""
    return Said(
        Verdict.WARN,
        f"{tier} keeps prefixes outside the engine{salted}",
        where,
        f"whether salts are part of the keys of this tier differs by release; if not, {_SHARED}",
        "ask the running engines: bleedwatch probe compares same and other salts",
    )


def _connectors(transfer: object) -> Iterator[str]:
    """Yield the connectors of a transfer, those inside a MultiConnector too."""
    if not isinstance(transfer, dict):
        return
    name = transfer.get("kv_connector", "")
    yield name if isinstance(name, str) else ""
    extra = transfer.get("kv_connector_extra_config")
    inner = extra.get("connectors") if isinstance(extra, dict) else None
    for one in inner if isinstance(inner, list) else ():
        yield from _connectors(one)


def _is_switched_off(engine: Engine) -> bool:
    flag = engine.flag("enable-prefix-caching")
    return flag is not None and not flag.is_on


def prefix_hash(engine: Engine, _scope: Scope) -> Iterator[Said]:
    """Cached blocks are found by a hash that nobody can make collide."""
    if engine.kind != "vllm":
        return
    flag = engine.flag("prefix-caching-hash-algo")
    if flag is not None and flag.value not in _SAFE_HASHES:
        yield Said(
            Verdict.FAIL,
            f"--prefix-caching-hash-algo {flag.value}",
            flag.where,
            "who makes two prompts collide under this hash reads memory of the other one",
            f"leave it out, or set {_BY_DEFAULT}",
        )
    elif flag is None and engine.is_before(_SHA_SINCE):
        yield Said(
            Verdict.WARN,
            f"vLLM {engine.version} hashes blocks with Python's own hash by default",
            engine.where,
            "who makes two prompts collide under this hash reads memory of the other one",
            "set --prefix-caching-hash-algo sha256, or upgrade",
        )
    else:
        where = engine.where if flag is None else flag.where
        yield passed(f"{_BY_DEFAULT if flag is None else flag.value}", where)


def request_ids(engine: Engine, scope: Scope) -> Iterator[Said]:
    """The ids of requests are made by the operator, not by clients."""
    if scope.vouches("request-ids") or scope.vouches("single-tenant"):
        yield passed("clients do not choose ids, as stated", engine.where)
        return
    name = "rid" if engine.kind == "sglang" else "X-Request-Id"
    yield Said(
        Verdict.UNKNOWN,
        f"{engine.kind} takes the id that a client sends as {name}",
        engine.where,
        "ids that clients choose collide: aborts and late results then meet the wrong request",
        "let a gateway set it, and state it with --vouch request-ids",
    )


def endpoints(engine: Engine, scope: Scope) -> Iterator[Said]:
    """Clients cannot flush the cache, abort requests of others or change the engine."""
    if scope.vouches("closed-endpoints"):
        yield passed("clients reach inference calls only, as stated", engine.where)
        return
    host = engine.flag("host")
    is_local = (host.value in _LOOPBACK) if host is not None else engine.kind == "sglang"
    if engine.kind == "vllm":
        yield from _of_vllm(engine)
    elif engine.is_on("admin-api-key"):
        flag = engine.flags["admin-api-key"]
        yield passed("flush and abort need the key of --admin-api-key", flag.where)
    elif is_local and not engine.exposed:
        yield passed("the engine listens on the loopback address", engine.where)
    else:
        yield Said(
            Verdict.FAIL if engine.exposed else Verdict.WARN,
            f"reached by {engine.exposed}" if engine.exposed else "it listens on all addresses",
            engine.where if host is None else host.where,
            "whoever reaches the port can call /flush_cache and /abort_request, which disturb "
            "every tenant and set off what goes wrong at aborts",
            "set --admin-api-key, or let clients reach a gateway only and state it with "
            "--vouch closed-endpoints",
        )


def _of_vllm(engine: Engine) -> Iterator[Said]:
    value = engine.environment.get(DEV_MODE, "")
    why = (
        "it opens calls that reset the cache, abort requests and put the engine to sleep; no key "
        "guards them"
    )
    if value is None:
        found, next_step = f"{DEV_MODE} is set from elsewhere", "write its value into the file"
        yield Said(Verdict.UNKNOWN, found, engine.where, why, next_step)
        return
    if value.lower() in (*OFF, ""):
        yield passed("vLLM serves no call that flushes or aborts, by default", engine.where)
        return
    yield Said(
        Verdict.FAIL,
        f"{DEV_MODE}={value}",
        engine.where,
        why,
        f"leave {DEV_MODE} out",
    )
