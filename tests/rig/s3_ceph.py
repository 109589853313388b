# SPDX-License-Identifier: Apache-2.0
"""Ceph's RADOS gateway, a real S3 server: strict signatures, policies, temporary keys. One monitor, one OSD in memory.

    with Ceph() as ceph:
        ceph.s3                     a boto3 client of the owner of ceph.bucket
        ceph.user(POLICY)           (access key, secret) of another user; the bucket's policy lets them do that only
        ceph.session()              (access key, secret, session token)
        ceph.environment()          what a program needs to get there
"""
import json
import signal
import subprocess
import uuid

from tests.rig import peer
from tests.rig.nginx import LOOPBACK, free_ports
from tests.rig.s3_moto import REGION, environment_of, put_directory

CONFIGURATION = """
[global]
fsid = {fsid}
mon host = v1:127.0.0.1:{mon_port}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
ms bind port min = {port_from}
ms bind port max = {port_to}
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 1000
mon data avail warn = 1
mon data avail crit = 0
paxos propose interval = 0.05
paxos min wait = 0.01
run dir = {run}
admin socket = {run}/$name.asok
log file = {run}/$name.log
log to stderr = false
keyring = {run}/none.keyring
[mon.a]
mon data = {run}/mon
[osd.0]
osd data = {run}/osd
osd objectstore = memstore
memstore device bytes = 2147483648
osd crush update on start = false
osd class update on start = false
osd class load list = *
osd class default list = *
osd op num shards = 2
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:{port} tcp_nodelay=1
rgw sts key = abcdefghijklmnop
rgw s3 auth use sts = true
rgw data = {run}/rgw
rgw thread pool size = 64
rgw enable usage log = false
rgw enable ops log = false
rgw enable gc threads = false
rgw enable lc threads = false
rgw num zone opstate shards = 1
rgw run sync thread = false
"""


class NotYet(Exception):
    """A start that is worth another one: a monitor drops commands that come before it knows the cluster."""


class Ceph(peer.Peer):
    key, secret, bucket = "CEPHACCESSKEY0000001", "ceph/secret+key/0001", "logs"

    def start(self):
        peer.need_packages(radosgw="radosgw", ceph_mon="ceph-mon", ceph_osd="ceph-osd", ceph="ceph-common")
        self.users = 0
        for last in (False, False, True):
            try:
                self._start_once()
                break
            except NotYet as error:
                self.end_processes(signal.SIGKILL)
                if last:
                    raise peer.Unavailable(f"Ceph does not start: {error}") from error
        self.s3 = self._client("s3", self.key, self.secret)
        self.s3.create_bucket(Bucket=self.bucket)

    def __exit__(self, *error):
        # Everything is in memory: a clean stop would only take longer.
        self.end_processes(signal.SIGKILL)
        super().__exit__(*error)

    def _client(self, service, key, secret):
        import boto3
        return boto3.client(service, endpoint_url=self.url, region_name=REGION, aws_access_key_id=key, aws_secret_access_key=secret)

    def _run(self, *command, patience_s=30, tries=1):
        for _ in range(tries):
            try:
                done = subprocess.run([str(word) for word in command], capture_output=True, timeout=patience_s,
                                      env={"PATH": peer.PATH, "CEPH_CONF": str(self.run / "ceph.conf")})
            except subprocess.TimeoutExpired:
                continue
            if done.returncode == 0:
                return
        raise NotYet(f"{' '.join(map(str, command[:3]))}: {self.last_words()[-300:]}")

    def _start_once(self):
        configuration = self.run / "ceph.conf"
        port, mon_port, *others = free_ports(6)
        self.url = f"http://{LOOPBACK}:{port}"
        for name in ("mon", "osd", "rgw"):
            subprocess.run(["rm", "-rf", self.run / name], check=True)
            (self.run / name).mkdir()
        (self.run / "none.keyring").touch()
        configuration.write_text(CONFIGURATION.format(fsid=uuid.uuid4(), run=self.run, port=port, mon_port=mon_port,
                                                      port_from=min(others), port_to=min(min(others) + 200, 65535)))
        self._run("monmaptool", "--create", "--clobber", "--addv", "a", f"[v1:127.0.0.1:{mon_port}]", "--fsid", self._fsid(),
                  self.run / "monmap")
        self._run("ceph-mon", "--mkfs", "-i", "a", "--monmap", self.run / "monmap", "--conf", configuration)
        self.spawn("mon", peer.program("ceph-mon"), "-f", "-i", "a", "--conf", configuration)
        self._run("ceph", "-c", configuration, "osd", "create", patience_s=10, tries=3)
        self._run("ceph-osd", "-i", "0", "--mkfs", "--conf", configuration, "--osd-uuid", uuid.uuid4())
        self._run("ceph", "-c", configuration, "osd", "crush", "add", "osd.0", "1.0", "root=default", "host=localhost", patience_s=10,
                  tries=3)
        self.spawn("osd", peer.program("ceph-osd"), "-f", "-i", "0", "--conf", configuration)
        gateway = self.spawn("gateway", peer.program("radosgw"), "-f", "-n", "client.rgw", "--conf", configuration)
        try:
            self.wait_for_answer(self.url, gateway, 30)
        except peer.Unavailable as error:
            raise NotYet(str(error)) from error
        self._new_user("owner", self.key, self.secret)
        self._run("radosgw-admin", "-c", configuration, "caps", "add", "--uid=owner", "--caps=user-policy=*", tries=3)

    def _fsid(self):
        return next(line.split()[-1] for line in (self.run / "ceph.conf").read_text().splitlines() if line.startswith("fsid"))

    def _new_user(self, name, key, secret):
        self._run("radosgw-admin", "-c", self.run / "ceph.conf", "user", "create", f"--uid={name}", f"--display-name={name}",
                  f"--access-key={key}", f"--secret-key={secret}", patience_s=15, tries=3)

    def user(self, statements):
        self.users += 1
        name, key, secret = f"user{self.users}", f"CEPHACCESSKEY1{self.users:06}", f"ceph/other+secret/{self.users}"
        self._new_user(name, key, secret)
        principal = {"AWS": [f"arn:aws:iam:::user/{name}"]}
        policy = {"Version": "2012-10-17", "Statement": [{**statement, "Principal": principal} for statement in statements]}
        self.s3.put_bucket_policy(Bucket=self.bucket, Policy=json.dumps(policy))
        return key, secret

    def session(self):
        """Temporary keys, which need a right of the user's own."""
        rights = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["sts:*"], "Resource": ["*"]}]}
        self._client("iam", self.key, self.secret).put_user_policy(UserName="owner", PolicyName="sts", PolicyDocument=json.dumps(rights))
        keys = self._client("sts", self.key, self.secret).get_session_token(DurationSeconds=900)["Credentials"]
        return keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"]

    def put(self, prefix, directory):
        put_directory(self.s3, self.bucket, prefix, directory)

    def environment(self, key=None, secret=None, **options):
        return environment_of(self.url, key or self.key, secret or self.secret, **options)
