"""Draw the pictures of the documentation: ``python scripts/docs_pictures.py`` writes ``docs/pictures/*.svg``.

Pictures are 520 units wide, so that their texts stay legible on a phone. A test compares the files with this script.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
WIDTH = 520
INK = "#2f3a52"
FILLS = {"file": "#d9e6fb", "new": "#d3efda", "dead": "#f7d3d3", "meta": "#fbeec8", "plain": "#ffffff", "dim": "#eceff4"}


class Picture:
    """An SVG picture of boxes, arrows and texts."""

    def __init__(self, title: str, height: int) -> None:
        self.title, self.height = title, height
        self.parts: list[str] = []

    def text(self, x: float, y: float, text: str, *, size: int = 15, anchor: str = "start", bold: bool = False) -> None:
        """Write one line, with its baseline at ``y``."""
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"{weight}>{escape(text)}</text>')

    def box(  # noqa: PLR0917  # the order of SVG, then text and fill
        self, x: float, y: float, width: float, height: float, text: str = "", fill: str = "plain", *, size: int = 15
    ) -> None:
        """Draw a box with centred lines."""
        shape = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"'
        self.parts.append(f'{shape} fill="{FILLS[fill]}" stroke="{INK}"/>')
        lines = text.split("\n") if text else []
        for at, line in enumerate(lines):
            middle = y + height / 2 + size * 0.35 + (at - (len(lines) - 1) / 2) * (size + 3)
            self.text(x + width / 2, middle, line, size=size, anchor="middle")

    def arrow(self, x1: float, y1: float, x2: float, y2: float, *, dashed: bool = False) -> None:
        """Draw an arrow from the first point to the second."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        line = f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
        self.parts.append(f'{line} stroke="{INK}" stroke-width="1.5"{dash} marker-end="url(#head)"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, *, dashed: bool = True) -> None:
        """Draw a thin line."""
        dash = ' stroke-dasharray="4 4"' if dashed else ""
        self.parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="#8a94a8"{dash}/>')

    def svg(self) -> str:
        """Return the text of the file."""
        head = '<marker id="head" markerWidth="9" markerHeight="9" refX="8" refY="4.5" orient="auto">'
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="img">',
                f"<title>{escape(self.title)}</title>",
                f'<defs>{head}<path d="M0,0.5 L8,4.5 L0,8.5 z" fill="{INK}"/></marker></defs>',
                f'<rect width="{WIDTH}" height="{self.height}" rx="8" fill="#fafbfd"/>',
                f'<g font-family="system-ui, sans-serif" fill="{INK}">',
                *self.parts,
                "</g>",
                "</svg>\n",
            )
        )


def layers() -> Picture:
    """Draw the four packages."""
    p = Picture("Four packages: a package imports only the ones below it", 300)
    rows = (
        ("pyspark_paimon", "tables, SQL, command line, Spark", "new"),
        ("lsm", "rows: write, compact, scan, merge", "file"),
        ("manifest", "metadata: schemas, snapshots, commits", "meta"),
        ("fileindex", "predicates and file indexes", "dim"),
    )
    for at, (name, text, fill) in enumerate(rows):
        y = 16 + at * 70
        p.box(60, y, 400, 50, f"{name}\n{text}", fill)
        if at:
            p.arrow(260, y - 20, 260, y - 2)
    return p


def scan() -> Picture:
    """Draw a scan from a filter to rows."""
    p = Picture("A scan: the planner prunes by metadata, splits are read in parallel, and the filter is applied exactly", 330)
    p.box(20, 20, 130, 44, "filter, columns", "plain", size=14)
    p.arrow(150, 42, 188, 42)
    p.box(190, 20, 140, 44, "planner", "plain", size=14)
    p.arrow(330, 42, 368, 42)
    p.box(370, 20, 130, 44, "manifests", "meta", size=14)
    p.text(436, 84, "what can match?", size=13, anchor="middle")
    for at in range(3):
        x = 60 + at * 140
        p.arrow(260, 64, x + 60, 112)
        p.box(x, 114, 120, 40, f"split {at}", "file", size=14)
        p.arrow(x + 60, 154, x + 60, 176)
        p.box(x, 178, 120, 48, "indexes, pages,\nmerge, filter", "plain", size=13)
        p.arrow(x + 60, 226, 260, 268)
    p.box(190, 270, 140, 40, "your rows", "new", size=14)
    return p


def directories() -> Picture:
    """Draw a table as partitions and buckets."""
    p = Picture("A table is a directory of partitions, each with buckets of data files", 210)
    p.box(20, 20, 110, 34, "flights/")
    for at, month in enumerate(("month=1/", "month=2/")):
        y = 20 + at * 96
        p.arrow(130, 37, 190, y + 17)
        p.box(190, y, 110, 34, month, "meta")
        for bucket in range(2):
            low = y + bucket * 44
            p.arrow(300, y + 17, 350, low + 17)
            p.box(350, low, 150, 34, f"bucket-{bucket}/", "file")
    p.text(40, 151, "table", size=14)
    p.text(40, 173, "partition", size=14)
    p.text(40, 195, "bucket", size=14)
    p.box(16, 138, 16, 16)
    p.box(16, 160, 16, 16, "", "meta")
    p.box(16, 182, 16, 16, "", "file")
    return p


def tree() -> Picture:
    """Draw the levels of a bucket, its runs and its sections."""
    p = Picture("The files of one bucket: level 0 on top, the deepest level below, keys from left to right", 270)
    p.text(14, 52, "level 0", bold=True)
    p.text(14, 70, "each a run", size=13)
    p.text(14, 152, "level 4", bold=True)
    p.text(14, 197, "level 5", bold=True)
    p.box(110, 20, 150, 26, "newest file", "new", size=14)
    p.box(150, 52, 120, 26, "older file", "new", size=14)
    p.box(400, 84, 90, 26, "oldest", "new", size=14)
    for low, width in ((100, 90), (196, 74)):
        p.box(low, 134, width, 26, "", "file")
    for low, width in ((96, 94), (194, 84), (290, 95), (395, 100)):
        p.box(low, 180, width, 26, "", "file")
    p.text(14, 169, "one run", size=13)
    p.text(14, 215, "four files,", size=13)
    p.text(14, 232, "one run", size=13)
    for x in (284, 390):
        p.line(x, 12, x, 228)
    p.text(185, 226, "section", anchor="middle", size=14)
    p.text(336, 226, "section", anchor="middle", size=14)
    p.text(446, 226, "section", anchor="middle", size=14)
    p.arrow(90, 246, 500, 246)
    p.text(290, 263, "keys", anchor="middle", size=14)
    return p


def metadata() -> Picture:
    """Draw the files from a snapshot down to data files."""
    p = Picture("A snapshot names manifest lists, which name manifests, which name data files", 300)
    p.box(170, 16, 180, 36, "snapshot-7", "meta")
    p.box(20, 16, 100, 36, "tag v1", "plain")
    p.arrow(120, 34, 168, 34)
    p.box(60, 92, 180, 36, "base manifest list", "meta", size=14)
    p.box(280, 92, 180, 36, "delta manifest list", "meta", size=14)
    p.arrow(235, 52, 160, 90)
    p.arrow(285, 52, 360, 90)
    for x in (30, 160, 325):
        p.box(x, 168, 110, 36, "manifest", "meta", size=14)
    p.arrow(130, 128, 90, 166)
    p.arrow(170, 128, 210, 166)
    p.arrow(370, 128, 378, 166)
    for at, x in enumerate((20, 84, 150, 214, 318, 382)):
        p.box(x, 246, 56, 34, "data", "new" if at > 3 else "file", size=13)
    for start, end in ((70, 48), (95, 112), (200, 178), (225, 242), (370, 346), (390, 410)):
        p.arrow(start, 204, end, 244)
    p.text(450, 268, "+ indexes", size=13)
    return p


def overview() -> Picture:
    """Draw the road of rows into the tree and out of it."""
    p = Picture("Writes add sorted files on level 0, compaction moves rows down, reads merge all levels", 310)
    p.box(20, 20, 150, 44, "rows you write", "plain")
    p.arrow(95, 64, 95, 92)
    p.box(20, 94, 150, 44, "sort buffer\n(memory)", "plain", size=14)
    p.arrow(170, 116, 212, 116)
    p.box(214, 94, 70, 44, "file", "new")
    p.box(292, 94, 70, 44, "file", "new")
    p.text(290, 84, "level 0", anchor="middle", bold=True)
    p.arrow(288, 138, 288, 170)
    p.text(298, 160, "compaction", size=13)
    p.box(214, 172, 150, 34, "level 4", "file")
    p.arrow(288, 206, 288, 234)
    p.box(184, 236, 210, 40, "level 5, the largest run", "file")
    p.box(424, 94, 80, 182, "merge\nread", "plain")
    for y in (116, 189, 256):
        p.arrow(364 if y < 200 else 394, y, 422, y)
    p.arrow(464, 94, 464, 62)
    p.box(400, 20, 104, 40, "rows you get", "plain", size=14)
    p.box(20, 172, 130, 104, "snapshot:\nwhich files\nare the table", "meta", size=14)
    p.text(85, 298, "commit", anchor="middle", size=13)
    return p


def write_path() -> Picture:
    """Draw a write from rows to a commit message."""
    p = Picture("Rows are cut by bucket, sorted in memory, folded, and written as files with indexes", 330)
    p.box(20, 20, 120, 40, "Arrow batch", "plain")
    for at in range(3):
        p.arrow(140, 40, 198, 40 + at * 56)
        p.box(200, 20 + at * 56, 130, 40, f"bucket {at}\nsort buffer", "plain", size=13)
    p.arrow(330, 40, 378, 40, dashed=True)
    p.box(380, 20, 124, 40, "spilled run", "dim", size=14)
    p.text(504, 80, "over the memory budget", size=13, anchor="end")
    p.arrow(265, 172, 265, 206)
    p.box(190, 208, 150, 40, "sort, fold by key", "plain", size=14)
    p.arrow(265, 248, 265, 276)
    p.box(150, 278, 120, 36, "level-0 file", "new", size=14)
    p.box(280, 278, 100, 36, "statistics", "new", size=14)
    p.box(390, 278, 114, 36, "indexes", "new", size=14)
    p.box(20, 278, 110, 36, "message", "meta", size=14)
    p.arrow(150, 296, 132, 296)
    p.text(20, 262, "to the commit", size=13)
    return p


def compaction() -> Picture:
    """Draw the runs of a bucket before and after a compaction."""
    p = Picture("Universal compaction merges the newest runs into one; the large old run stays where it is", 250)
    p.text(120, 30, "before: 5 runs", anchor="middle", bold=True)
    p.text(400, 30, "after: 2 runs", anchor="middle", bold=True)
    for at, width in enumerate((60, 70, 64, 80)):
        p.box(30, 44 + at * 30, width, 24, "", "new")
    p.text(125, 62, "level 0", size=13)
    p.box(30, 190, 200, 34, "level 5", "file")
    p.line(20, 38, 20, 164, dashed=False)
    p.line(20, 38, 28, 38, dashed=False)
    p.line(20, 164, 28, 164, dashed=False)
    p.text(125, 122, "picked together", size=13)
    p.arrow(245, 130, 300, 130)
    p.box(310, 134, 150, 30, "level 4", "new")
    p.box(310, 190, 200, 34, "level 5", "file")
    p.text(410, 124, "written once", size=13, anchor="middle")
    p.text(410, 243, "not touched", size=13, anchor="middle")
    return p


def merge_read() -> Picture:
    """Draw the merge of three runs."""
    p = Picture("A merge read takes the newest version of each key from three sorted runs", 250)
    rows = (("newest run", ("", "2", "", "4"), "new"), ("older run", ("1", "2", "", ""), "new"), ("base run", ("1", "2", "3", "4"), "file"))
    for line, (name, keys, fill) in enumerate(rows):
        y = 24 + line * 48
        p.text(14, y + 22, name, size=14)
        for at, key in enumerate(keys):
            if key:
                hidden = any(rows[above][1][at] for above in range(line))
                p.box(120 + at * 96, y, 82, 32, f"key {key}", "dim" if hidden else fill, size=14)
    for at in range(4):
        p.arrow(161 + at * 96, 156, 161 + at * 96, 186)
        fill = ("new", "new", "file", "new")[at]
        p.box(120 + at * 96, 188, 82, 32, f"key {at + 1}", fill, size=14)
    p.text(14, 209, "result", size=14, bold=True)
    p.text(310, 241, "grey: replaced by a newer version of the key", size=13, anchor="middle")
    return p


def commit() -> Picture:
    """Draw two writers that race for a snapshot."""
    p = Picture("Two writers create snapshot-8 at once; one succeeds, the other evaluates again and creates snapshot-9", 250)
    p.box(20, 20, 110, 40, "writer A", "plain")
    p.box(20, 170, 110, 40, "writer B", "plain")
    p.box(170, 20, 120, 40, "files, manifests", "file", size=13)
    p.box(170, 170, 120, 40, "files, manifests", "file", size=13)
    p.arrow(130, 40, 168, 40)
    p.arrow(130, 190, 168, 190)
    p.box(350, 92, 150, 44, "snapshot-8", "meta")
    p.arrow(290, 48, 356, 90)
    p.text(336, 62, "created", size=14)
    p.arrow(262, 170, 348, 120, dashed=True)
    p.text(190, 132, "name exists", size=14)
    p.box(350, 184, 150, 44, "snapshot-9", "meta")
    p.arrow(290, 198, 348, 204)
    p.text(76, 236, "checks again, then creates", size=13)
    return p


def file_indexes() -> Picture:
    """Draw the answers of an index."""
    p = Picture("An index answers a filter for one file: skip it, read these rows, or it does not know", 240)
    p.box(20, 86, 124, 56, "filter\ncity = 'Oslo'", "plain", size=14)
    p.arrow(144, 114, 186, 114)
    p.box(188, 74, 124, 80, "index of\none file", "meta")
    p.text(250, 180, "in the manifest,", size=13, anchor="middle")
    p.text(250, 198, "or beside the file", size=13, anchor="middle")
    for at, (text, fill) in enumerate((("skip the file", "dead"), ("rows 7, 21, 90", "new"), ("unknown: read all", "dim"))):
        y = 24 + at * 68
        p.arrow(312, 114, 348, y + 22)
        p.box(350, y, 150, 44, text, fill, size=14)
    return p


def key_candidates() -> Picture:
    """Draw the search for key candidates."""
    p = Picture("Each run is searched alone for keys; only these keys are merged, then the filter is applied", 320)
    p.text(20, 26, "filter: city = 'Oslo'", size=14, bold=True)
    for at, (name, fill) in enumerate((("newest run", "new"), ("older run", "new"), ("base run", "file"))):
        p.box(20, 40 + at * 48, 130, 36, name, fill, size=14)
        p.arrow(150, 58 + at * 48, 218, 58 + at * 48)
        p.box(220, 40 + at * 48, 120, 36, ("key 4", "no key", "keys 4, 9")[at], "plain", size=14)
        p.arrow(340, 58 + at * 48, 388, 106)
    p.text(220, 26, "by its indexes and pages", size=13)
    p.box(390, 82, 114, 48, "candidates\n4, 9", "meta", size=14)
    p.arrow(447, 130, 447, 196)
    p.box(340, 198, 164, 44, "merge keys 4 and 9\nof all runs", "plain", size=14)
    p.arrow(340, 220, 262, 220)
    p.box(120, 198, 140, 44, "filter the result", "plain", size=14)
    p.arrow(190, 242, 190, 266)
    p.box(120, 268, 140, 36, "key 4", "new", size=14)
    p.text(275, 290, "key 9 is no longer in Oslo", size=13)
    return p


def deletion_vectors() -> Picture:
    """Draw a file and its deletion vector."""
    p = Picture("A deletion vector marks rows of a file by their positions; the file itself does not change", 200)
    dead = (2, 5)
    for at in range(8):
        p.box(100 + at * 50, 30, 48, 36, f"row {at}", "dead" if at in dead else "file", size=13)
        p.box(100 + at * 50, 106, 48, 36, "1" if at in dead else "0", "meta", size=14)
        if at in dead:
            p.arrow(124 + at * 50, 106, 124 + at * 50, 70)
    p.text(14, 53, "data file", size=14)
    p.text(14, 129, "vector", size=14)
    p.text(300, 178, "a read returns rows 0, 1, 3, 4, 6, 7", size=14, anchor="middle")
    return p


def spark_connect() -> Picture:
    """Draw a write through Spark Connect."""
    p = Picture("The client sends text and DataFrames; tasks write files on the workers; the driver commits once", 300)
    p.box(20, 24, 140, 60, "your process\n(client, no Java)", "plain", size=14)
    p.arrow(160, 44, 248, 44)
    p.text(204, 36, "request", size=13, anchor="middle")
    p.arrow(248, 68, 160, 68)
    p.text(204, 86, "result", size=13, anchor="middle")
    p.box(250, 24, 250, 60, "Spark driver\nquestions, plans, commit hook", "plain", size=14)
    for at in range(3):
        x = 150 + at * 122
        p.arrow(375, 84, x + 52, 136)
        p.box(x, 138, 106, 56, f"task {at}\none bucket", "plain", size=14)
        p.arrow(x + 53, 194, x + 53, 228)
        p.box(x, 230, 106, 34, "data files", "new", size=14)
    p.box(14, 230, 110, 34, "snapshot", "meta", size=14)
    p.line(270, 84, 270, 108, dashed=False)
    p.line(270, 108, 70, 108, dashed=False)
    p.arrow(70, 108, 70, 228)
    p.text(80, 128, "commit", size=13)
    p.text(325, 288, "rows stay on the workers", size=13, anchor="middle")
    return p


PICTURES: dict[str, Callable[[], Picture]] = {
    "layers": layers,
    "scan": scan,
    "directories": directories,
    "tree": tree,
    "metadata": metadata,
    "overview": overview,
    "write-path": write_path,
    "compaction": compaction,
    "merge-read": merge_read,
    "commit": commit,
    "file-indexes": file_indexes,
    "key-candidates": key_candidates,
    "deletion-vectors": deletion_vectors,
    "spark-connect": spark_connect,
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")
