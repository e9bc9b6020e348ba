#pragma once
// Memory for small objects that come and go by the hundred, such as the results
// of a call: what a thread frees it uses again for the next object of the type.
// malloc keeps a handful of blocks of each size ready, and is slow beyond.
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "runtime/poison.h"

namespace unisono {

/// An allocator, for std::allocate_shared. Any thread may free an object.
template <class T>
class Recycling {
 public:
  using value_type = T;
  Recycling() = default;
  template <class U>
  Recycling(const Recycling<U>&) {}  // NOLINT: implicit, as allocators are

  T* allocate(size_t count) {
    if (count != 1 || !kept_) return std::allocator<T>().allocate(count);
    Free* object = kept_;
    kept_ = object->next;
    --count_;
    object->~Free();
    return reinterpret_cast<T*>(object);
  }
  void deallocate(T* object, size_t count) {
    if (count != 1 || count_ >= most_)
      return std::allocator<T>().deallocate(object, count);
    static_assert(sizeof(T) >= sizeof(Free) && alignof(T) >= alignof(Free));
    static thread_local const AtEnd at_end;
    kept_ = new (object) Free{kept_};
    ++count_;
  }

  bool operator==(const Recycling&) const { return true; }

 private:
  struct Free {
    Free* next;
  };
  // These have no destructors: objects may still be freed while the thread's
  // others run.
  inline static constinit thread_local Free* kept_ = nullptr;
  inline static constinit thread_local size_t count_ = 0;
  // With AddressSanitizer nothing is kept, so that it sees who uses what is
  // gone.
  inline static constinit thread_local size_t most_ = poisons ? 0 : 512;
  struct AtEnd {
    ~AtEnd() {
      most_ = 0;
      while (kept_) {
        Free* next = kept_->next;
        std::allocator<T>().deallocate(reinterpret_cast<T*>(kept_), 1);
        kept_ = next;
      }
      count_ = 0;
    }
  };
};

/// std::make_shared in such memory.
template <class T, class... Arguments>
std::shared_ptr<T> make_recycled(Arguments&&... arguments) {
  return std::allocate_shared<T>(Recycling<T>(),
                                 std::forward<Arguments>(arguments)...);
}

}  // namespace unisono
