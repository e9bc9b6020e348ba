"""Which tests a change can affect: by the rooms of the files that differ from a commit, and by the functions that they define.
tests/run --changed runs these; what it leaves out runs in ./dev test."""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALWAYS = {"includes", "symbols", "format of C++", "format of .uni", "diagnostics covered", "clang-tidy"}
PROCESSES = r"(runtime|host)/cluster|runtime/nccl|simcuda/nccl|host/launch"
LOOPS = r"lang/(walk|code)|jit/(bytecode|loops)"
CODE_OF_GPUS = r"jit/(emit|target|plan|kernel|arrange)|runtime/kernel_library"
# Of each test the paths that it is about, besides the script that it is.
SUBJECTS = {
    "processes": PROCESSES, "process files": PROCESSES + "|runtime/files", "process reports": PROCESSES,
    "killed processes": PROCESSES, "model of bench/scale": "bench/scale",
    "programs in one process": r"tests/(player|playing|tools/player)|host/(main|commands|session)|simcuda/driver",
    "unit jit, table of operations": r"jit/(?!bytecode)",
    "command line": r"host/[a-z_]+\.|host/session", "sessions": r"host/(repl|interactive|editor|session)",
    "loop programs": LOOPS, "text programs": LOOPS, "call programs": LOOPS, "jump programs": LOOPS,
    "names of other libraries": r"lang/(source|walk)|stdlib/|docs/library",
    "interrupts": r"runtime/[a-z_]+\.|host/session|jit/reference", "documentation": r"docs/|lang/",
    "embedding": r"embed/|cmake/|CMakeLists|examples/embed", "trace": r"runtime/(execute|recorder)|host/session",
    "tools for GPUs": r"runtime/cuda", "pages of the library": r"stdlib/|docs/stdlib", "losses of gpt.uni": r"examples/gpt",
    "examples of the library": r"stdlib/|lang/(builtins|context|ops)|docs/tour", "unisono test": r"host/testing",
    "unisono bench": r"host/testing|bench/", "manual": r"host/manual|docs/", "pictures": r"lang/pictures",
    "data in files": r"runtime/files|lang/builtins/.*(file|table|batch|csv)", "editors": r"editors/",
    "python": r"bindings/|embed/", "lsp": r"host/lsp|lang/(syntax|source|format|resolve)", "notebooks": r"host/(notebook|interactive)|examples/notebooks",
    "mutants": r"lang/|jit/(transform|bytecode|reference)", "random shapes": CODE_OF_GPUS + "|jit/partition",
    "random indices": r"lang/(ops|maps|walk)|jit/|runtime/|tests/index_",
    "random programs": r"lang/(ops|maps|walk)|jit/", "derivatives of random programs": r"(jit|lang)/derivative|jit/(vmap|transform)",
    "PTX assembles": CODE_OF_GPUS, "machine code of GPUs": CODE_OF_GPUS, "NVIDIA's headers": r"runtime/cuda|simcuda", "nonsense": r"lang/syntax",
}
SIMULATED = CODE_OF_GPUS + r"|runtime/(cuda|execute)|simcuda/|jit/(partition|transform)"


def files(commit):
    """Those that differ from a commit, and those that git does not know."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return sorted({*git("diff", "--name-only", commit), *git("ls-files", "--others", "--exclude-standard")})


def functions(paths):
    """The functions of the language that these files define; None: any may be affected."""
    names = set()
    for path in paths:
        if path.startswith("stdlib/"):
            names.add(pathlib.Path(path).stem)
        elif path.startswith("lang/builtins/") and path.endswith(".cpp") and (ROOT / path).exists():
            names.update(re.findall(r'CallOf<"(\w+)">', (ROOT / path).read_text()))
        elif path.startswith(("lang/", "jit/", "runtime/", "host/session/")):
            return None
    return names


class Change:
    def __init__(self, commit):
        self.files = files(commit)
        self.functions = functions(self.files)

    def touches(self, pattern):
        return any(re.match(pattern, f) for f in self.files)

    def affects_test(self, name, words):
        """`words`: of the command that the test is."""
        if name in ALWAYS or any(f in words or str(ROOT / f) in words for f in self.files):
            return True
        if name.startswith("unit ") and name not in SUBJECTS:
            floor = name[len("unit "):]
            # A header of a floor below is part of it.
            below = {"jit": "runtime", "lang": "runtime|jit", "host": "runtime|jit|lang", "embed": "host"}.get(floor, "simcuda")
            return self.touches(rf"{floor}/|tests/(unit/)?{floor}/") or self.touches(rf"({below})/.*\.(h|def)$")
        return self.touches(SUBJECTS.get(name, "$"))

    def affects_golden(self, golden):
        own = {str(golden.path.relative_to(ROOT)), golden.name}
        if own & set(self.files):
            return True
        if self.functions is None:
            return True
        return any(re.search(rf"\b{name}\b", golden.path.read_text()) for name in self.functions)

    def affects_simulated(self):
        return self.touches(SIMULATED)
