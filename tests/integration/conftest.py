# SPDX-License-Identifier: Apache-2.0
"""What every test starts with."""
import pytest


@pytest.fixture(autouse=True)
def nothing_is_remembered(tmp_path_factory, monkeypatch):
    """Daemons keep what they know of sources in the user's cache: that of each test is its own, and empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
