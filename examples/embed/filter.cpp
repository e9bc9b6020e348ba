// An image filter on memory of the host's: nothing is copied on the way in.
#include <cstdint>
#include <cstdio>
#include <vector>

#include <unisono.hpp>

namespace {

constexpr const char* program = R"(
## Blurs an image with a box of 3 x 3, then brings out its edges.
@jit
def sharpen(image: u8[h, w], amount: f32) -> u8[h, w] {
  let x = f32(image)
  let p = pad(x, ((1, 1), (1, 1)))
  let rows = p[:-2, :] + p[1:-1, :] + p[2:, :]
  let box = (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9.0
  u8(clip(x + amount * (x - box), 0.0, 255.0))
}
)";

}  // namespace

int main() {
  constexpr int64_t height = 480, width = 640;
  std::vector<uint8_t> image(height * width);
  for (int64_t i = 0; i < height; ++i)
    for (int64_t j = 0; j < width; ++j)
      image[i * width + j] = ((i / 40 + j / 40) % 2) ? 200 : 50;

  unisono::Engine engine;
  unisono::Session session = engine.session();
  if (auto done = session.eval(program, "sharpen.uni"); !done) {
    std::printf("%s", done.error().text().data());
    return 1;
  }
  bool released = false;
  {
    const auto pixels = unisono::Value::borrow(image.data(), {height, width},
                                               [&] { released = true; });
    const auto out =
        session.function("sharpen").value().call({pixels, 0.5}).value();
    const auto view = out.view<uint8_t, 2>().value();
    std::printf("%s, borrowed: %d\n", out.type().c_str(),
                pixels.tensor().value().data == image.data());
    std::printf("inside %d, beside an edge %d and %d\n", view(20, 20),
                view(20, 39), view(20, 40));
  }
  std::printf("released: %d\n", released);
  return 0;
}
