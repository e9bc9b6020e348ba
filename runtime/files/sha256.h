#pragma once
// SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104).
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace unisono {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  void add(std::span<const uint8_t> bytes);
  void add(std::string_view text) {
    add({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  /// Of all that was added; once.
  Digest finish();

 private:
  void block(const uint8_t* bytes);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                    0xa54ff53a, 0x510e527f, 0x9b05688c,
                                    0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> rest_{};
  uint64_t length_ = 0;
};

/// What only who has the key could have said of the parts, in their order.
Digest hmac(const Digest& key,
            std::initializer_list<std::span<const uint8_t>> parts);

}  // namespace unisono
