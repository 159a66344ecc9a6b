"""Mutation testing of the core: small seeded changes, and the tests that should notice each of them. See ``docs/mutants.md``."""
