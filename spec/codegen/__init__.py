"""Derives `generated/atom_spec/` and the tables in `docs/` from `spec/`: `python spec/codegen [--check]`."""
