#include "runtime/grid.h"

namespace unisono {

const GridCode::Image* GridCode::image_for(int capability) const {
  const Image* best = nullptr;
  for (const Image& image : images)
    if (image.exact ? image.capability == capability
                    : image.capability <= capability &&
                          (!best || image.capability > best->capability))
      best = &image;
  return best;
}

}  // namespace unisono
