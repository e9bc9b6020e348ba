#include "host/manual/markdown.h"

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>

#include "host/manual/html.h"

namespace unisono::host::manual {
namespace {

/// All HTML in the tree is ours when it is rendered.
constexpr int flags =
    CMARK_OPT_DEFAULT | CMARK_OPT_VALIDATE_UTF8 | CMARK_OPT_UNSAFE;

using Node = std::unique_ptr<cmark_node, decltype(&cmark_node_free)>;

/// Text that cmark has allocated.
std::string taken(char* text) {
  std::string out = text;
  std::free(text);
  return out;
}

std::string_view view(const char* text) { return text ? text : ""; }

/// What a node says, without markup.
std::string plain_text(cmark_node* root) {
  std::string out;
  cmark_iter* iter = cmark_iter_new(root);
  for (cmark_event_type event = cmark_iter_next(iter);
       event != CMARK_EVENT_DONE; event = cmark_iter_next(iter)) {
    cmark_node* node = cmark_iter_get_node(iter);
    const cmark_node_type type = cmark_node_get_type(node);
    if (event == CMARK_EVENT_ENTER &&
        (type == CMARK_NODE_TEXT || type == CMARK_NODE_CODE ||
         type == CMARK_NODE_CODE_BLOCK))
      out += view(cmark_node_get_literal(node));
    if (type == CMARK_NODE_SOFTBREAK || type == CMARK_NODE_LINEBREAK ||
        (event == CMARK_EVENT_EXIT &&
         (CMARK_NODE_TYPE_BLOCK & type) == CMARK_NODE_TYPE_BLOCK))
      if (!out.empty() && out.back() != ' ') out += ' ';
  }
  cmark_iter_free(iter);
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

class Renderer {
 public:
  explicit Renderer(const MarkdownOptions& options) : options_(options) {}

  Markdown render(std::string_view text) {
    cmark_gfm_core_extensions_ensure_registered();
    const std::unique_ptr<cmark_parser, decltype(&cmark_parser_free)> parser(
        cmark_parser_new(flags), &cmark_parser_free);
    for (const char* name : {"table", "strikethrough", "autolink"})
      cmark_parser_attach_syntax_extension(parser.get(),
                                           cmark_find_syntax_extension(name));
    cmark_parser_feed(parser.get(), text.data(), text.size());
    const Node document(cmark_parser_finish(parser.get()), &cmark_node_free);
    out_.sections.emplace_back();
    for (cmark_node *node = cmark_node_first_child(document.get()),
                    *next = nullptr;
         node; node = next) {
      next = cmark_node_next(node);
      block(node);
    }
    cmark_llist* extensions = cmark_parser_get_syntax_extensions(parser.get());
    out_.html = taken(cmark_render_html(document.get(), flags, extensions));
    return std::move(out_);
  }

 private:
  /// A block at the top level.
  void block(cmark_node* node) {
    const cmark_node_type type = cmark_node_get_type(node);
    std::string& text = out_.sections.back().text;
    if (type != CMARK_NODE_HEADING)
      text += (text.empty() ? "" : " ") + plain_text(node);
    inside(node);
    if (type == CMARK_NODE_HEADING) heading(node);
    if (type == CMARK_NODE_PARAGRAPH && out_.summary.empty()) {
      out_.summary = taken(cmark_render_html(node, flags, nullptr));
      if (out_.summary.starts_with("<p>")) out_.summary.erase(0, 3);
      if (const size_t end = out_.summary.find("</p>");
          end != std::string::npos)
        out_.summary.erase(end);
    }
  }

  void heading(cmark_node* node) {
    const std::string text = plain_text(node);
    std::string id = options_.id_prefix + slug(text);
    if (const int twice = ids_[id]++; twice > 0)
      id += fmt::format("-{}", twice);
    const int level =
        std::min(cmark_node_get_heading_level(node) + options_.deeper, 6);
    cmark_node_set_heading_level(node, level);
    cmark_node* anchor =
        html_node(CMARK_NODE_HTML_INLINE,
                  fmt::format("<a class=\"anchor\" id=\"{0}\" href=\"#{0}\" "
                              "aria-label=\"link to this section\"></a>",
                              escaped(id)));
    cmark_node_prepend_child(node, anchor);
    out_.headings.push_back({level, id, text});
    out_.sections.push_back({id, text, ""});
  }

  /// Custom nodes would say what they are, but a cell of a table takes none.
  static cmark_node* html_node(cmark_node_type type, const std::string& html) {
    cmark_node* out = cmark_node_new(type);
    cmark_node_set_literal(out, html.c_str());
    return out;
  }
  static void replace(cmark_node* node, cmark_node* by) {
    cmark_node_replace(node, by);
    cmark_node_free(node);
  }

  /// Code and links below a node, or the node itself, become ours.
  void inside(cmark_node* node) {
    for (cmark_node *child = cmark_node_first_child(node), *next = nullptr;
         child; child = next) {
      next = cmark_node_next(child);
      inside(child);
    }
    const std::string_view literal = view(cmark_node_get_literal(node));
    switch (cmark_node_get_type(node)) {
      case CMARK_NODE_CODE_BLOCK:
        if (options_.code_block)
          replace(node, html_node(CMARK_NODE_HTML_BLOCK,
                                  options_.code_block(
                                      literal,
                                      view(cmark_node_get_fence_info(node)))));
        return;
      case CMARK_NODE_CODE:
        if (options_.code && !is_in_link(node))
          if (const std::string html = options_.code(literal); !html.empty())
            replace(node, html_node(CMARK_NODE_HTML_INLINE, html));
        return;
      case CMARK_NODE_LINK:
      case CMARK_NODE_IMAGE: return link(node);
      case CMARK_NODE_HTML_INLINE:
      case CMARK_NODE_HTML_BLOCK: return as_text(node);
      default: return;  // of cmark's types, which are no table of ours
    }
  }

  static bool is_in_link(cmark_node* node) {
    for (; node; node = cmark_node_parent(node))
      if (cmark_node_get_type(node) == CMARK_NODE_LINK ||
          cmark_node_get_type(node) == CMARK_NODE_HEADING)
        return true;
    return false;
  }

  /// HTML stands as it is written: in documentation it is rarely meant as such,
  /// and a page has no scripts but ours.
  static void as_text(cmark_node* node) {
    const bool is_block = cmark_node_get_type(node) == CMARK_NODE_HTML_BLOCK;
    cmark_node* text = cmark_node_new(CMARK_NODE_TEXT);
    cmark_node_set_literal(text, cmark_node_get_literal(node));
    if (!is_block) return replace(node, text);
    cmark_node* paragraph = cmark_node_new(CMARK_NODE_PARAGRAPH);
    cmark_node_append_child(paragraph, text);
    replace(node, paragraph);
  }

  /// A link whose text is the name of its file gets the title of the page.
  void name_link(cmark_node* node) {
    cmark_node* text = cmark_node_first_child(node);
    if (!options_.title || !text || cmark_node_next(text) ||
        cmark_node_get_type(text) != CMARK_NODE_TEXT)
      return;
    const std::string_view url = view(cmark_node_get_url(node));
    const std::string_view path = url.substr(0, url.find('#'));
    if (!path.ends_with(view(cmark_node_get_literal(text)))) return;
    if (const std::string title = options_.title(url); !title.empty())
      cmark_node_set_literal(text, title.c_str());
  }

  void link(cmark_node* node) {
    if (!options_.link) return;
    cmark_node* paragraph = node;
    while (paragraph && cmark_node_get_start_line(paragraph) == 0)
      paragraph = cmark_node_parent(paragraph);
    const int line = paragraph ? cmark_node_get_start_line(paragraph) : 1;
    const auto url = options_.link(view(cmark_node_get_url(node)), line);
    if (url) {
      name_link(node);
      cmark_node_set_url(node, url->c_str());
      return;
    }
    while (cmark_node* child = cmark_node_first_child(node))
      cmark_node_insert_before(node, child);
    cmark_node_unlink(node);
    cmark_node_free(node);
  }

  const MarkdownOptions& options_;
  Markdown out_;
  std::map<std::string, int> ids_;
};

}  // namespace

Markdown render_markdown(std::string_view text,
                         const MarkdownOptions& options) {
  return Renderer(options).render(text);
}

}  // namespace unisono::host::manual
