#include "lang/context/names.h"

#include <functional>
#include <new>

#include "runtime/check.h"
#include "runtime/tuning/tuning.h"

namespace unisono::lang {

Names& Names::operator=(const Names& other) {
  Names copy(other);
  swap(copy);
  return *this;
}

Names& Names::operator=(Names&& other) noexcept {
  Names taken(std::move(other));
  swap(taken);
  return *this;
}

void Names::swap(Names& other) noexcept {
  std::swap(first_, other.first_);
  std::swap(last_, other.last_);
  std::swap(size_, other.size_);
  table_.swap(other.table_);
}

void Names::append(const Names& other) {
  for (const auto& [name, binding] : other) (*this)[name] = binding;
}

Names::Node* Names::look_up(std::string_view name) const {
  const size_t hash = std::hash<std::string_view>()(name);
  const size_t mask = table_.size() - 1;
  for (size_t at = hash & mask; table_[at]; at = (at + 1) & mask)
    if (table_[at]->hash == hash && table_[at]->entry.first == name)
      return table_[at];
  return nullptr;
}

void Names::add_to_table(Node* node) {
  node->hash = std::hash<std::string_view>()(node->entry.first);
  const size_t mask = table_.size() - 1;
  size_t at = node->hash & mask;
  while (table_[at]) at = (at + 1) & mask;
  table_[at] = node;
}

void Names::make_table() {
  table_.clear();
  if (size_ <= tuning().most_names_looked_through) return;
  size_t slots = 4 * tuning().most_names_looked_through;
  while (slots < 4 * size_) slots *= 2;
  table_.resize(slots);
  for (Node* node = first_; node; node = node->next) add_to_table(node);
}

Binding& Names::at(std::string_view name) {
  Node* node = node_of(name);
  CHECK(node);
  return node->entry.second;
}

Binding& Names::operator[](std::string_view name) {
  if (Node* node = node_of(name)) return node->entry.second;
  Node* node =
      new (Recycling<Node>().allocate(1)) Node{{std::string(name), Binding()}};
  (last_ ? last_->next : first_) = node;
  last_ = node;
  ++size_;
  if (!table_.empty() && 2 * size_ <= table_.size())
    add_to_table(node);
  else if (size_ > tuning().most_names_looked_through)
    make_table();
  return node->entry.second;
}

void Names::erase(std::string_view name) {
  Node* before = nullptr;
  Node* node = first_;
  while (node && node->entry.first != name)
    before = std::exchange(node, node->next);
  if (!node) return;
  (before ? before->next : first_) = node->next;
  if (last_ == node) last_ = before;
  --size_;
  make_table();
  node->~Node();
  Recycling<Node>().deallocate(node, 1);
}

void Names::clear() {
  // What a value holds may hold these names, and look at them when it goes.
  Node* node = std::exchange(first_, nullptr);
  last_ = nullptr;
  size_ = 0;
  table_.clear();
  while (node) {
    Node* gone = std::exchange(node, node->next);
    gone->~Node();
    Recycling<Node>().deallocate(gone, 1);
  }
}

}  // namespace unisono::lang
