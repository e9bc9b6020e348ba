// Each decision is made from left to right, where the text already printed and
// the measures of what follows are known: does it fit up to the next place
// where the line may end? So layout takes linear time. What the user broke is
// broken (Doc::breaks, Doc::spread), and a decision to break gives a text in
// which the same break is the user's: formatting again changes nothing.
#include "lang/format/doc.h"

#include <algorithm>

#include "lang/source/utf8.h"
#include "runtime/stop.h"

namespace unisono::lang {
namespace {

/// Stands before a comment that follows text, until comments are aligned. The
/// lexer lets no such character into a program.
constexpr char comment_mark = '\x01';

DocPtr make(Doc::Kind kind, std::string text = {}) {
  auto doc = std::make_unique<Doc>();
  doc->kind = kind;
  doc->text = std::move(text);
  return doc;
}

/// Measures of a sequence with `gap` columns between the parts.
void measure_sequence(Doc& doc, int gap) {
  for (size_t i = 0; i < doc.children.size(); ++i) {
    const Doc& child = *doc.children[i];
    const bool separated = doc.kind == Doc::Kind::fill && i > 0;
    if (separated && doc.breaks[i - 1]) doc.has_line = true;
    if (separated) doc.may_end = true;
    if (!doc.may_end) doc.head += child.head;
    doc.may_end = doc.may_end || child.may_end;
    if (!doc.has_line) doc.width += child.width + (separated ? gap : 0);
    doc.has_line = doc.has_line || child.has_line;
  }
}

class Printer {
 public:
  explicit Printer(int columns) : columns_(columns) {}

  struct Context {
    int indent = 0;
    bool flat = false;
    int trailing = 0;  ///< columns that must follow on the same line
  };

  void print(const Doc& doc, Context context) {
    poll_stop();
    switch (doc.kind) {
      case Doc::Kind::text: return put(doc.text);
      case Doc::Kind::hard_line: return new_line(context.indent);
      case Doc::Kind::fresh_line:
        if (!line_is_empty()) new_line(context.indent);
        return;
      case Doc::Kind::blank_line:
        trim();
        out_ += '\n';
        return new_line(context.indent);
      case Doc::Kind::group_line:
        return context.flat ? put(doc.text) : new_line(context.indent);
      case Doc::Kind::comment:
        if (!line_is_empty()) out_ += comment_mark;
        out_ += doc.text;
        return;
      case Doc::Kind::concat: return sequence(doc, context);
      case Doc::Kind::group:
        context.flat =
            context.flat || (!doc.has_line && fits(doc.width, context));
        return print(*doc.children[0], context);
      case Doc::Kind::at_line_indent:
        context.indent = line_indent_;
        return print(*doc.children[0], context);
      case Doc::Kind::nest:
        context.indent += 2;
        return print(*doc.children[0], context);
      case Doc::Kind::fill: return fill(doc, context);
      case Doc::Kind::bracket: return bracket(doc, context);
    }
  }

  std::string take() {
    trim();
    return std::move(out_);
  }

 private:
  bool fits(int width, const Context& context) const {
    return column_ + width + context.trailing <= columns_;
  }

  void put(const std::string& text) {
    out_ += text;
    column_ += display_width(text);
  }

  void trim() {
    while (out_.ends_with(' ')) out_.pop_back();
  }

  void new_line(int indent) {
    trim();
    out_ += '\n';
    line_start_ = out_.size();
    out_.append(static_cast<size_t>(indent), ' ');
    line_indent_ = column_ = indent;
  }

  bool line_is_empty() const {
    return out_.find_first_not_of(' ', line_start_) == out_.npos;
  }

  void sequence(const Doc& doc, const Context& context) {
    std::vector<int> trailing(doc.children.size());
    int after = context.trailing;
    for (size_t i = doc.children.size(); i-- > 0;) {
      trailing[i] = after;
      const Doc& child = *doc.children[i];
      after = child.head + (child.may_end ? 0 : after);
    }
    for (size_t i = 0; i < doc.children.size(); ++i)
      print(*doc.children[i], {context.indent, context.flat, trailing[i]});
  }

  void fill(const Doc& doc, Context context) {
    const int last_trailing = context.trailing;
    for (size_t i = 0; i < doc.children.size(); ++i) {
      const Doc& child = *doc.children[i];
      const bool last = i + 1 == doc.children.size();
      context.trailing = last ? last_trailing : 0;
      if (i == 1) context.indent += doc.indent;
      if (i > 0) {
        if (doc.breaks[i - 1] || !stays(child, context))
          new_line(context.indent);
        else
          put(" ");
      }
      print(child, context);
    }
  }

  /// Whether the next part of a fill goes on with the line.
  bool stays(const Doc& child, const Context& context) const {
    const int after = child.has_line ? 0 : context.trailing;
    if (context.flat || column_ + 1 + child.width + after <= columns_)
      return true;
    if (context.indent + child.width + after <= columns_) return false;
    // Too long for any line: it is broken inside, if it can start here.
    return column_ + 1 + child.head <= columns_;
  }

  void bracket(const Doc& doc, Context context) {
    const int line_indent = line_indent_;
    const int inside = column_ + display_width(doc.text);
    const bool spread =
        doc.spread || (!context.flat && !fits_beside(doc, context) &&
                       line_indent + 2 < inside);
    put(doc.text);
    const Doc& child = *doc.children[0];
    if (!spread) {
      context.indent = inside;
      context.trailing += display_width(doc.closer);
      print(child, context);
    } else {
      new_line(line_indent + 2);
      print(child, {line_indent + 2, false, 0});
      new_line(line_indent);
    }
    put(doc.closer);
  }

  /// Whether the content fits to the right of the opening bracket.
  bool fits_beside(const Doc& doc, Context context) const {
    context.trailing = std::max(context.trailing, doc.reserve);
    if (!doc.has_line) return fits(doc.width, context);
    if (column_ + doc.width > columns_) return false;
    const Doc& child = *doc.children[0];
    if (child.kind != Doc::Kind::fill) return true;
    const int inside = column_ + display_width(doc.text);
    return std::all_of(
        child.children.begin(), child.children.end(),
        [&](const DocPtr& item) { return inside + item->width <= columns_; });
  }

  int columns_;
  std::string out_;
  int column_ = 0;
  int line_indent_ = 0;
  size_t line_start_ = 0;
};

/// Two spaces before a comment after text; in consecutive lines, so many that
/// the comments stand below one another.
std::string align_comments(const std::string& text) {
  struct Line {
    std::string_view code;
    std::string_view comment;
  };
  std::vector<Line> lines;
  std::string_view rest = text;
  while (!rest.empty()) {
    poll_stop();
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    const size_t mark = std::min(line.find(comment_mark), line.size());
    std::string_view code = line.substr(0, mark);
    while (code.ends_with(' ')) code.remove_suffix(1);
    lines.push_back({mark == line.size() ? line : code,
                     line.substr(std::min(mark + 1, line.size()))});
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::string out;
  for (size_t i = 0; i < lines.size();) {
    poll_stop();
    size_t end = i;
    int width = 0;
    for (; end < lines.size() && !lines[end].comment.empty(); ++end)
      width = std::max(width, display_width(lines[end].code));
    if (end == i) {
      out += lines[i++].code;
      out += '\n';
      continue;
    }
    for (; i < end; ++i) {
      out += lines[i].code;
      const int pad = width - display_width(lines[i].code) + 2;
      out.append(static_cast<size_t>(pad), ' ');
      out += lines[i].comment;
      out += '\n';
    }
  }
  return out;
}

}  // namespace

DocPtr text(std::string content) {
  DocPtr doc = make(Doc::Kind::text, std::move(content));
  doc->width = doc->head = display_width(doc->text);
  return doc;
}

DocPtr hard_line() {
  DocPtr doc = make(Doc::Kind::hard_line);
  doc->has_line = doc->may_end = true;
  return doc;
}
DocPtr fresh_line() {
  DocPtr doc = hard_line();
  doc->kind = Doc::Kind::fresh_line;
  return doc;
}
DocPtr blank_line() {
  DocPtr doc = hard_line();
  doc->kind = Doc::Kind::blank_line;
  return doc;
}

DocPtr group_line(std::string flat) {
  DocPtr doc = make(Doc::Kind::group_line, std::move(flat));
  doc->width = display_width(doc->text);
  doc->may_end = true;
  return doc;
}

DocPtr comment(std::string content) {
  return make(Doc::Kind::comment, std::move(content));
}

DocPtr concat(std::vector<DocPtr> children) {
  DocPtr doc = make(Doc::Kind::concat);
  doc->children = std::move(children);
  measure_sequence(*doc, 0);
  return doc;
}

namespace {
DocPtr wrap(Doc::Kind kind, DocPtr child) {
  DocPtr doc = make(kind);
  doc->children.push_back(std::move(child));
  measure_sequence(*doc, 0);
  return doc;
}
}  // namespace

DocPtr group(DocPtr child) { return wrap(Doc::Kind::group, std::move(child)); }
DocPtr at_line_indent(DocPtr child) {
  return wrap(Doc::Kind::at_line_indent, std::move(child));
}
DocPtr nest(DocPtr child) { return wrap(Doc::Kind::nest, std::move(child)); }

DocPtr fill(std::vector<DocPtr> children, std::vector<bool> breaks,
            int indent) {
  DocPtr doc = make(Doc::Kind::fill);
  doc->children = std::move(children);
  doc->breaks = std::move(breaks);
  doc->indent = indent;
  measure_sequence(*doc, 1);
  return doc;
}

DocPtr bracket(std::string open, DocPtr child, std::string close, bool spread) {
  DocPtr doc = make(Doc::Kind::bracket, std::move(open));
  const int opener = display_width(doc->text);
  doc->closer = std::move(close);
  doc->spread = spread;
  doc->has_line = spread || child->has_line;
  doc->width = opener + (spread ? 0 : child->width) +
               (doc->has_line ? 0 : display_width(doc->closer));
  doc->head = opener;
  doc->may_end = true;
  doc->children.push_back(std::move(child));
  return doc;
}

std::string print(const std::function<void(const DocSink&)>& give,
                  int columns) {
  Printer printer(columns);
  give([&](DocPtr doc) { printer.print(*doc, {}); });
  return align_comments(printer.take());
}

}  // namespace unisono::lang
