"""The contracts of `spec/` as Python. Derived by `make generate`; never edited. Imports nothing of atom."""
