#!/usr/bin/env python3
"""`plot`, `heatmap` and `image`: the files are whole, of their kind, and show what they should.

usage: tests/pictures.py UNISONO
"""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zlib

import sanitizers

UNISONO = os.path.abspath(sys.argv[1])
SECONDS = sanitizers.limit()
PROBLEMS = []
SVG = "{http://www.w3.org/2000/svg}"


def run(folder, program, *words):
    return subprocess.run([UNISONO, "run", *words, "-"], cwd=folder, input=program, capture_output=True, text=True,
                          timeout=SECONDS, check=False)


def made(folder, name, program, *words):
    """The file that a program makes; empty if it does not."""
    path = folder / name
    path.unlink(missing_ok=True)
    ran = run(folder, program, *words)
    if ran.returncode or ran.stdout or ran.stderr or not path.exists():
        PROBLEMS.append(f"{program}\nstatus {ran.returncode}\n{ran.stdout}{ran.stderr}")
        return b""
    return path.read_bytes()


def png(data):
    """Width, height, color type, and rows of bytes of a file of 8 bits a channel."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:8]
    at, packed, head = 8, b"", None
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0]
        head = struct.unpack(">IIBBBBB", body) if kind == b"IHDR" else head
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    width, height, depth, color = head[:4]
    assert depth == 8 and head[4:] == (0, 0, 0)
    bytes_each = {0: 1, 2: 3, 6: 4}[color]
    raw, rows, before = zlib.decompress(packed), [], bytes(width * bytes_each)
    for y in range(height):
        line = raw[y * (1 + len(before)):(y + 1) * (1 + len(before))]
        row = bytearray(line[1:])
        for i, value in enumerate(row):
            a = row[i - bytes_each] if i >= bytes_each else 0
            b, c = before[i], before[i - bytes_each] if i >= bytes_each else 0
            p = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            row[i] = (value + (0, a, b, (a + b) // 2, p)[line[0]]) % 256
        rows.append(bytes(row))
        before = row
    return width, height, color, rows


def pixels(folder, array, width, height, color, rows, *more):
    got = png(made(folder, "x.png", f'image({array}, "x.png"{"".join(more)})'))
    if got != (width, height, color, [bytes(r) for r in rows]):
        PROBLEMS.append(f"image of {array}: {got}")


def images(folder):
    pixels(folder, "[[0.0, 0.5], [1.0, 2.0]]", 2, 2, 0, [[0, 128], [255, 255]])
    pixels(folder, "[[-1.0, nan, inf]]", 3, 1, 0, [[0, 0, 255]])
    pixels(folder, "cast([[0, 7], [200, 255]], u8)", 2, 2, 0, [[0, 7], [200, 255]])
    pixels(folder, "[[true, false]]", 2, 1, 0, [[255, 0]])
    pixels(folder, "[[[1.0, 0.0, 0.5], [0.0, 0.0, 1.0]]]", 2, 1, 2, [[255, 0, 128, 0, 0, 255]])
    pixels(folder, "[[[1.0, 0.0, 0.5, 0.0]]]", 1, 1, 6, [[255, 0, 128, 0]])
    pixels(folder, "[[[1.0]]]", 1, 1, 0, [[255]])
    pixels(folder, "[[0.0, 1.0]]", 6, 3, 0, [[0, 0, 0, 255, 255, 255]] * 3, ", scale=3")
    pixels(folder, "cast([[1, 2], [3, 4]], f64) / 255.0", 2, 2, 0, [[1, 2], [3, 4]])


def svg(folder, program, *words):
    data = made(folder, "x.svg", program, *words)
    return xml.etree.ElementTree.fromstring(data) if data else xml.etree.ElementTree.Element("svg")


def texts(root):
    return [t.text or "" for t in root.iter(SVG + "text")]


def strokes(root):
    return [p.get("stroke") for p in root.iter(SVG + "path")]


def plots(folder):
    lines = "let x = linspace(0.0, 1.0, 100)\n"
    for call, series, labels in [
            ('plot(x, x ** 2, "x.svg")', 1, []),
            ('plot(x ** 2, "x.svg")', 1, []),
            ('plot(x, file="x.svg")', 1, []),
            ('plot(x, (x, x ** 2), "x.svg", labels=("one", "two"))', 2, ["one", "two"]),
            ('plot(x, (loss = x, accuracy = x ** 2), "x.svg")', 2, ["loss", "accuracy"]),
            ('plot((x, x[:50]), (x, x[50:]), "x.svg")', 2, ["0", "1"]),
            ('plot(x, stack((x, x ** 2, x ** 3), axis=1), "x.svg")', 3, ["0", "1", "2"]),
            ('plot(x, stack((x, x ** 2, x ** 3), axis=1), "x.svg", labels=("a", "b", "c"))', 3, ["a", "b", "c"]),
            ('plot(x, x ** 2, "x.svg", labels="only")', 1, ["only"])]:
        root = svg(folder, lines + call)
        # In a legend each stands once more.
        if len(set(strokes(root))) != series or len(strokes(root)) != series * (2 if labels else 1):
            PROBLEMS.append(f"{call}: {strokes(root)}")
        missing = [t for t in labels if t not in texts(root)]
        if missing:
            PROBLEMS.append(f"{call}: {missing} not in {texts(root)}")
    root = svg(folder, lines + 'plot(x, x, "x.svg", title="a < b & c", x_label="x of it", y_label="y of it")')
    if not {"a < b & c", "x of it", "y of it"} <= set(texts(root)):
        PROBLEMS.append(f"titles: {texts(root)}")
    root = svg(folder, 'plot(10.0 ** arange(5, f32), "x.svg", y_log=true)')
    if not {"1", "10", "100", "1000", "10⁴"} <= set(texts(root)):
        PROBLEMS.append(f"logarithmic: {texts(root)}")
    for empty in ("zeros(f32[0])", "[nan, nan]", "zeros(f32[0, 3])", "zeros(f32[5, 0])"):
        if "no points to show" not in texts(svg(folder, f'plot({empty}, "x.svg")')):
            PROBLEMS.append(f"a plot of {empty}")
    # Arrays that lie on several devices, computed sizes, computed texts.
    program = ('axis dev = devices()\nlet y = pmap(fn(x) => x * x, in_axes=split(0), out_axes=split(0))(arange(12, f32))\n'
               'def draw(x: f32[n], y: f32[n], path) { plot(x, y, path, title="sum {sum(y)}") }\n'
               'draw(arange(12, f32), y, "x" + ".svg")')
    if "sum 506.0" not in texts(svg(folder, program, "--devices", "cpu:4")):
        PROBLEMS.append("a plot of a function's arguments")
    first = made(folder, "x.svg", lines + 'plot(x, sin(x), "x.svg")')
    if first != made(folder, "x.svg", lines + 'plot(x, sin(x), "x.svg")', "--devices", "cpu:3"):
        PROBLEMS.append("a plot depends on the devices")


def heatmaps(folder):
    root = svg(folder, 'heatmap(reshape(arange(12), (3, 4)), "x.svg", title="t")')
    image = root.find(SVG + "image")
    if image is None or not image.get("href", "").startswith("data:image/png;base64,") or not {"t", "0", "10"} <= set(texts(root)):
        PROBLEMS.append(f"heatmap: {texts(root)}")
    got = png(made(folder, "x.png", 'heatmap([[0.0, 1.0], [nan, 5.0]], "x.png", high=1.0)'))
    dark, light, gray = [0x44, 0x01, 0x54], [0xfd, 0xe7, 0x25], [0xbd] * 3
    if got != (2, 2, 2, [bytes(dark + light), bytes(gray + light)]):
        PROBLEMS.append(f"heatmap: {got}")
    for empty in ("zeros(f32[0, 3])", "zeros(f32[3, 0])"):
        if "no elements to show" not in texts(svg(folder, f'heatmap({empty}, "x.svg")')):
            PROBLEMS.append(f"a heatmap of {empty}")
    svg(folder, 'heatmap(ones(f32[2000, 3]), "x.svg")')


def nothing_left(folder):
    """What fails leaves nothing; what only checks, or compiles, writes nothing."""
    for path in folder.iterdir():
        path.unlink()
    for program in ('plot(arange(3), "no/x.svg")', 'plot(arange(3), arange(4), "x.svg")', 'image(ones(i32[2, 2]), "x.png")'):
        ran = run(folder, program)
        if ran.returncode != 1 or not re.search(r"error\[U\d+\].*<stdin>:1:", ran.stderr, re.S):
            PROBLEMS.append(f"{program}: {ran}")
    effects = 'plot(arange(3), "x.svg")\nimage(ones(f32[2, 2]), "x.png")\nheatmap(ones(f32[2, 2]), "y.svg")\nprint(clock())\n'
    (folder / "effects.uni").write_text(effects)
    for command in (["check"], ["inspect", "--emit=ir"]):
        ran = subprocess.run([UNISONO, *command, "effects.uni"], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
        if ran.returncode or ran.stderr:
            PROBLEMS.append(f"{command}: {ran}")
    left = sorted(p.name for p in folder.iterdir())
    if left != ["effects.uni"]:
        PROBLEMS.append(f"left: {left}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        images(folder)
        plots(folder)
        heatmaps(folder)
        nothing_left(folder)
    print("\n\n".join(PROBLEMS) or "pictures: all as they should be")
    return 1 if PROBLEMS else 0


sys.exit(main())
