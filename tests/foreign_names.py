#!/usr/bin/env python3
"""Names of NumPy, JAX and others are typed as their users type them: each means what docs/library.md says, or the message does.

The tables of docs/library.md ("NumPy's names, JAX's, and ours") are what is expected of each name: alone, behind modules of
theirs (`np.`, `jax.nn.`), and as the last word of a path. A name may be in scope, and then stands on the right side of its
row; the message may say that it is for later; else its help has some code in common with the row. A guess by letters
(`did you mean`) counts only where the row says so, too.

usage: tests/foreign_names.py UNISONO
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import sanitizers

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULES = ("np", "jnp", "lax", "jax", "jax.nn", "jax.lax", "optax", "scipy.special", "scipy.stats", "scipy.linalg", "torch")
IN_A_FILE = 20  # mistakes; then reading ends
ROOTS = ("lax", "jax", "scipy", "optax", "plt", "flax", "pd", "time")
ALONE = {"at", "cdf", "check", "initialize", "leaves"}  # which mean nothing without their paths
OTHERWISE = {"scipy.stats.norm"}  # the normal distribution
KEYWORDS = {"var"}  # which no message can be about
SIGNS = {"==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "~", "<<", ">>", "+", "-", "*", "/", "//", "%", "**", "@"}


def words(text):
    """Names and signs in what is code."""
    parts = re.findall(r"`([^`]+)`", text.replace("\\|", "|"))
    code = " ".join(parts)
    names = re.findall(r"[a-zA-Z_]\w+\b(?!\[)", code)  # types such as `f32[3]` are in common to many
    return set(parts) | set(names) | SIGNS & set(re.findall(r"[-+*/%@<>=!&|^~]+", code))


def rows():
    """Of each name of theirs, the code that the page has for it; none where it says no or later."""
    page = (ROOT / "docs/library.md").read_text()
    tables = re.search(r"^## NumPy's names.*?(?=^## (?!#)|\Z)", page, re.M | re.S)[0]
    found = {}
    for row in re.findall(r"^\| `.*", tables, re.M):
        theirs, ours, remark = re.split(r"(?<!\\) \| ", row.removesuffix("|").rstrip().removesuffix(" |") + " | ")[:3]
        said = words(ours + remark)
        for name in re.findall(r"`(?!x\.)([a-zA-Z_][\w.]*)[(`]", theirs):
            here = said | ({name} if "the same names" in ours else set()) | ({"no"} if re.search(r"\*(no|later)\*", ours) else set())
            for path in {name, name.split(".")[-1]}:  # `cond` may be that of `lax` and that of `linalg`
                found[path] = found.get(path, set()) | here
    return found


def typed(name):
    modules = MODULES if "." not in name else ("np", "jax") if name.split(".")[0] not in ROOTS else ()
    paths = [name] + [f"{module}.{name}" for module in modules]
    return [path for path in dict.fromkeys(paths) if name not in ALONE and path not in KEYWORDS | OTHERWISE]


def messages(unisono, folder, at, texts):
    """What is said of each of some names: nothing, or the message and its help."""
    script = pathlib.Path(folder) / f"names{at}.uni"
    script.write_text("".join(f"let name{i} = {text}\n" for i, text in enumerate(texts)))
    done = subprocess.run([unisono, "check", "--json", script], capture_output=True, text=True, timeout=sanitizers.limit())
    said = [None] * len(texts)
    for message in json.loads(done.stdout)["messages"]:
        line = message["where"]["line"] - 1
        assert not message["code"].startswith("U01"), f"{texts[line]} is not read"  # then nothing below it is
        said[line] = said[line] or (message["code"], message["message"], message["help"])
    return said


def problem(name, path, said, known):
    if said is None:
        return None if path.split(".")[-1] in known else "is in scope, but its row says something else"
    code, text, help = said
    if code == "U0401" or (help and "no" in known and "did you mean" not in help):
        return None if "no" in known else "is for later, but its row says something else"
    if not help:
        return f"has no help: {text}"
    return None if words(help) & known else f"is helped by something else than its row says: {help}"


def main():
    unisono = os.path.abspath(sys.argv[1])
    names = rows()
    all_typed = [(name, path) for name in names for path in typed(name)]
    parts = [all_typed[at:at + IN_A_FILE] for at in range(0, len(all_typed), IN_A_FILE)]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = pool.map(lambda at: messages(unisono, folder, at, [path for _, path in parts[at]]), range(len(parts)))
        problems = [(path, wrong) for part, answers in zip(parts, said) for (name, path), answer in zip(part, answers)
                    if (wrong := problem(name, path, answer, names[name]))]
    for path, wrong in problems:
        print(f"`{path}` {wrong}")
    print(f"{len(names)} names, typed in {len(all_typed)} ways, {len(problems)} wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
