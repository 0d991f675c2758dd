"""Settings of hypothesis for all tests: how long an example takes says nothing here, and each run draws the same.

A busy machine would turn time limits red, and a draw that nobody saw before would do so to a change that it has nothing
to do with. New draws: `make test TESTS="tests --hypothesis-profile=default"`.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")
