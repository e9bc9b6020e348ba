#pragma once
// The names of one environment.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lang/context/value.h"
#include "runtime/recycling.h"

namespace unisono::lang {

struct Expr;  // ast.h

/// A name's meaning. `var`s may be assigned again.
struct Binding {
  Value value;
  bool is_var = false;
  /// Its definition had an error: uses of the name are not reported again.
  bool poisoned = false;
  Span where;  // of the definition
  /// The type that a `var` was declared with, or null.
  const Expr* type = nullptr;
  /// Of a `var`, its place among the types that are kept (Walk::keep_types); -1
  /// if none are.
  int64_t type_record = -1;
  /// Of a poisoned name: there was no error, but a question that only a call of
  /// the function answers (Failure::open).
  bool open = false;
};

/// Bindings by name, in the order in which they were made; one stays in its
/// place in memory until it is erased. Most environments are those of a block
/// or a call, come by the million and have a name or two: these are looked
/// through, and only where there are many is there a table of hashes.
class Names {
 public:
  using value_type = std::pair<const std::string, Binding>;

 private:
  struct Node {
    value_type entry;
    Node* next = nullptr;
    size_t hash = 0;  // if there is a table
  };
  template <class Entry>
  struct Iterator {
    using iterator_category = std::forward_iterator_tag;
    using value_type = Names::value_type;
    using difference_type = ptrdiff_t;
    using pointer = Entry*;
    using reference = Entry&;
    Node* node = nullptr;
    Entry& operator*() const { return node->entry; }
    Entry* operator->() const { return &node->entry; }
    Iterator& operator++() {
      node = node->next;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;
  };

 public:
  using iterator = Iterator<value_type>;
  using const_iterator = Iterator<const value_type>;

  Names() = default;
  Names(const Names& other) { append(other); }
  Names(Names&& other) noexcept { swap(other); }
  Names& operator=(const Names& other);
  Names& operator=(Names&& other) noexcept;
  ~Names() {
    if (first_) clear();
  }

  iterator begin() { return {first_}; }
  iterator end() { return {}; }
  const_iterator begin() const { return {first_}; }
  const_iterator end() const { return {}; }
  size_t size() const { return size_; }

  iterator find(std::string_view name) { return {node_of(name)}; }
  const_iterator find(std::string_view name) const { return {node_of(name)}; }
  /// The binding of a name that is there (CHECK).
  Binding& at(std::string_view name);
  /// It is made if it is not there.
  Binding& operator[](std::string_view name);
  void erase(std::string_view name);
  void clear();

 private:
  Node* node_of(std::string_view name) const {
    if (!table_.empty()) return look_up(name);
    for (Node* node = first_; node; node = node->next)
      if (node->entry.first == name) return node;
    return nullptr;
  }
  Node* look_up(std::string_view name) const;
  void append(const Names& other);
  void add_to_table(Node* node);
  void make_table();
  void swap(Names& other) noexcept;

  Node* first_ = nullptr;
  Node* last_ = nullptr;
  size_t size_ = 0;
  /// Open addressing, a power of two, at most half full; empty where names are
  /// few.
  std::vector<Node*> table_;
};

}  // namespace unisono::lang
