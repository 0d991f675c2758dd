"""docs/clients.md against real clients: its snippets as they stand there, the probes beside the project, its table."""
