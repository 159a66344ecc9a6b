"""Which elements of a footer's schema are taken, and which are damage."""

from __future__ import annotations

from typing import Any

import pytest

from lsm.parquet.fields import SchemaElement as Element
from lsm.parquet.footer_structure import _check_element as check_element
from lsm.parquet.thrift import Struct

COLUMN: dict[int, Any] = {Element.NAME: b"a", Element.TYPE: 1, Element.REPETITION_TYPE: 1}
GROUP: dict[int, Any] = {Element.NAME: b"a", Element.NUM_CHILDREN: 1, Element.REPETITION_TYPE: 1}


def element(values: dict[int, Any]) -> Struct:
    return {number: (0, value) for number, value in values.items() if value is not None}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {Element.TYPE: 0},
        {Element.TYPE: 6},
        {Element.TYPE: 7, Element.TYPE_LENGTH: 1},
        {Element.REPETITION_TYPE: 0},
        {Element.REPETITION_TYPE: 2},
        {Element.CONVERTED_TYPE: 0},
        {Element.CONVERTED_TYPE: 21},
        {Element.LOGICAL_TYPE: {1: (0, {})}},
    ],
)
def test_columns_of_the_format_are_taken(change: dict[int, Any]) -> None:
    check_element(element(COLUMN | change), root=False)


@pytest.mark.parametrize("children", [0, 1, 1 << 16])
@pytest.mark.parametrize("root", [False, True])
def test_groups_of_the_format_are_taken(children: int, root: bool) -> None:
    check_element(element(GROUP | {Element.NUM_CHILDREN: children}), root=root)


def test_the_root_needs_no_repetition() -> None:
    check_element(element(GROUP | {Element.REPETITION_TYPE: None}), root=True)
    with pytest.raises(KeyError):
        check_element(element(GROUP | {Element.REPETITION_TYPE: None}), root=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({Element.NUM_CHILDREN: 1}, "neither a column nor a group"),
        ({Element.TYPE: None}, "neither a column nor a group"),
        ({Element.TYPE: None, Element.NUM_CHILDREN: -1}, "neither a column nor a group"),
        ({Element.TYPE: None, Element.NUM_CHILDREN: (1 << 16) + 1}, "neither a column nor a group"),
        ({Element.REPETITION_TYPE: 3}, "unknown repetition"),
        ({Element.REPETITION_TYPE: -1}, "unknown repetition"),
        ({Element.TYPE: -1}, "unknown type"),
        ({Element.TYPE: 8}, "unknown type"),
        ({Element.TYPE: 7, Element.TYPE_LENGTH: 0}, "no width"),
        ({Element.TYPE: 7, Element.TYPE_LENGTH: -4}, "no width"),
        ({Element.CONVERTED_TYPE: 22}, "unknown logical type"),
        ({Element.CONVERTED_TYPE: -1}, "unknown logical type"),
        ({Element.LOGICAL_TYPE: {}}, "unknown logical type"),
        ({Element.LOGICAL_TYPE: {1: (0, {}), 2: (0, {})}}, "unknown logical type"),
        ({Element.LOGICAL_TYPE: {0: (0, {})}}, "unknown logical type"),
        ({Element.LOGICAL_TYPE: {99: (0, {})}}, "unknown logical type"),
    ],
)
def test_other_columns_are_damage(change: dict[int, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_element(element(COLUMN | change), root=False)


def test_a_root_without_children_is_damage() -> None:
    with pytest.raises(ValueError, match="neither a column nor a group"):
        check_element(element(COLUMN), root=True)


def test_a_name_that_is_no_text_is_damage() -> None:
    with pytest.raises(UnicodeDecodeError):
        check_element(element(COLUMN | {Element.NAME: b"\xff"}), root=False)
