// What is asked of a resolution.
#include <filesystem>
#include <set>

#include "lang/resolve/resolution.h"

namespace unisono::lang {

Span Resolution::Use::where() const {
  const auto* field = as<Field>(*node);
  return field ? field->name.span : node->inner;
}

const Resolution::Use* Resolution::use(const Expr& node) const {
  const auto found = use_of.find(&node);
  return found == use_of.end() ? nullptr : &uses[found->second];
}

const Resolution::Definition* Resolution::parameter(
    const Function& function, std::string_view name) const {
  const auto frame = frame_of.find(&function);
  if (frame == frame_of.end()) return nullptr;
  for (const int v : frames[frame->second].parameters)
    if (v >= 0 && variables[v].name == name)
      return &definitions[variables[v].definitions.back()];
  return nullptr;
}

const Resolution::Definition* Resolution::exported(
    std::string_view name) const {
  const auto found = scopes[0].variables.find(name);
  if (found == scopes[0].variables.end()) return nullptr;
  return &definitions[variables[found->second].definitions.back()];
}

std::vector<const Resolution::Definition*> Resolution::visible(
    uint32_t offset) const {
  int inner = 0;
  for (int s = 0; s < static_cast<int>(scopes.size()); ++s) {
    const bool holds = scopes[s].begin <= offset && offset <= scopes[s].end;
    if (holds && scopes[s].begin >= scopes[inner].begin) inner = s;
  }
  std::vector<const Definition*> out;
  std::set<std::string_view> seen;
  bool later = false;  // outside of the function around `offset`
  for (int s = inner; s >= 0; s = scopes[s].parent) {
    const bool whole = later || scopes[s].kind == Scope::Kind::generator ||
                       scopes[s].kind == Scope::Kind::function;
    for (const auto& [name, variable] : scopes[s].variables) {
      const std::vector<int>& all = variables[variable].definitions;
      const Definition* best = whole ? &definitions[all.front()] : nullptr;
      for (const int number : all) {
        const Definition& d = definitions[number];
        const uint32_t bound = d.let ? d.whole.end : d.where.end;
        if (bound <= offset) best = &d;
      }
      if (best && seen.insert(name).second) out.push_back(best);
    }
    later |= scopes[s].kind == Scope::Kind::function;
  }
  return out;
}

Name module_name(const ImportStmt& import) {
  if (import.alias) return *import.alias;
  if (!import.is_file) return import.module;
  return {std::filesystem::path(import.module.text).stem().string(),
          import.module.span};
}

const NameExpr* function_name(const Expr& value) {
  if (const auto* name = as<NameExpr>(value)) return name;
  const auto* call = as<Call>(value);
  const auto* callee = call ? as<NameExpr>(*call->callee) : nullptr;
  const bool transforms = callee && !call->arguments.empty() &&
                          !call->arguments[0].name &&
                          (callee->text == "pmap" || callee->text == "vmap" ||
                           callee->text == "jit");
  return transforms ? function_name(*call->arguments[0].value) : nullptr;
}

}  // namespace unisono::lang
