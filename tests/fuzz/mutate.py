"""Mutants of the repository's own programs: tests, examples, the standard library, and what the documentation shows.

Mutant `n` of a seed is always the same, as long as the programs are.
"""
import pathlib
import random
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MOST = 12_000  # characters of a mutant

TOKEN = re.compile(r"""
    (?P<space>[ \t]+) | (?P<line>\n) | (?P<comment>\#[^\n]*)
  | (?P<string>"(?:\\.|[^"\\\n])*")
  | (?P<number>0[xXbBoO][0-9a-fA-F_]+\w* | \d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?(?:[A-Za-z]\w*)?)
  | (?P<name>[^\W\d]\w*)
  | (?P<operator>\.\.\.|=>|->|\|>|\*\*=|//=|<<=|>>=|\*\*|//|==|!=|<=|>=|<<|>>|[-+*/%@&|^]=|[-+*/%@&|^~<>=,.:;?])
  | (?P<bracket>[()\[\]{}]) | (?P<other>.)
""", re.X | re.S)

TYPES = "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 int".split()
SIZES = ("0 1 2 3 4 5 7 8 15 16 17 31 33 63 64 65 100 127 128 129 255 256 257 1000 4095 4096 4097 16384 20000").split()
NUMBERS = SIZES + """-1 -2 -3 32767 32768 65535 65536 2147483647 2147483648 -2147483648 4294967295 4294967296
    9007199254740993 9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616 99999999999999999999
    0.0 -0.0 0.1 0.5 1.0 1.5 -1.0 2.0 3.5 1e-3 1e-45 1e-320 1e30 1e38 3.5e38 1e39 1e308 1e309 65504.0 65520.0 inf -inf nan
    0u8 1u8 255u8 256u8 3i8 127i8 -128i8 1i64 5u64 2f16 0.1f16 1.5bf16 0.1f64 1e300f64 7f32 pi true false none""".split()
OPERATORS = "+ - * / // % ** @ & | ^ << >> == != < <= > >= |> and or in = += -= *= /= //= , . : => ->".split()
KEYWORDS = "def fn let var if else for in while import and or not true false none axis type break continue return".split()
ARGUMENTS = """axis=0 axis=-1 axis=1 axis=2 axis=-3 axis=(0,1) axis=() axis=none keepdims=true in_axes=0 in_axes=none in_axes=(0,none)
    in_axes=(none,0) in_axes=1 in_axes=-1 in_axes=split(0) in_axes=split(1) in_axes=() out_axes=0 out_axes=none out_axes=1 out_axes=-1
    out_axes=split(0) out_axes=(0,none) over=dev over=devices() over=devices(2) over=devices(1) donate=0 donate=(0,1) dtype=f16 dtype=i8
    dtype=f64 dtype=bool descending=true tiled=true groups=((0,1),(2,)) groups=((0,),(1,),(2,)) shift=1 shift=-1 wrap=true ddof=1
    reverse=true precision="exact" value=7 length=3 k=1 side="right" endpoint=false split=1 concat=1""".split()
# E is an expression, S statements.
AROUND = """jit(fn()=>E)() jit(fn(q_)=>E)(1) jit(fn(q_)=>q_)(E) vmap(fn(q_)=>E)(arange(3)) vmap(fn(q_)=>q_)(E) vmap(fn(q_)=>E,in_axes=none)(0)
    pmap(fn(q_)=>E)(arange(3)) pmap(fn(q_)=>q_)(E) pmap(fn(q_)=>E+axis_index())(arange(3.0,f32)) pmap(fn(q_)=>psum(E))(arange(3))
    pmap(fn(q_)=>E,in_axes=split(0),out_axes=split(0))(arange(6)) jit(vmap(fn(q_)=>E))(arange(2)) vmap(vmap(fn(q_)=>E))(iota(i32[2,2]))
    vmap(jit(fn(q_)=>E))(arange(2)) jit(pmap(fn(q_)=>E))(arange(3)) pmap(vmap(fn(q_)=>E))(iota(i32[3,2])) vmap(pmap(fn(q_)=>E))(iota(i32[2,3]))
    map(fn(q_)=>E,arange(2)) [E,E] [E] (E,E) (E,) (a=E) (E).0 (E)[0] (E)[-1] (E)[...,0] (E)[::-1] (E)[:,none] (E)[E] -(E) not(E) ~(E)
    sum(E) max(E,axis=0) sort(E) argmax(E) cumsum(E) E.T reshape(E,(-1,)) transpose(E) shape(E) len(E) typeof(E) print(E) (E)@(E) (E)+(E) (E)*0.1
    (E)/2 (E)//2 (E)%3 (E)==(E) f32(E) i8(E) f16(E) u64(E) bool(E) cast(E,bf16) int(E) (E)asf32[n] (E)asi32 if(true){E}else{E}
    (fn(q_)=>E)(E) [E,for,q_,in,range(3)] "{E}" "{E:.3}" {E} {let,q_=E;q_} where(E,E,E) tree_map(fn(q_)=>q_,E) concat((E,E)) stack((E,E))
    zip(E,E) enumerate(E) unrolled(E) range(E) zeros(f32[E]) arange(E) split(E) devices(E) sharding(E) psum(E) all_gather(E) take(E,E)""".split()
BESIDE = ["for q_ in range(2) {\nS\n}", "for q_ in unrolled(2) {\nS\n}", "if true {\nS\n}", "if sum(ones(3)) > 2.0 {\nS\n} else {\nS\n}",
          "var q_ = 0\nwhile q_ < 2 {\nS\nq_ += 1\n}", "def q_() {\nS\n}\nq_()", "def q_(x) {\nS\nx\n}\nprint(jit(q_)(1.0))",
          "def q_(x) {\nS\nx\n}\nprint(vmap(q_)(arange(3)))", "def q_(x) {\nS\nx\n}\nprint(pmap(q_)(arange(3)))",
          "let q_ = {\nS\n}", "def q_(x: f32[n]) -> f32[n] {\nS\nx\n}\nprint(q_(ones(3)))"]
CHARACTERS = ["\\", '"', "{", "}", "'", "\t", "\r", "\0", "é", "λ", "→", "𝛂", "\u200b", "\ufeff", "#", "##", ">>>", "`", "$", "!", "?", "0x", "1_", "e9", "..", "...", "@"]


class Program:
    """A program of the corpus: where it comes from, its text, the folder in which the files are that it reads, and numbers of
    devices on which it runs."""

    def __init__(self, name, text, folder=None, devices=()):
        self.name, self.text, self.folder, self.devices = name, text, folder, devices or (1, 2, 3, 4, 8)
        self.tokens = tokens_of(text)
        self.wrong = "errors" in name and "#1" not in name  # made to be refused


class Mutant:
    """A program's text, the folder of its files, the number of devices that run it, and what it was made of."""

    def __init__(self, text, folder, devices, told):
        self.text, self.folder, self.devices, self.told = text, folder, devices, told


def tokens_of(text):
    return [(m.lastgroup, m.group()) for m in TOKEN.finditer(text)]


def text_of(tokens):
    return "".join(token[1] for token in tokens)


def corpus():
    """All programs, in an order that does not depend on the file system."""
    programs = []
    for folder in ("tests/programs", "tests/errors", "examples"):
        for path in sorted((ROOT / folder).rglob("*.uni")):
            text = path.read_text(errors="replace").partition("# expect:\n")[0]
            told = text + "".join(p.read_text() for p in sorted((path.parent / "expected").glob(path.stem + ".*")))
            devices = [int(n) for n in re.findall(r"^# run.*cpu:(\d+)", told, re.M)] + [
                n for low, high in re.findall(r"^# devices: (\d+)\.\.(\d+)$", text, re.M) for n in range(int(low), int(high) + 1)]
            text = re.sub(r"^# (?:run|run-compiled|devices|args|command):.*\n", "", text, flags=re.M)
            programs.append(Program(str(path.relative_to(ROOT)), text, path.parent, tuple(n for n in devices if n <= 8)))
    for path in sorted((ROOT / "stdlib").glob("*.uni")):
        text = path.read_text()
        functions = re.split(r"\n\n(?=##|def |let |type )", text)
        examples = re.findall(r"^##\s+>>> (.*)$", text, re.M)
        head = "" if path.stem in ("math", "array", "linalg", "random") else f"import {path.stem}\n"
        for i, function in enumerate(functions):  # with its examples: what calls it
            calls = re.findall(r"^##\s+>>> (.*)$", function, re.M)
            body = "\n".join(l for l in function.splitlines() if not l.startswith("##"))
            own = [c.replace(f"{path.stem}.", "") for c in calls]
            programs.append(Program(f"stdlib/{path.name}#{i}", body + "\n" + "".join(f"print({c})\n" for c in own)))
        for i in range(0, len(examples), 4):
            programs.append(Program(f"stdlib/{path.name}>{i}", head + "".join(f"print({e})\n" for e in examples[i:i + 4])))
    for path in sorted((ROOT / "docs").rglob("*.md")) + [ROOT / "README.md"]:
        blocks = re.findall(r"^```(?:uni(?: (\d+))?)?\n(.*?)^```", path.read_text(), re.M | re.S)
        for i, (devices, block) in enumerate(blocks):
            if not re.search(r"^\s*(?:\$|unisono|\./dev|error|warning|%)", block):
                programs.append(Program(f"{path.relative_to(ROOT)}#{i}", block, devices=(int(devices),) if devices else ()))
    return [p for p in programs if p.tokens and len(p.text) < MOST]


class Mutator:
    def __init__(self, programs=None):
        self.programs = programs or corpus()
        self.right = [p for p in self.programs if not p.wrong]
        every = {t for p in self.programs for t in p.tokens}
        self.names = sorted(text for kind, text in every if kind == "name")
        self.strings = sorted(text for kind, text in every if kind == "string" and "/" not in text and ".." not in text)

    def mutant(self, seed, number, attempt=0):
        """Others come with other attempts. Programs that are tests of mistakes are taken more rarely than others."""
        self.random = random.Random(f"{seed} {number} {attempt}")
        self.base = self.random.choice(self.programs if self.random.random() < 0.3 else self.right)
        self.other = self.random.choice(self.programs)
        self.own = sorted({t for kind, t in self.base.tokens if kind == "name"}) or ["x"]
        self.done = []
        tokens = list(self.base.tokens)
        if self.random.random() < 0.7:
            tokens = self.small(tokens)
        for _ in range(self.random.choice((1, 1, 1, 1, 2, 2, 3, 5))):
            mutation = self.random.choice(self.MUTATIONS)
            self.done.append(mutation.__name__)
            tokens = tokens_of(text_of(mutation(self, tokens))[:MOST]) or [("name", "x")]
        text = text_of(tokens)
        devices = self.random.choice(self.base.devices if self.random.random() < 0.9 else (1, 2, 3, 5, 8))
        return Mutant(text, self.base.folder, devices, f"{self.base.name} {self.other.name} ({', '.join(self.done)})")

    # ---- what is picked ----------------------------------------------------

    def place(self, tokens, *kinds):
        """The index of a token of these kinds; of any that is no space, if there is none."""
        places = [i for i, (kind, _) in enumerate(tokens) if kind in kinds] if kinds else []
        places = places or [i for i, (kind, _) in enumerate(tokens) if kind not in ("space", "comment")] or [0]
        return self.random.choice(places)

    def group(self, tokens, start):
        """The end of the bracket that opens at `start`."""
        depth = 0
        for i in range(start, len(tokens)):
            depth += (tokens[i][1] in "([{") - (tokens[i][1] in ")]}") if tokens[i][0] == "bracket" else 0
            if depth == 0:
                return i + 1
        return len(tokens)

    def expression(self, tokens):
        """The range of something like an expression: a number, a name with its calls and fields, a bracket with what follows, an
        argument."""
        starts = [i for i, (kind, text) in enumerate(tokens)
                  if kind in ("name", "number", "string") and text not in KEYWORDS or text in ("(", "[")]
        if not starts:
            return 0, len(tokens)
        start = self.random.choice(starts)
        end = self.group(tokens, start) if tokens[start][0] == "bracket" else start + 1
        while end < len(tokens):
            kind, text = tokens[end]
            if text in ("(", "["):
                end = self.group(tokens, end)
            elif text == "." and end + 1 < len(tokens):
                end += 2
            elif self.random.random() < 0.4 and (text in OPERATORS and text not in ("=", ",", ":") or kind == "space"):
                end += 1
                while end < len(tokens) and tokens[end][0] == "space":
                    end += 1
                if end < len(tokens) and tokens[end][0] in ("name", "number", "string", "bracket") and tokens[end][1] not in ")]}":
                    end = self.group(tokens, end) if tokens[end][0] == "bracket" else end + 1
            else:
                break
        while end > start + 1 and tokens[end - 1][0] == "space":
            end -= 1
        return start, end

    def statements(self, tokens):
        """Ranges of whole statements at any depth: lines, with the lines of brackets that they open."""
        ranges, start, depth, opened = [], 0, 0, []
        for i, (kind, text) in enumerate(tokens):
            if kind == "bracket" and text in "([{":
                opened.append((i, start))
                if text == "{":
                    start = i + 1
            elif kind == "bracket" and opened:
                at, before = opened.pop()
                if tokens[at][1] == "{":
                    if start < i:
                        ranges.append((start, i))
                    start = before
            elif (kind == "line" or text == ";") and (not opened or tokens[opened[-1][0]][1] == "{"):
                if any(t[0] not in ("space", "line", "comment") for t in tokens[start:i]):
                    ranges.append((start, i))
                start = i + 1
        return ranges or [(0, len(tokens))]

    def piece(self, tokens):
        """A copy of an expression of this program, or of another one."""
        source = tokens if self.random.random() < 0.5 else self.random.choice(self.programs).tokens
        start, end = self.expression(source)
        return source[start:end]

    def value(self):
        return self.random.choice((self.random.choice(self.own), self.random.choice(NUMBERS), self.random.choice(NUMBERS)))

    # ---- tokens ------------------------------------------------------------

    def small(self, tokens):
        """Large sizes become small ones, so that a run is quick."""
        def shrink(kind, text):
            if kind == "number" and re.fullmatch(r"[\d_]{5,}", text) and int(text.replace("_", "")) > 20_000:
                return kind, self.random.choice(("70", "1030", "4100", "17000", "33000", "70000"))
            return kind, text
        return [shrink(*token) for token in tokens]

    def replace(self, tokens, start, end, text):
        return tokens[:start] + [("other", text)] + tokens[end:]

    def delete(self, tokens):
        at = self.place(tokens)
        return tokens[:at] + tokens[at + self.random.choice((1, 1, 1, 2, 5)):]

    def duplicate(self, tokens):
        at = self.place(tokens)
        end = at + self.random.choice((1, 1, 2, 4))
        return tokens[:end] + tokens[at:]

    def swap(self, tokens):
        a, b = self.place(tokens), self.place(tokens)
        tokens = list(tokens)
        tokens[a], tokens[b] = tokens[b], tokens[a]
        return tokens

    def number(self, tokens):
        at = self.place(tokens, "number")
        return self.replace(tokens, at, at + 1, self.random.choice(NUMBERS))

    def suffix(self, tokens):
        at = self.place(tokens, "number")
        return self.replace(tokens, at, at + 1, tokens[at][1] + self.random.choice(TYPES[1:] + [".0", ".5", "e2", "e-9", "0"]))

    def all_suffixes(self, tokens):
        """All numbers of a bracket, or of a statement, of one type."""
        brackets = [i for i, (_, text) in enumerate(tokens) if text in ("(", "[")]
        start, end = self.random.choice(self.statements(tokens))
        if brackets and self.random.random() < 0.6:
            start = self.random.choice(brackets)
            end = self.group(tokens, start)
        suffix = self.random.choice(TYPES[1:])
        return [(kind, text + suffix if kind == "number" and start <= i < end else text) for i, (kind, text) in enumerate(tokens)]

    def size(self, tokens):
        at = self.place(tokens, "number")
        return self.replace(tokens, at, at + 1, self.random.choice(SIZES))

    def nudge(self, tokens):
        at = self.place(tokens, "number")
        digits = re.match(r"\d{1,18}", tokens[at][1])
        return self.replace(tokens, at, at + 1, str(int(digits[0]) + self.random.choice((-1, 1))) + tokens[at][1][digits.end():]) if digits else tokens

    def rename(self, tokens):
        at = self.place(tokens, "name")
        pool = self.random.choice((self.own, self.own, self.names, self.names, KEYWORDS))
        return self.replace(tokens, at, at + 1, self.random.choice(pool))

    def rename_all(self, tokens):
        old, new = self.random.choice(self.own), self.random.choice(self.own if self.random.random() < 0.7 else self.names)
        return [(kind, new if kind == "name" and text == old else text) for kind, text in tokens]

    def string(self, tokens):
        at = self.place(tokens, "string")
        return self.replace(tokens, at, at + 1, self.random.choice(self.strings))

    def operator(self, tokens):
        at = self.place(tokens, "operator")
        return self.replace(tokens, at, at + 1, self.random.choice(OPERATORS))

    def type(self, tokens):
        places = [i for i, (_, text) in enumerate(tokens) if text in TYPES]
        if not places:
            return self.cast(tokens)
        at = self.random.choice(places)
        return self.replace(tokens, at, at + 1, self.random.choice(TYPES))

    def all_types(self, tokens):
        old, new = self.random.choice(TYPES), self.random.choice(TYPES)
        old = self.random.choice([t for _, t in tokens if t in TYPES] or [old])
        return [(kind, new if text == old else text) for kind, text in tokens]

    def cast(self, tokens):
        start, end = self.expression(tokens)
        return self.replace(tokens, start, end, f"{self.random.choice(TYPES)}({text_of(tokens[start:end])})")

    def character(self, tokens):
        text = text_of(tokens)
        at = self.random.randrange(len(text) + 1)
        if self.random.random() < 0.3:
            return [("other", text[:at] + text[at + 1:])]
        return [("other", text[:at] + self.random.choice(CHARACTERS) + text[at:])]

    def bracket(self, tokens):
        at = self.place(tokens)
        return self.replace(tokens, at, at, self.random.choice("()[]{}"))

    def cut(self, tokens):
        at = self.place(tokens)
        return tokens[:at] if self.random.random() < 0.5 else tokens[at:]

    def unsigned(self, tokens):
        """A sign, or a unary operator, before an expression."""
        start, _ = self.expression(tokens)
        return self.replace(tokens, start, start, self.random.choice(("-", "not ", "~", "+", "*", "@")))

    # ---- expressions -------------------------------------------------------

    def around(self, tokens):
        start, end = self.expression(tokens)
        inner = text_of(tokens[start:end])
        shape = self.random.choice(AROUND)
        shape = shape.replace(",for,", " for ").replace(",in,", " in ").replace("let,", "let ").replace(")as", ") as ")
        return self.replace(tokens, start, end, re.sub(r"\bE\b", lambda _: inner, shape))

    def other_expression(self, tokens):
        start, end = self.expression(tokens)
        return self.replace(tokens, start, end, text_of(self.piece(tokens)))

    def simple_expression(self, tokens):
        start, end = self.expression(tokens)
        return self.replace(tokens, start, end, self.value())

    def combine(self, tokens):
        start, end = self.expression(tokens)
        other = text_of(self.piece(tokens)) if self.random.random() < 0.5 else self.value()
        return self.replace(tokens, end, end, f" {self.random.choice(OPERATORS[:22])} {other}")

    def calls(self, tokens):
        return [i for i, (_, text) in enumerate(tokens) if text == "(" and i and (tokens[i - 1][0] == "name" or tokens[i - 1][1] in ")]")]

    def argument(self, tokens):
        """Another argument in a call."""
        calls = self.calls(tokens)
        if not calls:
            return self.around(tokens)
        end = self.group(tokens, self.random.choice(calls)) - 1
        comma = "" if tokens[end - 1][1] in "(," else ", "
        return self.replace(tokens, end, end, comma + self.random.choice((self.random.choice(ARGUMENTS), self.random.choice(ARGUMENTS), self.value())))

    def arguments(self, tokens):
        """The arguments of one call, of another function."""
        calls = self.calls(tokens)
        source = self.random.choice(self.programs).tokens
        others = self.calls(source)
        if not calls or not others:
            return self.around(tokens)
        at, other = self.random.choice(calls), self.random.choice(others)
        return self.replace(tokens, at, self.group(tokens, at), text_of(source[other:self.group(source, other)]))

    def named_argument(self, tokens):
        """The value of a named argument is another one."""
        places = [i for i in range(1, len(tokens) - 1) if tokens[i][1] == "=" and tokens[i - 1][0] == "name" and tokens[i + 1][0] in ("number", "name")]
        if not places:
            return self.argument(tokens)
        at = self.random.choice(places)
        value = self.random.choice(ARGUMENTS).partition("=")[2] if self.random.random() < 0.6 else self.value()
        return self.replace(tokens, at + 1, at + 2, value)

    # ---- statements and programs -------------------------------------------

    def delete_statement(self, tokens):
        start, end = self.random.choice(self.statements(tokens))
        return tokens[:start] + tokens[end:]

    def duplicate_statement(self, tokens):
        start, end = self.random.choice(self.statements(tokens))
        return tokens[:end] + [("line", "\n")] + tokens[start:]

    def swap_statements(self, tokens):
        ranges = self.statements(tokens)
        (a, b), (c, d) = sorted((self.random.choice(ranges), self.random.choice(ranges)))
        if b > c:
            return tokens
        return tokens[:a] + tokens[c:d] + tokens[b:c] + tokens[a:b] + tokens[d:]

    def nest_statement(self, tokens):
        start, end = self.random.choice(self.statements(tokens))
        inner = text_of(tokens[start:end])
        return self.replace(tokens, start, end, re.sub(r"\bS\b", lambda _: inner, "\n" + self.random.choice(BESIDE) + "\n"))

    def nest_tail(self, tokens):
        """All from one statement on inside a loop, function or map."""
        start, _ = self.random.choice(self.statements(tokens))
        inner = text_of(tokens[start:])
        return self.replace(tokens, start, len(tokens), re.sub(r"\bS\b", lambda _: inner, "\n" + self.random.choice(BESIDE) + "\n"))

    def splice_statement(self, tokens):
        source = self.other.tokens
        a, b = self.random.choice(self.statements(source))
        start, end = self.random.choice(self.statements(tokens))
        return self.replace(tokens, end, end, "\n" + text_of(source[a:b]) + "\n")

    def splice(self, tokens):
        """The beginning of one program and the end of another."""
        ranges, others = self.statements(tokens), self.statements(self.other.tokens)
        return tokens[:self.random.choice(ranges)[1]] + [("line", "\n")] + self.other.tokens[self.random.choice(others)[0]:]

    MUTATIONS = (delete, duplicate, swap, number, number, suffix, all_suffixes, size, size, nudge, rename, rename, rename, rename_all, string, operator, operator,
                 type, type, all_types, cast, character, bracket, cut, unsigned, around, around, around, other_expression, other_expression,
                 simple_expression, combine, combine, argument, argument, arguments, named_argument, named_argument, delete_statement, duplicate_statement,
                 swap_statements, nest_statement, nest_statement, nest_tail, splice_statement, splice)
