#include "jit/reference/routines.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <mutex>

#include "runtime/check.h"
#include "runtime/lapack/lapack.h"
#include "runtime/pool.h"
#include "runtime/stop.h"
#include "runtime/tuning/tuning.h"

namespace unisono::jit {
namespace {

using ir::Routine;
using Arrays = std::vector<HostArray>;

/// The matrix, or the line of one, that belongs to number `i` of the batch, of
/// which the last `axes` axes are the part.
template <class T, class Array>
auto* part(Array& array, int axes, int64_t i) {
  int64_t elements = 1;
  for (auto size = array.type.shape.end() - axes;
       size != array.type.shape.end(); ++size)
    elements *= size->value();
  using Bytes = std::remove_pointer_t<decltype(array.bytes.data())>;
  using Element = std::conditional_t<std::is_const_v<Bytes>, const T, T>;
  return reinterpret_cast<Element*>(array.bytes.data()) + i * elements;
}

template <class T>
void run_one(Routine routine, int64_t i, const Arrays& x, Arrays& y) {
  const ir::Type& type = x[0].type;
  const int64_t m = type.shape[type.rank() - 2].value(),
                n = type.shape[type.rank() - 1].value();
  const T* a = part<T>(x[0], 2, i);
  const auto matrix = [&](size_t result) { return part<T>(y[result], 2, i); };
  const auto line = [&](size_t result) { return part<T>(y[result], 1, i); };
  const auto columns = [](const HostArray& array) {
    return array.type.shape.back().value();
  };
  switch (routine) {
    case Routine::cholesky: return lapack::cholesky(n, a, matrix(0));
    case Routine::lu:
      return lapack::lu(n, a, matrix(0), part<int32_t>(y[1], 1, i));
    case Routine::solve:
      return lapack::solve(n, columns(x[1]), a, part<T>(x[1], 2, i), matrix(0));
    case Routine::inv: return lapack::inverse(n, a, matrix(0));
    case Routine::solve_lower:
    case Routine::solve_upper:
      return lapack::solve_triangular(
          routine == Routine::solve_lower ? lapack::Triangle::lower
                                          : lapack::Triangle::upper,
          n, columns(x[1]), a, part<T>(x[1], 2, i), matrix(0));
    case Routine::qr:
    case Routine::qr_complete:
      return lapack::qr(m, n, columns(y[0]), a, matrix(0), matrix(1));
    case Routine::eigh: return lapack::eigh(n, a, line(0), matrix(1));
    case Routine::eigvalsh:
      return lapack::eigh(n, a, line(0), static_cast<T*>(nullptr));
    case Routine::svd:
    case Routine::svd_complete:
      return lapack::svd(m, n, routine == Routine::svd_complete, a, matrix(0),
                         line(1), matrix(2));
    case Routine::svdvals:
      return lapack::svd(m, n, false, a, static_cast<T*>(nullptr), line(0),
                         static_cast<T*>(nullptr));
  }
}

/// Calls run(begin, end) for parts of the batch, by the workers of this thread
/// where there is enough to do. `work`: about the multiplications of one.
void run_parts(int64_t batch, int64_t work,
               const std::function<void(int64_t, int64_t)>& run) {
  Pool* pool = Pool::of_this_thread();
  if (!pool) return run(0, batch);
  std::mutex mutex;
  std::exception_ptr thrown;  // for lack of memory, or Stopped
  const auto part = [&, stop = stop_flag()](int64_t begin, int64_t end) {
    const StopScope scope(stop);
    try {
      run(begin, end);
    } catch (...) {
      const std::lock_guard lock(mutex);
      thrown = std::current_exception();
    }
  };
  pool->parallel_for(
      batch, std::max<int64_t>(tuning().routine_worth_sharing / work, 1), &part,
      part);
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace

Status run_routine(Routine routine, const Arrays& operands, Arrays& results) {
  const ir::Type& type = operands[0].type;
  int64_t batch = 1;
  for (int axis = 0; axis < type.rank() - 2; ++axis)
    batch *= type.shape[axis].value();
  const auto run_part = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      poll_stop();
      if (type.dtype == DType::F64)
        run_one<double>(routine, i, operands, results);
      else
        run_one<float>(routine, i, operands, results);
    }
  };
  const auto rows = static_cast<double>(type.shape[type.rank() - 2].value());
  const auto columns = static_cast<double>(type.shape.back().value());
  const double work = 100 + rows * columns * std::min(rows, columns);
  return unless_stopped([&]() -> Status {
    run_parts(batch, work < 1e9 ? static_cast<int64_t>(work) : 1'000'000'000,
              run_part);
    return Unit{};
  });
}

}  // namespace unisono::jit
