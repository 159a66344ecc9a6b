"""The docs' table of what works with whom says what was proven."""

from __future__ import annotations

from tests.interop.features import DIRECTIONS, FEATURES, JAVA, OURS_READS, PEERS, PYPAIMON, READS_OURS, TURNS
from tests.interop.recording import as_table, differences, proven_cells, recorded_cells
from tests.interop.table import BEGIN, END, PAGE, cell, rendered, with_table


def test_the_docs_hold_the_table_of_the_recorded_outcomes() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    assert with_table(text, rendered(recorded_cells())) == text


def test_the_recording_names_known_features_peers_and_directions() -> None:
    cells = recorded_cells()
    assert cells
    assert all(name in FEATURES and peer in PEERS and way in DIRECTIONS for name, peer, way in cells)
    assert {name for name, _, _ in cells} == set(FEATURES)


def test_a_cell_tells_what_works_and_what_the_peer_does_instead() -> None:
    name = FEATURES[0]
    assert cell({(name, JAVA, way): "yes" for way in DIRECTIONS}, name, JAVA) == "both ways, in turns"
    assert cell({(name, JAVA, READS_OURS): "refuses", (name, JAVA, OURS_READS): "yes"}, name, JAVA) == "we read its; ours: refuses"
    assert cell({(name, JAVA, READS_OURS): "refuses", (name, JAVA, OURS_READS): "refuses"}, name, JAVA) == "refuses"
    assert cell({(name, JAVA, TURNS): "yes"}, name, PYPAIMON) == "–"


def test_a_cell_is_proven_only_if_all_its_tests_pass_and_claim_one_thing() -> None:
    first, second, third = ((FEATURES[0], JAVA, way) for way in DIRECTIONS)
    proven, troubles = proven_cells(
        {
            first: {("yes", "passed"), ("refuses", "passed")},
            second: {("yes", "passed"), ("yes", "failed")},
            third: {("refuses", "passed"), ("loses rows", "passed")},
        }
    )
    assert proven == {first: "refuses"}
    assert len(troubles) == 2
    assert differences({first: "yes", second: "yes"}, proven) != []
    assert differences(proven, proven) == []
    assert as_table(proven) == {FEATURES[0]: {JAVA: {READS_OURS: "refuses"}}}
