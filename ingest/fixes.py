"""For each engine, side and cause of loss: the fixed sentence that says how to stop losing ids."""

from ingest.sources.base import Loss

_VLLM_STREAM = (
    "vLLM logs a streamed delta only if it has text, so tokens may be missing and nothing in the "
    "log can prove otherwise; exact streams need the tap (bleedwatch run tap)"
)
_VLLM_PROMPT_CUT = "remove --max-log-len: it cuts ids silently"

FIXES: dict[tuple[str, str, Loss], str] = {
    ("vllm", "prompt", Loss.NOT_LOGGED): (
        "start vLLM with --enable-log-requests and put the request logger at DEBUG "
        "(VLLM_LOGGING_LEVEL=DEBUG, or that one logger through VLLM_LOGGING_CONFIG_PATH)"
    ),
    ("vllm", "prompt", Loss.TRUNCATED): _VLLM_PROMPT_CUT,
    ("vllm", "prompt", Loss.TEXT_ONLY): (
        "this vLLM logged the prompt as text without ids; use a version that logs ids"
    ),
    ("vllm", "response", Loss.NOT_LOGGED): (
        "add --enable-log-outputs with the request logger at DEBUG; vLLM up to 0.32 never logs "
        "the output of /v1/completions: that needs the tap (bleedwatch run tap)"
    ),
    ("vllm", "response", Loss.TRUNCATED): _VLLM_PROMPT_CUT,
    ("vllm", "response", Loss.DELTAS_LOST): _VLLM_STREAM,
    ("vllm", "response", Loss.NO_OUTPUT_LINE): (
        "vLLM writes no output line for an answer without text: that needs the tap (bleedwatch "
        "run tap)"
    ),
    ("vllm", "response", Loss.NEVER_FINISHED): (
        "aborted or still running: the log holds at most the part before the cut; more needs the "
        "tap (bleedwatch run tap)"
    ),
    ("sglang", "prompt", Loss.NOT_LOGGED): (
        "raise --log-requests-level to 3: levels 0 and 1 leave the prompt out"
    ),
    ("sglang", "prompt", Loss.TRUNCATED): (
        "raise --log-requests-level to 3: level 2 keeps 1,024 ids at each end"
    ),
    ("sglang", "prompt", Loss.TEXT_ONLY): (
        "send return_prompt_token_ids (or return_token_ids), or start SGLang with "
        "--return-input-ids: text prompts are logged without ids"
    ),
    ("sglang", "response", Loss.NOT_LOGGED): (
        "raise --log-requests-level to 3: levels 0 and 1 leave the output out"
    ),
    ("sglang", "response", Loss.TRUNCATED): (
        "raise --log-requests-level to 3: level 2 keeps 1,024 ids at each end"
    ),
    ("sglang", "response", Loss.DELTAS_LOST): (
        "remove --incremental-streaming-output: with it only the last delta is logged"
    ),
    ("sglang", "response", Loss.TEXT_ONLY): (
        "this SGLang logs the answer as text only; upgrade it"
    ),
    ("sglang", "response", Loss.NEVER_FINISHED): (
        "rejected or disconnected requests have no finish record; the part sent needs the tap "
        "(bleedwatch run tap)"
    ),
}

GENERAL: dict[Loss, str] = {
    Loss.NOT_LOGGED: "the source does not write these ids",
    Loss.TRUNCATED: "the source cut these ids short",
    Loss.DELTAS_LOST: "the source may have missed part of a stream",
    Loss.NO_OUTPUT_LINE: "the source wrote nothing for the answer",
    Loss.NEVER_FINISHED: "the source never saw the request end",
    Loss.TEXT_ONLY: "the source wrote text without token ids",
}


def fix_for(kind: str, side: str, loss: Loss) -> str:
    """Return the advice for a loss; a source without advice of its own gets the plain meaning."""
    return FIXES.get((kind, side, loss)) or GENERAL.get(loss, "unknown cause")
