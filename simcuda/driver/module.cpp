// Modules: from PTX text, or from a `cubin`, which here is the PTX with a head
// that says for which device it was linked.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "simcuda/driver/driver.h"

namespace simcuda {
namespace {

constexpr char cubin_mark[] = "simcubin";

uint64_t checksum(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

std::vector<char> make_cubin(std::string_view ptx, int capability) {
  char head[80];
  int n = std::snprintf(head, sizeof(head), "%s %d %zu %016" PRIx64 "\n",
                        cubin_mark, capability, ptx.size(), checksum(ptx));
  std::vector<char> image(head, head + n);
  image.insert(image.end(), ptx.begin(), ptx.end());
  image.push_back('\0');
  return image;
}

/// Keeps the text of a module, once, for other tools (ptxas).
void keep_text(std::string_view ptx, const std::string& folder) {
  if (folder.empty()) return;
  char name[32];
  std::snprintf(name, sizeof(name), "/%016" PRIx64 ".ptx", checksum(ptx));
  if (FILE* file = std::fopen((folder + name).c_str(), "wx")) {
    std::fwrite(ptx.data(), 1, ptx.size(), file);
    std::fclose(file);
  }
}

/// The PTX in an image.
Code open_image(const char* image, const DeviceState& device,
                std::string_view& ptx) {
  if (std::strncmp(image, cubin_mark, sizeof(cubin_mark) - 1) != 0) {
    // PTX begins with blanks, comments or a directive; a fat binary does not.
    const char first = image[0];
    if (first != '/' && first != '.' && first != '\n' && first != ' ' &&
        first != '\t' && first != '\r') {
      return invalid_image;
    }
    ptx = image;
    return success;
  }
  int capability = 0;
  size_t size = 0;
  uint64_t sum = 0;
  const char* end = std::strchr(image, '\n');
  if (end == nullptr ||
      std::sscanf(image + sizeof(cubin_mark) - 1, "%d %zu %" SCNx64,
                  &capability, &size, &sum) != 3) {
    return invalid_image;
  }
  if (std::memchr(end + 1, '\0', size) != nullptr) return invalid_image;
  ptx = std::string_view(end + 1, size);
  if (checksum(ptx) != sum) return invalid_image;
  // A cubin runs on its own architecture, from its minor version on.
  const int own = device.model.capability;
  if (own / 10 != capability / 10 || own % 10 < capability % 10)
    return no_binary_for_gpu;
  return success;
}

Code check_versions(const ModuleText& text, const DeviceState& device,
                    std::string& log) {
  const int newest = device.simulator->configuration.ptx_version;
  auto version = [](int v) {
    return std::to_string(v / 10) + "." + std::to_string(v % 10);
  };
  if (text.version > newest) {
    log = "ptxas fatal   : Unsupported .version " + version(text.version) +
          "; current version is '" + version(newest) + "'";
    return unsupported_ptx_version;
  }
  const int own = device.model.capability;
  if (text.target > own || (text.target_exact && text.target != own)) {
    log = "ptxas fatal   : SM version specified by .target, sm_" +
          std::to_string(text.target) + (text.target_exact ? "a" : "") +
          ", does not fit the device, sm_" + std::to_string(own);
    return invalid_ptx;
  }
  return success;
}

std::string as_log(const std::string& error) {
  // "line 3: text" as ptxas has it.
  if (!error.starts_with("line ")) return "ptxas fatal   : " + error;
  size_t colon = error.find(": ");
  return "ptxas application ptx input, " + error.substr(0, colon) +
         "; error   " + error.substr(colon);
}

/// The module's variables, with their values.
Code place_variables(Call& call, const ModuleText& text, ModuleObject& module,
                     SymbolAddresses& symbols, std::string& log) {
  DeviceState& device = *module.device;
  for (const Variable& v : text.variables) {
    if (v.space != Space::global && v.space != Space::constant) continue;
    if (v.is_external) {
      log = as_log("line " + std::to_string(v.line) +
                   ": unresolved variable `" + v.name + "`");
      return invalid_ptx;
    }
    if (v.bytes() > device.model.memory - device.used) return out_of_memory;
    auto made = call.simulator.memory.allocate(device.number, v.bytes(),
                                               Allocation::Kind::module,
                                               Allocation::State::live);
    if (!made) return out_of_memory;
    device.used += v.bytes();
    std::memset(made->data, 0, v.bytes());
    made->mark_written(0, v.bytes());
    symbols[v.name] = made->begin;
    module.variables[v.name] = std::move(made);
  }
  for (const Variable& v : text.variables) {
    auto it = module.variables.find(v.name);
    if (it == module.variables.end()) continue;
    const auto size = static_cast<size_t>(type_bytes(v.type));
    for (size_t k = 0; k < v.initial.size(); ++k) {
      uint64_t bits = v.initial[k].bits;
      if (const std::string& symbol = v.initial[k].symbol; !symbol.empty()) {
        auto other = symbols.find(symbol);
        if (other == symbols.end() || size != 8) {
          log = as_log("line " + std::to_string(v.line) + ": `" + symbol +
                       "` is no address");
          return invalid_ptx;
        }
        bits += other->second;
      }
      std::memcpy(it->second->data + k * size, &bits, size);
    }
  }
  return success;
}

void drop_module(Call& call, ModuleObject& module) {
  for (auto& [name, allocation] : module.variables) {
    module.device->used -= allocation->bytes;
    call.simulator.memory.free(*allocation);
  }
  for (auto& [name, function] : module.functions)
    call.simulator.functions.erase(function.get());
}

/// Where a caller wants the log of an error.
struct LogBuffers {
  char* error = nullptr;
  char* info = nullptr;
  size_t error_size = 0, info_size = 0;
  void** error_slot = nullptr;
  void** info_slot = nullptr;

  LogBuffers(unsigned count, const JitOption* options, void** values) {
    for (unsigned i = 0; options && values && i < count; ++i) {
      const auto number = reinterpret_cast<size_t>(values[i]);
      switch (options[i]) {
        case JitOption::error_log_buffer:
          error = static_cast<char*>(values[i]);
          break;
        case JitOption::error_log_buffer_size_bytes:
          error_size = number & 0xffffffff;
          error_slot = &values[i];
          break;
        case JitOption::info_log_buffer:
          info = static_cast<char*>(values[i]);
          break;
        case JitOption::info_log_buffer_size_bytes:
          info_size = number & 0xffffffff;
          info_slot = &values[i];
          break;
        default: break;
      }
    }
  }
  static void put(const std::string& text, char* to, size_t size, void** slot) {
    size_t n = 0;
    if (to && size > 0) {
      n = std::min(text.size(), size - 1);
      std::memcpy(to, text.data(), n);
      to[n] = '\0';
    }
    if (slot) *slot = reinterpret_cast<void*>(n);
  }
  void write(const std::string& log) const {
    put(log, error, error_size, error_slot);
    put("", info, info_size, info_slot);
  }
};

Code load(Call& call, Module* module, const void* image, std::string& log) {
  if (module == nullptr || image == nullptr) return invalid_value;
  if (Code code = call.refuse_in_capture(); code != success) return code;
  auto made = std::make_unique<ModuleObject>();
  made->device = call.device;
  Code code = load_image(call, image, *made, log);
  if (code != success) {
    drop_module(call, *made);
    return code;
  }
  void* handle = made.get();
  for (auto& [name, function] : made->functions)
    call.simulator.functions[function.get()] = function.get();
  call.simulator.modules[handle] = std::move(made);
  *module = static_cast<Module>(handle);
  return success;
}

}  // namespace

Code load_image(Call& call, const void* image, ModuleObject& module,
                std::string& log) {
  std::string_view ptx;
  Code code = open_image(static_cast<const char*>(image), *module.device, ptx);
  if (code != success) return code;
  keep_text(ptx, module.device->simulator->configuration.keep);
  ModuleText text;
  std::string error;
  if (!parse_ptx(ptx, text, error)) {
    // A version that is too new explains what could not be read.
    if (text.version != 0 && text.target != 0) {
      code = check_versions(text, *module.device, log);
      if (code != success) return code;
    }
    log = as_log(error);
    return invalid_ptx;
  }
  code = check_versions(text, *module.device, log);
  if (code != success) return code;
  module.target = text.target;
  module.ptx_version = text.version;
  SymbolAddresses symbols;
  code = place_variables(call, text, module, symbols, log);
  if (code != success) return code;
  for (const FunctionText& function : text.functions) {
    if (!function.is_entry || !function.has_body) continue;
    auto made = std::make_unique<FunctionObject>();
    made->module = &module;
    made->kernel = std::make_shared<Kernel>();
    if (!decode_kernel(text, function, symbols, *made->kernel, error)) {
      log = as_log(error);
      return invalid_ptx;
    }
    if (made->kernel->shared_bytes >
        static_cast<uint32_t>(module.device->model.shared_per_block())) {
      log = as_log("line " + std::to_string(function.line) + ": kernel `" +
                   function.name + "` uses too much shared data");
      return invalid_ptx;
    }
    if (made->kernel->parameter_bytes > (text.version < 81 ? 4352 : 32764)) {
      log = as_log("line " + std::to_string(function.line) + ": kernel `" +
                   function.name + "` has too many bytes of parameters");
      return invalid_ptx;
    }
    module.functions[function.name] = std::move(made);
  }
  return success;
}

extern "C" {

Code cuModuleLoadData(Module* module, const void* image) {
  return enter(Entry::module_load_data, Needs::context, [&](Call& call) {
    std::string log;
    return load(call, module, image, log);
  });
}

Code cuModuleLoadDataEx(Module* module, const void* image, unsigned count,
                        JitOption* options, void** values) {
  return enter(Entry::module_load_data_ex, Needs::context, [&](Call& call) {
    if (count > 0 && (options == nullptr || values == nullptr))
      return invalid_value;
    LogBuffers buffers(count, options, values);
    std::string log;
    Code code = load(call, module, image, log);
    buffers.write(log);
    return code;
  });
}

Code cuModuleUnload(Module module) {
  return give_back(
      Entry::module_unload, Needs::context, module, [&](Call& call) {
        ModuleObject* object = call.find(call.simulator.modules, module);
        if (object == nullptr) return invalid_handle;
        if (Code code = call.refuse_in_capture(); code != success) return code;
        call.simulator.wait_device(call.lock, *object->device);
        drop_module(call, *object);
        call.simulator.modules.erase(module);
        return success;
      });
}

Code cuModuleGetFunction(Function* function, Module module, const char* name) {
  return enter(Entry::module_get_function, Needs::context, [&](Call& call) {
    ModuleObject* object = call.find(call.simulator.modules, module);
    if (object == nullptr) return invalid_handle;
    if (function == nullptr || name == nullptr) return invalid_value;
    auto it = object->functions.find(name);
    if (it == object->functions.end()) return not_found;
    *function = reinterpret_cast<Function>(it->second.get());
    return success;
  });
}

Code cuModuleGetGlobal_v2(DevicePointer* pointer, size_t* bytes, Module module,
                          const char* name) {
  return enter(Entry::module_get_global, Needs::context, [&](Call& call) {
    ModuleObject* object = call.find(call.simulator.modules, module);
    if (object == nullptr) return invalid_handle;
    if (name == nullptr) return invalid_value;
    auto it = object->variables.find(name);
    if (it == object->variables.end()) return not_found;
    if (pointer) *pointer = it->second->begin;
    if (bytes) *bytes = it->second->bytes;
    return success;
  });
}

Code cuLinkCreate_v2(unsigned count, JitOption* options, void** values,
                     LinkState* state) {
  return enter(Entry::link_create, Needs::context, [&](Call& call) {
    if (state == nullptr || (count > 0 && (!options || !values)))
      return invalid_value;
    auto made = std::make_unique<LinkObject>();
    made->device = call.device;
    made->log = [buffers = LogBuffers(count, options, values)](
                    const std::string& log) { buffers.write(log); };
    made->log("");
    void* handle = made.get();
    call.simulator.links[handle] = std::move(made);
    *state = static_cast<LinkState>(handle);
    return success;
  });
}

Code cuLinkAddData_v2(LinkState state, JitInput type, void* data, size_t size,
                      const char*, unsigned count, JitOption* options,
                      void** values) {
  return enter(Entry::link_add_data, Needs::context, [&](Call& call) {
    LinkObject* object = call.find(call.simulator.links, state);
    if (object == nullptr) return invalid_handle;
    if (data == nullptr || size == 0) return invalid_value;
    // One module is enough: nothing here is split over several.
    if (type != JitInput::ptx || !object->text.empty()) return not_supported;
    std::string text(static_cast<const char*>(data), size);
    text.resize(std::strlen(text.c_str()));
    ModuleObject module;
    module.device = object->device;
    std::string log;
    Code code = load_image(call, text.c_str(), module, log);
    drop_module(call, module);
    object->log(log);
    LogBuffers(count, options, values).write(log);
    if (code == success) object->text = std::move(text);
    return code;
  });
}

Code cuLinkComplete(LinkState state, void** cubin, size_t* size) {
  return enter(Entry::link_complete, Needs::context, [&](Call& call) {
    LinkObject* object = call.find(call.simulator.links, state);
    if (object == nullptr) return invalid_handle;
    if (cubin == nullptr || object->text.empty()) return invalid_value;
    object->image = make_cubin(object->text, object->device->model.capability);
    *cubin = object->image.data();
    if (size) *size = object->image.size();
    return success;
  });
}

Code cuLinkDestroy(LinkState state) {
  return give_back(Entry::link_destroy, Needs::context, state, [&](Call& call) {
    return call.simulator.links.erase(state) ? success : invalid_handle;
  });
}

}  // extern "C"
}  // namespace simcuda
