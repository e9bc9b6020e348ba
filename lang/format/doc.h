#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// A document to lay out: text, and places where a line may or must end. The
/// formatter builds it from the tree; print() decides where lines end.
namespace unisono::lang {

struct Doc;
using DocPtr = std::unique_ptr<Doc>;

struct Doc {
  enum class Kind {
    text,
    hard_line,       ///< a line end
    fresh_line,      ///< a line end, unless the line is empty
    blank_line,      ///< an empty line
    group_line,      ///< `text` if the group is on one line, else a line end
    comment,         ///< after the text of a line; never makes it too long
    concat,          ///< children, one after the other
    group,           ///< its group_lines end lines if it does not fit
    at_line_indent,  ///< lines inside start where the current one does
    nest,            ///< lines inside start two columns further right
    fill,            ///< children with a space or a line end between them
    bracket,         ///< text, child, closer
  };
  Kind kind = Kind::text;
  std::string text;
  std::string closer;  ///< of a bracket
  std::vector<DocPtr> children;
  std::vector<bool> breaks;  ///< fill: a line ends before child i + 1
  int indent = 0;            ///< fill: of lines after the first
  bool spread = false;       ///< bracket: the content has its own lines
  int reserve = 0;           ///< bracket: columns to keep free behind it

  // Measures, in columns; see measure().
  int width = 0;          ///< on one line, up to the first line that must end
  bool has_line = false;  ///< a line must end inside
  int head = 0;           ///< up to the first place where a line may end
  bool may_end = false;   ///< there is such a place
};

DocPtr text(std::string text);
DocPtr hard_line();
DocPtr fresh_line();
DocPtr blank_line();
DocPtr group_line(std::string flat);
DocPtr comment(std::string text);
DocPtr concat(std::vector<DocPtr> children);
DocPtr group(DocPtr child);
DocPtr at_line_indent(DocPtr child);
DocPtr nest(DocPtr child);
DocPtr fill(std::vector<DocPtr> children, std::vector<bool> breaks, int indent);
DocPtr bracket(std::string open, DocPtr child, std::string close, bool spread);

/// Collects a concat from left to right: Row().add("a").add(f(x)).done().
/// Comments are taken while documents are built, so the order matters.
class Row {
 public:
  Row& add(DocPtr doc) {
    docs_.push_back(std::move(doc));
    return *this;
  }
  Row& add(std::string content) { return add(text(std::move(content))); }
  DocPtr done() { return concat(std::move(docs_)); }

 private:
  std::vector<DocPtr> docs_;
};

using DocSink = std::function<void(DocPtr)>;

/// Lays out what `give` gives, one document behind the other, in lines of at
/// most `columns`, where that is possible. Behind each document a line ends, or
/// a comment follows, so that none need wait for the next one: it is freed when
/// it is laid out. Comments after the text of consecutive lines are aligned.
std::string print(const std::function<void(const DocSink&)>& give, int columns);

}  // namespace unisono::lang
