#pragma once
// What the groups of workloads share: memory for the peers, checks of our
// results against the peers', and rows of pairs.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness.h"

namespace bench {

/// Memory of zeros, which std::free frees, in huge pages if possible.
void* huge_pages(size_t bytes);

/// Host memory for a peer, in huge pages as ours is, each page touched once.
template <class T>
struct Aligned {
  explicit Aligned(size_t n)
      : data(static_cast<T*>(huge_pages(n * sizeof(T))), std::free), size(n) {}
  T* get() const { return data.get(); }
  std::unique_ptr<T, decltype(&std::free)> data;
  size_t size;
};

/// The elements of a global of the script.
Aligned<float> copy_of(Script& script, const std::string& name);

/// Ends the bench with a message if the two differ by more than `relative`
/// times max(1, |want|).
void expect_close(const std::string& what, double got, double want,
                  double relative);
/// Compares every 4,099th element of both results by expect_close.
void expect_same(const std::string& what, const std::vector<float>& got,
                 const float* want, double relative);

/// The peer that a row compares with.
struct Peer {
  std::function<void()> work;
  Team team = Team::openmp;
  std::string note = {};
};

/// Measures the row if it is wanted. `target` 0 means there is none.
void add_pair(Table& table, Script& script, const std::string& group,
              const std::string& name, const std::function<void()>& ours,
              const Peer& peer, double target = 0);

}  // namespace bench
