// `scan` and `fold`: a function called for one row after the other, with what
// it gave for the row before. Both are the counted loop of the IR, in every
// mode: at the top level it is a part of the statement's graph, and the body of
// one call serves the next, as code of `jit` does.
#include <fmt/format.h>

#include "lang/context/call_of.h"
#include "lang/context/scope.h"
#include "lang/context/walk.h"
#include "lang/maps/map_call.h"
#include "lang/maps/map_state.h"
#include "lang/maps/maps.h"
#include "lang/ops/builtin_arguments.h"
#include "lang/ops/carry.h"
#include "lang/ops/operators.h"
#include "lang/ops/range.h"
#include "lang/ops/sizes.h"

namespace unisono::lang {
namespace {

/// One call of either function.
class Scan {
 public:
  /// `stacks`: f gives `(carry, y)`, and each y becomes a row of the result.
  Scan(Argument f, Argument init, Argument xs, bool backwards, bool stacks)
      : walk_(f.call().walk),
        where_(f.call().where),
        f_(f),
        init_(init),
        xs_(xs),
        function_(function_argument(f)),
        backwards_(backwards),
        stacks_(stacks) {
    for_each_leaf(xs.value(), [&](const Value& leaf) { read_leaf(leaf); });
    if (!turns_) fail_no_rows(xs.value());
    first_ = as_variable(walk_, init.value(), init.where());
    if (walk_.mode() != Mode::run) return;
    // Another number to start from compiles nothing.
    first_ = map_leaves(first_, [&](const Value& leaf) -> Value {
      const ArrayCell* array = leaf.array();
      if (!array || !array->weak || !array->constant) return leaf;
      return walk_.on_first_device(*array, init.where());
    });
  }

  Value result() {
    shape_ = carry_shape(walk_, first_, {});
    switch (walk_.mode()) {
      case Mode::check: return check();
      case Mode::run: return run();
      case Mode::trace: break;
    }
    std::vector<ArrayValue> captured;
    const ScanTrace traced = trace(captured);
    return loop(traced, captured);
  }

 private:
  /// What one call of f gave.
  struct Turn {
    Value carry, y;
  };

  // ---- rows

  void read_leaf(const Value& leaf) {
    ir::Dim length;
    if (const auto* range = leaf.get_if<RangeValue>()) {
      length = range_count(walk_, *range, "the number of turns", xs_.where());
      ranges_.push_back(range_arrays(walk_, *range, xs_.where()));
    } else if (const auto* array = leaf.get_if<ArrayValue>();
               array && (*array)->type.rank() > 0) {
      length = (*array)->type.shape[0];
      rows_.push_back(*array);
    } else {
      fail_no_rows(leaf);
    }
    if (!turns_) {
      turns_ = length;
      first_leaf_ = type_name(leaf);
    } else if (const auto both = same_size(*turns_, length)) {
      turns_ = both;
    } else {
      walk_.fail(diagnostic(Code::scan_lengths_differ, xs_.where(),
                            f_.call().builtin.name, first_leaf_,
                            turns_->to_string(), type_name(leaf),
                            length.to_string())
                     .about(*turns_ - length)
                     .set_help("all that it goes over has one length, along "
                               "axis 0"));
    }
  }

  [[noreturn]] void fail_no_rows(const Value& leaf) {
    const std::string_view name = f_.call().builtin.name;
    bool init_has_rows = false;
    for_each_leaf(init_.value(), [&](const Value& value) {
      const ArrayCell* array = value.array();
      init_has_rows |= array && array->type.rank() > 0;
    });
    std::string help =
        "it goes over the rows of an array, of a tree of arrays, or a range";
    if (leaf.is<IntValue>() || leaf.is<NoneValue>())
      help =
          fmt::format("without rows, count the turns: `{}({}, {}, range({}))`",
                      name, f_.where().text(), init_.where().text(),
                      leaf.is<IntValue>() ? xs_.where().text() : "n");
    else if (init_has_rows)
      help = fmt::format("what it starts from stands first: `{}({}, {}, {})`",
                         name, f_.where().text(), xs_.where().text(),
                         init_.where().text());
    walk_.fail(diagnostic(Code::not_iterable, xs_.where(), type_name(leaf))
                   .set_label(type_name(leaf))
                   .set_help(std::move(help)));
  }

  static ir::Type row_type(const ArrayCell& array) {
    ir::Type type = array.type;
    type.shape.erase(type.shape.begin());
    return type;
  }

  /// x of a turn: `rows` are those of the arrays, `number` is the turn's.
  Value row(const std::vector<ArrayValue>& rows, const ArrayValue& number) {
    size_t row = 0, range = 0;
    return map_leaves(xs_.value(), [&](const Value& leaf) -> Value {
      if (leaf.is<ArrayValue>()) return rows[row++];
      return range_number(walk_, ranges_[range++], number, xs_.where());
    });
  }

  // ---- one turn

  /// Calls f, and adds to `shape_` over which axes its carry varies, and which
  /// types its numbers get; `grown` is then set.
  Turn turn(const Value& carry, const Value& x, bool& grown) {
    Value given = walk_.call(
        function_, {{carry, init_.where()}, {x, xs_.where()}}, {}, where_);
    Turn turn;
    if (stacks_) {
      const TupleValue* pair = given.tuple();
      if (!pair || pair->items.size() != 2) fail_no_pair(given);
      turn.y = pair->items[1];
      given = Value(pair->items[0]);
    }
    turn.carry =
        as_variable(walk_, adopt(walk_, given, shape_, f_.where()), f_.where());
    if (!same_carry(walk_, shape_, turn.carry, {}, grown))
      fail_carry(turn.carry);
    if (!grown)
      turn.y = map_leaves(turn.y, [&](const Value& leaf) -> Value {
        if (leaf.is<NoneValue>()) return leaf;
        if (!element_type(leaf))
          walk_.fail(diagnostic(Code::result_not_array, f_.where(),
                                "what `f` gives for a row", type_name(leaf))
                         .set_help("give an array or a number for each row, or "
                                   "`none`"));
        return walk_.to_array(leaf, f_.where(), "`scan`");
      });
    return turn;
  }

  [[noreturn]] void fail_no_pair(const Value& given) {
    const bool like_carry = type_name(given) == type_name(shape_);
    walk_.fail(
        diagnostic(Code::scan_result, f_.where(), function_->name,
                   type_name(given))
            .set_label("gives " + type_name(given))
            .set_help(like_carry
                          ? "a function that gives the next carry alone is "
                            "`fold`'s; to collect the carries, give `(c, c)`"
                          : "it gives the next carry and what is collected "
                            "for this row, or `none`: `(carry, y)`"));
  }

  [[noreturn]] void fail_carry(const Value& after) {
    const std::vector<ParameterInfo> parameters = parameters_of(*function_);
    const bool named = !parameters.empty() && !parameters[0].name.empty();
    const std::string was = type_name(shape_);
    std::string is = type_name(after);
    std::string help =
        "the carry keeps its type: start with the type it gets, or convert "
        "with `cast`";
    if (was == is) {  // a value of the host
      is = "another " + is;
      help = "arrays change from turn to turn, values of the host do not";
    } else if (const TupleValue* pair = after.tuple();
               !stacks_ && pair && pair->items.size() == 2 &&
               type_name(pair->items[0]) == was) {
      help =
          "a function that gives `(carry, y)` is `scan`'s; `fold`'s gives "
          "the carry alone";
    }
    walk_.fail(
        diagnostic(Code::loop_changes_type, f_.where(),
                   named ? std::string_view(parameters[0].name) : "carry", was,
                   is)
            .about()
            .set_label(fmt::format("{} becomes {}", was, is))
            .set_help(std::move(help)));
  }

  // ---- the whole

  Value check() {
    InsideMap inside(walk_, nullptr, 1, false, where_);
    std::vector<ArrayValue> rows;
    for (const ArrayValue& array : rows_) {
      ArrayValue row = walk_.unknown_array(row_type(*array));
      copy_facts(*array, *row);
      rows.push_back(std::move(row));
    }
    const ArrayValue number = walk_.unknown_array({DType::I64, {}});
    Turn last;
    for (bool grown = true; grown;) {
      grown = false;
      last = turn(carry_shape(walk_, shape_, {}), row(rows, number), grown);
    }
    return with_stacks(shape_, last.y, [&](const ArrayValue& part) {
      ir::Type type = part->type;
      type.shape.insert(type.shape.begin(), *turns_);
      walk_.check_size(type, where_);
      return walk_.unknown_array(std::move(type));
    });
  }

  /// At the top level: what was traced for such a call before, or now.
  Value run() {
    const MadeFor::Positional call = {{first_, init_.where()},
                                      {xs_.value(), xs_.where()}};
    std::vector<ArrayValue> captured;
    if (const ScanTrace* known = map_cache(walk_).find_scan(
            *function_, backwards_, stacks_, call, captured)) {
      take_shape(known->carry);
      return loop(*known, captured);
    }
    const int64_t nested_maps = walk_.nested_maps;
    std::vector<OuterRead> reads;
    ScanTrace traced = [&] {
      ContextScope noting(walk_);
      noting->outer_reads = &reads;
      noting->trace_base = latest_call();
      return trace(captured);
    }();
    const Value result = loop(traced, captured);
    // Maps of another statement may be over other devices.
    if (walk_.nested_maps > nested_maps) {
      walk_.flush(where_);
      return result;
    }
    traced.made_for.set_call(*function_, call, {});
    traced.made_for.set_trace(reads, captured, traced.y);
    traced.carry = types_of(traced.carry);
    traced.y = types_of(traced.y);
    map_cache(walk_).keep_scan(*function_, std::move(traced));
    return result;
  }

  /// Environments of calls with larger numbers belong to what is traced now.
  uint32_t latest_call() {
    uint32_t call = 0;
    walk_.trace([&] { call = walk_.context().trace_base; });
    return call;
  }

  /// The carry has the types that it had; what of it belongs to the host is
  /// this call's.
  void take_shape(const Value& known) {
    std::vector<ArrayValue> types;
    for_each_leaf(known, [&](const Value& leaf) {
      if (const auto* array = leaf.get_if<ArrayValue>())
        types.push_back(*array);
    });
    size_t next = 0;
    shape_ = map_leaves(first_, [&](const Value& leaf) -> Value {
      return leaf.array() ? Value(types[next++]) : leaf;
    });
  }

  /// Traces f for one turn; `captured` are the arrays that it reads outside
  /// itself.
  ScanTrace trace(std::vector<ArrayValue>& captured) {
    while (true) {
      bool grown = false;
      Turn last;
      std::vector<ArrayValue> outputs;
      ScanTrace traced;
      traced.backwards = backwards_;
      traced.stacks = stacks_;
      const auto body = walk_.with_scope([&] {
        InsideMap inside(walk_, nullptr, 1, false, where_);
        GraphScope& scope = *walk_.scope();
        const ArrayValue number =
            scope.add_parameter({DType::I64, {}}, {}, where_);
        const Value carry = leaf_parameters(walk_, shape_);
        std::vector<ArrayValue> rows;
        for (const ArrayValue& array : rows_) {
          rows.push_back(scope.add_parameter(row_type(*array), array->varies,
                                             array->varies_from));
          copy_facts(*array, *rows.back());
        }
        last = turn(carry, row(rows, number), grown);
        if (grown) return;
        gather_leaves(walk_, last.carry, shape_, outputs, where_);
        traced.carries = outputs.size();
        for_each_leaf(last.y, [&](const Value& leaf) {
          if (const auto* part = leaf.get_if<ArrayValue>())
            outputs.push_back(*part);
        });
        for (const ArrayValue& output : outputs) scope.import(output);
      });
      if (grown) continue;
      traced.outputs = outputs.size();
      traced.body = std::make_shared<const ir::Graph>(body->finish(outputs));
      traced.carry = shape_;
      traced.y = last.y;
      captured = body->captures();
      return traced;
    }
  }

  Value loop(const ScanTrace& traced, const std::vector<ArrayValue>& captured) {
    ir::LoopAttrs attrs;
    attrs.turns = turns_->value();
    attrs.carries = static_cast<int>(traced.carries);
    attrs.rows = static_cast<int>(rows_.size());
    attrs.backwards = backwards_;
    attrs.body = traced.body;
    std::vector<ArrayValue> operands;
    gather_leaves(walk_, first_, shape_, operands, where_);
    operands.insert(operands.end(), rows_.begin(), rows_.end());
    for (const ArrayValue& array : captured) {
      // A `var` that is a number: its value is no part of the code.
      const bool number = array->weak && array->constant && !array->array;
      operands.push_back(number ? walk_.on_first_device(*array, where_)
                                : array);
    }
    const ArrayValue node =
        walk_.add(ir::Op::loop, operands, std::move(attrs), where_);
    const std::vector<ArrayValue> results =
        project_all(walk_, node, traced.outputs, where_);
    size_t next = traced.carries;
    return with_stacks(fill_leaves({shape_}, results)[0], traced.y,
                       [&](const ArrayValue&) { return results[next++]; });
  }

  /// The result of the call: the carry, and the stack that `stack` gives for
  /// each array of `y`.
  template <class Stack>
  Value with_stacks(const Value& carry, const Value& y, Stack stack) {
    if (!stacks_) return carry;
    return make_tuple({carry, map_leaves(y, [&](const Value& leaf) -> Value {
                         const auto* part = leaf.get_if<ArrayValue>();
                         if (!part) return leaf;
                         const ArrayValue whole = stack(*part);
                         copy_facts(**part, *whole);
                         return whole;
                       })});
  }

  Walk& walk_;
  Span where_;
  Argument f_, init_, xs_;
  std::shared_ptr<const FunctionValue> function_;
  bool backwards_, stacks_;
  std::optional<ir::Dim> turns_;
  std::string first_leaf_;           // the type of the first leaf of xs
  std::vector<ArrayValue> rows_;     // the arrays of xs, in order
  std::vector<RangeArrays> ranges_;  // its ranges, in order
  Value first_, shape_;              // the carry, before and inside the loop
};

}  // namespace

Value builtin_scan(CallOf<"scan">& call) {
  const bool backwards = bool_argument_or(call["reverse"], false);
  return Scan(call["f"], call["init"], call["xs"], backwards, true).result();
}

Value builtin_fold(CallOf<"fold">& call) {
  return Scan(call["f"], call["init"], call["xs"], false, false).result();
}

}  // namespace unisono::lang
