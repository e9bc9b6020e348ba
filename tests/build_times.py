#!/usr/bin/env python3
"""Where the time of a build goes: what clang's -ftime-trace wrote beside the object files of a folder, in tables of files, headers
and templates.

usage: tests/build_times.py FOLDER
"""
import collections
import json
import pathlib
import re
import sys

ROWS = 20


def table(title, rows):
    print(f"\n{title}")
    for seconds, count, name in sorted(rows, reverse=True)[:ROWS]:
        print(f"{seconds:8.1f} s {count:5}  {name[:110]}")


def main():
    folder = pathlib.Path(sys.argv[1])
    files, headers, templates = [], collections.defaultdict(list), collections.defaultdict(list)
    total, front, back = 0.0, 0.0, 0.0
    for path in folder.rglob("*.cpp.json"):
        began = {}
        for event in json.loads(path.read_text())["traceEvents"]:
            name, seconds = event["name"], event.get("dur", 0) / 1e6
            if name == "Total ExecuteCompiler":
                files.append((seconds, 1, str(path.relative_to(folder))[:-len(".json")]))
                total += seconds
            elif name == "Total Frontend":
                front += seconds
            elif name == "Total Backend":
                back += seconds
            elif name == "Source" and event["ph"] == "b":
                began[event["id"]] = event
            elif name == "Source" and event["ph"] == "e":  # a header with all that it includes
                start = began[event["id"]]
                headers[start["args"]["detail"]].append((event["ts"] - start["ts"]) / 1e6)
            elif name in ("InstantiateFunction", "InstantiateClass"):
                templates[re.sub(r"<.*", "<...>", event["args"]["detail"])].append(seconds)
    print(f"{len(files)} files, {total:.0f} s: {front:.0f} s front end, {back:.0f} s optimiser and code")
    table("files", files)
    table("headers, with what they include, and how many files read them", [(sum(all), len(all), name) for name, all in headers.items()])
    table("templates, and how often they are instantiated", [(sum(all), len(all), name) for name, all in templates.items()])
    return 0


if __name__ == "__main__":
    sys.exit(main())
