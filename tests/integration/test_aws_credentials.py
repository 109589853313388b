# SPDX-License-Identifier: Apache-2.0
"""Where s3:// has its credentials from: each source against a server that hands out keys of moto, which checks signatures."""
import datetime
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

import pytest

from tests.rig.aws_identity import CONTAINER_TOKEN, SSO_TOKEN, WEB_TOKEN, AwsIdentity

pytest.importorskip("moto", reason="moto is installed with Python 3.11 and later only")

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = (TOP / os.environ.get("HEADRACE_BUILD", "build")).resolve()
ROLE_ARN = "arn:aws:iam::123456789012:role/Research"
SOURCE = "s3://logs/exp"


@pytest.fixture(scope="module")
def moto():
    from tests.rig.s3_moto import Moto
    with Moto() as server:
        server.put("exp", TOP / "tests/data/fixtures/keras")
        yield server


@pytest.fixture
def aws(moto):
    with AwsIdentity(moto.key, moto.secret) as server:
        yield server


@pytest.fixture(scope="module")
def session(moto):
    """Keys of a role, with a token, that moto knows."""
    moto.check_rights(False)
    document = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
    moto.iam.create_role(RoleName="Research", AssumeRolePolicyDocument=document)
    moto.iam.put_role_policy(RoleName="Research", PolicyName="all", PolicyDocument=document)
    found = moto.client("sts").assume_role(RoleArn=ROLE_ARN, RoleSessionName="test")["Credentials"]
    moto.check_rights()
    return found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"]


@pytest.fixture
def roles(session):
    with AwsIdentity(*session, signer=("BASEKEY", "base secret", None)) as server:
        yield server


@pytest.fixture
def ls(moto, tmp_path):
    """Runs `headrace ls` with nothing of AWS but what is given; config and credentials are the texts of the shared files."""
    def run(config="", credentials="", **variables):
        (tmp_path / "config").write_text(config)
        (tmp_path / "credentials").write_text(credentials)
        environment = {**os.environ, **moto.environment(), "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": str(tmp_path),
                       "AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
                       "XDG_CACHE_HOME": str(tmp_path / "cache"), **variables}
        return subprocess.run([BUILD / "headrace", "ls", "--private", SOURCE], capture_output=True, text=True, env=environment, timeout=50)
    return run


THROTTLED = 400, "<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>"


def test_throttling_of_sts_passes(roles, ls, tmp_path):
    (tmp_path / "token").write_text(WEB_TOKEN)
    roles.refusals = [THROTTLED]
    check(ls(AWS_WEB_IDENTITY_TOKEN_FILE=str(tmp_path / "token"), AWS_ROLE_ARN=ROLE_ARN, AWS_ENDPOINT_URL_STS=roles.url + "/sts"),
          "assumed-role/Research (web identity)")
    assert len(roles.seen) == 2


def check(result, identity):
    assert result.returncode in (0, 1) and "2 runs, 2 files" in result.stdout, result.stderr
    assert result.stdout.rstrip().endswith(f"as {identity}"), result.stdout[-300:]


def keys(moto):
    return f"aws_access_key_id = {moto.key}\naws_secret_access_key = {moto.secret}  # not for others\n"


def test_profile_of_the_credentials_file(moto, ls):
    result = ls(credentials=f"[default]\naws_access_key_id=x\n[research]\n{keys(moto)}", AWS_PROFILE="research")
    check(result, f"access key ...{moto.key[-4:]} (profile research)")


def test_profile_of_the_config_file(moto, ls):
    result = ls(config=f"[profile research]\ns3 =\n  aws_access_key_id = nested\n{keys(moto)}", AWS_PROFILE="research")
    check(result, f"access key ...{moto.key[-4:]} (profile research)")


def test_environment_goes_before_profiles(moto, ls):
    result = ls(credentials="[default]\naws_access_key_id=x\naws_secret_access_key=y\n", AWS_ACCESS_KEY_ID=moto.key,
                AWS_SECRET_ACCESS_KEY=moto.secret)
    check(result, f"access key ...{moto.key[-4:]} (environment)")


def test_instance(aws, ls):
    check(ls(AWS_EC2_METADATA_DISABLED="", AWS_EC2_METADATA_SERVICE_ENDPOINT=aws.url + "/"), "instance role ml-read")
    assert aws.seen[0] == "PUT /latest/api/token"


def test_container_with_a_token_in_a_file(aws, ls, tmp_path):
    (tmp_path / "token").write_text(CONTAINER_TOKEN + "\n")
    check(ls(AWS_CONTAINER_CREDENTIALS_FULL_URI=aws.url + "/container", AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(tmp_path / "token")),
          "container role")


def test_container_token_goes_nowhere_else(ls):
    result = ls(AWS_CONTAINER_CREDENTIALS_FULL_URI="http://192.0.2.1/container", AWS_CONTAINER_AUTHORIZATION_TOKEN=CONTAINER_TOKEN)
    assert result.returncode == 3 and "neither https nor of this machine" in result.stderr
    assert CONTAINER_TOKEN not in result.stderr


def test_web_identity(roles, ls, tmp_path):
    (tmp_path / "token").write_text(WEB_TOKEN)
    check(ls(AWS_WEB_IDENTITY_TOKEN_FILE=str(tmp_path / "token"), AWS_ROLE_ARN=ROLE_ARN, AWS_ENDPOINT_URL_STS=roles.url + "/sts"),
          "assumed-role/Research (web identity)")


def test_web_identity_of_a_profile(roles, ls, tmp_path):
    (tmp_path / "token").write_text(WEB_TOKEN)
    config = f"[profile ci]\nrole_arn = {ROLE_ARN}\nweb_identity_token_file = {tmp_path / 'token'}\n"
    check(ls(config, AWS_PROFILE="ci", AWS_ENDPOINT_URL_STS=roles.url + "/sts"), "assumed-role/Research (profile ci)")


def test_refused_web_identity_says_why(aws, ls, tmp_path):
    (tmp_path / "token").write_text("secret of somebody else")
    result = ls(AWS_WEB_IDENTITY_TOKEN_FILE=str(tmp_path / "token"), AWS_ROLE_ARN=ROLE_ARN, AWS_ENDPOINT_URL_STS=aws.url + "/sts")
    assert result.returncode == 3 and "AccessDenied" in result.stderr and "not for you" in result.stderr
    assert "secret of somebody else" not in result.stderr


BASE = "[base]\naws_access_key_id = BASEKEY\naws_secret_access_key = base secret\n"


def test_role_of_another_profile(roles, ls):
    """Its request is signed; the server checks that by botocore."""
    config = f"[profile research]\nrole_arn = {ROLE_ARN}\nsource_profile = base\n"
    check(ls(config, BASE, AWS_PROFILE="research", AWS_ENDPOINT_URL_STS=roles.url + "/sts"), "assumed-role/Research (profile research)")


def test_role_asked_for_with_wrong_keys(roles, ls):
    config = f"[profile research]\nrole_arn = {ROLE_ARN}\nsource_profile = base\n"
    result = ls(config, BASE.replace("base secret", "another"), AWS_PROFILE="research", AWS_ENDPOINT_URL_STS=roles.url + "/sts")
    assert result.returncode == 3 and "AccessDenied" in result.stderr


def test_role_with_the_credentials_of_the_instance(roles, ls):
    config = f"[profile research]\nrole_arn = {ROLE_ARN}\ncredential_source = Ec2InstanceMetadata\n"
    with AwsIdentity("BASEKEY", "base secret") as base:
        check(ls(config, AWS_PROFILE="research", AWS_ENDPOINT_URL_STS=roles.url + "/sts", AWS_EC2_METADATA_DISABLED="",
                 AWS_EC2_METADATA_SERVICE_ENDPOINT=base.url), "assumed-role/Research (profile research)")


def test_role_that_leads_to_itself(ls):
    config = "".join(f"[profile {one}]\nrole_arn = {ROLE_ARN}\nsource_profile = {other}\n" for one, other in (("a", "b"), ("b", "a")))
    result = ls(config, AWS_PROFILE="a")
    assert result.returncode == 3 and "leads to itself" in result.stderr


def test_second_factor_is_explained(ls):
    result = ls(f"[profile a]\nrole_arn = {ROLE_ARN}\nsource_profile = b\nmfa_serial = x\n", AWS_PROFILE="a")
    assert result.returncode == 3 and "second factor" in result.stderr


SSO = """[profile research]
sso_session = acme
sso_account_id = 123456789012
sso_role_name = Research
[sso-session acme]
sso_start_url = https://acme.example/start
sso_region = eu-west-1
"""


def log_in(home, minutes):
    cache = home / ".aws/sso/cache"
    cache.mkdir(parents=True, exist_ok=True)
    expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=minutes)
    (cache / (hashlib.sha1(b"acme").hexdigest() + ".json")).write_text(
        json.dumps({"accessToken": SSO_TOKEN, "expiresAt": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}))


def test_identity_center(roles, ls, tmp_path):
    log_in(tmp_path, 60)
    check(ls(SSO, AWS_PROFILE="research", AWS_ENDPOINT_URL_SSO=roles.url + "/sso"), "assumed-role/Research (profile research)")


def test_expired_login_says_what_to_do(aws, ls, tmp_path):
    log_in(tmp_path, -1)
    result = ls(SSO, AWS_PROFILE="research", AWS_ENDPOINT_URL_SSO=aws.url + "/sso")
    assert result.returncode == 3 and "aws sso login --profile research" in result.stderr


def process_profile(tmp_path, code):
    (tmp_path / "a helper.py").write_text(code)
    return f"[profile p]\ncredential_process = {sys.executable} {shlex.quote(str(tmp_path / 'a helper.py'))} 'with words'\n"


def test_process(moto, ls, tmp_path):
    answer = {"Version": 1, "AccessKeyId": moto.key, "SecretAccessKey": moto.secret}
    config = process_profile(tmp_path, f"import sys; assert sys.argv[1:] == ['with words']; print({json.dumps(json.dumps(answer))})")
    check(ls(config, AWS_PROFILE="p"), "credential_process (profile p)")


def test_process_that_fails_is_quoted_but_not_what_it_prints(ls, tmp_path):
    config = process_profile(tmp_path, "import sys; print('a secret'); sys.exit('log in at the front desk')")
    result = ls(config, AWS_PROFILE="p")
    assert result.returncode == 3 and "log in at the front desk" in result.stderr and "a secret" not in result.stderr


def test_nothing_is_set_up(ls):
    result = ls()
    assert result.returncode == 3
    for word in ("AWS_ACCESS_KEY_ID is not set", "there is no profile default", "AWS_WEB_IDENTITY_TOKEN_FILE is not set"):
        assert word in result.stderr


def test_servers_that_fail_for_a_moment(aws, ls):
    aws.fail = 1
    check(ls(AWS_EC2_METADATA_DISABLED="", AWS_EC2_METADATA_SERVICE_ENDPOINT=aws.url), "instance role ml-read")


BROKEN = {
    "a profile that is not there": ("", {"AWS_PROFILE": "typo"}, "there is no profile typo"),
    "half a key": ("[profile a]\naws_access_key_id = x\n", {"AWS_PROFILE": "a"}, "aws_secret_access_key"),
    "an expired login": (SSO, {"AWS_PROFILE": "research"}, "aws sso login"),
    "a second factor": (f"[profile a]\nrole_arn = {ROLE_ARN}\nsource_profile = b\nmfa_serial = x\n", {"AWS_PROFILE": "a"}, "second factor"),
    "a circle": (f"[profile a]\nrole_arn = {ROLE_ARN}\nsource_profile = b\n[profile b]\nrole_arn = {ROLE_ARN}\nsource_profile = a\n",
                 {"AWS_PROFILE": "a"}, "leads to itself"),
    "a token that cannot be read": ("", {"AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere", "AWS_ROLE_ARN": ROLE_ARN}, "/nowhere"),
    "a container elsewhere": ("", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://192.0.2.1/x"}, "neither https nor of this machine"),
    "an open quote": ("[profile p]\ncredential_process = 'x\n", {"AWS_PROFILE": "p"}, "quote"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_set_up_wrong_is_nobody_elses(aws, ls, what):
    """The instance has credentials, but they are not what was asked for."""
    config, variables, words = BROKEN[what]
    result = ls(config, **variables, AWS_EC2_METADATA_DISABLED="", AWS_EC2_METADATA_SERVICE_ENDPOINT=aws.url)
    assert result.returncode == 3 and words in result.stderr, result.stderr
    assert not aws.seen


def test_a_profile_is_not_mixed_with_the_environment(roles, ls, tmp_path):
    """The pod's own role is another one than that of the profile."""
    (tmp_path / "token").write_text(WEB_TOKEN)
    config = f"[profile ci]\nrole_arn = {ROLE_ARN}\nweb_identity_token_file = {tmp_path / 'token'}\n"
    check(ls(config, AWS_PROFILE="ci", AWS_ENDPOINT_URL_STS=roles.url + "/sts", AWS_WEB_IDENTITY_TOKEN_FILE="/nowhere",
             AWS_ROLE_ARN="arn:aws:iam::123456789012:role/Pod"), "assumed-role/Research (profile ci)")
