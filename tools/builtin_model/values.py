"""Values of parameters: one generator for each kind that families and invented tools name.

Owns: what a date, a path or a shell command may look like. Returns JSON values; how a request words them is text_of().
Does not know: tools, requests, formats.
A kind is `name`, `name:argument`, or the name of a list in data/lists.txt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tools.builtin_model.words import Words, capitalize

Generator = Callable[[Words], Any]


def text_of(words: Words, value: Any) -> str:
    """How a request words a value: lists as an enumeration, booleans as true or false, the rest as it is."""
    if isinstance(value, list):
        return enumeration(words, [str(item) for item in value])
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def enumeration(words: Words, items: Sequence[str]) -> str:
    """ "a, b and c", at times without the "and"."""
    if len(items) == 1:
        return items[0]
    if words.chance(0.25):
        return ", ".join(items)
    return f"{', '.join(items[:-1])}{',' if len(items) > 2 and words.chance(0.15) else ''} and {items[-1]}"


def _integer(words: Words, bounds: str = "") -> int:
    if bounds:
        low, high = _bounds(bounds)
        return words.number(low, high)
    roll = words.random()
    if roll < 0.35:
        value = words.number(0, 12)
    elif roll < 0.7:
        value = words.number(0, 99)
    else:
        value = words.number(100, 999) if roll < 0.9 else words.number(1000, 99999)
    return -value if words.chance(0.03) else value


def _bounds(bounds: str) -> tuple[int, int]:
    """ "1-9" or "-9-9": the dash behind the first character separates."""
    split = bounds.index("-", 1)
    return int(bounds[:split]), int(bounds[split + 1 :])


def _number(words: Words, bounds: str = "") -> float:
    low, high = _bounds(bounds) if bounds else (0, 200)
    if words.chance(0.25):
        return words.number(low, high)
    whole = words.number(low, high - 1)
    return whole + words.number(1, 9) / 10 if words.chance(0.7) else round(whole + words.number(1, 99) / 100, 2)


def _money(words: Words) -> float:
    roll = words.random()
    if roll < 0.5:
        return words.number(1, 999)
    return words.number(1, 200) + 0.5 if roll < 0.7 else round(words.number(1, 300) + words.number(1, 99) / 100, 2)


def _email(words: Words) -> str:
    local = words.pick("first_name").lower() if words.chance(0.5) else words.word()
    extra = words.choose(["", "", f".{words.word()}", f"_{words.word()}"])
    domain = words.choose(["example", "mail", words.word(), words.word()])
    return f"{local}{extra}@{domain}{words.choose(['.com', '.org', '.net', '.io'])}"


def _letters(words: Words, low: int, high: int) -> str:
    return "".join(words.choose("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(words.number(low, high)))


def _digits(words: Words, low: int, high: int) -> str:
    return "".join(words.choose("0123456789") for _ in range(words.number(low, high)))


def _code(words: Words) -> str:
    roll = words.random()
    if roll < 0.55:
        return _letters(words, 1, 4) + words.choose(["", "-", "-"]) + _digits(words, 2, 5)
    if roll < 0.8:
        return words.word() + words.choose("-_") + str(words.number(1, 999))
    if roll < 0.9:
        return "".join(words.choose("abcdef0123456789") for _ in range(words.number(4, 8)))
    return _digits(words, 3, 7)


def _date_iso(words: Words) -> str:
    return f"{words.number(2019, 2031)}-{words.number(1, 12):02}-{words.number(1, 28):02}"


def _date(words: Words) -> str:
    roll = words.random()
    if roll < 0.35:
        return _date_iso(words)
    if roll < 0.65:
        return words.pick("weekday")
    if roll < 0.78:
        return words.choose(["tomorrow", "today", "next week", "next " + words.pick("weekday")])
    return f"{words.pick('month')} {words.number(1, 28)}"


def _time_24(words: Words) -> str:
    return f"{words.number(0, 23):02}:{words.choose([0, 15, 30, 45, words.number(0, 59)]):02}"


def _time(words: Words) -> str:
    roll = words.random()
    if roll < 0.5:
        return _time_24(words)
    hour = words.number(1, 12)
    if roll < 0.75:
        return f"{hour} {words.choose(['am', 'pm'])}"
    return (
        f"{hour}{words.choose(['am', 'pm'])}"
        if roll < 0.87
        else f"{hour}:{words.number(0, 59):02} {words.choose(['am', 'pm'])}"
    )


_SUFFIXES = (".txt", ".py", ".csv", ".md", ".json", ".log", ".html", ".pdf", "")


def _path(words: Words) -> str:
    prefix = words.choose(["/", "", "", "./", "~/"])
    return prefix + "/".join(words.word() for _ in range(words.number(1, 3))) + words.choose(_SUFFIXES)


def _filename(words: Words) -> str:
    return words.word() + words.choose(["", "", "_" + words.word(), "-" + words.word()]) + words.choose(_SUFFIXES[:-1])


def _folder(words: Words) -> str:
    return (
        words.choose(["/", "", "./", "~/", ""])
        + "/".join(words.word() for _ in range(words.number(1, 3)))
        + words.choose(["", "", "/"])
    )


def _url(words: Words) -> str:
    host = words.word() + words.choose([".com", ".org", ".io", ".net"])
    tail = words.choose(["", f"/{words.word()}", f"/{words.word()}/{words.number(1, 99)}", f"/{words.word()}.html"])
    return words.choose(["https://", "https://", "http://", "https://www."]) + host + tail


def _command(words: Words) -> str:
    word, other = words.word(), words.word()
    return words.choose(
        [f"ls -l {word}", "ls", "ls -la", f"cat {word}.txt", f"echo {word}", "pwd", f"python {word}.py", f"grep {word} {other}.log", "whoami",
         "git status", f"mkdir {word}", f"rm {word}.{other}", f"make {word}", "date", "uptime", f"tail -n {words.number(1, 99)} {word}.log",
         f"cp {word} {other}", "df -h", f"npm run {word}", f"find . -name {word}"]
    )  # fmt: skip


def _python_code(words: Words) -> str:
    word, a, b = words.word(), words.number(1, 99), words.number(1, 99)
    return words.choose(
        [
            f"print({a} + {b})",
            f"print('{word}')",
            f'print("{word}")',
            f"len('{word}')",
            f"{word} = {a}",
            f"sum(range({a}))",
            f"max({a}, {b})",
            f"import {word}",
        ]
    )


def _sql(words: Words) -> str:
    table, column, number = words.pick("table_name"), words.word(), words.number(1, 999)
    return words.choose(
        [f"SELECT * FROM {table}", f"SELECT {column} FROM {table}", f"SELECT {column} FROM {table} WHERE id = {number}",
         f"SELECT COUNT(*) FROM {table}", f"DELETE FROM {table} WHERE id = {number}", f"SELECT * FROM {table} LIMIT {number}",
         f"UPDATE {table} SET {column} = {number}", f"SELECT * FROM {table} ORDER BY {column}"]
    )  # fmt: skip


def _expression(words: Words) -> str:
    a, b, c = words.number(1, 999), words.number(1, 99), words.number(2, 12)
    forms = [
        f"{a} + {b}",
        f"{a} * {b}",
        f"{a} - {b}",
        f"{a} / {b}",
        f"{a}+{b}",
        f"({a} + {b}) * {c}",
        f"{a}*{b}",
        f"{b} * {c} - {a}",
        f"2 + {b}",
    ]
    return words.choose(forms)


def _equation(words: Words) -> str:
    a, b, c = words.number(2, 12), words.number(1, 40), words.number(1, 99)
    return words.choose([f"{a}x + {b} = {c}", f"{a}x = {c}", f"x + {b} = {c}", f"x^2 = {c}", f"{a}*x - {b} = {c}"])


def _todo(words: Words) -> str:
    doing = words.choose(["buy", "call", "clean", "fix", "send", "read", "write", "check", "pay", "feed", "bring", "cook", "wash", "print", "water", "finish"])
    thing = (
        words.word()
        if words.chance(0.6)
        else words.choose([words.pick("noun"), words.pick("first_name"), words.pick("food")])
    )
    return f"{doing} {words.choose(['', 'the ', 'the ', 'some '])}{thing}"


def _title(words: Words) -> str:
    count = words.choose([1, 2, 2, 3])
    text = " ".join(words.word() for _ in range(count))
    roll = words.random()
    return " ".join(map(capitalize, text.split())) if roll < 0.6 else (capitalize(text) if roll < 0.8 else text)


def _song(words: Words) -> str:
    text = words.words(1, 4)
    return " ".join(map(capitalize, text.split())) if words.chance(0.8) else text


def _product(words: Words) -> str:
    roll = words.random()
    if roll < 0.4:
        return words.word()
    return f"{words.word()} {words.pick('noun')}" if roll < 0.8 else f"{words.pick('color')} {words.word()}"


def _scene(words: Words) -> str:
    return (
        f"a {words.pick('color')} {words.pick('animal')} {words.choose(['in', 'on', 'near', 'with'])} a {words.word()}"
    )


def _place(words: Words) -> str:
    roll = words.random()
    if roll < 0.4:
        return words.city()
    if roll < 0.7:
        return f"{words.number(1, 199)} {words.pick('street')}"
    return words.choose(
        [
            "the airport",
            "the station",
            "Central Station",
            "the office",
            "my hotel",
            "the museum",
            words.name_word() + " Square",
        ]
    )


def _identifier(words: Words) -> str:
    roll = words.random()
    if roll < 0.4:
        return words.word()
    return f"{words.word()}_{words.word()}" if roll < 0.8 else words.word() + words.name_word()


def _commit_message(words: Words) -> str:
    return words.choose(
        [
            f"fix {words.word()}",
            f"Add {words.word()} {words.word()}",
            f"update {words.word()}",
            words.sentence(),
            "wip",
            f"Remove the {words.word()}",
        ]
    )


def _multiline(words: Words) -> str:
    lines = [
        words.choose(
            [
                words.sentence(),
                f"{words.word()} = {words.number(0, 99)}",
                f'print("{words.word()}")',
                f"- {words.words(1, 4)}",
            ]
        )
        for _ in range(words.number(2, 4))
    ]
    return "\n".join(lines)


def _doctor(words: Words) -> str:
    return words.choose(["Dr. ", "Dr. ", "Doctor "]) + (
        words.pick("last_name") if words.chance(0.6) else words.name_word()
    )


def _medicine(words: Words) -> str:
    return words.choose(
        ["aspirin", "ibuprofen", "paracetamol", "insulin", words.invented_word() + "in", words.invented_word() + "ol"]
    )


def _list(words: Words, kind: str = "") -> list[Any]:
    inner = kind or ("word" if words.chance(0.55) else words.choose(["person", "city", "phrase_short", "code", "word"]))
    count = words.number(1, 4) if words.chance(0.92) else 5
    # A held-out list may have fewer entries than wanted, so repeats are dropped rather than drawn again for ever.
    return list(dict.fromkeys(make_value(words, inner) for _ in range(count)))


_GENERATORS: dict[str, Generator] = {
    "city": Words.city,
    "person": Words.person,
    "word": Words.word,
    "sentence": lambda words: words.sentence(),
    "phrase": lambda words: words.words(1, 4),
    "phrase_short": lambda words: words.words(1, 2),
    "multiline": _multiline,
    "title": _title,
    "song": _song,
    "project": _title,
    "word_title": lambda words: (
        words.name_word() + words.choose(["", "", str(words.number(1, 99)), "-" + words.word()])
    ),
    "product": _product,
    "scene": _scene,
    "place": _place,
    "todo": _todo,
    "email": _email,
    "code": _code,
    "tracking": lambda words: words.choose(
        [_letters(words, 2, 2) + _digits(words, 6, 9), "1Z" + _digits(words, 6, 9), "PKG-" + _digits(words, 4, 5)]
    ),
    "coupon": lambda words: (words.word().upper() if words.chance(0.7) else "SAVE") + _digits(words, 1, 2),
    "phone": lambda words: words.choose(["+49", "+1", "0", "555-", "+44 "]) + _digits(words, 5, 10),
    "username": lambda words: (
        words.choose(["", "", "@"])
        + words.word()
        + words.choose(["", "_" + words.word(), str(words.number(1, 99)), "." + words.word()])
    ),
    "channel": lambda words: words.choose(["#", "#", ""]) + words.word(),
    "date": _date,
    "date_iso": _date_iso,
    "time": _time,
    "time_24": _time_24,
    "path": _path,
    "filename": _filename,
    "folder": _folder,
    "image_path": lambda words: (
        words.choose(["", "", "/", "img/"]) + words.word() + words.choose([".png", ".jpg", ".webp", ".gif"])
    ),
    "photo_id": lambda words: words.choose(["IMG_", "p-", "DSC", "photo-"]) + _digits(words, 2, 4),
    "url": _url,
    "repo_url": lambda words: f"https://github.com/{words.word()}/{words.word()}{words.choose(['', '.git'])}",
    "host": lambda words: words.choose(
        [
            f"{words.word()}.com",
            f"{words.word()}.local",
            f"10.0.{words.number(0, 255)}.{words.number(1, 254)}",
            f"{words.word()}.{words.word()}.org",
        ]
    ),
    "command": _command,
    "pycode": _python_code,
    "sql": _sql,
    "expression": _expression,
    "equation": _equation,
    "function": lambda words: words.choose(
        [
            f"x^2 + {words.number(1, 30)}",
            "sin(x)",
            f"{words.number(2, 12)}x - {words.number(1, 30)}",
            "log(x)",
            f"x^{words.number(2, 5)}",
        ]
    ),
    "commit_message": _commit_message,
    "identifier": _identifier,
    "env_var": lambda words: words.word().upper() + words.choose(["", "_" + words.word().upper()]),
    "library": lambda words: words.choose(
        ["numpy", "requests", "pandas", "react", "flask", words.word(), words.word(), words.word() + "-" + words.word()]
    ),
    "version": lambda words: (
        f"{words.number(0, 9)}.{words.number(0, 30)}{words.choose(['', '', '.' + str(words.number(0, 9))])}"
    ),
    "app": lambda words: words.choose(
        [
            "Chrome",
            "Firefox",
            "Spotify",
            "Excel",
            "Word",
            "Slack",
            "Mail",
            "Photos",
            words.name_word(),
            words.name_word(),
            words.word(),
        ]
    ),
    "color_hex": lambda words: "#" + "".join(words.choose("0123456789abcdef") for _ in range(6)),
    "flight_no": lambda words: words.pick("airline") + words.choose(["", " "]) + _digits(words, 2, 4),
    "seat": lambda words: f"{words.number(1, 40)}{words.choose('ABCDEF')}",
    "street_number": lambda words: (
        f"{words.number(1, 199)} {words.pick('street') if words.chance(0.6) else words.name_word() + ' ' + words.choose(['Street', 'Road', 'Lane', 'Avenue'])}"
    ),
    "zip": lambda words: _digits(words, 5, 5),
    "latlon": lambda words: round(words.number(-89, 89) + words.number(1, 9999) / 10000, words.choose([1, 2, 4])),
    "tv_channel": lambda words: words.choose(["CNN", "BBC", "ESPN", "ARTE", "HBO", words.name_word(), "Channel 4"]),
    "room_name": lambda words: words.choose(
        [words.name_word(), f"{words.choose('ABC')}{words.number(1, 40)}", words.pick("city")]
    ),
    "job": lambda words: words.choose(
        [
            "developer",
            "nurse",
            "teacher",
            "cook",
            "driver",
            "designer",
            "baker",
            "engineer",
            "manager",
            "tester",
            words.word() + " engineer",
            words.word() + " manager",
        ]
    ),
    "school_subject": lambda words: words.choose(
        ["math", "history", "biology", "physics", "chemistry", "art", "music", "geography", "English", words.word()]
    ),
    "doctor": _doctor,
    "medicine": _medicine,
    "square": lambda words: f"{words.choose('abcdefgh')}{words.number(1, 8)}",
    "bool": lambda words: words.chance(0.5),
    "integer": _integer,
    "int": _integer,
    "number": _number,
    "money": _money,
    "list": _list,
}
_WITH_ARGUMENT: dict[str, Callable[[Words, str], Any]] = {"int": _integer, "number": _number, "list": _list}


def make_value(words: Words, kind: str) -> Any:
    """A value of the kind; KeyError for a kind that neither this file nor data/lists.txt knows."""
    generator = _GENERATORS.get(kind)
    if generator is not None:
        return generator(words)
    name, colon, argument = kind.partition(":")
    if colon:
        return _WITH_ARGUMENT[name](words, argument)
    value = words.pick(kind)
    # A word that no list has now and then keeps the model copying instead of reciting lists.
    return words.name_word() if value[0].isupper() and words.random() < 0.12 and kind in _OPEN_LISTS else value


_OPEN_LISTS = {"city", "country", "first_name", "last_name", "team", "company", "venue", "street"}


def json_type(kind: str) -> dict[str, Any]:
    """The JSON schema of a kind's values, without description."""
    name, _, argument = kind.partition(":")
    if name in ("int", "integer"):
        return {"type": "integer"}
    if name in ("number", "money", "latlon"):
        return {"type": "number"}
    if name == "bool":
        return {"type": "boolean"}
    if name == "list":
        return {"type": "array", "items": json_type(argument or "word")}
    return {"type": "string"}
