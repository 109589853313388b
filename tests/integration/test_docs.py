# SPDX-License-Identifier: Apache-2.0
"""What documents say of the code: targets, options, offsets, methods, layers, tests and links that they name are there."""
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = TOP / os.environ.get("HEADRACE_BUILD", "build")
DOCUMENTS = sorted([*TOP.glob("*.md"), *TOP.glob("docs/*.md")], key=str)
PAGES = sorted(TOP.glob("docs/man/*.[1-8]"))
COMMANDS = {"headrace": [[], ["ls"], ["dump"], ["verify"], ["source"], ["status"]], "headraced": [[]]}
TYPE_BYTES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i64": 8, "f64": 8}


def read(path):
    return (TOP / path).read_text(encoding="utf-8")


def shown_commands(text):
    """What a document shows as typed: lines of its code blocks, and what stands between backticks."""
    blocks = re.findall(r"^```\n(.*?)^```$", text, re.M | re.S)
    prose = re.sub(r"^```\n.*?^```$", "", text, flags=re.M | re.S)
    lines = [line.removeprefix("$ ").split("   #")[0] for block in blocks for line in block.splitlines()]
    return lines + [re.sub(r"\s+", " ", span) for span in re.findall(r"`([^`]+)`", prose)]


def named(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.name)


# ---- Targets of make -------------------------------------------------------------------------------------------------------------


def targets():
    return set(re.findall(r"^([a-z-]+):.*## ", read("Makefile"), re.M))


@named(DOCUMENTS)
def test_every_target_exists(path):
    for command in shown_commands(path.read_text(encoding="utf-8")):
        words = re.sub(r'"[^"]*"', "", command).split()
        if words[:1] == ["sudo"]:
            words = words[1:]
        if words[:1] == ["make"]:
            for word in words[1:]:
                assert "=" in word or word.startswith("-") or word in targets(), command


def test_readme_shows_both_commands():
    assert {"make demo", "make check"} <= set(shown_commands(read("README.md")))


# ---- Options ---------------------------------------------------------------------------------------------------------------------


def options_of(program):
    """Long options, and the letters of short ones, of the program and its commands: what --help says."""
    found, letters = set(), set()
    for command in COMMANDS[program]:
        text = subprocess.run([BUILD / program, *command, "--help"], check=True, capture_output=True, text=True).stdout
        for letter, name in re.findall(r"^ +(?:-(.), |)--([a-z-]+)", text, re.M):
            found.add(name)
            letters.add(letter)
    return found, letters - {"", "?"}


def page_text(path):
    text = subprocess.run(["mandoc", "-T", "utf8", path], check=True, capture_output=True, text=True).stdout
    return re.sub(".\b", "", text).replace("\u2010", "-")


def long_options_in(text):
    return set(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", text))


@pytest.mark.parametrize("program", COMMANDS)
def test_manual_page_has_every_option(program):
    text = page_text(TOP / f"docs/man/{program}.1")
    long, short = options_of(program)
    assert {"help", "version", "usage"} < long
    assert long <= long_options_in(text)
    assert short <= set(re.findall(r"(?<![\w-])-([A-Za-z])\b", text))


def test_manual_page_shows_every_command():
    """Each in the synopsis, with all of its options, and with a section of its own."""
    commands = re.findall(r"^  (\w+) .*$", subprocess.run([BUILD / "headrace", "--help"], check=True, capture_output=True,
                                                          text=True).stdout.split("Commands:")[1], re.M)
    assert commands == [command[0] for command in COMMANDS["headrace"][1:]]
    source = read("docs/man/headrace.1")
    synopsis = source.split(".Sh SYNOPSIS")[1].split(".Sh DESCRIPTION")[0]
    shown = {part.split()[1]: set(re.findall(r"Fl -([a-z-]+)", part)) for part in synopsis.split(".Nm\n")[1:]}
    assert list(shown) == commands
    for command in commands:
        text = subprocess.run([BUILD / "headrace", command, "--help"], check=True, capture_output=True, text=True).stdout
        assert shown[command] == set(re.findall(r"^ .*--([a-z-]+)", text, re.M)) - {"help", "usage", "version", "verbose"}, command
        assert f"\n.Ss headrace {command}" in source


@named(PAGES)
def test_quotes_of_manual_pages_end(path):
    """A quotation that goes on to the end of its line takes the next ones into it."""
    assert not re.findall(r"\u2018[^\u2019\n]*\u2018|\u2019\u2019", page_text(path))


@named(PAGES)
def test_manual_page_has_no_other_option(path):
    known = options_of("headrace")[0] | options_of("headraced")[0]
    ours = re.sub(r"\$\(pkg-config [^)]*\)", "", page_text(path))
    assert long_options_in(ours) <= known


@named(DOCUMENTS)
def test_options_that_are_shown_exist(path):
    for command in shown_commands(path.read_text(encoding="utf-8")):
        program = re.match(r"(?:build/)?(headraced|headrace)\s", command)
        if program:
            assert long_options_in(command.split("|")[0]) <= options_of(program.group(1))[0], command


@named(PAGES)
def test_pages_refer_to_pages_that_exist(path):
    for name, section in re.findall(r"^\.Xr (\S*headrace\S*) (\d)", path.read_text(encoding="utf-8"), re.M):
        assert (TOP / f"docs/man/{name}.{section}").exists(), name


def test_library_page_has_every_function():
    public = set(re.findall(r"\b(hr_[a-z_]+)\(", re.sub(r"/\*.*?\*/", "", read("client/include/headrace.h"), flags=re.S)))
    assert "hr_open" in public
    assert public == set(re.findall(r"^\.Fn (hr_\w+) ", read("docs/man/libheadrace.3").split(".Sh DESCRIPTION")[0], re.M))


# ---- What is shown of output ------------------------------------------------------------------------------------------------------


def shown_runs(text):
    """The commands of a document's code blocks that come with output, and it."""
    for block in re.findall(r"^```\n(\$ .*?)^```$", text, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            if output:
                yield command, output


def test_readme_shows_what_comes(tmp_path):
    """Of commands whose output is the same everywhere: no ages and no sizes of the machine."""
    commands = dict(shown_runs(read("README.md")))
    commands = {command: output for command, output in commands.items() if re.match(r"build/headrace (dump|verify) ", command)}
    assert len(commands) == 3
    (tmp_path / "run").mkdir(mode=0o700)
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "run"), "TMPDIR": str(tmp_path)}
    for command, output in commands.items():
        typed = command.replace("build/", f"{BUILD}/", 1).replace("/tmp/logs", "tests/data/fixtures/keras")
        done = subprocess.run(typed, shell=True, cwd=TOP, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=60)
        assert done.stdout == output, command


# ---- Layouts ---------------------------------------------------------------------------------------------------------------------


def c_values(directory, header, expressions):
    """What a compiler makes of the expressions."""
    prints = "\n".join(f'printf("%llu\\n", (unsigned long long)({expression}));' for expression in expressions)
    (directory / "layout.c").write_text(f'#include <stdio.h>\n#include "{header}"\nint main(void) {{\n{prints}\nreturn 0;\n}}\n')
    subprocess.run(["cc", "-std=gnu11", "-D_GNU_SOURCE", f"-I{TOP}", "-o", directory / "layout", directory / "layout.c"], check=True)
    output = subprocess.run([directory / "layout"], check=True, capture_output=True, text=True).stdout
    return dict(zip(expressions, map(int, output.split()), strict=True))


def layout_tables(text):
    """Of each table of offsets: the struct that its section names last before it, the size if that is said, and the rows."""
    for place in re.finditer(r"^\| at \| type \| name \| \|\n\|[-|]+\n((?:\|.*\n)+)", text, re.M):
        before = re.split(r"^#+ ", text[:place.start()], flags=re.M)[-1]
        size, struct = re.findall(r"(?:(\d+)\s+bytes[^`]*|)`struct (\w+)`", before)[-1]
        rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in place.group(1).splitlines()]
        yield struct, size, [(int(at), type_, name) for at, type_, name, *_ in rows]


def members(header, struct):
    body = re.search(rf"^struct {struct} {{\n(.*?)^}};", read(header), re.M | re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return [re.match(r"\w+", name.strip()).group() for line in body.split(";") if line.strip()
            for name in re.sub(r"^\s*(_Atomic )?\w+ ", "", line).split(",")]


LAYOUTS = [("docs/EXTENT.md", "common/extent_format.h", {"extent_header", "extent_record", "extent_series", "extent_payload"}),
           ("docs/RING.md", "common/ring_format.h", {"ring_super", "ring_queue", "ring_entry", "ring_ack"})]


@pytest.mark.parametrize("document, header, structs", LAYOUTS, ids=["extent", "ring"])
def test_offsets_are_those_of_the_header(tmp_path, document, header, structs):
    tables = list(layout_tables(read(document)))
    assert {struct for struct, _, _ in tables} == structs
    for struct, size, rows in tables:
        assert [name for _, _, name in rows] == members(header, struct)
        fixed = [row for row in rows if not row[1].endswith("[rank]")]
        offsets = [f"offsetof(struct {struct}, {name})" for _, _, name in rows]
        sizes = [f"sizeof(((struct {struct} *)0)->{name})" for _, _, name in fixed]
        values = c_values(tmp_path, header, [*offsets, *sizes, f"sizeof(struct {struct})"])
        assert [values[offset] for offset in offsets] == [at for at, _, _ in rows], struct
        for (_, type_, name), expression in zip(fixed, sizes, strict=True):
            kind, count = re.fullmatch(r"(\w+?)(?:\[(\d+)\])?", type_).groups()
            assert values[expression] == TYPE_BYTES[kind] * int(count or 1), name
        assert not size or values[f"sizeof(struct {struct})"] == int(size), struct


FLAGS = [("docs/EXTENT.md", "common/extent_format.h", "EXTENT_RECORD_"), ("docs/RING.md", "common/ring_format.h", "RING_ENTRY_")]


@pytest.mark.parametrize("document, header, prefix", FLAGS, ids=["extent", "ring"])
def test_flags_are_those_of_the_header(tmp_path, document, header, prefix):
    table = re.search(r"^\| flag \| name \| \|\n\|[-|]+\n((?:\|.*\n)+)", read(document), re.M).group(1)
    said = {prefix + name.upper(): int(flag) for flag, name in re.findall(r"^\| (\d+) \| (\w+) \|", table, re.M)}
    there = set(re.findall(rf"\b({prefix}[A-Z]+) = \d+", read(header)))
    assert set(said) == there
    assert c_values(tmp_path, header, sorted(there)) == said


def test_numbers_are_those_of_the_headers(tmp_path):
    extent = c_values(tmp_path, "common/extent_format.h", ["EXTENT_MAGIC", "EXTENT_VERSION"])
    assert f"| `HRX1`, {extent['EXTENT_MAGIC']:#x} |" in read("docs/EXTENT.md")
    assert extent["EXTENT_MAGIC"] == int.from_bytes(b"HRX1", "little") and extent["EXTENT_VERSION"] == 1
    written = dict(re.findall(r"\bEXTENT_WRITTEN_(\w+) = (\d+)", read("common/extent_format.h")))
    table = re.search(r"^\| written_as \| \|\n\|[-|]+\n((?:\|.*\n)+)", read("docs/EXTENT.md"), re.M).group(1)
    assert sorted(written.values()) == re.findall(r"^\| (\d) \|", table, re.M)
    ring = c_values(tmp_path, "common/ring_format.h", ["RING_MAGIC", "RING_QUEUE_MAGIC", "RING_QUEUE_ENTRIES",
                                                       "RING_QUEUE_ENTRIES_OFFSET", "RING_TABLE_OFFSET"])
    for name, row in (("RING_MAGIC", "magic | {:#x} |"), ("RING_QUEUE_MAGIC", "magic | {:#x} |"), ("RING_QUEUE_ENTRIES", "entry_count | {};"),
                      ("RING_QUEUE_ENTRIES_OFFSET", "entries_offset | {} |"), ("RING_TABLE_OFFSET", "table_offset | {} |")):
        assert row.format(ring[name]) in read("docs/RING.md"), name


# ---- The protocol, layers, tests, links ------------------------------------------------------------------------------------------


def test_protocol_has_every_method_and_error():
    text = read("docs/PROTOCOL.md")
    methods = re.findall(r'\{ "(\w+)", methods_\w+,', read("daemon/serve/methods.c"))
    assert "subscribe" in methods
    for method in methods:
        assert re.search(rf"^`{method}` \{{", text, re.M), method
    for code in re.findall(r"WIRE_E_\w+ = (-\d+)", read("common/wire_format.h")):
        assert code in text or code == "-32603", code  # that one is the standard's, for what should not happen


def test_layers_are_those_that_are_proven():
    loader = importlib.machinery.SourceFileLoader("check_layers", str(TOP / "scripts/check-layers"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_layers", loader))
    loader.exec_module(module)
    block = re.search(r"^## Layers\n\n```\n(.*?)^```", read("docs/ARCHITECTURE.md"), re.M | re.S).group(1)
    said = {name: [] if rest.strip().startswith(("(", "-")) else rest.split()
            for name, rest in (line.split(":", 1) for line in block.splitlines())}
    assert said == {name: below for name, below in module.LAYERS.items() if (TOP / name).is_dir()}


def test_tests_that_prove_something_exist():
    table = re.search(r"^\| it tries \| result \| proven by \|\n\|[-|]+\n((?:\|.*\n)+)", read("docs/RING.md"), re.M).group(1)
    names = {name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.rsplit(" | ", 1)[1])}
    tests = "".join(path.read_text(encoding="utf-8") for path in [*TOP.glob("tests/unit/**/test_*.c"), *TOP.glob("tests/integration/test_*.py")])
    assert len(names) > 10
    for name in names:
        assert re.search(rf"START_TEST\({name}\)|^def {name}\(", tests, re.M), name


@named(DOCUMENTS)
def test_files_that_are_named_exist(path):
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:common|daemon|client|tests|scripts|docs|conf)/[\w./-]+\w)`", text):
        assert (TOP / name).exists(), name
    sources = ["/" + str(source.relative_to(TOP)) for part in ("common", "daemon", "client", "tests") for source in (TOP / part).rglob("*.[ch]")]
    for name in re.findall(r"`([\w/]+\.[ch])`", text):
        assert any(source.endswith("/" + name) for source in sources), name
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert "://" in target or (path.parent / target).exists(), target
    for name in re.findall(r"\b(?:docs/)?([A-Z]+\.md)\b", text):
        assert (TOP / name).exists() or (TOP / "docs" / name).exists(), name
