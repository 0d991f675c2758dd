"""The benchmarks of the project: one module a part, each with a `run()`."""
