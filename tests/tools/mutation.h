#pragma once
// What files with mutants (tests/mutation.py) begin with: which mutant of them
// is meant, UNISONO_MUTANT says, and record:FILE notes those that are reached.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace unisono::mutation {

struct Setting {
  int number = -1;
  unsigned char* reached = nullptr;  // a file, which outlives who dies
  Setting() {
    const char* text = std::getenv("UNISONO_MUTANT");
    if (!text) return;
    if (!std::string_view(text).starts_with("record:")) {
      number = std::atoi(text);
      return;
    }
    const int file = open(text + 7, O_RDWR | O_CLOEXEC);
    reached = static_cast<unsigned char*>(
        mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  }
};
inline const Setting setting;

inline bool turned(int number) {
  if (setting.reached) setting.reached[number] = 1;
  return number == setting.number;
}

// a < Compared{17} < b is turned(17) != (a < b).
struct Compared {
  int number;
};
template <class T>
struct Held {
  T value;
  int number;
};
#define UNISONO_COMPARE(op)                               \
  template <class T>                                      \
  Held<T> operator op(T value, Compared at) {             \
    return {value, at.number};                            \
  }                                                       \
  template <class T, class U>                             \
  bool operator op(const Held<T>& held, const U& other) { \
    return turned(held.number) != (held.value op other);  \
  }
UNISONO_COMPARE(<)
UNISONO_COMPARE(>)
UNISONO_COMPARE(<=)
UNISONO_COMPARE(>=)
UNISONO_COMPARE(==)
UNISONO_COMPARE(!=)

}  // namespace unisono::mutation
