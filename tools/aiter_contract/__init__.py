"""Whether the pinned AITER wheel is what our backend calls. Reads the wheel's text; imports and runs nothing of it."""
