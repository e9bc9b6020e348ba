#include "host/testing/peak.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "host/testing/measure.h"
#include "lang/syntax/ast.h"

namespace unisono::host {
namespace {

/// So large that memory is what takes the time, that caches hold the chains'
/// operand, and that the product fills the machine; GPUs take more of each.
struct Sizes {
  int64_t stream, chain, product;
};
constexpr Sizes cpu_sizes = {int64_t{1} << 24, int64_t{1} << 18, 1024};
constexpr Sizes gpu_sizes = {int64_t{1} << 27, int64_t{1} << 26, 4096};

/// Eight chains of fma at each element, which no processor of ours has to wait
/// for, and whose 192 operations are one kernel.
std::string chains() {
  constexpr int count = 8, length = 24;
  std::string text = "def chains(x) {\n";
  std::string sum;
  for (int c = 0; c < count; ++c) {
    text += fmt::format("  let c{0}_0 = x + {0}.0\n", c);
    sum += fmt::format("{}c{}_{}", c == 0 ? "" : " + ", c, length);
  }
  for (int i = 0; i < length; ++i)
    for (int c = 0; c < count; ++c)
      text +=
          fmt::format("  let c{0}_{1} = fma(c{0}_{2}, 0.5, x)\n", c, i + 1, i);
  return text + "  " + sum + "\n}\n";
}

std::string program_text(const Sizes& sizes, int64_t devices) {
  // Each device has as much as any other.
  const auto shared = [&](int64_t size) {
    return std::max<int64_t>(size / devices, 1) * devices;
  };
  return chains() + fmt::format(R"(
let x = pmap(fn(x) => x + 1.0, in_axes=split(0), out_axes=split(0))(ones(f32[{0}]))
let y = pmap(fn(x) => x * 0.5, in_axes=split(0), out_axes=split(0))(x)
let stream = pmap(fn(x, y) => x + 0.5 * y, in_axes=split(0), out_axes=split(0))
bench "memory" {{ stream(x, y) }}
let z = pmap(fn(x) => x * 0.5, in_axes=split(0), out_axes=split(0))(ones(f32[{1}]))
let many = pmap(chains, in_axes=split(0), out_axes=split(0))
bench "chains" {{ many(z) }}
let a = pmap(fn(x) => x * 0.5, in_axes=split(0), out_axes=split(0))(ones(f32[{2}, {3}]))
let product = pmap(fn(a, b) => a @ b, in_axes=(split(0), none), out_axes=split(0))
let b = pmap(fn(x) => x + 0.0, in_axes=none, out_axes=none)(ones(f32[{3}, {3}]))
bench "product" {{ product(a, b) }}
)",
                                shared(sizes.stream), shared(sizes.chain),
                                shared(sizes.product), sizes.product);
}

}  // namespace

std::optional<Peak> measure_peak(Session& session) {
  const auto& devices = session.runtime().devices();
  const auto count = static_cast<int64_t>(devices.size());
  const bool cpu = devices[0]->kind() == DeviceKind::cpu;
  const lang::Program* program =
      session.check("<peak>", program_text(cpu ? cpu_sizes : gpu_sizes, count));
  if (!program || !session.run(*program)) return std::nullopt;
  Peak peak;
  bool ok = true;
  session.walk().on_stack([&] {
    for (const lang::StmtPtr& stmt : program->statements) {
      const auto* block = lang::as<lang::ToolStmt>(*stmt);
      if (!block) continue;
      const auto run = [&] { return session.run_block(*program, *block); };
      const auto measured =
          measure(run, {.most_seconds = 0.3, .least_seconds = 0.1});
      Recorder recorder(/*keep_events=*/false);
      session.machine().recorder = &recorder;
      ok = ok && measured && run();
      session.machine().recorder = nullptr;
      if (!ok) return;
      // Other processes only ever make a run slower.
      const double seconds = measured->samples.front();
      const Traffic traffic =
          traffic_of(recorder, static_cast<int>(devices.size()));
      if (block->name == "memory")
        peak.bytes = traffic.bytes / seconds;
      else
        peak.flops = std::max(peak.flops, traffic.flops / seconds);
    }
  });
  return ok ? std::optional(peak) : std::nullopt;
}

}  // namespace unisono::host
