# SPDX-License-Identifier: Apache-2.0
"""What make install gives to others: files in their places, a library with the public names only, a pkg-config file that works."""
import hashlib
import os
import pathlib
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
# The plain build, also where the tests run with a sanitizer's.
BUILD = os.environ.get("HEADRACE_MAKE_BUILD", "build")
PROGRAM = '#include <headrace.h>\n#include <stdio.h>\nint main(void) { puts(hr_version()); return 0; }\n'

OPENS = """#include <headrace.h>
#include <stdio.h>
int main(int argc, char **argv) {
        struct hr_options options = HR_OPTIONS;
        struct hr_connection *connection;
        char *error = NULL;
        options.daemon = HR_DAEMON_PRIVATE;
        if (argc != 2 || hr_open(argv[1], &options, &connection, &error)) {
                fprintf(stderr, "%s\\n", error ? error : "?");
                return 1;
        }
        puts(hr_daemon_name(connection));
        hr_close(connection);
        return 0;
}
"""


def make(*arguments):
    """With the variables of the make that runs the tests, if there is one (MAKEFLAGS has them)."""
    return subprocess.run(["make", "--no-print-directory", "-C", TOP, f"BUILD={BUILD}", *arguments], check=True,
                          capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    stage = tmp_path_factory.mktemp("stage")
    make("install", f"DESTDIR={stage}", "PREFIX=/opt/headrace")
    return stage


def pkg_config(staged, *arguments):
    environment = {**os.environ, "PKG_CONFIG_SYSROOT_DIR": str(staged),
                   "PKG_CONFIG_PATH": f"{staged}/opt/headrace/lib/pkgconfig"}
    return subprocess.run(["pkg-config", *arguments, "headrace"], check=True, capture_output=True, text=True,
                          env=environment).stdout.split()


def build_program(staged, directory, *flags):
    (directory / "program.c").write_text(PROGRAM)
    subprocess.run(["cc", "-Wall", "-Werror", "-o", directory / "program", directory / "program.c", *flags], check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{staged}/opt/headrace/lib"}
    return subprocess.run([directory / "program"], check=True, capture_output=True, text=True, env=environment).stdout.strip()


def test_files_are_in_their_places(staged):
    prefix = staged / "opt" / "headrace"
    for path in ("bin/headraced", "bin/headrace", "lib/libheadrace.so.1", "lib/libheadrace.so", "lib/libheadrace.a",
                 "lib/pkgconfig/headrace.pc", "include/headrace.h", "share/headrace/headrace.json",
                 "share/man/man5/headraced.conf.5", "share/doc/headrace/LICENSE"):
        assert (prefix / path).exists(), path
    assert os.readlink(prefix / "lib/libheadrace.so") == "libheadrace.so.1"
    assert [path.name for path in staged.iterdir()] == ["opt"]


def test_program_with_the_shared_library(staged, tmp_path):
    version = pkg_config(staged, "--modversion")[0]
    assert build_program(staged, tmp_path, *pkg_config(staged, "--cflags", "--libs")) == version


@pytest.mark.parametrize("place", ["lib", "lib/some-linux-gnu"])
def test_library_finds_the_daemon_that_was_installed_with_it(staged, tmp_path, place):
    prefix = tmp_path / "elsewhere"
    shutil.copytree(staged / "opt/headrace", prefix, symlinks=True)
    (prefix / place).mkdir(exist_ok=True)
    if place != "lib":
        (prefix / "lib/libheadrace.so.1").rename(prefix / place / "libheadrace.so.1")
    (tmp_path / "opens.c").write_text(OPENS)
    (tmp_path / "logs").mkdir()
    subprocess.run(["cc", "-o", tmp_path / "opens", tmp_path / "opens.c", *pkg_config(staged, "--cflags", "--libs")], check=True)

    def opens():
        return subprocess.run([tmp_path / "opens", tmp_path / "logs"], capture_output=True, text=True, timeout=60, cwd="/",
                              env={"LD_LIBRARY_PATH": str(prefix / place), "PATH": "/nowhere", "HOME": str(tmp_path)})

    found = opens()
    assert (found.returncode, found.stderr) == (0, "")
    (prefix / "bin/headraced").unlink()
    assert opens().returncode == 1


def test_program_with_the_static_library(staged, tmp_path):
    flags = pkg_config(staged, "--cflags", "--libs", "--static")
    flags = [f"{staged}/opt/headrace/lib/libheadrace.a" if flag == "-lheadrace" else flag for flag in flags]
    assert build_program(staged, tmp_path, *flags) == pkg_config(staged, "--modversion")[0]


@pytest.mark.parametrize("library, option", [("libheadrace.so.1", "-D"), ("libheadrace.a", "-g")])
def test_library_has_public_names_only(staged, library, option):
    listing = subprocess.run(["nm", option, "--defined-only", staged / "opt/headrace/lib" / library], check=True,
                             capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in listing.splitlines() if len(line.split()) == 3]
    assert len(names) > 5
    assert [name for name in names if not name.startswith(("hr_", "HEADRACE_"))] == []


@pytest.mark.parametrize("suffix, standard", [("c", "c11"), ("cc", "c++11")])
def test_header_is_strict(staged, tmp_path, suffix, standard):
    (tmp_path / f"program.{suffix}").write_text("#include <headrace.h>\n")
    subprocess.run(["clang", f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
                    f"-I{staged}/opt/headrace/include", tmp_path / f"program.{suffix}"], check=True)


def test_installed_program_finds_the_library(staged):
    dynamic = subprocess.run(["objdump", "-p", staged / "opt/headrace/bin/headrace"], check=True, capture_output=True, text=True)
    assert "/opt/headrace/lib" in dynamic.stdout
    assert str(TOP) not in dynamic.stdout


@pytest.mark.skipif(not (TOP / ".git").exists(), reason="the source archive is made from git")
def test_dist_is_the_same_each_time():
    archives = set()
    for _ in range(2):
        make("dist")
        archives.add(hashlib.sha256(next((TOP / BUILD).glob("headrace-*.tar.gz")).read_bytes()).hexdigest())
    assert len(archives) == 1


def test_dist_without_git_makes_nothing(tmp_path):
    shutil.copy(TOP / "Makefile", tmp_path)
    done = subprocess.run(["make", "-C", tmp_path, "BUILD=build", "dist"], capture_output=True, text=True)
    assert done.returncode != 0 and "git clone" in done.stderr
    assert list(tmp_path.rglob("*.tar*")) == []


@pytest.mark.parametrize("stage", ["", "stage"])
def test_install_makes_the_library_known(tmp_path, stage):
    """Root's, in its place; a staged one is not for this system."""
    make("install", f"PREFIX={tmp_path}/prefix", f"DESTDIR={tmp_path / stage if stage else ''}", f"LDCONFIG=touch {tmp_path}/known")
    assert (tmp_path / "known").exists() == (not stage and os.geteuid() == 0)


def test_help_names_every_target():
    said = make("help")
    for target in ("all", "demo", "check", "bench", "fuzz", "soak", "sanitize", "lint", "format", "install", "dist", "clean"):
        assert f"make {target} " in said
