# SPDX-License-Identifier: Apache-2.0
"""scripts/check-layers must pass on this tree, and fail on one where an include points up."""
import pathlib
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = TOP / "scripts" / "check-layers"


def check(top):
    return subprocess.run([sys.executable, SCRIPT, top], capture_output=True, text=True)


def write(top, files):
    for path, text in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)


def test_this_tree():
    result = check(TOP)
    assert result.returncode == 0, result.stderr


def test_silent_when_right(tmp_path):
    write(tmp_path, {
        "common/a.h": "#include <stdint.h>\n",
        "daemon/core/b.h": '#include "common/a.h"\n#include <uv.h>\n',
        "daemon/serve/c.c": '#include "daemon/core/b.h"\n',
        "client/include/headrace.h": "",
        "client/cli/d.c": '#include "client/include/headrace.h"\n#include "common/a.h"\n',
    })
    result = check(tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("path, text, said", [
    ("common/x.c", '#include "daemon/core/b.h"', "common/x.c:1: \"daemon/core/b.h\" points up"),
    ("daemon/core/x.c", '\n#include "daemon/store/s.h"', "daemon/core/x.c:2:"),
    ("daemon/fetch/x.c", '#include "daemon/discover/x.h"', "points up or sideways"),
    ("daemon/frame/x.c", '#include "daemon/core/b.h"', "points up or sideways"),
    ("daemon/main.c", '#include "daemon/decode/x.h"', "points up or sideways"),
    ("client/cli/x.c", '#include "client/lib/l.h"', "points up or sideways"),
    ("client/cli/x.c", '#include "daemon/core/b.h"', "points up or sideways"),
    ("daemon/store/x.c", '#include "s.h"', "written from the top"),
    ("common/x.c", "#include <uv.h>", "<uv.h> is for"),
    ("common/x.c", "  #  include <jansson.h>", "<jansson.h> is for"),
    ("daemon/decode/x.c", "#include <uv.h>", "<uv.h> is for"),
    ("daemon/serve/x.c", "#include <curl/curl.h>", "<curl/curl.h> is for"),
    ("daemon/frame/x.c", "#include <isa-l.h>", "<isa-l.h> is for"),
    ("elsewhere.h", "", None),
    ("daemon/new/x.c", "#include <curl/curl.h>", "<curl/curl.h> is for"),
    ("client/new/x.c", "", "lies in no layer"),
])
def test_breach(tmp_path, path, text, said):
    write(tmp_path, {name: "" for name in ("daemon/core/b.h", "daemon/store/s.h", "daemon/discover/x.h", "daemon/decode/x.h",
                                           "client/lib/l.h")})
    write(tmp_path, {path: text + "\n"})
    result = check(tmp_path)
    if said is None:
        assert result.returncode == 0
    else:
        assert result.returncode == 1 and said in result.stderr


def test_cycle(tmp_path):
    write(tmp_path, {"common/a.h": '#include "common/b.h"\n', "common/b.h": '#include "common/a.h"\n'})
    result = check(tmp_path)
    assert result.returncode == 1 and "include cycle: common/a.h -> common/b.h -> common/a.h" in result.stderr
