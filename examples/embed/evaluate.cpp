// Evaluates programs and calls what they define. Mistakes are values, too.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <unisono.hpp>

struct Line {
  float slope = 0, offset = 0;
};
UNISONO_RECORD(Line, slope, offset)

namespace {

void show(const unisono::Error& error) {
  for (const auto& message : error.messages())
    std::printf("%s in %s, line %d: %s\n", message.code,
                message.where.file ? message.where.file : "(no text)",
                message.where.line, message.text);
}

constexpr std::string_view program = R"(
def fit(x: f32[n], y: f32[n]) {
  let dx = x - mean(x)
  let slope = sum(dx * (y - mean(y))) / sum(dx * dx)
  (slope = slope, offset = mean(y) - slope * mean(x))
}
print("ready")
)";

}  // namespace

int main() {
  unisono::Engine engine({.devices = "cpu:2"});
  unisono::Session session =
      engine.session({.print = [](std::string_view lines) {
        std::fwrite(lines.data(), 1, lines.size(), stdout);
      }});

  if (auto done = session.eval(program, "fit.uni"); !done) {
    show(done.error());
    return 1;
  }
  auto fit = session.function("fit");
  if (!fit) return 1;
  std::printf("%s\n", fit->signature().c_str());

  const std::vector<float> x{0, 1, 2, 3}, y{1, 3, 5, 7};
  auto result = fit->call({unisono::Value::of(x), unisono::Value::of(y)});
  if (!result) {
    show(result.error());
    return 1;
  }
  const Line line = result->as<Line>().value();
  std::printf("%s: %g x + %g\n", result->type().c_str(), line.slope,
              line.offset);

  // A line of input, as an interactive host reads it.
  std::printf("complete: %d\n", unisono::completeness("fit(x,") ==
                                    unisono::Completeness::complete);
  if (auto wrong = session.eval("fit(ones(3), ones(4))", "input"); !wrong)
    show(wrong.error());
  auto sum = session.eval("sum(arange(101))");
  std::printf("%lld\n", static_cast<long long>(sum->as<long>().value()));
  return 0;
}
