// wgmma: products of matrices in shared memory by the four warps of a group,
// each for 16 rows. A product is computed when it is issued, from what memory
// holds then, and its sums come to their registers when they are waited for;
// until then these hold a NaN. What a kernel may not do meanwhile is found: to
// change what is read, to begin from registers that no wgmma.fence has
// followed, to read what a thread has written without fence.proxy.async.
//
// Operands lie in pieces of eight lines of 128 bytes, in which part p (16
// bytes) of line l is at p ^ l; other swizzles are not known here. Sums are
// those of mma.cpp.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "simcuda/machine/access.h"
#include "simcuda/opcodes/decode.h"
#include "simcuda/opcodes/families.h"
#include "simcuda/opcodes/float.h"

namespace simcuda {
namespace {

using namespace unisono::cuda;

constexpr int group_warps = 4, rows = 16, deep = 16;
constexpr uint32_t part_bytes = 16;

/// Instruction::offset; mode: whether elements are bf16.
struct Form {
  int columns = 0;
  bool a_turned = false, b_turned = false;  // lines are depths
  bool a_negative = false, b_negative = false;
};
int64_t pack(const Form& form) {
  return form.columns | form.a_turned << 16 | form.b_turned << 17 |
         form.a_negative << 18 | form.b_negative << 19;
}
Form unpack(const Instruction& i) {
  auto bit = [&](int at) { return (i.offset >> at & 1) != 0; };
  return {static_cast<int>(i.offset & 0xffff), bit(16), bit(17), bit(18),
          bit(19)};
}

/// What a matrix's descriptor says.
struct Matrix {
  uint32_t begin, next_block, next_lines;
  bool turned;
  explicit Matrix(uint64_t bits, bool turned) : turned(turned) {
    auto field = [&](int at) {
      return static_cast<uint32_t>(bits >> at & 0x3fff) * 16;
    };
    begin = field(0);
    next_block = field(16);
    next_lines = field(32);
  }
  static bool known(uint64_t bits) {
    return bits >> 62 == 1 && (bits >> 49 & 7) == 0;
  }
  /// Where an element of two bytes lies.
  uint32_t place(int row, int k) const {
    const auto line = static_cast<uint32_t>(turned ? k : row),
               along = static_cast<uint32_t>(turned ? row : k);
    const uint32_t at = begin + line / 8 * next_lines + line % 8 * 128 +
                        along / 64 * next_block + along % 64 * 2;
    return at ^ (at >> 7 & 7) << 4;
  }
};

Flow misuse(Warp& warp, const Instruction& i, const char* what) {
  return warp.fail(illegal_instruction, i, what);
}

/// Checks a part that is read, and keeps what it holds.
Flow read_part(Warp& warp, const Instruction& i, uint32_t part,
               Warp::PendingProduct& product) {
  Block& block = *warp.block;
  const uint32_t begin = part * part_bytes;
  if (begin + part_bytes > block.shared.size())
    return warp.fail(illegal_address, i, "`wgmma` reads beyond shared memory");
  const auto hidden = block.shared_hidden.begin() + begin;
  const auto other = std::find_if(hidden, hidden + part_bytes,
                                  [](uint8_t writer) { return writer != 0; });
  if (other != hidden + part_bytes) {
    const std::string text = "`wgmma` reads shared memory that warp " +
                             std::to_string(*other - 1) +
                             " wrote without `fence.proxy.async` after it";
    return warp.fail(launch_failed, i, text);
  }
  if (!block.shared_written.empty()) {
    const auto written = block.shared_written.begin() + begin;
    if (std::find(written, written + part_bytes, 0) != written + part_bytes)
      return warp.fail(launch_failed, i,
                       "`wgmma` reads shared memory that no thread wrote");
  }
  if (block.races && block.races->lane_access(
                         warp, i, static_cast<int>(part % warp_size), begin,
                         part_bytes, Access::read, true) != Flow::next)
    return Flow::fault;
  product.parts.push_back(part);
  product.read.insert(product.read.end(), block.shared.begin() + begin,
                      block.shared.begin() + begin + part_bytes);
  return Flow::next;
}

/// Of rows first ... first + count - 1, 16 of k.
Flow read_matrix(Warp& warp, const Instruction& i, const Matrix& matrix,
                 int first, int count, bool negative, double* to,
                 Warp::PendingProduct& product) {
  std::vector<uint32_t> parts;
  for (int row = 0; row < count; ++row)
    for (int k = 0; k < deep; ++k)
      parts.push_back(matrix.place(first + row, k) / part_bytes);
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  for (uint32_t part : parts)
    if (read_part(warp, i, part, product) != Flow::next) return Flow::fault;
  for (int row = 0; row < count; ++row)
    for (int k = 0; k < deep; ++k) {
      uint16_t bits = 0;
      std::memcpy(&bits,
                  warp.block->shared.data() + matrix.place(first + row, k), 2);
      const float value = i.mode
                              ? static_cast<float>(std::bit_cast<Brain>(bits))
                              : static_cast<float>(std::bit_cast<Half>(bits));
      to[row * deep + k] = static_cast<double>(negative ? -value : value);
    }
  return Flow::next;
}

/// The registers' rows are those of an earlier product under way, of which the
/// last counts; null: of none.
const Warp::PendingProduct* before_in(Warp& warp, const Instruction& i,
                                      bool& mixed) {
  const Slot* mine = &warp.kernel->slots[i.list];
  for (size_t p = warp.products.size(); p-- > 0;) {
    const Instruction& other = *warp.products[p].instruction;
    const Slot* theirs = &warp.kernel->slots[other.list];
    if (other.list_defines == i.list_defines &&
        std::equal(mine, mine + i.list_defines, theirs))
      return &warp.products[p];
    mixed |= std::find_first_of(mine, mine + i.list_defines, theirs,
                                theirs + other.list_defines) !=
             mine + i.list_defines;
  }
  return nullptr;
}

Flow multiply(Warp& warp, const Instruction& i) {
  if (!warp.gather(~0u)) return Flow::moved;
  if (warp.mask != ~0u)
    return misuse(warp, i, "`wgmma` needs all 32 lanes of its warp");
  if (warp.block->launch.block.count() % (group_warps * warp_size) != 0)
    return misuse(warp, i, "`wgmma` needs groups of four warps");
  const Form form = unpack(i);
  const auto* of_a = warp.row<uint64_t>(i.a);
  const auto* of_b = warp.row<uint64_t>(i.b);
  const auto* adds = warp.row<uint32_t>(i.c);
  for (int lane = 1; lane < warp_size; ++lane)
    if (of_a[lane] != of_a[0] || of_b[lane] != of_b[0] || adds[lane] != adds[0])
      return misuse(warp, i, "operands of `wgmma` differ between lanes");
  if (!Matrix::known(of_a[0]) || !Matrix::known(of_b[0]))
    return misuse(warp, i, "only a swizzle of 128 bytes is known here");
  bool mixed = false;
  const Warp::PendingProduct* before = before_in(warp, i, mixed);
  if (mixed)
    return misuse(warp, i, "registers of `wgmma` are others' under way");
  if (!before && !warp.products_may_begin)
    return misuse(warp, i, "no `wgmma.fence` comes before `wgmma`");
  Warp::PendingProduct product;
  product.instruction = &i;
  product.group = warp.product_group;
  const int first = warp.index % group_warps * rows;
  std::vector<double> a(rows * deep), b(size_t(form.columns) * deep);
  if (read_matrix(warp, i, Matrix(of_a[0], form.a_turned), first, rows,
                  form.a_negative, a.data(), product) != Flow::next ||
      read_matrix(warp, i, Matrix(of_b[0], form.b_turned), 0, form.columns,
                  form.b_negative, b.data(), product) != Flow::next)
    return Flow::fault;
  product.sums.resize(size_t{i.list_defines} * warp_size);
  for (uint32_t r = 0; r < i.list_defines; ++r) {
    auto* registers = warp.row<float>(warp.kernel->slots[i.list + r]);
    for (int lane = 0; lane < warp_size; ++lane) {
      const int row = lane / 4 + 8 * static_cast<int>(r / 2 % 2),
                column = static_cast<int>(r / 4 * 8 + r % 2) + lane % 4 * 2;
      const size_t at = size_t{r} * warp_size + static_cast<size_t>(lane);
      float sum = before ? before->sums[at] : registers[lane];
      if (!adds[0]) sum = 0;
      for (int k = 0; k < deep; k += 8) {
        double products[8];
        for (int j = 0; j < 8; ++j)
          products[j] = a[row * deep + k + j] * b[column * deep + k + j];
        sum = add_aligned(sum, products, 8);
      }
      product.sums[at] = canonical(sum);
    }
  }
  for (uint32_t r = 0; r < i.list_defines; ++r)
    std::fill_n(warp.row<uint32_t>(warp.kernel->slots[i.list + r]), warp_size,
                0x7fc0dead);
  warp.products.push_back(std::move(product));
  return Flow::next;
}

Flow begin_products(Warp& warp, const Instruction&) {
  warp.products_may_begin = true;
  return Flow::next;
}
Flow commit_products(Warp& warp, const Instruction&) {
  ++warp.product_group;
  return Flow::next;
}

/// Waits for all groups but the last i.offset.
Flow wait_for_products(Warp& warp, const Instruction& i) {
  warp.products_may_begin = false;
  const int64_t last = int64_t{warp.product_group} - 1 - i.offset;
  while (!warp.products.empty() && warp.products.front().group <= last) {
    const Warp::PendingProduct product = std::move(warp.products.front());
    warp.products.erase(warp.products.begin());
    const Block& block = *warp.block;
    for (size_t p = 0; p < product.parts.size(); ++p)
      if (std::memcmp(&block.shared[product.parts[p] * part_bytes],
                      &product.read[p * part_bytes], part_bytes) != 0)
        return warp.fail(launch_failed, *product.instruction,
                         "shared memory that `wgmma` reads was written before "
                         "it was waited for");
    bool mixed = false;
    const Instruction& of = *product.instruction;
    if (before_in(warp, of, mixed)) continue;  // a later one has the registers
    for (uint32_t r = 0; r < of.list_defines; ++r)
      std::copy_n(&product.sums[size_t{r} * warp_size], warp_size,
                  warp.row<float>(warp.kernel->slots[of.list + r]));
  }
  return Flow::next;
}

bool decode_product(Decoding& d) {
  d.out.meets = true;
  if (d.op.types.size() != 3 || d.op.type(0) != Type::f32 ||
      d.op.type(1) != d.op.type(2) ||
      (d.op.type(1) != Type::bf16 && d.op.type(1) != Type::f16) ||
      d.count() != 8 || d.op.has("sp"))
    return d.unsupported();
  Form form;
  for (std::string_view suffix : d.op.suffixes)
    if (suffix.starts_with("m64n") && suffix.ends_with("k16"))
      std::from_chars(suffix.data() + 4, suffix.data() + suffix.size(),
                      form.columns);
  if (form.columns < 8 || form.columns > 256 || form.columns % 8 != 0)
    return d.unsupported();
  const Operand& sums = d.operand(0);
  if (sums.kind != Operand::Kind::vector ||
      sums.parts.size() != static_cast<size_t>(form.columns) / 2)
    return d.fail("an operand of `wgmma` has another number of registers");
  std::vector<Slot> slots;
  for (const Operand& part : sums.parts)
    slots.push_back(d.write(part, Type::f32, false));
  for (const Operand& part : sums.parts)
    slots.push_back(d.read(part, Type::f32, false));
  d.add_slots(d.out, slots, sums.parts.size());
  d.out.a = d.read(d.operand(1), Type::b64, false);
  d.out.b = d.read(d.operand(2), Type::b64, false);
  d.out.c = d.read(d.operand(3), Type::pred, false);
  for (size_t o = 4; o < 8; ++o)
    if (d.operand(o).kind != Operand::Kind::integer)
      return d.fail("`wgmma` takes constants there");
  auto number = [&](size_t o) {
    return static_cast<int64_t>(d.operand(o).bits);
  };
  form.a_negative = number(4) < 0;
  form.b_negative = number(5) < 0;
  form.a_turned = number(6) != 0;
  form.b_turned = number(7) != 0;
  d.out.offset = pack(form);
  d.out.mode = d.op.type(1) == Type::bf16;
  return d.handler(multiply);
}

}  // namespace

Flow show_writes(Warp& warp, const Instruction&) {
  std::erase_if(warp.hidden, [&](const Warp::HiddenWrite& write) {
    if ((warp.mask >> write.lane & 1) == 0) return false;
    std::fill_n(warp.block->shared_hidden.begin() + write.begin, write.bytes,
                uint8_t{0});
    return true;
  });
  return Flow::next;
}

bool decode_wgmma(Decoding& d) {
  if (!d.op.has("sync") || !d.op.has("aligned")) return d.unsupported();
  if (!d.needs_exactly(90)) return false;
  d.multiplies_shared();
  if (d.op.has("fence")) return d.handler(begin_products);
  if (d.op.has("commit_group")) return d.handler(commit_products);
  if (d.op.has("mma_async")) return decode_product(d);
  if (!d.op.has("wait_group")) return d.unsupported();
  if (d.count() != 1 || d.operand(0).kind != Operand::Kind::integer)
    return d.fail("`wgmma.wait_group` takes a constant");
  d.out.offset = static_cast<int64_t>(d.operand(0).bits);
  return d.handler(wait_for_products);
}

}  // namespace simcuda
