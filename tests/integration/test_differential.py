# SPDX-License-Identifier: Apache-2.0
"""The same random Events and event files, decoded by us and by TensorBoard's own protobuf classes (tests/differential), in short form:
make fuzz goes on for longer."""
import pytest

from tests.differential import compare

pytestmark = pytest.mark.sanitize


@pytest.mark.parametrize("seed", [1, 2])
def test_events_are_read_alike(seed):
    items, accepted = compare.run("events", count=20000, seed=seed)
    assert items / 3 < accepted < items  # neither all of them nor none


@pytest.mark.parametrize("seed", [1, 2])
def test_files_have_the_same_records(seed):
    items, records = compare.run("files", count=2000, seed=seed)
    assert records > items


def test_a_difference_is_told(monkeypatch):
    monkeypatch.setattr(compare.oracle, "event_told", lambda payload: None)
    with pytest.raises(compare.Difference, match="accepted\nitem "):
        compare.run("events", count=1)
