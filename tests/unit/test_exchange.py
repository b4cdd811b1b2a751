"""Workers with different pools know of each other what is common and what is tainted."""

import pytest

from detector.finding import Confidence
from detector.settings import CommonnessSettings, DetectionSettings, IndexSettings
from detector.sketch.shingle import shingle_keys
from ingest.broker import Message, TopicPartition
from ingest.commonness_records import decode
from tests.unit.sequences import SETTINGS, join, pairs, prompt, response, text
from tests.unit.sharing import KEY_ID, PREFIX, RANGES, Worker, broker, settle

PHRASE = text(1, 40)
SECRET = text(2, 40)
ALL = range(RANGES)


def two(*, share: bool = True) -> tuple[Worker, Worker]:
    """Return two workers that own the even and the odd ranges."""
    at = broker()
    return (
        Worker(at, SETTINGS, name=b"one", owns=ALL[::2], share=share),
        Worker(at, SETTINGS, name=b"two", owns=ALL[1::2], share=share),
    )


@pytest.mark.parametrize("share", [True, False])
def test_what_a_tenant_shows_in_another_pool_is_common(share: bool) -> None:
    one, two_ = two(share=share)
    two_.observe(prompt("c", "c1", 0, PHRASE, pool="other"))
    settle(one, two_)
    one.observe(prompt("a", "a1", 10, join(text(3, 20), PHRASE)))
    settle(one, two_)
    found = one.observe(response("b", "b1", 20, join(text(4, 20), PHRASE)))
    assert pairs(found) == (set() if share else {("b1", "a")})


@pytest.mark.parametrize("share", [True, False])
def test_what_the_receiver_had_in_another_pool_is_its_history(share: bool) -> None:
    one, two_ = two(share=share)
    two_.observe(prompt("b", "b0", 0, PHRASE, pool="other"))
    settle(one, two_)
    one.observe(prompt("a", "a1", 10, join(text(3, 20), PHRASE)))
    settle(one, two_)
    found = one.observe(response("b", "b1", 20, join(text(4, 20), PHRASE)))
    assert pairs(found) == (set() if share else {("b1", "a")})


def test_a_bleed_that_repeats_across_pools_stays_found() -> None:
    """Every victim sends the answer back at the other worker, which never saw it bleed."""
    one, two_ = two()
    for turn in range(6):
        here, pool, there, other = ((one, "p", two_, "q"), (two_, "q", one, "p"))[turn % 2]
        at, victim = turn * 60, f"v{turn}"
        here.observe(prompt("origin", f"o{turn}", at, join(text(90 + turn, 20), SECRET), pool=pool))
        settle(one, two_)
        bled = response(victim, victim, at + 5, join(text(70 + turn, 9), SECRET), pool=pool)
        assert pairs(here.observe(bled)) == {(victim, "origin")}
        settle(one, two_)
        there.observe(prompt(victim, f"echo{turn}", at + 20, SECRET, pool=other))
        settle(one, two_)


def test_a_taint_takes_back_what_was_told_to_everybody() -> None:
    one, two_ = two()
    two_.observe(prompt("a", "a0", 0, SECRET, pool="q"))
    one.observe(response("b", "b1", 5, SECRET, end_s=20))
    settle(one, two_)
    assert pairs(one.observe(response("a", "a1", 2, SECRET, end_s=30))) == {("b1", "a")}
    settle(one, two_)
    two_.observe(prompt("a", "a2", 40, SECRET, pool="q"))
    settle(one, two_)
    assert pairs(two_.observe(response("c", "c1", 50, SECRET, pool="q"))) == {("c1", "a")}


def test_one_that_starts_later_knows_what_was_told() -> None:
    at = broker()
    first = Worker(at, SETTINGS, name=b"one", owns=ALL)
    for tenant in "cd":
        first.observe(prompt(tenant, tenant, 0, PHRASE, pool="other"))
        settle(first)
    later = Worker(at, SETTINGS, name=b"two")
    later.observe(prompt("a", "a1", 10, join(text(3, 20), PHRASE)))
    assert not later.observe(response("b", "b1", 20, join(text(4, 20), PHRASE)))


def test_a_new_owner_knows_what_only_the_one_before_was_told() -> None:
    at = broker()
    dies = Worker(at, SETTINGS, name=b"one", owns=ALL)
    dies.observe(prompt("c", "c1", 0, PHRASE, pool="other"))
    settle(dies)
    one, heir = Worker(at, SETTINGS, name=b"two"), Worker(at, SETTINGS, name=b"three")
    for partition in ALL:
        heir.feed.own(partition)
    one.observe(prompt("a", "a1", 10, PHRASE))
    settle(one, heir)
    assert not one.observe(response("b", "b1", 20, PHRASE))


def test_a_new_owner_tells_what_was_not_told_and_nothing_else() -> None:
    at = broker()
    speaker, dies = Worker(at, SETTINGS, name=b"s"), Worker(at, SETTINGS, name=b"d", owns=ALL)
    for tenant in "cd":
        speaker.observe(prompt(tenant, tenant, 0, PHRASE))
    settle(speaker, dies)
    for tenant in "ef":
        speaker.observe(prompt(tenant, tenant, 1, SECRET))
    speaker.turn()
    dies.feed.poll()  # learned, and the process ends before it has told
    heir = Worker(at, SETTINGS, name=b"h", owns=ALL)
    heir.feed.read_up(timeout_s=5)
    told = [decode(message.value, key_id=KEY_ID) for message in heir.exchange.messages()]
    tags = {tag for one in told for tag in one.showings.tags.tolist()}
    assert tags == set(heir.memory.tagged(shingle_keys(SECRET)).tolist())


def test_a_topic_that_was_made_again_is_told_from_its_beginning() -> None:
    at, again = broker(), broker()
    first = Worker(at, SETTINGS, name=b"one", owns=ALL)
    for number in range(5):
        first.observe(*(prompt(tenant, f"{number}", number, text(number, 30)) for tenant in "cd"))
        settle(first)
    copied = again.publisher()
    reader = at.reader()
    reader.assign({TopicPartition(f"{PREFIX}.commonness", number): 0 for number in ALL})
    for record in reader.poll(0.0):
        copied.send(Message(*record[:1], record.value, record.key, (), record.partition))
    heir = Worker(again, SETTINGS, name=b"two", owns=ALL)
    for tenant in "ef":
        heir.observe(prompt(tenant, tenant, 9, PHRASE))
    before = heir.exchanged.heard
    settle(heir)
    assert heir.exchanged.heard == before + 2 * (len(PHRASE) - 9)


def test_records_in_the_wrong_place_and_broken_ones_are_counted() -> None:
    at = broker()
    one, listener = Worker(at, SETTINGS, name=b"one"), Worker(at, SETTINGS, name=b"two", owns=ALL)
    one.observe(prompt("a", "a", 0, PHRASE))
    message = one.exchange.messages()[0]
    publisher = at.publisher()
    publisher.send(message._replace(partition=(message.partition or 0) ^ 1))
    publisher.send(message._replace(topic=f"{PREFIX}.commonness"))
    publisher.send(message._replace(value=b"rubbish"))
    publisher.send(message)
    settle(listener)
    assert listener.exchange.bad_records == {"wrong_range": 1, "malformed": 2}
    assert sum(state.read for state in listener.exchange.states()) == 3


def test_repeats_cost_nothing_and_an_owner_tells_once() -> None:
    one, two_ = two()
    for turn in range(5):
        one.observe(prompt("a", f"a{turn}", turn, PHRASE))
        two_.observe(prompt("c", f"c{turn}", turn, PHRASE, pool="q"))
        settle(one, two_)
    shingles = len(PHRASE) - 9
    for each in (one, two_):
        assert each.exchanged.told == shingles
    assert not one.exchange.bad_records | two_.exchange.bad_records


def test_nothing_that_is_told_names_a_tenant_or_shows_a_token() -> None:
    one, two_ = two()
    for tenant in ("tenant-one", "tenant-two"):
        one.observe(prompt(tenant, "request-9", 0, PHRASE))
    one.observe(prompt("tenant-one", "request-9", 1, SECRET))
    one.observe(response("tenant-two", "request-9", 2, SECRET))
    said = [*one.exchange.messages()]
    for message in said:
        one.publish(message)
    two_.feed.poll()
    said += [*two_.exchange.messages()]
    assert {(message.key or b"S")[:1] for message in said} == {b"S", b"T", b"P"}
    everything = b"".join(
        (message.key or b"") + (message.value or b"") + repr(message.headers).encode()
        for message in said
    )
    secrets = [b"tenant-one", b"tenant-two", b"request-9"]
    for tokens in (PHRASE, SECRET):
        secrets += [token.tobytes() for token in tokens]
        secrets += [key.tobytes() for key in shingle_keys(tokens)]
    assert not [secret for secret in secrets if secret in everything]


def _sampled(sampling: str, window: int = 8) -> DetectionSettings:
    index = IndexSettings.model_validate({"sampling": sampling, "winnow_window": window})
    return SETTINGS.model_copy(update={"index": index, "commonness": CommonnessSettings()})


@pytest.mark.parametrize(
    ("before", "after", "refuses"),
    [
        (("winnow", 8), ("every", 8), True),
        (("winnow", 16), ("winnow", 8), True),
        (("winnow", 8), ("winnow", 3), True),
        (("every", 8), ("winnow", 8), False),
        (("winnow", 8), ("winnow", 16), False),
        (("winnow", 4), ("every", 8), False),  # remembers every shingle
    ],
)
def test_what_was_remembered_by_a_coarser_sample_is_learned_anew(
    before: tuple[str, int], after: tuple[str, int], refuses: bool
) -> None:
    """A phrase that three tenants have shown is no bleed after a change of the sampling."""
    at = broker()
    old = Worker(at, _sampled(*before), name=b"old", owns=ALL)
    for tenant in "cde":
        old.observe(prompt(tenant, tenant, 0, join(text(ord(tenant), 20), PHRASE), pool="other"))
        settle(old)
    old.observe(prompt("c", "later", 7_200, text(5, 40), pool="other"))
    settle(old)
    new = Worker(at, _sampled(*after), name=b"new", owns=ALL)
    settle(new)
    assert ("coarser_sample" in new.exchange.bad_records) == refuses
    new.observe(prompt("a", "a1", 7_300, join(text(3, 20), PHRASE)))
    found = new.observe(response("b", "b1", 7_320, join(text(4, 20), PHRASE)))
    assert {(one.confidence, one.evidence.thresholds.learning) for one in found} == (
        {(Confidence.LOW, True)} if refuses else set()
    )
