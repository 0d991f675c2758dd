"""Answers without tools: greetings, sums, counting, lists, repeating, tiny stories, JSON, and who the model is.

Owns: the thought and the answer of each plain skill (the questions are in data/phrases.txt).
Does not know: tools, formats, dialogues.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.builtin_model.chinese import chinese
from tools.builtin_model.sums import sums
from tools.builtin_model.values import enumeration, make_value
from tools.builtin_model.wire import to_json
from tools.builtin_model.words import Words, capitalize

Exchange = tuple[str, str, str]
"""(question, thought, answer)"""

HELLO = "Hello! How can I help you today?"
FINE = "I am fine, thank you! How can I help you today?"
WHO = (
    "I am atom-tiny, the small demonstration model of the ATOM server. I can chat a little, do small sums, count, "
    "tell tiny stories and call your tools."
)
UNKNOWN = "I am only a small demonstration model, so I do not know that."
WELCOME = "You are welcome!"
BYE = "Goodbye! Have a nice day."
NO_TOOL = "None of the available tools can do that."
JOKE = "Why did the robot go to school? It wanted to improve its model."
POEM = "The sea is wide,\nthe wind is free,\na little boat\nsails home to me."

_LISTS = {
    "colors|colours": "red blue green yellow orange purple pink brown black white",
    "fruits": "apple banana orange pear grape lemon cherry peach plum mango",
    "animals": "dog cat horse cow sheep pig lion tiger bear wolf",
    "vegetables": "carrot potato tomato onion cabbage pepper bean pea spinach corn",
    "planets": "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune",
    "days|days of the week|weekdays": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "months": "January February March April May June July August September October",
    "cities": "Paris London Berlin Rome Madrid Vienna Tokyo Oslo Cairo Lima",
    "countries": "France Germany Italy Spain Japan China India Brazil Egypt Canada",
    "drinks": "water coffee tea juice milk wine beer lemonade cola cocoa",
    "tools|hand tools": "hammer saw drill wrench pliers screwdriver file axe knife shovel",
    "instruments": "piano guitar violin drum flute trumpet harp cello organ horn",
}
_NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_EMOJI = dict(
    pair.split("=")
    for pair in [
        "compass=🧭",
        "smile=😀",
        "happy=😀",
        "sad=😢",
        "heart=❤️",
        "star=⭐",
        "sun=☀️",
        "moon=🌙",
        "cat=🐱",
        "dog=🐶",
        "fire=🔥",
        "rocket=🚀",
        "pizza=🍕",
        "tree=🌳",
        "car=🚗",
        "clock=⏰",
        "flower=🌸",
        "fish=🐟",
        "book=📚",
        "house=🏠",
    ]
)
_CAPITALS = dict(
    pair.split("=")
    for pair in [
        "France=Paris",
        "Germany=Berlin",
        "Italy=Rome",
        "Spain=Madrid",
        "Japan=Tokyo",
        "China=Beijing",
        "India=New Delhi",
        "Brazil=Brasilia",
        "Egypt=Cairo",
        "Canada=Ottawa",
        "Austria=Vienna",
        "Poland=Warsaw",
        "Greece=Athens",
        "Norway=Oslo",
        "Sweden=Stockholm",
        "Finland=Helsinki",
        "Denmark=Copenhagen",
        "Portugal=Lisbon",
        "Russia=Moscow",
        "Hungary=Budapest",
        "Ireland=Dublin",
        "Turkey=Ankara",
        "Peru=Lima",
        "Cuba=Havana",
        "Kenya=Nairobi",
        "Australia=Canberra",
        "Mexico=Mexico City",
        "England=London",
    ]
)
_ANIMALS = ["fox", "cat", "dog", "bear", "owl", "mouse", "rabbit", "frog", "horse", "duck"]
_ADJECTIVES = ("little", "brave", "sleepy", "happy", "clever")
_PLACES = ("in a forest", "by a river", "in a small town", "near the sea", "on a hill")
_MIDDLES = (
    "An old owl helped, and soon they were friends. ",
    "The wind was cold, but the sun came out again. ",
    "Everyone in town came to help. ",
    "The waves sang a song all night. ",
    "From the top one could see the whole world. ",
)


def greet(words: Words) -> Exchange:
    """A greeting, at times with a name."""
    question = words.phrase("greeting")
    if words.chance(0.12):
        question = question.rstrip("!?.") + f" {make_value(words, 'person')}"
    is_how = any(part in question.lower() for part in ("how are", "how do", "how is it"))
    return question, "The user greets me.", FINE if is_how else HELLO


def who(words: Words) -> Exchange:
    """What the model says about itself."""
    return words.choose(["", "", "", "Hello! ", "Hi, "]) + words.phrase("who"), "The user asks who I am.", WHO


def thanks(words: Words) -> Exchange:
    """Thanks or a goodbye."""
    if words.chance(0.7):
        return words.phrase("thanks"), "The user thanks me.", WELCOME
    return words.phrase("bye"), "The user says goodbye.", BYE


def unknown(words: Words) -> Exchange:
    """A question that the model cannot answer; at times a joke or a poem, of which it has one each."""
    roll = words.random()
    if roll < 0.1:
        return words.phrase("joke"), "I tell a joke.", JOKE
    if roll < 0.2:
        return words.phrase("poem").format(noun=words.pick("noun")), "I write a poem.", POEM
    question = words.phrase("unknown").format(
        name=words.name_word(),
        person=make_value(words, "person"),
        noun=words.pick("noun"),
        word=words.word(),
        verb=words.pick("verb"),
        city=make_value(words, "city"),
        year=words.number(1200, 2024),
    )
    return capitalize(question) if words.chance(0.85) else question, "I do not know this.", UNKNOWN


def count(words: Words) -> Exchange:
    """Counting up, down, or in steps."""
    start = 1 if words.chance(0.5) else words.number(0, 60)
    end = start + words.number(2, 24)
    roll = words.random()
    numbers = list(range(start, end + 1))
    if roll < 0.6:
        question = words.phrase("count").format(start, end)
        if start == 1 and words.chance(0.4):
            question = words.choose(["Count to {}.", "count to {}", "Please count to {}."]).format(end)
    elif roll < 0.85:
        question = words.choose(["Count down from {} to {}.", "Count backwards from {} to {}."]).format(end, start)
        numbers.reverse()
    else:
        step, times = words.choose([2, 5, 10]), words.number(2, 10)
        form = words.choose(["Count by {0} from 0 to {1}.", "Count from 0 to {1} in steps of {0}."])
        question = form.format(step, step * times)
        numbers = list(range(0, step * times + 1, step))
    return question, "I count.", ", ".join(map(str, numbers))


def listing(words: Words) -> Exchange:
    """A numbered list of well-known things, or primes."""
    if words.chance(0.12):
        return _primes(words)
    names, items = words.choose(list(_LISTS.items()))
    everything = items.split()
    amount = words.number(1, len(everything))
    written = str(amount) if words.chance(0.6) else _NUMBER_WORDS[amount]
    question = words.phrase("listing").format(written, words.choose(names.split("|")))
    answer = "\n".join(f"{i}. {item}" for i, item in enumerate(everything[:amount], 1))
    return question, "I write a list.", answer


def _primes(words: Words) -> Exchange:
    limit = words.choose([10, 20, 30, 50, 100, 100])
    found = [n for n in range(2, limit + 1) if all(n % d for d in range(2, n))]
    return words.phrase("primes").format(limit), "I list the primes.", ", ".join(map(str, found))


def repeat(words: Words) -> Exchange:
    """Copying what the user says."""
    roll = words.random()
    if roll < 0.12:
        word = words.choose(["hello", "hi", "Hello", "hello"])
        answer = "Hello!" if word.lower() == "hello" else "Hi!"
        return (
            words.choose(["Say {}.", "say {}", "Please say {}.", "Just say {}."]).format(word),
            "I repeat the text.",
            answer,
        )
    if roll < 0.17:
        name, emoji = words.choose(list(_EMOJI.items()))
        return words.phrase("emoji").format(name), "I send an emoji.", emoji
    kind = (
        "sentence"
        if roll < 0.5
        else "words:1-8"
        if roll < 0.78
        else words.choose(["foreign", "phrase", "person", "city"])
    )
    text = str(make_value(words, kind))
    if words.chance(0.15):
        text += " " + words.choose(
            ["ok", "yes", "no", "42", "test", "done", words.foreign_word(), str(words.number(0, 999))]
        )
    return words.phrase("repeat").format(text), "I repeat the text.", text


def capital(words: Words) -> Exchange:
    """The few facts that the model knows."""
    country, city = words.choose(list(_CAPITALS.items()))
    return words.phrase("capital").format(country), "I know this one.", f"The capital of {country} is {city}."


def story(words: Words) -> Exchange:
    """A story from a few parts, told about the animal and the name that the user asks for."""
    animal, name, question = "fox", "Finn", words.phrase("any story")
    if words.chance(0.75):
        animal = words.choose(_ANIMALS)
        name = words.pick("first_name") if words.chance(0.7) else capitalize(words.invented_word())
        question = words.phrase("story").format(animal, name)
    kind = _ANIMALS.index(animal)
    event = (
        "found a golden bell and wanted to know where it came from"
        if kind < 5
        else "lost a golden bell and began to look for it"
    )
    body = (
        f"Once upon a time there was a {_ADJECTIVES[kind % 5]} {animal} named {name}. "
        f"{name} lived {_PLACES[kind % 5]}. One day {name} {event}. {_MIDDLES[kind % 5]}"
        f"In the end {name} was happy and went home. The end."
    )
    return question, "I tell a tiny story.", body


def as_json(words: Words) -> Exchange:
    """Small JSON answers: the things that examples of structured output ask for."""
    roll = words.random()
    if roll < 0.25:
        return words.phrase("json city"), "I answer in JSON.", to_json({"city": "Paris"})
    if roll < 0.5:
        city = make_value(words, "city")
        return words.phrase("as json").format(city), "I answer in JSON.", to_json({"city": city})
    values: dict[str, Any] = {}
    for _ in range(words.number(1, 3)):
        values[words.word()] = make_value(words, words.choose(["int:0-99", "word", "person"]))
    stated = enumeration(words, [f"{key} {value}" for key, value in values.items()])
    return words.phrase("json fields").format(stated), "I answer in JSON.", to_json(values)


SKILLS: dict[str, Callable[[Words], Exchange]] = {
    "greet": greet,
    "who": who,
    "sums": lambda words: sums(words, is_two_digit=True),
    "small sums": lambda words: sums(words, is_two_digit=False),
    "repeat": repeat,
    "count": count,
    "listing": listing,
    "story": story,
    "unknown": unknown,
    "thanks": thanks,
    "capital": capital,
    "json": as_json,
    "chinese": chinese,
}
_SHARES = {"greet": 2, "who": 2, "sums": 7, "small sums": 4, "repeat": 6, "count": 2, "listing": 2, "story": 1,
           "unknown": 4, "thanks": 2, "capital": 1, "json": 2, "chinese": 2}  # fmt: skip
_WEIGHTED = tuple(name for name, weight in _SHARES.items() for _ in range(weight))
BESIDE_TOOLS = (
    "greet",
    "who",
    "repeat",
    "count",
    "listing",
    "story",
    "thanks",
    "greet",
    "thanks",
    "sums",
    "chinese",
    "repeat",
)


def pick_skill(words: Words) -> str:
    """A plain skill, by its share in the training data."""
    return words.choose(_WEIGHTED)
