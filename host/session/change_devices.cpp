// Other devices for a session: what it holds is taken along.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "host/session/host_value.h"
#include "host/session/session.h"
#include "lang/context/environment.h"
#include "lang/context/function.h"

namespace unisono::host {
namespace {

using lang::ArrayCell;
using lang::ArrayValue;
using lang::Binding;
using lang::Value;

/// Arrays as they are on no device.
class Luggage {
 public:
  /// Whether nothing in the value depends on devices but where its arrays lie.
  /// These are copied to the host.
  bool pack(const Value& value) {
    bool fits = true;
    lang::for_each_leaf(value, [&](const Value& leaf) {
      if (const auto* array = leaf.get_if<ArrayValue>())
        fits = fits && pack_array(*array);
      else if (const auto* range = leaf.get_if<lang::RangeValue>())
        for (const Value& part : *range->start_stop_step)
          fits = fits && pack(part);
      else
        fits = fits && is_host_value(leaf);
    });
    return fits;
  }

  /// What was packed, with its arrays on the device.
  Value unpack(const Value& value, Device& device) {
    return lang::map_leaves(value, [&](const Value& leaf) -> Value {
      if (const auto* array = leaf.get_if<ArrayValue>())
        return packed_.at(*array).on(device);
      if (const auto* range = leaf.get_if<lang::RangeValue>()) {
        std::vector<Value> parts;
        for (const Value& part : *range->start_stop_step)
          parts.push_back(unpack(part, device));
        return lang::RangeValue{
            std::make_shared<const std::vector<Value>>(std::move(parts))};
      }
      return leaf;
    });
  }
  /// Arrays of the old devices go.
  void leave_old() {
    for (auto& [array, packed] : packed_) {
      array->array.reset();
      array->copies.reset();
    }
  }

 private:
  struct Packed {
    ArrayValue old;
    std::vector<int64_t> shape;
    std::vector<uint8_t> bytes;
    ArrayValue fresh = nullptr;

    ArrayValue on(Device& device) {
      if (fresh) return fresh;
      fresh = std::make_shared<ArrayCell>(*old);
      fresh->copies.reset();  // on the old devices
      if (old->constant || old->donated) return fresh;
      auto array =
          array_from_host(device, old->type.dtype, shape, bytes.data());
      bytes = {};
      if (array)
        fresh->array = std::move(*array);
      else
        fresh = nullptr;
      return fresh;
    }
  };

  bool pack_array(const ArrayValue& array) {
    if (packed_.contains(array)) return true;
    Packed packed{array, {}, {}};
    if (!array->constant && !array->donated) {
      if (!array->array) return false;
      auto bytes = array_to_host(*array->array);
      if (!bytes) return false;
      packed.shape = array->array->shape();
      packed.bytes = std::move(*bytes);
    }
    packed_.emplace(array, std::move(packed));
    return true;
  }

  std::map<ArrayValue, Packed> packed_;
};

/// The text of a statement, and of what is written before it, where it stands
/// in its file; the rest of the file is blank, so that places stay what they
/// are.
std::string alone(const lang::Program& program, const lang::Stmt& statement) {
  uint32_t begin = 0;
  for (const lang::StmtPtr& other : program.statements)
    if (other->span.end <= statement.span.begin)
      begin = std::max(begin, other->span.end);
  std::string text(program.file->text().substr(0, statement.span.end));
  for (uint32_t i = 0; i < begin; ++i)
    if (text[i] != '\n') text[i] = ' ';
  const size_t separator = text.find_first_not_of(" \t\n", begin);
  if (separator != text.npos && text[separator] == ';') text[separator] = ' ';
  return text;
}

}  // namespace

const lang::Stmt* Session::statement_at(lang::Span where) const {
  for (const auto& program : programs_) {
    if (program->file != where.file) continue;
    for (const lang::StmtPtr& statement : program->statements)
      if (statement->span.begin <= where.begin &&
          where.begin < statement->span.end)
        return statement.get();
  }
  return nullptr;
}

std::vector<std::string> Session::change_devices(SessionOptions options) {
  auto runtime = open_runtime(options);
  Luggage luggage;
  struct Carried {
    std::string name;
    Binding binding;
    bool is_result;
  };
  std::vector<Carried> carried;
  std::vector<std::string> all;
  // By the order of their statements, each once.
  std::map<std::pair<size_t, uint32_t>, std::pair<size_t, const lang::Stmt*>>
      again;
  walk_->on_stack([&] {
    for (const auto& [name, binding] : walk_->globals()->names) {
      all.push_back(name);
      if (luggage.pack(binding.value)) {
        carried.push_back({name, binding, false});
        continue;
      }
      for (size_t i = 0; i < programs_.size(); ++i)
        if (const lang::Stmt* statement =
                programs_[i]->file == binding.where.file
                    ? statement_at(binding.where)
                    : nullptr)
          again[{i, statement->span.begin}] = {i, statement};
    }
    for (const auto& [name, binding] : walk_->results().names)
      if (luggage.pack(binding.value)) carried.push_back({name, binding, true});
  });
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [place, found] : again) {
    const lang::Program& program = *programs_[found.first];
    texts.emplace_back(program.file->path(), alone(program, *found.second));
  }

  luggage.leave_old();
  const bool interactive = walk_->interactive;
  walk_.reset();
  runtime_ = std::move(runtime);
  machine_.runtime = runtime_.get();
  walk_ = std::make_unique<lang::Walk>(machine_, sources_, diagnostics_);
  walk_->interactive = interactive;
  const auto output = std::exchange(machine_.output, [](std::string_view) {});
  walk_->on_stack([&] {
    Device& first = *runtime_->devices()[0];
    // Once more at the end: a statement may bind a name that has changed since.
    for (const bool last : {false, true}) {
      for (Carried& item : carried) {
        lang::Environment& names =
            item.is_result ? walk_->results() : *walk_->globals();
        if (!last)
          item.binding.value = luggage.unpack(item.binding.value, first);
        names.names[item.name] = item.binding;
        ++names.version;
      }
      if (last) break;
      for (auto& [path, text] : texts)
        if (const lang::Program* program = check(path, text)) run(*program);
    }
  });
  machine_.output = output;
  std::erase_if(all, [&](const std::string& name) {
    return walk_->global(name) != nullptr;
  });
  std::ranges::sort(all);
  return all;
}

}  // namespace unisono::host
