#include "jit/target/loader.h"

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/DebugObjectManagerPlugin.h>
#include <llvm/ExecutionEngine/Orc/EPCDebugObjectRegistrar.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h>
#include <llvm/ExecutionEngine/Orc/TaskDispatch.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "jit/emit/rare_symbol.h"
#include "jit/target/instrument.h"

namespace unisono::jit {
namespace {

namespace orc = llvm::orc;

Error failed(llvm::Error error) {
  return {Error::Kind::compile_failed, llvm::toString(std::move(error))};
}

template <class R, class... Arguments>
void* address(R (*function)(Arguments...)) {
  return reinterpret_cast<void*>(function);
}

/// What the code generator calls where the processor has no instruction, and
/// what sanitizers call. Null if it is nothing of the kind.
void* process_function(const std::string& name) {
  static const std::pair<const char*, void*> functions[] = {
      {"fmaf", address<float, float, float, float>(std::fma)},
      {"fma", address<double, double, double, double>(std::fma)},
      {"floorf", address<float, float>(std::floor)},
      {"floor", address<double, double>(std::floor)},
      {"ceilf", address<float, float>(std::ceil)},
      {"ceil", address<double, double>(std::ceil)},
      {"truncf", address<float, float>(std::trunc)},
      {"trunc", address<double, double>(std::trunc)},
      {"roundevenf", address<float, float>(::roundevenf)},
      {"roundeven", address<double, double>(::roundeven)},
      {"memcpy", address<void*, void*, const void*, size_t>(std::memcpy)},
      {"memmove", address<void*, void*, const void*, size_t>(std::memmove)},
      {"memset", address<void*, void*, int, size_t>(std::memset)},
  };
  for (const auto& [known, function] : functions)
    if (name == known) return function;
  if (void* function = function_of(name)) return function;
  return sanitizer_function(name.c_str());
}

/// Defines functions of this process when code asks for them.
class ProcessFunctions : public orc::DefinitionGenerator {
 public:
  llvm::Error tryToGenerate(orc::LookupState&, orc::LookupKind,
                            orc::JITDylib& dylib, orc::JITDylibLookupFlags,
                            const orc::SymbolLookupSet& wanted) override {
    orc::SymbolMap found;
    for (const auto& [name, flags] : wanted)
      if (void* function = process_function((*name).str()))
        found[name] = {orc::ExecutorAddr::fromPtr(function),
                       llvm::JITSymbolFlags::Exported};
    if (found.empty()) return llvm::Error::success();
    return dylib.define(orc::absoluteSymbols(std::move(found)));
  }
};

/// ORC's session and what it needs, for the loader and all code that it loaded.
struct Session {
  Session(std::unique_ptr<orc::ExecutorProcessControl> process, bool profile)
      : session(std::move(process)),
        layer(session),
        functions(session.createBareJITDylib("process")),
        profile(profile) {
    if (profile)
      layer.addPlugin(std::make_unique<orc::DebugObjectManagerPlugin>(
          session,
          std::make_unique<orc::EPCDebugObjectRegistrar>(
              session, orc::ExecutorAddr::fromPtr(
                           &llvm_orc_registerJITLoaderGDBWrapper)),
          false, true));
    functions.addGenerator(std::make_unique<ProcessFunctions>());
    session.setErrorReporter([this](llvm::Error error) {
      std::lock_guard lock(mutex);
      last_error = llvm::toString(std::move(error));
    });
  }
  ~Session() { llvm::consumeError(session.endSession()); }

  orc::ExecutionSession session;
  orc::ObjectLinkingLayer layer;
  orc::JITDylib& functions;
  const bool profile;
  std::atomic<uint64_t> objects = 0;
  std::mutex mutex;
  std::string last_error;  // why linking failed, which lookups do not say
};

class OrcCode : public LoadedCode {
 public:
  /// The library is this code's own.
  OrcCode(std::shared_ptr<Session> session, orc::JITDylib& library)
      : session_(std::move(session)), library_(library) {}
  ~OrcCode() override {
    llvm::consumeError(session_->session.removeJITDylib(library_));
  }
  Status link(std::unique_ptr<llvm::MemoryBuffer> object,
              const std::vector<std::string>& names) {
    library_.addToLinkOrder(session_->functions);
    if (session_->profile) find_sizes(object->getMemBufferRef());
    if (auto error = session_->layer.add(library_, std::move(object)))
      return failed(std::move(error));
    orc::SymbolLookupSet wanted;
    for (const std::string& name : names)
      wanted.add(session_->session.intern(name));
    auto found = session_->session.lookup(
        orc::makeJITDylibSearchOrder(&library_,
                                     orc::JITDylibLookupFlags::MatchAllSymbols),
        std::move(wanted));
    if (!found) return because(found.takeError());
    for (const auto& [name, symbol] : *found)
      symbols_[(*name).str()] = symbol.getAddress().toPtr<void*>();
    return Unit{};
  }
  void* symbol(const std::string& name) const override {
    const auto found = symbols_.find(name);
    return found == symbols_.end() ? nullptr : found->second;
  }
  int64_t code_bytes(const std::string& name) const override {
    const auto found = sizes_.find(name);
    return found == sizes_.end() ? 0 : found->second;
  }

 private:
  void find_sizes(llvm::MemoryBufferRef bytes) {
    auto object = llvm::object::ObjectFile::createObjectFile(bytes);
    if (!object) return llvm::consumeError(object.takeError());
    for (const llvm::object::ELFSymbolRef symbol : (*object)->symbols())
      if (auto name = symbol.getName())
        sizes_[name->str()] = static_cast<int64_t>(symbol.getSize());
      else
        llvm::consumeError(name.takeError());
  }
  /// A lookup only says that something failed.
  Error because(llvm::Error error) const {
    std::string text = llvm::toString(std::move(error));
    std::lock_guard lock(session_->mutex);
    if (!session_->last_error.empty())
      text = std::exchange(session_->last_error, {});
    return {Error::Kind::compile_failed, std::move(text)};
  }

  std::shared_ptr<Session> session_;
  orc::JITDylib& library_;
  std::unordered_map<std::string, void*> symbols_;
  std::unordered_map<std::string, int64_t> sizes_;
};

class OrcLoader : public Loader {
 public:
  explicit OrcLoader(std::shared_ptr<Session> session)
      : session_(std::move(session)) {}
  Result<std::shared_ptr<LoadedCode>> load(
      std::span<const char> object,
      const std::vector<std::string>& names) override {
    const std::string name = "kernels" + std::to_string(session_->objects++);
    auto code = std::make_shared<OrcCode>(
        session_, session_->session.createBareJITDylib(name));
    auto bytes = llvm::MemoryBuffer::getMemBufferCopy(
        llvm::StringRef(object.data(), object.size()), name);
    TRY(code->link(std::move(bytes), names));
    return std::shared_ptr<LoadedCode>(std::move(code));
  }

 private:
  std::shared_ptr<Session> session_;
};

}  // namespace

Result<std::unique_ptr<Loader>> Loader::make(bool profile) {
  // What it is asked to do is done by who asks: a thread of LLVM's own would
  // have a small stack, and no stop flag.
  auto process = orc::SelfExecutorProcessControl::Create(
      nullptr, std::make_unique<orc::InPlaceTaskDispatcher>());
  if (!process) return failed(process.takeError());
  return std::unique_ptr<Loader>(std::make_unique<OrcLoader>(
      std::make_shared<Session>(std::move(*process), profile)));
}

}  // namespace unisono::jit
