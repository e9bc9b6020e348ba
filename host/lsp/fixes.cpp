// A help is a sentence, and some sentences name the code to write: each
// function below knows one kind of them, and gives a fix where the text at the
// message is what the sentence speaks of. All look at bytes, not at tokens, as
// a mistake may stand in an interpolation, of which the lexer makes one token.
#include "host/lsp/fixes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "lang/source/foreign_names.h"

namespace unisono::host::lsp {
namespace {

using lang::Code;

bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}
bool is_digit(char c) { return '0' <= c && c <= '9'; }
bool is_name(std::string_view text) {
  return !text.empty() && !is_digit(text[0]) &&
         std::ranges::all_of(text, is_letter);
}
/// `stats.median`, too.
bool is_path(std::string_view text) {
  const size_t dot = text.find('.');
  return is_name(text.substr(0, dot)) &&
         (dot == text.npos || is_path(text.substr(dot + 1)));
}
bool is_operator_sign(char c) {
  return std::string_view("&|=<>~!+-").find(c) != std::string_view::npos;
}

/// What a help names between two texts that it begins and ends with: "did you
/// mean `", "`?".
std::optional<std::string_view> named(std::string_view help,
                                      std::string_view before,
                                      std::string_view after) {
  if (!help.starts_with(before) || !help.ends_with(after) ||
      help.size() <= before.size() + after.size())
    return std::nullopt;
  help.remove_prefix(before.size());
  help.remove_suffix(after.size());
  if (help.find('`') != help.npos) return std::nullopt;
  return help;
}

class Fixer {
 public:
  Fixer(const lang::Diagnostic& message, const Syntax& syntax)
      : message_(message),
        syntax_(syntax),
        text_(syntax.text().str()),
        help_(message.help),
        begin_(message.where.begin),
        end_(message.where.end),
        here_(text_.substr(begin_, end_ - begin_)) {}

  std::vector<Fix> take() {
    using Rule = void (Fixer::*)();
    for (const Rule rule :
         {&Fixer::similar_name, &Fixer::prefix, &Fixer::import,
          &Fixer::argument_name, &Fixer::binding, &Fixer::variable,
          &Fixer::declared_axis, &Fixer::sign, &Fixer::step, &Fixer::word,
          &Fixer::number, &Fixer::call, &Fixer::what_is_left_out,
          &Fixer::comment, &Fixer::quotes}) {
      (this->*rule)();
      if (!out_.empty()) break;
    }
    return std::move(out_);
  }

 private:
  void add(std::string title, std::vector<TextEdit> edits) {
    out_.push_back({std::move(title), std::move(edits)});
  }
  void replace(uint32_t begin, uint32_t end, std::string_view with) {
    add(fmt::format("Change to `{}`", with), {{begin, end, std::string(with)}});
  }

  // ---- the text around
  char at(uint32_t offset) const {
    return offset < text_.size() ? text_[offset] : '\0';
  }
  /// The first byte behind `from` that is no blank.
  uint32_t skip_blanks(uint32_t from) const {
    while (at(from) == ' ' || at(from) == '\t') ++from;
    return from;
  }
  /// Where the blanks before `from` begin.
  uint32_t blanks_before(uint32_t from) const {
    while (from > 0 && (text_[from - 1] == ' ' || text_[from - 1] == '\t'))
      --from;
    return from;
  }
  bool starts_statement(uint32_t offset) const {
    const uint32_t before = blanks_before(offset);
    return before == 0 || std::string_view("\n\r;{").find(text_[before - 1]) !=
                              std::string_view::npos;
  }
  uint32_t line_start(uint32_t offset) const {
    while (offset > 0 && text_[offset - 1] != '\n') --offset;
    return offset;
  }
  /// The end of `np.linalg.norm`, of which `np` is here; of a name alone its
  /// own, unless it is a module of other libraries.
  uint32_t end_of_foreign_path() const {
    uint32_t end = end_;
    if (!lang::is_foreign_module(here_)) return end;
    while (at(end) == '.' && is_letter(at(end + 1)) && !is_digit(at(end + 1)))
      for (++end; is_letter(at(end));) ++end;
    return end;
  }

  // ---- names
  void similar_name() {
    const auto meant = named(help_, "did you mean `", "`?");
    if (!meant || message_.code == Code::unknown_argument || !is_name(here_))
      return;
    replace(begin_, end_of_foreign_path(), *meant);
  }

  /// `jnp.exp`, `math.sqrt`: the function is in scope without.
  void prefix() {
    if (const auto name =
            named(help_, "leave it out: `", "` is in scope without a prefix")) {
      const uint32_t end = end_of_foreign_path();
      if (text_.substr(0, end).ends_with(fmt::format(".{}", *name)))
        replace(begin_, end, *name);
    } else if (const auto member =
                   named(help_, "`", "` is in scope without a prefix")) {
      uint32_t begin = begin_;
      while (begin > 1 && text_[begin - 1] == '.' &&
             is_letter(text_[begin - 2]))
        for (--begin; begin > 0 && is_letter(text_[begin - 1]);) --begin;
      if (here_ == *member && begin < begin_) replace(begin, end_, *member);
    }
  }

  /// The name that a module of the library has here; empty without an import.
  std::string imported_as(std::string_view module) const {
    for (const lang::ImportStmt* import : syntax_.names().imports())
      if (!import->is_file && import->module.text == module)
        return lang::module_name(*import).text;
    return "";
  }
  /// Below the imports; else above the first statement and what is said of it,
  /// but below what is said of the file.
  TextEdit import_edit(std::string_view module) const {
    const std::string line = fmt::format("import {}\n", module);
    uint32_t place = 0;
    const auto next_line = [&](uint32_t from) {
      const size_t end = text_.find('\n', from);
      return end == text_.npos ? static_cast<uint32_t>(text_.size())
                               : static_cast<uint32_t>(end + 1);
    };
    for (const lang::StmtPtr& s : syntax_.program().statements)
      if (s->kind == lang::StmtKind::ImportStmt) place = next_line(s->span.end);
    if (place > 0) {
      const bool ends_line = text_[place - 1] == '\n';
      return {place, place, ends_line ? line : "\n" + line};
    }
    uint32_t below = 0;
    while (at(below) == '#') below = next_line(below);
    if (below > 0 && at(below) == '\n') return {below + 1, below + 1, line};
    return {0, 0, line};
  }
  void import() {
    if (const auto module = named(help_, "write `import ", "` first")) {
      if (is_name(*module))
        add(fmt::format("Add `import {}`", *module), {import_edit(*module)});
      return;
    }
    // "write `import stats` first, and `stats.median` here"
    constexpr std::string_view first = "write `import ",
                               middle = "` first, and `";
    const size_t split = help_.find(middle);
    if (!help_.starts_with(first) || !help_.ends_with("` here") ||
        split == help_.npos || !is_name(here_))
      return;
    const std::string_view module =
        help_.substr(first.size(), split - first.size());
    std::string_view path = help_.substr(split + middle.size());
    path.remove_suffix(std::string_view("` here").size());
    if (!path.starts_with(fmt::format("{}.", module)) || !is_path(path)) return;
    const std::string alias = imported_as(module);
    const uint32_t end = end_of_foreign_path();
    if (!alias.empty()) {
      path.remove_prefix(module.size());
      return replace(begin_, end, alias + std::string(path));
    }
    add(fmt::format("Add `import {}`, and change to `{}`", module, path),
        {import_edit(module), {begin_, end, std::string(path)}});
  }

  /// The message stands at the argument, whose name is before that.
  void argument_name() {
    if (message_.code != Code::unknown_argument) return;
    auto meant = named(help_, "did you mean `", "`?");
    if (!meant) meant = named(help_, "write `", "=`");
    if (!meant || !is_name(*meant)) return;
    uint32_t end = blanks_before(begin_);
    if (end == 0 || text_[end - 1] != '=') return;
    end = blanks_before(end - 1);
    uint32_t begin = end;
    while (begin > 0 && is_letter(text_[begin - 1])) --begin;
    if (is_name(text_.substr(begin, end - begin)) &&
        message_.message.ends_with(
            fmt::format("`{}`", text_.substr(begin, end - begin))))
      replace(begin, end, *meant);
  }

  // ---- statements
  /// `x = 3`, `x <- 3`, `x := 3`, `const x = 3`.
  void binding() {
    const auto bind = [&](const std::vector<TextEdit>& edits, bool varies) {
      for (const char* word : {"let", "var"}) {
        if (word == std::string_view("var") && !varies) continue;
        std::vector<TextEdit> all = edits;
        all[0].text = all[0].text.empty() ? fmt::format("{} ", word) : word;
        add(fmt::format("Bind it with `{}`", word), std::move(all));
      }
    };
    const bool varies = help_.ends_with("` if it changes later");
    if (help_.starts_with("bind it first: `let ")) {
      const uint32_t sign = skip_blanks(end_);
      if (starts_statement(begin_) && at(sign) == '=' && at(sign + 1) != '=')
        bind({{begin_, begin_, ""}}, varies);
      return;
    }
    if (!help_.starts_with("write `let ")) return;
    if (here_ == "<-" || (here_ == ":" && at(end_) == '=')) {
      const uint32_t name_end = blanks_before(begin_);
      uint32_t name = name_end;
      while (name > 0 && is_letter(text_[name - 1])) --name;
      if (name == name_end || !starts_statement(name)) return;
      const uint32_t end = here_ == ":" ? end_ + 1 : end_;
      return bind({{name, name, ""}, {begin_, end, "="}}, varies);
    }
    // Words of other languages for the same.
    for (const char* word : {"const", "constexpr", "auto", "val", "local"})
      if (here_ == word) return bind({{begin_, end_, "let"}}, varies);
  }

  /// The `let` of what is assigned becomes `var`.
  void variable() {
    if (message_.code != Code::not_a_variable || message_.notes.empty()) return;
    const uint32_t bound = message_.notes[0].where.begin;
    for (const Definition& d : syntax_.names().definitions()) {
      if (d.where.begin != bound || !d.let || d.let->is_var) continue;
      const uint32_t word = d.let->span.begin;
      if (text_.substr(word, 4) == "let ")
        add(fmt::format("Bind `{}` with `var`", d.name),
            {{word, word + 3, "var"}});
      return;
    }
  }

  /// "declare it first: `axis i = devices()`": a line above the statement.
  void declared_axis() {
    auto line = named(help_, "declare it first: `", "`");
    if (!line) line = named(help_, "declare one: `", "`");
    if (!line || !line->starts_with("axis ")) return;
    uint32_t place = 0;
    for (const lang::StmtPtr& s : syntax_.program().statements)
      if (s->span.begin <= begin_) place = line_start(s->span.begin);
    // Comments and decorators belong to the statement.
    while (place > 0) {
      const uint32_t above = line_start(place - 1);
      if (at(above) != '#' && at(above) != '@') break;
      place = above;
    }
    add(fmt::format("Add `{}`", *line),
        {{place, place, fmt::format("{}\n", *line)}});
  }

  // ---- signs, words, numbers
  /// Signs of other languages: `a && b`, `i++`.
  void sign() {
    if (const auto plain = named(help_, "replace it by `", "`"))
      return replace(begin_, end_, *plain);
    if (here_ == "!" && help_ == "write `not`")
      return add("Change to `not`", {{begin_, skip_blanks(end_), "not "}});
    if (here_.empty() || !is_operator_sign(here_[0])) return;
    uint32_t begin = begin_, end = end_;
    while (begin > 0 && is_operator_sign(text_[begin - 1])) --begin;
    while (is_operator_sign(at(end))) ++end;
    const std::string_view theirs = text_.substr(begin, end - begin);
    constexpr std::pair<std::string_view, std::string_view> signs[] = {
        {"&&", "and"}, {"||", "or"},  {"~=", "!="}, {"<>", "!="},
        {"!==", "!="}, {"===", "=="}, {"=", "=="}};
    for (const auto& [sign, ours] : signs) {
      if (theirs != sign || !help_.ends_with(fmt::format("`{}`", ours)))
        continue;
      if (is_operator_sign(ours[0])) return replace(begin, end, ours);
      std::string text(ours);
      if (begin > 0 && text_[begin - 1] != ' ') text.insert(0, " ");
      if (at(end) != ' ') text += ' ';
      return add(fmt::format("Change to `{}`", ours), {{begin, end, text}});
    }
  }

  /// `i++`, `i--`: the message stands at the second sign, or behind both.
  void step() {
    const auto ours = named(help_, "write `", "`");
    for (const auto& [sign, rest] :
         {std::pair{"++", " += 1"}, {"--", " -= 1"}}) {
      if (!ours || !ours->ends_with(rest)) continue;
      const std::string theirs =
          fmt::format("{}{}", ours->substr(0, ours->size() - 5), sign);
      const size_t found = text_.substr(0, end_).rfind(theirs);
      if (found == text_.npos ||
          !starts_statement(static_cast<uint32_t>(found)))
        continue;
      const auto end = static_cast<uint32_t>(found + theirs.size());
      const bool is_near =
          end >= begin_ ||
          text_.substr(end, begin_ - end).find_first_not_of(" \t\r\n") ==
              text_.npos;
      if (is_near) replace(static_cast<uint32_t>(found), end, *ours);
    }
  }

  /// `True`, `elif`, `mod`, `float32`: one word for another.
  void word() {
    if (here_ == "is" && help_ == "to compare, write `==`")
      return replace(begin_, end_, "==");
    const auto ours = named(help_, "write `", "`");
    if (!ours || !is_name(here_)) return;
    const bool is_sign = std::ranges::none_of(*ours,
                                              [](char c) {
                                                return is_letter(c) ||
                                                       c == ' ' || c == '.' ||
                                                       c == '(';
                                              }) &&
                         *ours != "=";
    if (is_path(*ours) || is_sign || *ours == "else if")
      replace(begin_, end_of_foreign_path(), *ours);
  }

  /// `3L`, `5_000_000_000`, `.5`.
  void number() {
    auto ours = named(help_, "write `", "`");
    if (!ours) ours = named(help_, "write it with its type: `", "`");
    if (!ours || !is_digit((*ours)[0])) return;
    if (!here_.empty() && is_digit(here_[0]) && is_path("n" + digits(*ours)))
      return replace(begin_, end_, *ours);
    const std::string_view rest = ours->substr(1);
    if (here_ == "." && text_.substr(begin_, rest.size()) == rest &&
        !is_letter(at(begin_ + static_cast<uint32_t>(rest.size()))))
      replace(begin_, begin_ + static_cast<uint32_t>(rest.size()), *ours);
  }
  /// A number as if its signs were digits.
  static std::string digits(std::string_view number) {
    std::string out(number);
    for (char& c : out)
      if (c == '.' || c == '+' || c == '-') c = '0';
    return out;
  }

  /// `zeros(3, 4)`: "write `zeros((3, 4))`".
  void call() {
    const auto ours = named(help_, "write `", "`");
    if (message_.code != Code::too_many_arguments || !ours) return;
    const size_t open = ours->find('(');
    const bool same = open != ours->npos && is_path(ours->substr(0, open)) &&
                      here_.starts_with(ours->substr(0, open + 1));
    if (same && ours->ends_with(')') && ours->find("...") == ours->npos)
      replace(begin_, end_, *ours);
  }

  /// f"...", `+x`, `&x`.
  void what_is_left_out() {
    const auto remove = [&](uint32_t begin, uint32_t end) {
      add(fmt::format("Leave out the `{}`", text_.substr(begin, end - begin)),
          {{begin, end, ""}});
    };
    auto prefix = named(
        help_, "every string shows values in braces: leave out the `", "`");
    if (!prefix)
      prefix = named(help_, "leave out the `", "`: a string has no prefix");
    if (prefix && here_.starts_with('"') &&
        text_.substr(0, begin_).ends_with(*prefix))
      return remove(begin_ - static_cast<uint32_t>(prefix->size()), begin_);
    if (here_ == "+" && help_ == "there is no sign `+`; leave it out")
      return remove(begin_, end_);
    if (here_ == "&" && help_ == "there are no references; leave out the `&`")
      return remove(begin_, end_);
  }

  /// `// three`, `-- three`, `% three`.
  void comment() {
    if (!help_.starts_with("a comment starts with `#`")) return;
    if (here_ == "//" || here_ == "--" || here_ == "%")
      return replace(begin_, end_, "#");
    const uint32_t line = line_start(begin_);
    const size_t slashes = text_.substr(line, begin_ - line).rfind("//");
    if (slashes == text_.npos) return;
    const auto begin = static_cast<uint32_t>(line + slashes);
    replace(begin, begin + 2, "#");
  }

  /// 'text'
  void quotes() {
    if (!help_.starts_with("a string stands in double quotes") ||
        here_.size() < 2 || here_.front() != '\'' || here_.back() != '\'')
      return;
    const std::string_view inside = here_.substr(1, here_.size() - 2);
    if (inside.find_first_of("\"'\\{}") == inside.npos)
      replace(begin_, end_, fmt::format("\"{}\"", inside));
  }

  const lang::Diagnostic& message_;
  const Syntax& syntax_;
  const std::string_view text_, help_;
  const uint32_t begin_, end_;
  const std::string_view here_;
  std::vector<Fix> out_;
};

}  // namespace

std::vector<Fix> fixes(const lang::Diagnostic& message, const Syntax& syntax) {
  if (message.help.empty() && message.code != Code::else_on_new_line) return {};
  return Fixer(message, syntax).take();
}

}  // namespace unisono::host::lsp
