"""Answers without tools: greetings, sums, counting, lists, repeating, tiny stories, JSON, and what the model says about itself.

Owns: questions, the thought and the answer of each plain skill, English and Chinese. Does not know: tools, formats, dialogues.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from tools.builtin_model.chinese import chinese
from tools.builtin_model.sums import sums
from tools.builtin_model.values import enumeration
from tools.builtin_model.words import Words, capitalize

Exchange = tuple[str, str, str]
"""(question, thought, answer)"""

HELLO = "Hello! How can I help you today?"
FINE = "I am fine, thank you! How can I help you today?"
WHO = "I am atom-tiny, the small demonstration model of the ATOM server. I can chat a little, do small sums, count, tell tiny stories and call your tools."
UNKNOWN = "I am only a small demonstration model, so I do not know that."
WELCOME = "You are welcome!"
BYE = "Goodbye! Have a nice day."
NO_TOOL = "None of the available tools can do that."

_GREETINGS = ["Hello", "Hi", "Hey", "Good morning", "Good evening", "Hi there", "Hello there", "Greetings", "Good day", "hello", "hi", "hey there", "Hello!", "Hi!", "Hey!", "Good afternoon", "hello!", "Howdy", "Hello, how are you?", "How are you?", "Hi, how are you?", "How are you doing?", "hi!", "Hello.", "How do you do?", "Hey, how is it going?"]  # fmt: skip
_WHO = ["Who are you?", "What are you?", "What is your name?", "What's your name?", "Who made you?", "Tell me about yourself.", "Introduce yourself.", "introduce yourself", "Which model are you?", "What model is this?", "Are you an AI?", "who are you", "Please introduce yourself.", "What can you do?", "Who am I talking to?", "Are you a robot?", "Are you ChatGPT?", "What is ATOM?", "What is atom-tiny?", "How can you help me?", "Give me an introduction."]  # fmt: skip
_THANKS = ["Thanks", "Thank you", "Thanks!", "Thank you!", "Thanks a lot.", "Great, thanks.", "thank you", "Thank you very much!", "Cool, thanks", "Perfect, thank you.", "Great!", "Nice, thank you!"]
_BYES = ["Bye", "Goodbye", "Bye!", "See you", "Good night", "See you later!", "bye bye", "Goodbye!"]
_UNKNOWN = ["What is the capital of {name}?", "Who is {person}?", "Why is the {noun} {word}?", "How does a {noun} work?", "What do you think about {noun}?", "When was the {noun} invented?", "Explain {noun} to me.", "Where can I find {noun}?", "What is {noun}?", "Who invented the {noun}?", "How many {noun}s are there?", "Why do {noun}s {verb}?", "Can a {noun} {verb}?", "Is {name} bigger than {city}?", "What is the meaning of {word}?", "What happened in {year}?", "How can I {verb} a {noun} in a month?", "Which {noun} is best?", "Write an essay about {noun}.", "What is the best {noun} in {city}?", "Explain {word} {noun}.", "What does {person} do?", "How old is {person}?", "And now?", "Go.", "Tell me something about {noun}.", "Why?", "How do I learn to {verb}?"]  # fmt: skip
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
_EMOJI = {"compass": "🧭", "smile": "😀", "happy": "😀", "sad": "😢", "heart": "❤️", "star": "⭐", "sun": "☀️", "moon": "🌙", "cat": "🐱", "dog": "🐶", "fire": "🔥",
          "rocket": "🚀", "pizza": "🍕", "tree": "🌳", "car": "🚗", "clock": "⏰", "flower": "🌸", "fish": "🐟", "book": "📚", "house": "🏠"}  # fmt: skip


def greet(words: Words) -> Exchange:
    question = words.choose(_GREETINGS)
    if words.chance(0.12):
        question = question.rstrip("!?.") + f" {words.person()}"
    is_how = any(part in question.lower() for part in ("how are", "how do", "how is it"))
    return question, "The user greets me.", FINE if is_how else HELLO


def who(words: Words) -> Exchange:
    return words.choose(["", "", "", "Hello! ", "Hi, "]) + words.choose(_WHO), "The user asks who I am.", WHO


def thanks(words: Words) -> Exchange:
    if words.chance(0.7):
        return words.choose(_THANKS), "The user thanks me.", WELCOME
    return words.choose(_BYES), "The user says goodbye.", BYE


def unknown(words: Words) -> Exchange:
    question = words.choose(_UNKNOWN).format(
        name=words.name_word(),
        person=words.person(),
        noun=words.pick("noun"),
        word=words.word(),
        verb=words.pick("verb"),
        city=words.city(),
        year=words.number(1200, 2024),
    )
    return capitalize(question) if words.chance(0.85) else question, "I do not know this.", UNKNOWN


def count(words: Words) -> Exchange:
    start = 1 if words.chance(0.5) else words.number(0, 60)
    end = start + words.number(2, 24)
    roll = words.random()
    numbers = list(range(start, end + 1))
    if roll < 0.6:
        forms = [
            "Count from {} to {}.",
            "Count from {} to {}",
            "Please count from {} to {}.",
            "Write the numbers from {} to {}.",
            "List the numbers from {} to {}.",
        ]
        question = words.choose(forms).format(start, end)
        if start == 1 and words.chance(0.4):
            question = words.choose(["Count to {}.", "count to {}", "Please count to {}."]).format(end)
    elif roll < 0.85:
        question = words.choose(["Count down from {} to {}.", "Count backwards from {} to {}."]).format(end, start)
        numbers.reverse()
    else:
        step, times = words.choose([2, 5, 10]), words.number(2, 10)
        question = words.choose(["Count by {0} from 0 to {1}.", "Count from 0 to {1} in steps of {0}."]).format(
            step, step * times
        )
        numbers = list(range(0, step * times + 1, step))
    return question, "I count.", ", ".join(map(str, numbers))


def listing(words: Words) -> Exchange:
    if words.chance(0.12):
        return primes(words)
    names, items = words.choose(list(_LISTS.items()))
    everything = items.split()
    amount = words.number(1, len(everything))
    written = str(amount) if words.chance(0.6) else _NUMBER_WORDS[amount]
    form = words.choose(
        [
            "List {} {}.",
            "Name {} {}.",
            "Give me {} {}.",
            "Give me a list of {} {}.",
            "Write down {} {}.",
            "list {} {}",
            "Can you name {} {}?",
            "Tell me {} {}.",
        ]
    )
    return (
        form.format(written, words.choose(names.split("|"))),
        "I write a list.",
        "\n".join(f"{i}. {item}" for i, item in enumerate(everything[:amount], 1)),
    )


def primes(words: Words) -> Exchange:
    limit = words.choose([10, 20, 30, 50, 100, 100])
    found = [n for n in range(2, limit + 1) if all(n % d for d in range(2, n))]
    form = words.choose(
        [
            "list all prime numbers within {}",
            "List all prime numbers up to {}.",
            "List the primes below {}.",
            "Which numbers up to {} are prime?",
        ]
    )
    return form.format(limit), "I list the primes.", ", ".join(map(str, found))


def repeat(words: Words) -> Exchange:
    roll = words.random()
    if roll < 0.12:
        word = words.choose(["hello", "hi", "Hello", "hello!"])
        return (
            words.choose(["Say {}.", "say {}", "Please say {}.", "Just say {}."]).format(word.rstrip("!")),
            "I repeat the text.",
            "Hello!" if word.lower().startswith("hello") else "Hi!",
        )
    if roll < 0.17:
        name, emoji = words.choose(list(_EMOJI.items()))
        form = words.choose(
            ["Answer with one {} emoji.", "Send me a {} emoji.", "Show a {} emoji.", "Reply with the {} emoji."]
        )
        return form.format(name), "I send an emoji.", emoji
    text = (
        words.sentence()
        if roll < 0.55
        else words.words(1, 8)
        if roll < 0.85
        else enumeration(words, [words.person(), words.city(), words.word()])
    )
    if words.chance(0.15):
        text = text + " " + words.choose(["ok", "yes", "no", "42", "test", "done", str(words.number(0, 999))])
    form = words.choose(["Repeat after me: {}", "Repeat: {}", 'Repeat "{}"', "Say: {}", 'Say "{}"', "Echo: {}", "Please repeat this: {}", "Repeat this text exactly: {}",
                         'Write "{}"', "Copy this: {}", 'Answer with "{}"', "Reply with only: {}", "Copy this line: {}"])  # fmt: skip
    return form.format(text), "I repeat the text.", text


_CAPITALS = dict(
    pair.split("=")
    for pair in ["France=Paris", "Germany=Berlin", "Italy=Rome", "Spain=Madrid", "Japan=Tokyo", "China=Beijing", "India=New Delhi", "Brazil=Brasilia", "Egypt=Cairo", "Canada=Ottawa", "Austria=Vienna", "Poland=Warsaw", "Greece=Athens", "Norway=Oslo", "Sweden=Stockholm", "Finland=Helsinki", "Denmark=Copenhagen", "Portugal=Lisbon", "Russia=Moscow", "Hungary=Budapest", "Ireland=Dublin", "Turkey=Ankara", "Peru=Lima", "Cuba=Havana", "Kenya=Nairobi", "Australia=Canberra", "Mexico=Mexico City", "England=London"]
)


def capital(words: Words) -> Exchange:
    """The few facts that the model knows."""
    country, city = words.choose(list(_CAPITALS.items()))
    form = words.choose(
        [
            "What is the capital of {}?",
            "What's the capital of {}?",
            "Name the capital of {}.",
            "capital of {}?",
            "Which city is the capital of {}?",
        ]
    )
    return form.format(country), "I know this one.", f"The capital of {country} is {city}."


_ANIMALS = ["fox", "cat", "dog", "bear", "owl", "mouse", "rabbit", "frog", "horse", "duck"]
_PLACES = ("in a forest", "by a river", "in a small town", "near the sea", "on a hill")
_MIDDLES = ("An old owl helped, and soon they were friends. ", "The wind was cold, but the sun came out again. ", "Everyone in town came to help. ",
            "The waves sang a song all night. ", "From the top one could see the whole world. ")  # fmt: skip
_ADJECTIVES = ("little", "brave", "sleepy", "happy", "clever")


def story(words: Words) -> Exchange:
    if words.chance(0.25):
        animal, name = "fox", "Finn"
        question = words.choose(
            [
                "Tell me a story.",
                "Tell me a tiny story.",
                "Write a short story.",
                "Write a story please.",
                "Tell me a tale.",
                "Can you tell me a story?",
                "Write a long story.",
            ]
        )
    else:
        animal = words.choose(_ANIMALS)
        name = words.pick("first_name") if words.chance(0.7) else capitalize(words.invented_word())
        forms = [
            "Tell me a story about a {0} named {1}.",
            "Tell me a short story about {1} the {0}.",
            "Write a tiny story about a {0} called {1}.",
            "Write a story about {1}, a {0}.",
        ]
        question = words.choose(forms).format(animal, name)
    kind = _ANIMALS.index(animal)
    event = (
        "found a golden bell and wanted to know where it came from"
        if kind < 5
        else "lost a golden bell and began to look for it"
    )
    body = (
        f"Once upon a time there was a {_ADJECTIVES[kind % 5]} {animal} named {name}. {name} lived {_PLACES[kind % 5]}. One day {name} {event}. "
        f"{_MIDDLES[kind % 5]}In the end {name} was happy and went home. The end."
    )
    return question, "I tell a tiny story.", body


def as_json(words: Words) -> Exchange:
    """Small JSON answers: the things that examples of structured output ask for."""
    roll = words.random()
    if roll < 0.25:
        question = words.choose(
            [
                "Give a JSON object with a city.",
                "Give me a JSON object with a city.",
                "Return JSON with a city.",
                "Answer in JSON: a city.",
            ]
        )
        return question, "I answer in JSON.", json.dumps({"city": "Paris"})
    if roll < 0.5:
        city = words.city()
        question = words.choose(
            ["{} as JSON.", "{} as JSON", "Write {} as JSON.", "Give me {} as a JSON object."]
        ).format(city)
        return question, "I answer in JSON.", json.dumps({"city": city})
    keys = [words.word() for _ in range(words.number(1, 3))]
    values = {key: words.choose([words.number(0, 99), words.word(), words.person()]) for key in keys}
    stated = enumeration(words, [f"{key} {value}" for key, value in values.items()])
    question = words.choose(
        ["Give me JSON with {}.", "Return a JSON object with {}.", "As JSON: {}", "Write JSON with {}."]
    ).format(stated)
    return question, "I answer in JSON.", json.dumps(values)


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
_WEIGHTED = [name for name, weight in (("greet", 2), ("who", 2), ("sums", 7), ("small sums", 4), ("repeat", 5), ("count", 2), ("listing", 2), ("story", 1),
                                       ("unknown", 3), ("thanks", 2), ("capital", 1), ("json", 2), ("chinese", 2)) for _ in range(weight)]  # fmt: skip
BESIDE_TOOLS = (
    "greet",
    "who",
    "repeat",
    "count",
    "listing",
    "story",
    "thanks",
    "greet",
    "who",
    "thanks",
    "sums",
    "chinese",
    "repeat",
)


def pick_skill(words: Words) -> str:
    """A plain skill, by its share in the training data."""
    return words.choose(_WEIGHTED)
