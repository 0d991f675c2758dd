"""The data, training and evaluation of atom-tiny, the small model that ships with ATOM (see docs/builtin-model.md)."""
