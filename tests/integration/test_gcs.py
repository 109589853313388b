# SPDX-License-Identifier: Apache-2.0
"""gs:// on a server of our own (tests/rig/google.py), which knows each kind of credentials. A server of others: tests/peers/test_gcs.py."""
import json
import os
import pathlib

import pytest

from tests.integration.test_command import headrace, rows
from tests.integration.test_protocol import expected_rows, write_events, write_tree

pytest.importorskip("cryptography")

from tests.rig.google import EMAIL, OTHER, SECRETS, SUBJECT, Google  # noqa: E402

NAME = "events.out.tfevents.1.host"
URL = "gs://logs/exp"
TOP = pathlib.Path(__file__).resolve().parents[2]
HARD_NAMES = ["a b", "a+b", "a%2Bb", "a%b", "a&b=c", "a?b", "a#b", "ü", "日本", "a'b\"c", "a<b>c", "a;b", "a:b@c", "a//b", "../a", "./a",
              "a/../b", "a\\b", "x" * 900, "a\tb"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("logs"))


@pytest.fixture
def google(tree):
    files = {str(path.relative_to(tree)): path.read_bytes() for path in sorted(tree.rglob("*")) if path.is_file()}
    with Google({f"{prefix}/{name}": data for prefix in ("exp", "exp2") for name, data in files.items()}) as server:
        yield server


def ls(google, code=0, url=URL, **more):
    done = headrace("ls", url, code=code, env=google.environment(**more))
    said = done.stdout.decode() + done.stderr.decode()
    for secret in (*SECRETS.values(), SUBJECT, "PRIVATE KEY", *google.good_tokens):
        assert secret not in said
    return said


def test_every_record_arrives_with_one_listing_and_one_read_a_file(google, tree):
    assert rows(headrace("dump", URL, env=google.environment()).stdout) == expected_rows(tree)
    assert len(google.listings) == 1 and len(google.reads) == len(set(google.reads)) == 6
    assert google.listings[0]["prefix"] == "exp/" and google.listings[0]["maxResults"] == "1000"
    assert "6 runs, 6 files" in ls(google) and len(google.listings) == 2


def test_fixtures_are_dumped_as_local_files_are(google):
    fixtures = TOP / "tests/data/fixtures"
    google.objects = {f"exp/{path.relative_to(fixtures)}": path.read_bytes() for path in sorted(fixtures.rglob("*")) if path.is_file()}
    local = headrace("dump", fixtures, code=1)
    assert headrace("dump", URL, code=1, env=google.environment()).stdout == local.stdout


def test_an_emulator_without_a_scheme(google):
    assert "6 runs, 6 files" in ls(google, STORAGE_EMULATOR_HOST=google.host)


def test_hard_keys_markers_and_pages(google, tmp_path):
    write_events(tmp_path / NAME, ["loss"], 3)
    data = (tmp_path / NAME).read_bytes()
    google.objects = {**{f"exp/{name}/{NAME}": data for name in HARD_NAMES}, "exp/tfevents.d/": b"", "exp/x.tfevents_$folder$": b"",
                      f"exp/new\nline/{NAME}": data}
    google.page = 3
    found = rows(headrace("dump", URL, env=google.environment()).stdout)
    assert sorted(found) == sorted(f"{name}/{NAME}" for name in [*HARD_NAMES, "new\nline"])
    assert all(len(some) == 3 for some in found.values()) and len(google.listings) >= 8


# ---- Whose credentials

def accounts(google, tmp_path):
    (tmp_path / "subject").write_text(SUBJECT + "\n")
    (tmp_path / "subject.json").write_text(json.dumps({"value": SUBJECT}))
    as_json = {"type": "json", "subject_token_field_name": "value"}
    return {
        "service": (google.account(), EMAIL),
        "user": (google.user(), "the user of"),
        "file": (google.federated({"file": str(tmp_path / "subject")}), "//iam/pool"),
        "json": (google.federated({"file": str(tmp_path / "subject.json"), "format": as_json}), "//iam/pool"),
        "url": (google.federated({"url": f"{google.url}/subject", "headers": {"X-Key": "k"}, "format": as_json}), "//iam/pool"),
        "federated": ({**google.federated({"file": str(tmp_path / "subject")}),
                       "service_account_impersonation_url": google.impersonation_url()}, OTHER),
        "impersonated": ({"type": "impersonated_service_account", "source_credentials": google.user(),
                          "service_account_impersonation_url": google.impersonation_url()}, OTHER),
    }


@pytest.mark.parametrize("kind", ["service", "user", "file", "json", "url", "federated", "impersonated"])
def test_accounts(google, tmp_path, kind):
    account, identity = accounts(google, tmp_path)[kind]
    google.need_token = True
    said = ls(google, **google.write(tmp_path / "key.json", account))
    assert "6 runs, 6 files" in said and f"as {identity}" in said
    assert len(google.grants) == 1


def test_an_emulator_gets_no_token_of_the_machine(google):
    """Tokens that came from elsewhere than a named file are not for emulators."""
    google.has_metadata = google.need_token = True
    assert "401" in ls(google, code=3) and google.count == 0


def test_a_refused_token_is_renewed_once(google, tmp_path):
    google.need_token = True
    google.new_token = lambda: "ya29.never-good"
    said = ls(google, code=3, **google.write(tmp_path / "key.json", google.account()))
    assert "401 authError on objects.list prefix=exp/ (bucket logs), as " + EMAIL in said
    assert len(google.grants) == 2 and "ya29" not in said


@pytest.mark.parametrize("account, says", [
    ({}, "its type is none of"), ({"type": "service_account"}, "client_email or private_key is missing"),
    ({"type": "service_account", "client_email": EMAIL, "private_key": "SECRET-KEY"}, "no key of RSA"),
    ({"type": "authorized_user"}, "refresh_token is missing"), ({"type": "external_account"}, "audience")])
def test_files_that_are_no_credentials(google, tmp_path, account, says):
    said = ls(google, code=3, **google.write(tmp_path / "key.json", account))
    assert says in said and str(tmp_path / "key.json") in said and "SECRET-KEY" not in said


def test_a_named_file_that_is_not_there(google):
    said = ls(google, code=3, GOOGLE_APPLICATION_CREDENTIALS="/nonexistent/key.json")
    assert "/nonexistent/key.json" in said and "gcloud auth application-default login" in said


def test_an_expired_login(google, tmp_path):
    google.token_refusal = 400, {"error": "invalid_grant", "error_description": SECRETS["refresh_token"]}
    said = ls(google, code=3, **google.write(tmp_path / "key.json", google.user()))
    assert "invalid_grant" in said and "gcloud auth application-default login" in said


# ---- Whose rights

def test_without_rights(google, tmp_path):
    google.refusal = 403, "forbidden"
    said = ls(google, code=3, **google.write(tmp_path / "key.json", google.account()))
    assert f"403 forbidden on objects.list prefix=exp/ (bucket logs), as {EMAIL}" in said
    assert "needs storage.objects.list and storage.objects.get on bucket logs" in said
    assert "gcloud auth application-default login" in ls(google, code=3)


def test_a_bucket_that_is_not_there(google):
    assert "404 notFound" in ls(google, code=3, url="gs://nowhere/exp")


def test_whoever_asks_pays(google):
    google.payer = "research-1"
    assert "GOOGLE_CLOUD_QUOTA_PROJECT" in ls(google, code=3)
    assert "6 runs, 6 files" in ls(google, GOOGLE_CLOUD_QUOTA_PROJECT="research-1")
