"""Derives `generated/atom_spec/` and the tables in `docs/` from the files of `spec/`: `python spec/codegen [--check]`."""
