#include "host/lsp/library.h"

#include <fmt/format.h>

#include <utility>

#include "lang/context/builtin.h"
#include "lang/source/builtin_examples.h"
#include "lang/source/stdlib.h"
#include "runtime/dtype.h"

namespace unisono::host::lsp {
namespace {

LibraryName of_builtin(std::string_view name, const lang::Builtin& builtin) {
  return {LibraryName::Kind::function, std::string(name),
          signature_of(name, builtin.signature),
          lang::builtin_documentation(builtin.name, builtin.help), ""};
}

/// The `##` lines at the start of a file.
std::string about_file(const Syntax& syntax) {
  std::string out;
  uint32_t next = 0;
  for (const lang::Comment& comment : syntax.program().comments) {
    std::string_view text = comment.span.text();
    const uint32_t line = syntax.text().line_of(comment.span.begin);
    if (line != next++ || !text.starts_with("##")) break;
    text.remove_prefix(text.starts_with("## ") ? 3 : 2);
    out += std::string(text) + "\n";
  }
  return out;
}

}  // namespace

Library::Library() {
  for (const lang::Builtin& builtin : lang::builtins())
    prelude_[std::string(builtin.name)] = of_builtin(builtin.name, builtin);
  auto alias = [&](std::string_view name, std::string_view meant) {
    const lang::Builtin* builtin = lang::find_builtin(meant);
    if (builtin) prelude_[std::string(name)] = of_builtin(name, *builtin);
  };
#define BUILTIN_ALIAS(other, name) alias(#other, #name);
#include "lang/context/builtins.def"
  auto type = [&](std::string_view name, std::string about) {
    prelude_[std::string(name)] = {LibraryName::Kind::type, std::string(name),
                                   std::nullopt, std::move(about), ""};
  };
  for (const DType dtype : all_dtypes) type(name(dtype), "an element type");
  type("int", "a whole number of the host, known when the program is compiled");
  type("str", "text of the host");
  type("type", "a type as a value");

  for (const lang::StdlibModule& module : lang::stdlib_modules()) {
    Module& here = modules_[std::string(module.name)];
    here.syntax = std::make_unique<Syntax>(
        fmt::format("<stdlib>/{}.uni", module.name), std::string(module.text));
    here.about = about_file(*here.syntax);
    for (const Definition& d : here.syntax->names().definitions()) {
      if (!here.syntax->names().is_top_level(d) || d.name.starts_with('_'))
        continue;
      LibraryName name;
      name.name = d.name;
      name.module = module.name;
      if (d.function)
        name.signature = signature_of(d.name, *d.function);
      else
        name.kind =
            d.alias ? LibraryName::Kind::type : LibraryName::Kind::constant;
      if (d.def) name.documentation = d.def->documentation;
      here.members[name.name] = name;
      if (lang::is_prelude_module(module.name))
        prelude_[name.name] = std::move(name);
    }
  }
}

const Library::Members* Library::module(std::string_view name) const {
  const auto found = modules_.find(name);
  return found == modules_.end() ? nullptr : &found->second.members;
}

std::vector<std::string_view> Library::modules() const {
  std::vector<std::string_view> out;
  for (const auto& [name, module] : modules_) out.push_back(name);
  return out;
}

std::string_view Library::about(std::string_view module) const {
  const auto found = modules_.find(module);
  return found == modules_.end() ? std::string_view() : found->second.about;
}

}  // namespace unisono::host::lsp
