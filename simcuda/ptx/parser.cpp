// PTX text to a ModuleText: directives, declarations and statements.
#include <algorithm>
#include <array>
#include <string_view>

#include "simcuda/ptx/ast.h"
#include "simcuda/ptx/lexer.h"

namespace simcuda {
namespace {

struct TypeRow {
  const char* name;
  int bytes;
  TypeClass class_;
};
constexpr TypeRow type_rows[] = {
#define PTX_TYPE(name, bytes, class_) {#name, bytes, TypeClass::class_},
#include "simcuda/ptx/types.def"
    {"none", 0, TypeClass::none},
};

constexpr uint64_t max_bytes = uint64_t{1} << 40;
constexpr size_t max_depth = 64;

class Parser {
 public:
  Parser(ModuleText& module, std::string& error)
      : module_(module), error_(error) {}

  bool run(std::string_view source) {
    if (!tokenise(source, tokens_, error_)) return false;
    while (error_.empty() && now().kind != Token::Kind::end) top_level();
    if (error_.empty() && module_.version == 0) fail("no .version");
    if (error_.empty() && module_.target == 0) fail("no .target");
    return error_.empty();
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead(size_t n) const {
    return tokens_[std::min(at_ + n, tokens_.size() - 1)];
  }
  void step() {
    if (now().kind != Token::Kind::end) ++at_;
  }
  bool accept(char c) {
    if (!now().is(c)) return false;
    step();
    return true;
  }
  bool accept(std::string_view word) {
    if (!now().is(word)) return false;
    step();
    return true;
  }
  void fail(const std::string& what) {
    if (!error_.empty()) return;
    error_ = "line " + std::to_string(now().line) + ": " + what;
    if (!now().text.empty())
      error_ += " near `" + std::string(now().text) + "`";
    at_ = tokens_.size() - 1;  // nothing more is read
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected `") + c + "`");
  }
  uint64_t integer() {
    bool negative = accept('-');
    if (now().kind != Token::Kind::integer) {
      fail("expected an integer");
      return 0;
    }
    uint64_t value = now().bits;
    step();
    return negative ? 0 - value : value;
  }
  std::string word() {
    if (now().kind != Token::Kind::word) {
      fail("expected a name");
      return {};
    }
    std::string text(now().text);
    step();
    return text;
  }

  void top_level() {
    if (accept(".version")) {
      read_version();
    } else if (accept(".target")) {
      read_target();
    } else if (accept(".address_size")) {
      if (integer() != 64) fail("only 64-bit addresses are supported");
    } else if (accept(".file") || accept(".pragma") || accept(".loc")) {
      int line = now().line;
      while (now().line == line && now().kind != Token::Kind::end) step();
    } else if (accept(".section")) {
      while (!now().is('{') && now().kind != Token::Kind::end) step();
      while (!accept('}') && now().kind != Token::Kind::end) step();
    } else if (accept(".alias")) {
      fail("aliases are not supported");
    } else {
      declaration();
    }
  }

  void read_version() {
    // `8.5` is read as a real number.
    const Token& token = now();
    size_t dot = token.text.find('.');
    if (token.kind != Token::Kind::real || dot == std::string_view::npos ||
        dot + 2 != token.text.size()) {
      return fail("expected a version");
    }
    int major = 0;
    for (char c : token.text.substr(0, dot)) major = major * 10 + (c - '0');
    module_.version = major * 10 + (token.text[dot + 1] - '0');
    step();
  }

  void read_target() {
    std::string name = word();
    if (!name.starts_with("sm_")) return fail("expected a target sm_N");
    size_t i = 3;
    for (; i < name.size() && name[i] >= '0' && name[i] <= '9' && i < 7; ++i)
      module_.target = module_.target * 10 + (name[i] - '0');
    module_.target_exact = i < name.size() && name[i] == 'a';
    if (i + module_.target_exact != name.size()) fail("no such target");
    while (accept(',')) word();  // texmode_independent, debug
  }

  void declaration() {
    bool external = false;
    while (true)
      if (accept(".extern"))
        external = true;
      else if (!accept(".visible") && !accept(".weak") && !accept(".common"))
        break;
    if (now().is(".entry") || now().is(".func")) return function();
    Variable variable;
    if (!read_variable(variable)) return fail("unexpected directive");
    variable.is_external = external;
    module_.variables.push_back(std::move(variable));
    expect(';');
  }

  static Space space_named(std::string_view text) {
    if (text == ".global") return Space::global;
    if (text == ".shared") return Space::shared;
    if (text == ".local") return Space::local;
    if (text == ".const") return Space::constant;
    if (text == ".param") return Space::parameter;
    return Space::generic;
  }

  /// `.space [.align n] [.v4] .type name[count] [= ...]`, without the end.
  bool read_variable(Variable& variable) {
    variable.line = now().line;
    variable.space = space_named(now().text);
    if (variable.space == Space::generic) return false;
    step();
    uint64_t elements = 1;
    while (now().kind == Token::Kind::word && now().text[0] == '.') {
      if (accept(".align")) {
        uint64_t align = integer();
        if (align == 0 || align > 1024 || (align & (align - 1)) != 0)
          fail("not an alignment");
        variable.align = static_cast<uint32_t>(align);
      } else if (accept(".v2")) {
        elements = 2;
      } else if (accept(".v4")) {
        elements = 4;
      } else if (now().is(".ptr") ||
                 space_named(now().text) != Space::generic) {
        step();  // what a pointer parameter points to
      } else {
        variable.type = type_named(now().text.substr(1));
        if (variable.type == Type::none) fail("unknown type");
        step();
      }
    }
    variable.name = word();
    variable.count = elements;
    while (accept('[')) {
      variable.is_array = true;
      variable.count = now().is(']') ? 0 : variable.count * integer();
      if (variable.count > max_bytes) fail("too large");
      expect(']');
    }
    variable.align = std::max<uint32_t>(
        variable.align, static_cast<uint32_t>(type_bytes(variable.type)));
    if (accept('=')) read_initial(variable);
    return true;
  }

  void read_initial(Variable& variable) {
    int depth = 0;
    do {
      while (accept('{')) ++depth;
      if (now().is('}')) continue;
      Variable::Initial initial;
      if (now().kind == Token::Kind::word) {
        initial.symbol = word();
        if (initial.symbol == "generic") {
          expect('(');
          initial.symbol = word();
          expect(')');
        }
        if (accept('+')) initial.bits = integer();
      } else if (now().kind == Token::Kind::real) {
        initial.bits = now().bits;
        step();
      } else {
        initial.bits = integer();
      }
      variable.initial.push_back(std::move(initial));
      while (depth > 0 && accept('}')) --depth;
    } while (error_.empty() && accept(','));
    while (depth > 0 && accept('}')) --depth;
    if (depth != 0) fail("expected `}`");
    if (variable.initial.size() > variable.count) fail("too many values");
  }

  void parameters(std::vector<Variable>& list) {
    expect('(');
    while (error_.empty() && !accept(')')) {
      Variable variable;
      if (!read_variable(variable)) return fail("expected a parameter");
      list.push_back(std::move(variable));
      if (!now().is(')')) expect(',');
    }
  }

  void three(uint32_t (&values)[3]) {
    values[1] = values[2] = 1;
    for (int i = 0; i < 3; ++i) {
      values[i] = static_cast<uint32_t>(integer());
      if (!accept(',')) break;
    }
  }

  void function() {
    FunctionText function;
    function.line = now().line;
    function.is_entry = now().is(".entry");
    step();
    if (now().is('(')) parameters(function.results);
    function.name = word();
    if (now().is('(')) parameters(function.parameters);
    while (now().kind == Token::Kind::word) {
      if (accept(".maxntid")) {
        three(function.max_threads);
      } else if (accept(".reqntid")) {
        three(function.required_threads);
      } else if (accept(".minnctapersm") || accept(".maxnreg") ||
                 accept(".maxclusterrank")) {
        integer();
      } else if (!accept(".noreturn") && !accept(".pragma")) {
        fail("unknown directive of a function");
      }
    }
    if (!accept(';')) {
      function.has_body = true;
      body(function.body);
    }
    // A declaration before the definition is forgotten.
    auto known = std::find_if(
        module_.functions.begin(), module_.functions.end(),
        [&](const FunctionText& f) { return f.name == function.name; });
    if (known == module_.functions.end())
      module_.functions.push_back(std::move(function));
    else if (!known->has_body)
      *known = std::move(function);
    else if (function.has_body)
      fail("`" + function.name + "` is defined twice");
  }

  void body(std::vector<Statement>& list) {
    expect('{');
    size_t depth = 1;
    while (error_.empty()) {
      Statement statement;
      statement.line = now().line;
      if (accept('}')) {
        if (--depth == 0) return;
        statement.kind = Statement::Kind::close;
      } else if (accept('{')) {
        if (++depth > max_depth) fail("nested too deeply");
        statement.kind = Statement::Kind::open;
      } else if (now().kind == Token::Kind::end) {
        return fail("expected `}`");
      } else if (accept(';')) {
        continue;
      } else if (!read_statement(statement, list)) {
        continue;
      }
      list.push_back(std::move(statement));
    }
  }

  /// False when there is nothing to keep.
  bool read_statement(Statement& statement, std::vector<Statement>& list) {
    if (now().kind == Token::Kind::word && ahead(1).is(':')) {
      statement.kind = Statement::Kind::label;
      statement.name = word();
      expect(':');
      if (accept(".branchtargets")) {
        do statement.targets.push_back(word());
        while (accept(','));
        expect(';');
      } else if (now().is(".callprototype")) {
        fail("indirect calls are not supported");
      }
      return true;
    }
    if (now().is(".reg")) return registers(list), false;
    if (accept(".pragma") || accept(".loc")) {
      int line = now().line;
      while (now().kind != Token::Kind::end && now().line == line &&
             !accept(';')) {
        step();
      }
      return false;
    }
    if (now().kind == Token::Kind::word && now().text[0] == '.') {
      statement.kind = Statement::Kind::variable;
      if (!read_variable(statement.variable)) fail("unexpected directive");
      expect(';');
      return true;
    }
    if (accept('@')) {
      statement.guard_negated = accept('!');
      statement.guard = word();
    }
    statement.name = word();
    while (error_.empty() && !accept(';')) {
      statement.operands.push_back(operand(0));
      if (!now().is(';')) {
        if (!accept(',')) fail("expected `,` or `;`");
      }
    }
    return true;
  }

  void registers(std::vector<Statement>& list) {
    step();
    std::string type_text = word();
    Type type = type_text.empty()
                    ? Type::none
                    : type_named(std::string_view(type_text).substr(1));
    if (type == Type::none) return fail("unknown type of a register");
    do {
      Statement statement;
      statement.kind = Statement::Kind::registers;
      statement.line = now().line;
      statement.type = type;
      statement.name = word();
      if (accept('<')) {
        statement.count = integer();
        if (statement.count == 0 || statement.count > 1'000'000)
          fail("not a number of registers");
        expect('>');
      }
      list.push_back(std::move(statement));
    } while (accept(','));
    expect(';');
  }

  Operand operand(size_t depth) {
    Operand result;
    if (depth > 4) {
      fail("nested too deeply");
    } else if (accept('{')) {
      result.kind = Operand::Kind::vector;
      parts(result, '}', depth);
    } else if (accept('(')) {
      result.kind = Operand::Kind::list;
      parts(result, ')', depth);
    } else if (accept('[')) {
      result.kind = Operand::Kind::address;
      result.parts.push_back(operand(depth + 1));
      if (accept('+'))
        result.offset = static_cast<int64_t>(integer());
      else if (now().is('-'))
        result.offset = static_cast<int64_t>(integer());
      expect(']');
    } else if (accept('!')) {
      result.kind = Operand::Kind::negated;
      result.parts.push_back(operand(depth + 1));
    } else if (now().kind == Token::Kind::real) {
      result.kind = Operand::Kind::real;
      result.bits = now().bits;
      result.real_bytes = now().real_bytes;
      step();
    } else if (now().kind == Token::Kind::integer || now().is('-')) {
      result.kind = Operand::Kind::integer;
      result.bits = integer();
    } else {
      result.name = word();
      if (result.name == "_") result.kind = Operand::Kind::sink;
    }
    if (now().is('|')) {
      step();
      Operand pair;
      pair.kind = Operand::Kind::pair;
      pair.parts.push_back(std::move(result));
      pair.parts.push_back(operand(depth + 1));
      return pair;
    }
    return result;
  }

  void parts(Operand& result, char close, size_t depth) {
    while (error_.empty() && !accept(close)) {
      result.parts.push_back(operand(depth + 1));
      if (!now().is(close)) expect(',');
    }
  }

  ModuleText& module_;
  std::string& error_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace

Type type_named(std::string_view name) {
  for (size_t i = 0; i < static_cast<size_t>(Type::none); ++i)
    if (name == type_rows[i].name) return static_cast<Type>(i);
  return Type::none;
}
const char* type_name(Type type) {
  return type_rows[static_cast<size_t>(type)].name;
}
int type_bytes(Type type) { return type_rows[static_cast<size_t>(type)].bytes; }
TypeClass type_class(Type type) {
  return type_rows[static_cast<size_t>(type)].class_;
}

bool parse_ptx(std::string_view source, ModuleText& module,
               std::string& error) {
  module = {};
  error.clear();
  return Parser(module, error).run(source);
}

}  // namespace simcuda
