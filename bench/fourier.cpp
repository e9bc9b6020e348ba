// Fourier transforms beside KissFFT's (f32, where it is installed) and NumPy's,
// which a process of Python's computes: it gets a line for each piece of work,
// and answers when that is done.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <complex>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#ifdef BENCH_KISSFFT
#include <kissfft/kiss_fft.h>
#endif

#include "bench/workload.h"

extern char** environ;

namespace bench {
namespace {

using unisono::lang::Value;

constexpr const char* server = R"(
import sys
import numpy
def made(shape, kind):
    j = numpy.arange(numpy.prod(shape))
    z = ((j * 37) % 101 - 50) / 50 + 1j * (((j * 53) % 97 - 48) / 48)
    return z.reshape(shape).astype(kind)
print(numpy.__version__, flush=True)
for line in sys.stdin:
    work, *words = line.split()
    if work == "make":
        z = made([int(n) for n in words[1:]], words[0])
        y = numpy.fft.fft(z).ravel()
        print(y[1].real, y[y.size // 2].imag, y[-1].real, flush=True)
    else:
        for _ in range(int(words[0])): numpy.fft.fft(z)
        print(flush=True)
)";

constexpr const char* program = R"(
import fft
def made(shape, kind: type) {
  let j = arange(prod(shape), i64)
  (
    re = cast(reshape(((j * 37) % 101 - 50) / 50f64, shape), kind),
    im = cast(reshape(((j * 53) % 97 - 48) / 48f64, shape), kind)
  )
}
let z_f32_0 = made((1024,), f32)
let z_f32_1 = made((1048576,), f32)
let z_f32_2 = made((1000, 1024), f32)
let z_f64_0 = made((1024,), f64)
let z_f64_1 = made((1048576,), f64)
let z_f64_2 = made((1000, 1024), f64)
let transform = jit(fft.fft)
let some = fn(z) => {
  let y = transform(z)
  let (re, im) = (flatten(y.re), flatten(y.im))
  f32(stack((re[1], im[size(im) // 2], re[-1])))
}
)";

std::vector<std::string> interpreters() {
  const char* chosen = std::getenv("BENCH_PYTHON");
  if (chosen) return {chosen};
  return {"python3", "/usr/bin/python3"};
}

/// A process of Python with NumPy.
class Numpy {
 public:
  /// Whether there is one.
  bool start() {
    for (const std::string& python : interpreters()) {
      if (!spawn(python)) continue;
      version_ = read_line();
      if (!version_.empty()) return true;
      stop();
    }
    return false;
  }
  ~Numpy() { stop(); }
  const std::string& version() const { return version_; }
  /// Sends a line, and gives the one that comes back.
  std::string ask(const std::string& line) {
    const std::string text = line + "\n";
    if (write(to_, text.data(), text.size()) !=
        static_cast<ssize_t>(text.size()))
      fail("NumPy does not answer");
    return read_line();
  }

 private:
  bool spawn(const std::string& python) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) fail("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                     O_WRONLY, 0);
    std::string words[] = {python, "-c", server};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                         nullptr};
    const int failed = posix_spawnp(&child_, arguments[0], &actions, nullptr,
                                    arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
    if (failed) {
      child_ = -1;
      stop();
    }
    return !failed;
  }
  std::string read_line() {
    std::string line;
    for (char c = 0; read(from_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  void stop() {
    if (to_ >= 0) close(to_);
    if (from_ >= 0) close(from_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
    to_ = from_ = -1;
    child_ = -1;
  }

  pid_t child_ = -1;
  int to_ = -1, from_ = -1;
  std::string version_;
};

/// The values of `made` above.
template <class T>
std::vector<std::complex<T>> made(size_t n) {
  std::vector<std::complex<T>> z;
  for (size_t j = 0; j < n; ++j)
    z.emplace_back(static_cast<T>((double(j * 37 % 101) - 50) / 50),
                   static_cast<T>((double(j * 53 % 97) - 48) / 48));
  return z;
}

#ifdef BENCH_KISSFFT
/// Transforms of rows of n, with the tables made before.
class KissFft {
 public:
  explicit KissFft(int n, int rows)
      : n_(n),
        in_(made<float>(size_t(n) * rows)),
        out_(in_.size()),
        plan_(kiss_fft_alloc(n, 0, nullptr, nullptr), kiss_fft_free) {}
  void run() {
    for (size_t row = 0; row < in_.size(); row += n_)
      kiss_fft(plan_.get(), reinterpret_cast<const kiss_fft_cpx*>(&in_[row]),
               reinterpret_cast<kiss_fft_cpx*>(&out_[row]));
  }
  const std::vector<std::complex<float>>& result() const { return out_; }

 private:
  size_t n_;
  std::vector<std::complex<float>> in_, out_;
  std::unique_ptr<kiss_fft_state, decltype(&kiss_fft_free)> plan_;
};
#endif

}  // namespace

void fourier(Table& table) {
  const std::string group = "14 Fourier";
  if (!table.wanted(group, "fft of 2^10 2^20 1000 x 1024 KissFFT")) return;
  Script s(program, 1);
  struct Case {
    const char *name, *shape;
    int n, rows;
    int times;  // in one timing, so that asking costs nothing
  };
  constexpr Case cases[] = {
      {"fft of 2^10", "1024", 1024, 1, 200},
      {"fft of 2^20", "1048576", 1 << 20, 1, 1},
      {"1000 of 2^10", "1000 1024", 1024, 1000, 1},
  };
#ifdef BENCH_KISSFFT
  for (size_t i = 0; i < std::size(cases); ++i) {
    const Case& each = cases[i];
    KissFft kiss(each.n, each.rows);
    kiss.run();
    const auto& y = kiss.result();
    const Value z = s[fmt::format("z_f32_{}", i)], transform = s["transform"];
    const std::vector<float> got = s.floats(s.call(s["some"], {z}));
    expect_close(each.name, got[0], y[1].real(), 1e-2);
    expect_close(each.name, got[1], y[y.size() / 2].imag(), 1e-2);
    expect_close(each.name, got[2], y.back().real(), 1e-2);
    add_pair(
        table, s, group, fmt::format("{}, f32, beside KissFFT", each.name),
        [&] { s.call(transform, {z}); },
        {[&] { kiss.run(); }, Team::one_thread, "KissFFT, one thread"}, 0.5);
  }
#endif
  Numpy numpy;
  if (!numpy.start()) {
    fmt::print(stderr, "bench: no Python with NumPy; see BENCH_PYTHON\n");
    return;
  }
  for (const char* kind : {"f32", "f64"})
    for (size_t i = 0; i < std::size(cases); ++i) {
      const Case& each = cases[i];
      const std::string name = fmt::format("z_{}_{}", kind, i);
      const bool wide = std::string(kind) == "f64";
      const std::string answer = numpy.ask(fmt::format(
          "make {} {}", wide ? "complex128" : "complex64", each.shape));
      const std::vector<float> got = s.floats(s.call(s["some"], {s[name]}));
      const char* rest = answer.c_str();
      for (const float value : got) {
        char* end = nullptr;
        // Errors are those of sums of so many elements.
        expect_close(each.name, value, std::strtod(rest, &end), 1e-2);
        rest = end;
      }
      const Value transform = s["transform"], z = s[name];
      const std::string times = fmt::format("run {}", each.times);
      add_pair(
          table, s, group, fmt::format("{}, {}", each.name, kind),
          [&] {
            for (int turn = 0; turn < each.times; ++turn)
              s.call(transform, {z});
          },
          {[&] { numpy.ask(times); }, Team::own_threads,
           fmt::format(
               "{}NumPy {}",
               each.times > 1 ? fmt::format("{} times; ", each.times) : "",
               numpy.version())},
          1);
    }
}

}  // namespace bench
