#!/usr/bin/env python3
"""Makes tales.npy: a million characters of small tales, by a grammar. What is written is free of any licence.

A tale keeps its persons, its thing and its place from the first sentence to the last, so that there is something to learn
beyond the spelling of words. Characters are their places in ALPHABET.
"""
import pathlib
import random

import numpy as np

ALPHABET = "\n abcdefghijklmnopqrstuvwxyz.,?!"
NAMES = "anna ben clara david emma finn greta hugo ida jonas kira leo mia nils olga paul rosa sven tilda victor".split()
THINGS = "apple|ball|basket|bell|boat|book|bread|button|candle|clock|coin|cup|drum|feather|flute|hat|key|kite|lamp|letter|map|mirror|pearl|pencil|ring|rope|shell|spoon|stone|whistle".split("|")
PLACES = "behind the mill|by the river|in the garden|in the kitchen|in the old tower|near the bridge|on the hill|under the bed|under the oak|at the market".split("|")
KINDS = "little|old|red|blue|green|shiny|broken|heavy|tiny|golden".split("|")
WISHES = "could not find|wanted|had lost|was looking for|dreamed of".split("|")
WEATHER = "it was raining|the sun was shining|a cold wind blew|it was getting dark|snow was falling|the night was quiet".split("|")
ENDS = "they laughed and went home|they were friends from that day on|nobody ever spoke of it again|that night they slept well|and that is all there is to tell".split("|")


def tale(draw):
    one, other = draw.sample(NAMES, 2)
    thing = f"{draw.choice(KINDS)} {draw.choice(THINGS)}"
    place, elsewhere = draw.sample(PLACES, 2)
    article = "an" if thing[0] in "aeiou" else "a"
    asked = draw.choice([f"where is my {thing}?", f"have you seen my {thing}?"])
    seen = draw.choice([f"i saw it {place}", f"it must be {place}", f"look {place}"])
    middle = draw.choice([f"so {one} looked {elsewhere}, but there was nothing. then {one} went to look {place}.",
                          f"{one} ran, and looked {place}.",
                          f"they went together, and looked {place}."])
    found = draw.choice([f"there was the {thing}!", f"and there, {place}, was the {thing}!"])
    thanks = draw.choice([f"thank you, {other}, said {one}.", f"{one} thanked {other}."])
    return (f"{draw.choice(WEATHER)}. {one} {draw.choice(WISHES)} {article} {thing}. {other}, {asked} said {one}. "
            f"{seen}, said {other}. {middle} {found} {thanks} {draw.choice(ENDS)}.\n")


def main():
    draw, text = random.Random(1), ""
    parts = []
    length = 0
    while length < 1_050_000:
        parts.append(tale(draw))
        length += len(parts[-1])
    text = "".join(parts)
    codes = np.array([ALPHABET.index(c) for c in text], np.uint8)
    path = pathlib.Path(__file__).with_name("tales.npy")
    np.save(path, codes)
    print(f"{path}: {len(codes)} characters")


if __name__ == "__main__":
    main()
