"""Each plugin offers what the protocol of its kind asks for."""

from __future__ import annotations

import inspect

import pytest

from paimon_base.plugins import _PLUGINS, plugin
from pyspark_paimon.seams import SEAMS

PAIRS = [(kind, name) for kind in SEAMS for name in _PLUGINS[kind]]


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_a_plugin_takes_what_its_seam_gives(kind: str, name: str) -> None:
    methods = {
        key: value
        for key, value in vars(SEAMS[kind]).items()
        if inspect.isfunction(value) and (key == "__call__" or not key.startswith("_"))
    }
    assert methods
    for key, asked in methods.items():
        given = plugin(kind, name) if key == "__call__" else getattr(plugin(kind, name), key)
        wanted = list(inspect.signature(asked).parameters)[1:]
        offered = inspect.signature(given).parameters
        required = {each for each, parameter in offered.items() if parameter.default is inspect.Parameter.empty}
        if kind == "catalog":  # catalogs of directories take the warehouse first, which ``Catalog.create`` takes out of the options
            required.discard("warehouse")
        assert required <= set(wanted) <= set(offered), (kind, name, key)
