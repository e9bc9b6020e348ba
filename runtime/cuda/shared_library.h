#pragma once
// A library of NVIDIA's that is opened at run time, where it is installed.
#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/result.h"

namespace unisono {

/// What was once opened stays loaded: what it registered with the driver, and
/// its threads, may outlive whoever used it.
class SharedLibrary {
 public:
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;
  virtual ~SharedLibrary() {
    if (library_) dlclose(library_);
  }
  /// The name by which it was found.
  const std::string& path() const { return path_; }

 protected:
  SharedLibrary() = default;

  /// Opens the first of `names` that is there and can be bound; the error
  /// (device_lost) says in one line why there is none. `called`: its name.
  Status open_first(const char* called, const std::vector<std::string>& names) {
    std::string why;
    for (const std::string& name : names) {
      if (library_) dlclose(std::exchange(library_, nullptr));
      path_ = name;
      missing_ = nullptr;
      library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
      if (!library_) {
        if (why.empty())
          why = fmt::format("there is no {}: {}", called, dlerror());
        continue;
      }
      Status bound = bind();
      if (bound) return bound;
      why = bound.error().message;
    }
    return unusable(std::move(why));
  }
  /// Finds all functions, and tells whether this version is known.
  virtual Status bind() = 0;

  template <class Function>
  void find(Function*& function, const char* symbol) {
    function = reinterpret_cast<Function*>(dlsym(library_, symbol));
    if (!function && !missing_) missing_ = symbol;
  }
  /// The first symbol that was not found; null if all were.
  const char* missing() const { return missing_; }

  static Error unusable(std::string why) {
    return {.kind = Error::Kind::device_lost, .message = std::move(why)};
  }

 private:
  void* library_ = nullptr;
  const char* missing_ = nullptr;
  std::string path_;
};

}  // namespace unisono
