"""The conformance suite: every wire format and reasoning dialect, whole and streamed.

`python -m conformance` draws calls and prose, renders them by the `writing` tables of `spec/formats/*.yaml`, and
holds the readers of `atom.entrypoints.openai` to the drawn values. `python -m conformance --corpus DIR` holds them to
recorded vectors. See docs/conformance.md.
"""
