"""The HTTP contract held against a live server: requests drawn from spec/openapi.yaml, answers and streams checked."""
