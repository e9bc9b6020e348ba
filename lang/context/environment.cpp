#include "lang/context/environment.h"

#include "lang/context/library_environment.h"

namespace unisono::lang {

std::pair<Binding*, Environment*> Environment::find(const std::string& name) {
  for (Environment* env = this; env; env = env->parent.get()) {
    auto found = env->names.find(name);
    if (found == env->names.end()) continue;
    if (LibraryEnvironment::is_unread(found->second)) {
      static_cast<LibraryEnvironment*>(env)->read(name);
      found = env->names.find(name);
    }
    return {&found->second, env};
  }
  return {nullptr, nullptr};
}

}  // namespace unisono::lang
