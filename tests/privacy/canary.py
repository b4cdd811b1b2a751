"""The canary: text and token ids of a tenant that are like nothing else, to be looked for."""

from random import Random

IDS = tuple(Random(0xB1ED).sample(range(20_000, 2**16), 48))
"""Below 2**16, so that they can be written in 16 bits; five digits each."""

WORDS = ("Quorvexian", "Zylothrump", "Mirkwander")
TEXT = f"{WORDS[0]} {WORDS[1]} owes {WORDS[2]} 1,200 crowns"
"""Said in every prompt, answer and message of the logs. No word of it may ever be seen again."""
