// Arrays that were given away: what the walk knows of them.
#include <fmt/format.h>

#include "lang/walk/undo.h"
#include "lang/walk/walker.h"

namespace unisono::lang {

void Walk::forbid_donated(const ArrayValue& value, Span where) {
  const Donation* donation = value->donated.get();
  if (mode() == Mode::check) {
    const auto found = state_->donated.find(value);
    if (found != state_->donated.end()) donation = &found->second;
  }
  if (!donation) return;
  // As it was written in the call; the name here may be another one.
  const std::string_view given = donation->where.text();
  const bool readable = given.size() <= 32 && given.find('\n') == given.npos;
  const std::string name = readable ? fmt::format("`{}`", given) : "";
  const bool same = readable && where.text() == given;
  auto error =
      diagnostic(Code::used_after_donate, where, same ? name : "this array",
                 same || name.empty() ? "" : ", as " + name);
  error.add_note(donation->where,
                 fmt::format("given to `{}` here", donation->function));
  error.set_help("use the result instead, or leave it out of `donate`");
  fail(std::move(error));
}

void Walk::donate(const ArrayValue& value, const Donation& donation) {
  if (mode() == Mode::check) {
    const bool certain = state_->frames.empty() && state_->journals.empty() &&
                         context_.mapped_axes.empty();
    if (certain) state_->donated.emplace(value, donation);
    return;
  }
  if (state_->undo) state_->undo->keep(value);
  value->donated = std::make_shared<const Donation>(donation);
  value->array.reset();
  value->copies.clear();
}

}  // namespace unisono::lang
