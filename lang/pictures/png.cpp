#include "lang/pictures/png.h"

#include <png.h>

#include <csetjmp>
#include <new>

#include "runtime/stop.h"

namespace unisono::lang {
namespace {

/// What libpng's callbacks get.
struct Writing {
  std::string* out = nullptr;
  bool no_memory = false;
};

/// libpng is C: exceptions do not pass through it, errors jump.
void append(png_structp png, png_bytep bytes, size_t count) {
  auto* writing = static_cast<Writing*>(png_get_io_ptr(png));
  try {
    writing->out->append(reinterpret_cast<const char*>(bytes), count);
    return;
  } catch (const std::bad_alloc&) {
    writing->no_memory = true;
  }
  png_error(png, "no memory");
}

void flush(png_structp) {}
void warn(png_structp, png_const_charp) {}
[[noreturn]] void fail(png_structp png, png_const_charp) {
  png_longjmp(png, 1);
}

/// Whether all rows were written; what it has on its stack needs no destructor,
/// as an error jumps out of it.
bool write_rows(png_structp png, png_infop info, const Pixels& pixels) {
  if (setjmp(png_jmpbuf(png))) return false;
  int type = PNG_COLOR_TYPE_RGB_ALPHA;
  if (pixels.channels == 1) type = PNG_COLOR_TYPE_GRAY;
  if (pixels.channels == 3) type = PNG_COLOR_TYPE_RGB;
  png_set_IHDR(png, info, static_cast<png_uint_32>(pixels.width),
               static_cast<png_uint_32>(pixels.height), 8, type,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  const int64_t row = pixels.width * pixels.channels;
  for (int64_t y = 0; y < pixels.height; ++y) {
    if (stop_requested()) return false;
    png_write_row(png, pixels.bytes.data() + y * row);
  }
  png_write_end(png, info);
  return true;
}

}  // namespace

Result<std::string> png_of(const Pixels& pixels) {
  std::string out;
  Writing writing{&out};
  png_structp png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, fail, warn);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  bool ok = false;
  if (info) {
    png_set_write_fn(png, &writing, append, flush);
    png_set_user_limits(png, most_png_pixels, most_png_pixels);
    ok = write_rows(png, info, pixels);
  }
  png_destroy_write_struct(&png, &info);
  if (ok) return out;
  if (stop_requested())
    return Error{.kind = Error::Kind::cancelled, .message = "stopped"};
  return Error{.kind = Error::Kind::out_of_memory,
               .message =
                   "there is not enough memory on the host for the "
                   "picture"};
}

}  // namespace unisono::lang
