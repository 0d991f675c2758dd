"""A read-only tree of files: a wheel, or a folder that one was unpacked into. Knows nothing of what the files say."""

from __future__ import annotations

import zipfile
from pathlib import Path


class SourceTree:
    """Files by their path from the root, with `/`."""

    def __init__(self, path: Path) -> None:
        """`path`: a wheel or a folder. OSError or zipfile.BadZipFile when it can not be read."""
        self._folder = path
        self._archive = None if path.is_dir() else zipfile.ZipFile(path)
        self._names = frozenset(self._archive.namelist()) if self._archive else frozenset()

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return name in self._names if self._archive else (self._folder / name).is_file()

    def text(self, name: str) -> str:
        """The file as text; bytes that are no UTF-8 become question marks."""
        data = self._archive.read(name) if self._archive else (self._folder / name).read_bytes()
        return data.decode("utf-8", "replace")
