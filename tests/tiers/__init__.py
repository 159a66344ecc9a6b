"""Three tiers of tests: ``fast`` for each change, ``all`` before a release, ``nightly`` with what takes hours. See ``plugin``."""
