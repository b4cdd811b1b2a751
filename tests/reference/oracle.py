"""The streaming detector by definition: slow, obvious, for small traffic; oracle of the fast code.

Records are taken in event-time order: a prompt at its start, a response at its end; ties by
(prompt first, tenant, request). Each is compared with everything alive that was taken before it,
in both directions: as a sink (if a response) and as the source of the responses taken earlier.
Then what was found unexplained is tainted: what a sink judged earlier has taught of it is taken
back, and from then on it is learnt for nobody. Only then are the record's own shingles learnt.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from detector.model import Kind, Role, Sequence, Span
from detector.settings import DetectionSettings

SHINGLE = 10
DEFAULTS = DetectionSettings()
Shingle = bytes
Pair = tuple[str, str]
"""Request of the sink, tenant of the source."""


class Verdict(NamedTuple):
    """Longest unexplained run in tokens, and the reasons that explained something of the pair.

    `relay`: all of it is known to have come to the source's tenant from another one before, so a
    detector may leave the pair out if it names the origin.
    """

    tokens: int
    reasons: frozenset[str]
    relay: bool = False


def judge(
    sequences: Iterable[Sequence],
    settings: DetectionSettings = DEFAULTS,
    *,
    both_ways: bool = True,
) -> dict[Pair, Verdict]:
    """Return every (sink request, source tenant) with an unexplained run of 10 tokens or more.

    Of two responses that overlap in time either may be the source; with `both_ways` false only
    the one whose request started first (ties by tenant, then request).
    """
    found: dict[Pair, Verdict] = {}
    world = _World(settings, both_ways=both_ways)
    for sequence in sorted(sequences, key=_event_order):
        bled: list[tuple[Shingle, Sequence, Sequence]] = []
        for sink, source in world.comparisons(sequence):
            left, reasons = world.unexplained(sink, source, _moment(sequence))
            tokens = longest_run(left, settings.filter.bridge_tokens)
            if tokens >= settings.filter.low_tokens:
                shingles = {_shingles(sink)[at] for at, _ in left}
                bled += [(shingle, source, sink) for shingle in shingles]
                relay = all(world.origin.get(s, source.tenant) != source.tenant for s in shingles)
                key = (sink.request_id, source.tenant)
                one = Verdict(tokens, frozenset(reasons), relay)
                found[key] = _both(found.get(key, one), one)
        world.taint(bled)
        world.learn(sequence)
    return found


def _both(one: Verdict, two: Verdict) -> Verdict:
    tokens = max(one.tokens, two.tokens)
    return Verdict(tokens, one.reasons | two.reasons, one.relay and two.relay)


def longest_run(hits: Iterable[tuple[int, int]], bridge: int) -> int:
    """Return the most tokens covered by shingle hits (sink, source) of one diagonal in one chain.

    A chain goes on across at most `bridge` tokens that no hit covers; they do not count.
    """
    covered: dict[int, set[int]] = defaultdict(set)
    for at, source_at in hits:
        covered[source_at - at] |= set(range(at, at + SHINGLE))
    best = 0
    for tokens in covered.values():
        length, last = 0, -SHINGLE
        for token in sorted(tokens):
            length = length + 1 if token - last - 1 <= bridge else 1
            last = token
            best = max(best, length)
    return best


class _World:
    """Everything taken so far."""

    def __init__(self, settings: DetectionSettings, *, both_ways: bool) -> None:
        self.settings = settings
        self.both_ways = both_ways
        self.taken: list[Sequence] = []
        self.shown: dict[Shingle, list[tuple[int, str]]] = defaultdict(list)
        self.origin: dict[Shingle, str] = {}
        """Tainted shingles, and the tenant that each first came from."""

    def learn(self, sequence: Sequence) -> None:
        self.taken.append(sequence)
        for shingle in set(_shingles(sequence)) - set(self.origin):
            self.shown[shingle].append((sequence.started_at_ms, sequence.tenant))

    def taint(self, bled: list[tuple[Shingle, Sequence, Sequence]]) -> None:
        """Never learn these shingles again, and take back what the sink itself has taught."""
        for shingle, source, sink in bled:
            self.origin.setdefault(shingle, source.tenant)
            taught = (sink.started_at_ms, sink.tenant)
            self.shown[shingle] = [entry for entry in self.shown[shingle] if entry != taught]

    def comparisons(self, new: Sequence) -> list[tuple[Sequence, Sequence]]:
        """Return the (sink, source) pairs that a new sequence completes."""
        pairs = [p for old in self.taken for p in ((new, old), (old, new))]
        return [(sink, source) for sink, source in pairs if self._comparable(sink, source)]

    def _comparable(self, sink: Sequence, source: Sequence) -> bool:
        age = sink.started_at_ms - source.started_at_ms
        if source.kind is Kind.RESPONSE and not self.both_ways and _later(source, sink):
            return False
        return (
            sink.kind is Kind.RESPONSE
            and sink.tenant != source.tenant
            and sink.kv_pool == source.kv_pool
            and source.started_at_ms < sink.ended_at_ms
            and age <= self.settings.window.length_ms
        )

    def unexplained(
        self, sink: Sequence, source: Sequence, now: int
    ) -> tuple[list[tuple[int, int]], Counter[str]]:
        """Return the matched shingles (sink, source position) nothing explains; count reasons."""
        reasons: Counter[str] = Counter()
        left = []
        where: dict[Shingle, list[int]] = defaultdict(list)
        for source_at, shingle in enumerate(_shingles(source)):
            where[shingle].append(source_at)
        pair_reason = self._pair_reason(sink, source)
        asked_again = self._asked_again(sink, source)
        own = {s for prompt in self._own_prompts(sink, now) for s in _shingles(prompt)}
        for at, shingle in enumerate(_shingles(sink)):
            if len(set(sink.token_hashes[at : at + SHINGLE])) < self.settings.filter.min_distinct:
                continue
            for source_at in where[shingle]:
                reason = self._memory(shingle, sink, source, now)
                if shingle in own:
                    reason = "own_prompt"
                if not reason and source_at in asked_again:
                    reason = "same_question"
                if not reason and _touches_template(source, source_at):
                    reason = "template"
                reason = reason or pair_reason
                if reason:
                    reasons[reason] += 1
                else:
                    left.append((at, source_at))
        return left, reasons

    def _memory(self, shingle: Shingle, sink: Sequence, source: Sequence, now: int) -> str:
        oldest = now - self.settings.commonness.horizon_ms
        seen = [(start, who) for start, who in self.shown[shingle] if start >= oldest]
        if any(who not in (sink.tenant, source.tenant) for _, who in seen):
            return "common"
        mine = {start for start, who in seen if who == sink.tenant} - {sink.started_at_ms}
        had = any(start < source.started_at_ms for start in mine)
        return "own_history" if had else ""

    def _own_prompts(self, sink: Sequence, now: int) -> list[Sequence]:
        """Return the prompts of the sink's tenant in the pool, started no later than the sink."""
        alive = now - self.settings.window.keep_ms
        return [
            s for s in self.taken
            if s.kind is Kind.PROMPT and (s.tenant, s.kv_pool) == (sink.tenant, sink.kv_pool)
            and alive <= s.started_at_ms <= sink.started_at_ms
        ]  # fmt: skip

    def _asked_again(self, sink: Sequence, source: Sequence) -> set[int]:
        """Return the source positions that ask or answer the question that the sink answers.

        A response answers the last user turn of its prompt; an assistant turn inside a prompt the
        user turn before it. System prompt and tool output never count. A shingle that a request
        shows again is judged where its prompt showed it first.
        """
        mine = self._questions(sink)[-1:]
        prompts = [source]
        if source.kind is Kind.RESPONSE:
            prompts = self._prompts(source)
            if any(self._alike(q, o) for q in mine for o in self._questions(source)[-1:]):
                return set(range(len(source.token_hashes)))
        first: dict[Shingle, bool] = {}
        for prompt in prompts:
            again = self._turns(prompt, mine)
            for at, shingle in enumerate(_shingles(prompt)):
                first.setdefault(shingle, at in again)
        return {at for at, shingle in enumerate(_shingles(source)) if first.get(shingle)}

    def _turns(self, prompt: Sequence, mine: list[bytes]) -> set[int]:
        """Return the positions of a prompt that ask or answer one of some questions."""
        found: set[int] = set()
        asked = b""
        for span in prompt.spans:
            if span.role is Role.USER:
                asked = prompt.token_hashes[span.start : span.end].tobytes()
            if span.role in (Role.USER, Role.ASSISTANT) and any(
                self._alike(q, asked) for q in mine
            ):
                found |= set(range(span.start, span.end))
        return found

    def _alike(self, one: bytes, two: bytes) -> bool:
        a, b = set(_cut(one)), set(_cut(two))
        smaller = min(len(a), len(b))
        needed = self.settings.filter.same_question_containment * smaller
        return bool(one) and (one == two or (smaller > 0 and len(a & b) >= needed))

    def _questions(self, sequence: Sequence) -> list[bytes]:
        """Return the user turns of the request's prompt."""
        return [
            prompt.token_hashes[span.start : span.end].tobytes()
            for prompt in self._prompts(sequence)
            for span in prompt.spans
            if span.role is Role.USER
        ]

    def _prompts(self, sequence: Sequence) -> list[Sequence]:
        """Return the prompt of the request, in its parts."""
        return [
            prompt for prompt in self.taken
            if prompt.kind is Kind.PROMPT and _request(prompt) == _request(sequence)
        ]  # fmt: skip

    @staticmethod
    def _pair_reason(sink: Sequence, source: Sequence) -> str:
        if sink.account is not None and sink.account == source.account:
            return "same_account"
        if sink.gateway_cache_hit:
            return "gateway_cache_hit"
        family = {sink.parent_id or sink.request_id, source.parent_id or source.request_id}
        return "sibling" if len(family) == 1 and (sink.parent_id or source.parent_id) else ""


def _moment(sequence: Sequence) -> int:
    prompt = sequence.kind is Kind.PROMPT
    return sequence.started_at_ms if prompt else sequence.ended_at_ms


def _event_order(sequence: Sequence) -> tuple[int, bool, str, str]:
    is_response = sequence.kind is Kind.RESPONSE
    return _moment(sequence), is_response, sequence.tenant, sequence.request_id


def _later(one: Sequence, two: Sequence) -> bool:
    keys = [(s.started_at_ms, s.tenant, s.request_id) for s in (one, two)]
    return keys[0] > keys[1]


def _request(sequence: Sequence) -> tuple[str, str, int]:
    return sequence.tenant, sequence.request_id, sequence.started_at_ms


def _cut(hashes: bytes) -> list[Shingle]:
    """Return every 10 consecutive token hashes (4 bytes each)."""
    return [hashes[i : i + 4 * SHINGLE] for i in range(0, len(hashes) - 4 * SHINGLE + 1, 4)]


def _shingles(sequence: Sequence) -> list[Shingle]:
    return _cut(sequence.token_hashes.tobytes())


def _overlaps(span: Span, at: int) -> bool:
    return span.start < at + SHINGLE and at < span.end


def _touches_template(source: Sequence, at: int) -> bool:
    return any(span.role is Role.TEMPLATE and _overlaps(span, at) for span in source.spans)
