#pragma once
// Names for what the host does, in a tool that shows it beside what devices do.
// Where there is no such tool there is none of this, and the cost is a null
// pointer.
#include <cstdint>
#include <vector>

namespace unisono {

/// Thread-safe; ranges of a thread lie within one another.
class Ranges {
 public:
  virtual ~Ranges() = default;
  /// From now on, until `end`, this thread does what these places in the
  /// program say.
  virtual void begin(const std::vector<uint32_t>& places) = 0;
  virtual void end() = 0;
};

/// A range that lasts as long as this object, unless `ranges` is null.
class Range {
 public:
  Range(Ranges* ranges, const std::vector<uint32_t>& places) : ranges_(ranges) {
    if (ranges_) ranges_->begin(places);
  }
  ~Range() {
    if (ranges_) ranges_->end();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  Ranges* ranges_;
};

}  // namespace unisono
