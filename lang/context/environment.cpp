#include "lang/context/environment.h"

namespace unisono::lang {

std::pair<Binding*, Environment*> Environment::find(const std::string& name) {
  for (Environment* env = this; env; env = env->parent.get()) {
    auto found = env->names.find(name);
    if (found != env->names.end()) return {&found->second, env};
  }
  return {nullptr, nullptr};
}

}  // namespace unisono::lang
