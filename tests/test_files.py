import gzip
import io
import signal
import subprocess
import sys
from codecs import BOM_UTF8
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from checks import raises

import erbayes as eb
from erbayes._internal.files import (
    _parse,
    is_database,
    read_columns,
    read_table,
    refuse_output,
    replacing,
    terminable,
)
from erbayes.large import Files, scan

pytestmark = pytest.mark.lowest


def test_what_fails_half_way_replaces_nothing(tmp_path):
    path = tmp_path / "found.csv"
    path.write_text("good", encoding="utf-8")
    with pytest.raises(RuntimeError), replacing(path) as new:
        new.write_text("half", encoding="utf-8")
        raise RuntimeError
    assert path.read_text(encoding="utf-8") == "good" and list(tmp_path.iterdir()) == [path]


def test_what_succeeds_replaces_the_file_that_a_link_names(tmp_path):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    with replacing(link) as new:
        assert target.read_text(encoding="utf-8") == "old" and new.suffix == ".csv"
        new.write_text("new", encoding="utf-8")
    assert link.is_symlink() and target.read_text(encoding="utf-8") == "new"
    assert sorted(tmp_path.iterdir()) == [link, target]


def test_nothing_written_is_an_error(tmp_path):
    said = r"cannot write .*found.csv: No such file"
    with pytest.raises(eb.DataError, match=said), replacing(tmp_path / "found.csv"):
        pass


def test_ids_are_text_and_gaps_stay_gaps(tmp_path):
    path = tmp_path / "x.parquet"
    columns = {"a": pd.array([7, None, 2**62 + 1], "Int64"), "b": [1.5, 2, 3], "c": [1, 2, 3]}
    pd.DataFrame(columns).to_parquet(path)
    found = read_columns(path, 3)
    assert list(found.columns) == ["a", "b", "c"] and found.a.isna().tolist() == [False, True, False]
    assert found.a.dropna().tolist() == ["7", str(2**62 + 1)]
    assert found.b.tolist() == [1.5, 2, 3] and found.c.tolist() == ["1", "2", "3"]
    (tmp_path / "x.csv").write_text("a,b\n007,NA\nnan,null\n,x\n", encoding="utf-8")
    found = read_columns(tmp_path / "x.csv", 2, ("b", "a"))
    assert found.b.tolist() == ["NA", "null", "x"] and list(found.columns) == ["b", "a"]
    assert found.a.isna().tolist() == [False, False, True] and found.a[0] == "007"


QUOTED = {
    "a blank": 'r,c\n"a" ,x\n"b",x\n',
    "a tab": 'r,c\n"a"\t,x\n"b",x\n',
    "text": 'r,c\n"a"z,x\n"b",x\n',
    "a blank at the end": 'r,c\n"a","x" \nb,"x"\n',
    "a blank in the header": '"r" ,c\na,x\nb,x\n',
    "a blank after two quotes": 'r,c\n"a""b" ,x\nb,x\n',
    "an escape of another dialect": 'r,c\n"a\\"b",x\nb,x\n',
    "a blank after lines": 'r,c\n"a\nb" ,x\nb,x\n',
    "a blank before \\r": 'r,c\r"a" ,x\rb,x\r',
}
PLAIN = {
    "quotes": ('r,c\n"a","x"\n"b","x"\n', ["a", "b"]),
    "a mark of order": ('\ufeff"r","c"\n"a","x"\n', ["a"]),
    "blanks in quotes": ('r,c\n" a ","x"\n', [" a "]),
    "quotes in quotes": ('r,c\n"a, ""b"" ,""c","x"\n', ['a, "b" ,"c']),
    "lines in quotes": ('r,c\n"a\n""b"" c","x"\r\nd,x\r\n', ['a\n"b" c', "d"]),
    "quotes in plain text": ('r,c\n6" nail,5"\nb,x\n', ['6" nail', "b"]),
    "a blank before": ('r,c\n "a",x\n', [' "a"']),
}


@pytest.mark.parametrize("name", QUOTED)
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv"])
def test_nothing_may_follow_a_closing_quote(tmp_path, name, ending):
    """pandas would make it part of the id: `"a" ` and `"a"` would be two records."""
    path, text = tmp_path / f"x.{ending}", QUOTED[name]
    if ending == "tsv":
        text = text.replace("\t", " ").replace(",", "\t")
    with gzip.open(path, "wb") if ending == "csv.gz" else path.open("wb") as file:
        file.write(text.encode())
    with pytest.raises(eb.DataError, match=r"x\.[a-z.]+: line \d: .* nothing, not even a blank, may stand"):
        read_columns(path, 2)


@pytest.mark.parametrize("name", PLAIN)
def test_quotes_as_they_are_meant(tmp_path, name):
    text, wanted = PLAIN[name]
    (tmp_path / "x.csv").write_bytes(text.encode())
    assert read_columns(tmp_path / "x.csv", 2).iloc[:, 0].to_list() == wanted


@pytest.mark.parametrize("text, times", [("r0,c0\nr1,c0\nr2,c1\n", 1), ("r,c\na,x\nr,c\nb,x\n", 1)])
def test_the_first_line_and_no_other_names_columns(tmp_path, text, times):
    """Without a header the first record would be lost; with two there would be one too many."""
    (tmp_path / "x.csv").write_text(text, encoding="utf-8")
    with pytest.raises(eb.DataError, match=f"x.csv: {times} rows hold '(c0|r)' in the column of this name"):
        read_columns(tmp_path / "x.csv", 2)


def test_lists_beside_ids_are_columns_to_choose_from(tmp_path):
    pd.DataFrame({"r": ["a"], "c": ["x"], "tags": [["t"]]}).to_parquet(tmp_path / "x.parquet")
    needed = r"and 2 columns are needed: name 2 columns as .*x\.parquet:COLUMNS"
    said = rf"x\.parquet has 'r', 'c', 'tags', {needed}"
    raises(eb.DataError, said, read_columns, tmp_path / "x.parquet", 2)


def test_a_scan_reads_quoted_ids_without_the_blank_after_them(tmp_path):
    labels = {"a": "e", "b": "e"}
    (tmp_path / "x.csv").write_text('r,c\n"a" ,"x" \n"b",x\nc,"y" \n', encoding="utf-8")
    (tmp_path / "clean.csv").write_text("r,c\na,x\nb,x\nc,y\n", encoding="utf-8")
    found, wanted = (scan(Files(tmp_path / f"{name}.csv", text=True), labels) for name in ("x", "clean"))
    assert found.table().equals(wanted.table()) and found.rows == wanted.rows


@pytest.mark.slow
def test_a_request_to_terminate_cleans_up_and_leaves_other_handlers_alone(tmp_path):
    code = f"""
import os, signal, sys; sys.path.insert(0, {str(Path(eb.__file__).parents[1])!r})
from pathlib import Path
from erbayes._internal.files import replacing, terminable
with terminable():
    pass
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
with replacing(Path({str(tmp_path / "found.csv")!r})) as new:
    new.write_text("half")
    os.kill(os.getpid(), signal.SIGTERM)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 143
    assert not list(tmp_path.iterdir())

    def own(*args):
        pass

    before = signal.signal(signal.SIGTERM, own)
    try:
        with terminable():
            assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_mode_of_a_file_is_kept(tmp_path):
    path = tmp_path / "found.csv"
    path.write_text("old", encoding="utf-8")
    for mode in (0o600, 0o640, 0o664):
        path.chmod(mode)
        with replacing(path) as new:
            new.write_text("new", encoding="utf-8")
        assert path.stat().st_mode & 0o777 == mode


def test_a_file_that_may_only_be_read_is_kept(tmp_path):
    path, link = tmp_path / "found.csv", tmp_path / "link.csv"
    path.write_text("old", encoding="utf-8")
    link.symlink_to(path)
    path.chmod(0o444)
    for name in (path, link):
        with pytest.raises(eb.DataError, match="the file may only be read"), replacing(name):
            pytest.fail("was entered")
    assert path.read_text(encoding="utf-8") == "old"


def test_another_hard_link_keeps_the_old_content(tmp_path):
    path, copy = tmp_path / "found.csv", tmp_path / "copy.csv"
    path.write_text("old", encoding="utf-8")
    copy.hardlink_to(path)
    with replacing(path) as new:
        new.write_text("new", encoding="utf-8")
    assert (path.read_text(encoding="utf-8"), copy.read_text(encoding="utf-8")) == ("new", "old")


def test_a_device_is_refused_though_a_file_lies_behind_it(tmp_path):
    log = tmp_path / "log"
    log.write_text("precious\n", encoding="utf-8")
    (tmp_path / "link").symlink_to("/dev/stdout")
    code = f"""
import sys; sys.path.insert(0, {str(Path(eb.__file__).parents[1])!r})
from pathlib import Path
from erbayes._internal.files import replacing
for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/null", "link"):
    try:
        with replacing(Path({str(tmp_path)!r}, name)) as new:
            new.write_text("table")
    except ValueError as error:
        print(error, file=sys.stderr)
"""
    with log.open("a", encoding="utf-8") as file:
        done = subprocess.run([sys.executable, "-c", code], stdout=file, stderr=subprocess.PIPE, timeout=60)
    assert done.stderr.count(b"it is not a regular file") == 5
    assert log.read_text(encoding="utf-8") == "precious\n"


def test_outputs_are_refused_before_the_work(tmp_path):
    read, folder = tmp_path / "labels.csv", tmp_path / "release"
    read.write_text("x", encoding="utf-8")
    folder.mkdir()
    (tmp_path / "link.csv").symlink_to(read)
    (tmp_path / "hard.csv").hardlink_to(read)
    (tmp_path / "loop").symlink_to("loop")
    for name, message in {
        "labels.csv": f"it is read as {read}",
        "release/../labels.csv": "it is read as",
        "link.csv": "it is read as",
        "hard.csv": "it is read as",
        "release/new.csv": f"it is read as {folder}",
        "none/new.csv": "No such file or directory",
        "loop": "its links lead nowhere",
        "release": "it is not a regular file",
        "x" * 300: "File name too long",
        "labels.csv/new.csv": "[Nn]ot a directory",
    }.items():
        raises(eb.DataError, message, refuse_output, tmp_path / name, [read, folder])
    refuse_output(tmp_path / "release.csv", [read, folder])
    assert read.read_text(encoding="utf-8") == "x"


def test_duckdb_databases_are_recognised(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    duckdb.connect(str(tmp_path / "x.duckdb")).close()
    (tmp_path / "short").write_bytes(b"DUCK")
    assert is_database(tmp_path / "x.duckdb")
    assert not any(is_database(tmp_path / name) for name in ("short", "none", "."))


def by_pandas(content, separator=","):
    return pd.read_csv(io.BytesIO(content), sep=separator, dtype=str, keep_default_na=False, na_values=[""])


ODD = [
    b"a,a\nx,y\n", b"a\nx\n", b"a, \nx,y\n", b"\na,b\nx,y\n", b"a,b\nx\n", b"a,b\nx,y,z\n", b"a,b\rx,y\r",
    b"\xef\xbb\xbfa,b\nx,y\n", b'a,b\nx"x",y\n', b"a,b\nx\0,y\n", b"a,b\n\xff,y\n", b"", b"\xff,b\nx,y\n",
    b"a,b\r\nx\r,y\r\n", b"a,b,\nx,y\n", b"a,b\nx,y\n   \nz,w\n",
    b'a,b\n"x""z",y\n', b'a,b\n"x\nz",y\n', b'a,b\n"x" ,y\n', b'a,b\n "x",y\n', b'a,b\n"x",y"\n', b'a,b\n"x"b,",y"\n',
    b'a,b\n"x,y', b'"a,b",c\nx,y\n', b'a,b\n"x,y\n',
]  # fmt: skip


REFUSED = {
    b"a,b\nx,y,z\n": "more fields than its header",
    b'a,b\n"x" ,y\n': "nothing, not even a blank",
    b'a,b\n"x"b,",y"\n': "nothing, not even a blank",
}
"""Texts that pandas reads, and not as they are meant."""


@pytest.mark.parametrize("content", ODD, ids=repr)
def test_odd_text_is_read_as_pandas_reads_it_or_refused(content, tmp_path):
    (path := tmp_path / "x.csv").write_bytes(content)
    try:
        wanted = by_pandas(content)
    except (ValueError, UnicodeDecodeError):
        wanted = None
    if wanted is None or content in REFUSED:
        raises(eb.DataError, f"cannot read .*{REFUSED.get(content, '')}", read_table, path)
    else:
        assert _parse(content.removeprefix(BOM_UTF8), ",").equals(wanted)


@pytest.mark.parametrize("content, said", [
    (b"PK\x03\x04\x14", "a file of Excel: save its sheet as CSV"),
    (b'[{"record": 1}]', "JSON, and no table: make one row per record"),
    (b'{"record": [1, 2]}\n{"record": [3]}', "JSON, and no table"),
    (b"record,cluster\n" + b"," * 10**6 + b"\n", "more fields than its header"),
    (b"record,cluster\na,b\nc", "its last line has 1 of 2 fields and no end: it is cut"),
    ("record,cluster\na,b\n".encode("utf-16-le"), "NUL characters, as damaged files and UTF-16 without"),
    (b"record,cluster\na,b\n" + b"\0" * 99, "NUL characters, as damaged files"),
], ids=["Excel", "JSON", "lines of JSON", "a wide line", "cut", "UTF-16", "NULs"])  # fmt: skip
def test_what_is_no_table_is_told(content, said, tmp_path):
    (path := tmp_path / "x.csv").write_bytes(content)
    raises(eb.DataError, f"cannot read .*{said}", read_table, path)


def test_brackets_and_the_line_of_excel_are_no_data(tmp_path):
    (path := tmp_path / "x.csv").write_bytes(b"[id],[cluster]\n1,2\n")
    assert list(read_table(path)) == ["[id]", "[cluster]"]
    path.write_bytes(b"\xef\xbb\xbfsep=;\r\na;b\r\n1,5;2\r\n")
    assert read_table(path).to_dict("list") == {"a": ["1,5"], "b": ["2"]}


def test_pyarrow_and_pandas_read_plain_text_alike():
    """Random texts, in which gaps, blanks, leading zeros, words for nothing and ends of lines meet."""
    rng = np.random.default_rng(5)
    cells = [
        "", " ", *"007 NA nan null é".split(), " a", "a ", *"1e400 -1 # ' \\".split(), "\t",
        *"true 2020-01-01 a,b".split(),
    ]  # fmt: skip
    for trial in range(112):
        end, last = str(rng.choice(["\n", "\r\n"])), rng.integers(2)
        rows = rng.choice(cells[: len(cells) - 1 + trial % 2], (rng.integers(0, 6), 2 + trial % 2))
        if trial % 2:
            quoted = rng.random(rows.shape) < 0.5
            rows = np.where(quoted | (rows == "a,b"), np.char.add(np.char.add('"', rows), '"'), rows)
        head = ['"a"' if trial % 4 == 1 else "a", *"bc"[: rows.shape[1] - 1]]
        lines = [",".join(head), *map(",".join, rows)]
        if trial % 7 == 0:
            lines.insert(rng.integers(1, len(lines) + 1), "")
        content = (end.join(lines) + end * int(last)).encode()
        found, wanted = _parse(content, ","), by_pandas(content)
        # before pandas 3 one has None and the other NaN where a value is missing
        pd.testing.assert_frame_equal(found.fillna("\0"), wanted.fillna("\0"))
        assert (found.isna() == wanted.isna()).all(axis=None)
    found = _parse(b"a\tb\nx,1\t2\n", "\t")
    pd.testing.assert_frame_equal(found, by_pandas(b"a\tb\nx,1\t2\n", "\t"))
    assert found.iloc[0, 0] == "x,1"
