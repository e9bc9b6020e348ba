#include "tests/unit/jit/uses/limits.h"

#include <algorithm>

namespace unisono::jit::testing {
namespace {

class Shapes {
 public:
  explicit Shapes(const Limits& limits) : limits_(limits) {}

  void add(Sizes sizes) {
    int64_t elements = 1;
    for (const int64_t size : sizes) elements *= size;
    if (elements > 0 && elements <= limits_.most_elements &&
        std::ranges::find(all, sizes) == all.end())
      all.push_back(std::move(sizes));
  }
  /// A line, or `rows` of them, whose length is about `limit`.
  void lines(int64_t limit, int64_t rows = 1) {
    for (int64_t n = limit - 1; n <= limit + 1; ++n)
      rows == 1 ? add({n}) : add({rows, n});
  }
  /// Columns, about so many rows of them; and about so many columns. One row
  /// more combines alike, in this run or in the next.
  void columns(int64_t rows, int64_t columns) {
    for (int64_t off = -1; off <= 2; ++off) add({rows + off, columns});
    for (int64_t off = -1; off <= 1; ++off) add({rows, columns + off});
  }

  std::vector<Sizes> all;

 private:
  const Limits& limits_;
};

/// Reductions to fewer points than `kept`, of at least `reduced` each.
void along_rows(Shapes& shapes, const Machine::TwoStages& from) {
  shapes.lines(from.reduced, 3);
  for (int64_t rows = from.kept - 1; rows <= from.kept + 1; ++rows)
    shapes.add({rows, from.reduced});
}

void along_columns(Shapes& shapes, const Machine::TwoStages& from) {
  const int64_t few = from.elements / std::max<int64_t>(from.reduced, 1);
  shapes.columns(from.reduced, std::max<int64_t>(few, 3));
  shapes.columns(from.elements / 4, 4);  // thin
  for (int64_t columns = from.kept - 1; columns <= from.kept + 1; ++columns)
    shapes.add({from.reduced, columns});
}

void of_reductions(Shapes& shapes, Along along, const Limits& limits) {
  switch (along) {
    case Along::last:
      for (const int64_t n : {limits.lanes, limits.chunk, 2 * limits.chunk})
        shapes.lines(n, 3);
      along_rows(shapes, limits.cpu.lanes);
      along_rows(shapes, limits.grid.lanes);
      return;
    case Along::first:
      for (const int64_t n : {limits.run, 2 * limits.run}) shapes.columns(n, 5);
      along_columns(shapes, limits.cpu.runs);
      along_columns(shapes, limits.grid.runs);
      shapes.columns(limits.run / 2, limits.added_rows / (limits.run / 2));
      shapes.columns(limits.run, limits.added_rows / limits.run);
      shapes.columns(2 * limits.run, limits.cut_rows / (2 * limits.run));
      return;
    case Along::all:
      for (const int64_t n :
           {limits.lanes, limits.chunk, 2 * limits.chunk,
            limits.cpu.lanes.reduced, limits.grid.lanes.reduced})
        shapes.lines(n);
      // Several axes are cut along the last one, where it has whole chunks.
      shapes.lines(limits.chunk, limits.cpu.lanes.reduced / limits.chunk);
      shapes.lines(limits.cpu.lanes.reduced / 3, 3);
      return;
  }
}

void of_products(Shapes& shapes, Along along, const Limits& limits) {
  for (const int64_t n : {limits.chain, limits.cpu.chains.reduced})
    switch (along) {
      case Along::last: shapes.lines(n, 3); break;
      case Along::first: shapes.columns(n, 3); break;
      case Along::all: shapes.lines(n), shapes.lines(n / 3, 3); break;
    }
}

void of_scans(Shapes& shapes, Along along, const Limits& limits) {
  const bool in_runs = along == Along::first;
  for (const int64_t n : in_runs
                             ? Sizes{limits.run, limits.parts * limits.run}
                             : Sizes{limits.group, limits.block, limits.chunk,
                                     limits.parts * limits.chunk})
    switch (along) {
      case Along::last: shapes.lines(n, 3); break;
      case Along::first: shapes.columns(n, 5); break;
      case Along::all: shapes.lines(n), shapes.lines(n / 3, 3); break;
    }
}

void of_others(Shapes& shapes, Along along, const Sizes& sizes) {
  for (const int64_t n : sizes) switch (along) {
      case Along::last: shapes.lines(n, 3); break;
      case Along::first: shapes.columns(n, 3); break;
      case Along::all: shapes.lines(n); break;
    }
}

}  // namespace

std::vector<Sizes> shapes_at_limits(Path path, Along along,
                                    const Limits& limits) {
  Shapes shapes(limits);
  switch (path) {
    case Path::reduction: of_reductions(shapes, along, limits); break;
    case Path::product: of_products(shapes, along, limits); break;
    case Path::scan: of_scans(shapes, along, limits); break;
    case Path::sort: of_others(shapes, along, limits.sorted); break;
    case Path::index:
      of_others(shapes, along, {limits.positions, limits.cpu.lanes.reduced});
      break;
  }
  return shapes.all;
}

}  // namespace unisono::jit::testing
