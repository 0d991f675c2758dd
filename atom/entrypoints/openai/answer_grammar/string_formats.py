"""JSON Schema's string formats as regular expressions, for the ones that a grammar can hold an answer to.

Owns the expressions. A format that is not here is what JSON Schema says a format is: a note to the reader.
"""

from __future__ import annotations

_MONTHS = (
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_YEAR = r"(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_FOURTH = r"(?:0[48]|[2468][048]|[13579][26])"
_LEAP_YEAR = rf"(?:[0-9]{{2}}{_FOURTH}|{_FOURTH}00)"
_DATE = rf"(?:{_YEAR}-{_MONTHS}|{_LEAP_YEAR}-02-29)"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])?"
_HOSTNAME = rf"{_LABEL}(?:\.{_LABEL}){{0,3}}"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_GROUP = r"[0-9a-fA-F]{1,4}"
_CLOCK = r"T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DAYS = rf"(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)(?:{_CLOCK})?"
_URL_TEXT = r"(?:[a-zA-Z0-9\-._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})"

STRING_FORMATS: dict[str, str] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": rf"P(?:{_DAYS}|{_CLOCK}|[0-9]+W)",
    "email": rf"[a-zA-Z0-9_%+\-]+(?:\.[a-zA-Z0-9_%+\-]+)*@{_HOSTNAME}",
    "hostname": _HOSTNAME,
    "ipv4": rf"{_BYTE}(?:\.{_BYTE}){{3}}",
    "ipv6": (
        rf"(?:(?:{_GROUP}:){{7}}{_GROUP}|(?:{_GROUP}:){{1,6}}:"
        rf"|::(?:{_GROUP}:){{0,5}}{_GROUP}|(?:{_GROUP}:){{1,3}}(?::{_GROUP}){{1,4}})"
    ),
    "uuid": r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    "uri": (
        r"[a-zA-Z][a-zA-Z0-9+\-.]*:"
        rf"(?://{_HOSTNAME}(?::[0-9]{{1,5}})?(?:/{_URL_TEXT}*)*|/?{_URL_TEXT}+(?:/{_URL_TEXT}*)*)"
        rf"(?:\?(?:{_URL_TEXT}|[/?])*)?(?:#(?:{_URL_TEXT}|[/?])*)?"
    ),
}
