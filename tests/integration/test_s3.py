# SPDX-License-Identifier: Apache-2.0
"""s3:// on moto. Servers that take longer to have: tests/peers/test_s3.py."""
import pytest

from tests.integration.s3_tests import S3RightsTests
from tests.integration.test_protocol import start  # noqa: F401

pytest.importorskip("moto", reason="moto is installed with Python 3.11 and later only")


class TestMoto(S3RightsTests):
    # Its policies know no conditions; and no route of it has a key with a newline.
    has_conditions = False

    @pytest.fixture(scope="class")
    def server(self):
        from tests.rig.s3_moto import Moto
        with Moto() as moto:
            yield moto
