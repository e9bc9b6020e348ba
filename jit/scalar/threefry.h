#pragma once
// Threefry-2x32 with 20 rounds: the counter-based random numbers of Salmon,
// Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC11).
#include "jit/scalar/ops.h"

namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar {

/// The bits moved up by `count`, 0 < count < 32; those that leave come back
/// from below.
template <class V>  // uint32_t
V rotate_left(V x, int count) {
  return (x << V(count)) | (x >> V(32 - count));
}

/// The block of 64 random bits number `counter` under `key`. Of each of the
/// three, the published word 0 is the upper half and word 1 the lower one.
template <IntegerValue V>
  requires std::same_as<ElementOf<V>, uint64_t>
V threefry(V key, V counter) {
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  auto key0 = convert<uint32_t>(key >> 32), key1 = convert<uint32_t>(key);
  using Word = decltype(key0);
  const Word keys[3] = {key0, key1, key0 ^ key1 ^ 0x1bd11bda};
  Word x0 = convert<uint32_t>(counter >> 32) + keys[0];
  Word x1 = convert<uint32_t>(counter) + keys[1];
  for (int group = 0; group < 5; ++group) {
    for (int rotation : rotations[group % 2]) {
      x0 = x0 + x1;
      x1 = rotate_left(x1, rotation) ^ x0;
    }
    x0 = x0 + keys[(group + 1) % 3];
    x1 = x1 + (keys[(group + 2) % 3] + (group + 1));
  }
  return (convert<uint64_t>(x0) << 32) | convert<uint64_t>(x1);
}

}  // namespace unisono::jit::inline UNISONO_INSTRUCTIONS::scalar
