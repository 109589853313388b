# SPDX-License-Identifier: Apache-2.0
"""scripts/check must not call something passed that crashed, hung or ran nothing."""
import importlib.machinery
import importlib.util
import pathlib

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check"


@pytest.fixture(scope="module")
def check():
    loader = importlib.machinery.SourceFileLoader("check_driver", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_driver", loader))
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("script, passed, failed", [
    ("echo '100%: Checks: 3, Failures: 0, Errors: 0'", 3, 0),
    ("echo '33%: Checks: 3, Failures: 1, Errors: 1'; exit 1", 1, 2),
    ("echo '100%: Checks: 3, Failures: 0, Errors: 0'; exit 1", 3, 1),
    ("echo '100%: Checks: 0, Failures: 0, Errors: 0'", 0, 1),
    ("exit 0", 0, 1),
    ("kill -SEGV $$", 0, 1),
])
def test_unit_program(check, tmp_path, script, passed, failed):
    program = tmp_path / "test_x"
    program.write_text("#!/bin/sh\n" + script + "\n")
    program.chmod(0o755)
    result = check.run_unit(tmp_path, program)
    assert (result.passed, result.failed) == (passed, failed)
    assert bool(result.output) == bool(failed)


@pytest.mark.parametrize("text, passed, failed, skipped", [
    ("def test_a(): pass\ndef test_b(): assert False\n", 1, 1, 0),
    ("import pytest\ndef test_a(): pass\n@pytest.mark.skipif(True, reason='x')\ndef test_b(): pass\n", 1, 0, 1),
    ("import no_such_module\n", 0, 1, 0),
    ("import os\ndef test_a(): os._exit(3)\n", 0, 1, 0),
    ("", 0, 0, 0),
])
def test_pytest(check, tmp_path, text, passed, failed, skipped):
    (tmp_path / "test_x.py").write_text(text)
    result = check.run_pytest(tmp_path, str(tmp_path / "test_x.py"))
    assert (result.passed, result.failed, result.skipped) == (passed, failed, skipped)


def test_program_that_hangs(check, tmp_path):
    code, output = check.run(["sh", "-c", "echo begun; sleep 1000"], 0.5, tmp_path)
    assert code != 0 and "begun" in output and "ended after" in output


def test_no_unit_tests_at_all(check):
    assert check.run_units(pathlib.Path("no-such-build")).failed == 1
