#include "host/manual/content.h"

#include <fmt/format.h>

#include <utility>

#include "host/manual/highlight.h"
#include "host/manual/html.h"

namespace unisono::host::manual {
namespace {

/// Whether a block without a language is a program of ours.
bool looks_like_program(std::string_view code) {
  const lsp::Syntax syntax("", std::string(code));
  return syntax.ok() && !syntax.program().statements.empty();
}

std::string code_html(std::string_view code, std::string_view info,
                      const LinkOf& link) {
  const std::string_view language = info.substr(0, info.find(' '));
  if (code.starts_with(">>>"))
    return fmt::format("<pre class=\"code\"><code>{}</code></pre>\n",
                       highlight_session(code, link));
  if (language == "output")
    return fmt::format("<pre class=\"output\"><samp>{}</samp></pre>\n",
                       escaped(code));
  const bool is_ours = language == "uni" || language == "unisono" ||
                       (language.empty() && looks_like_program(code));
  std::string devices;  // behind `uni`, how many it runs on
  if (is_ours && info.size() > language.size())
    devices = fmt::format("<div class=\"devices\">on {} devices</div>",
                          escaped(info.substr(language.size() + 1)));
  return fmt::format("<pre class=\"code\">{}<code>{}</code></pre>\n", devices,
                     is_ours ? highlight(code, link) : escaped(code));
}

/// A name with all that is said of it.
struct Told {
  std::string name, title, kind;
  std::string signature;  // HTML
  std::string source;     // a link, or empty
  Markdown text;
  std::string plain;  // for the search
};

std::string told_html(const Told& told) {
  return fmt::format(
      "<section class=\"entry\" id=\"{0}\">\n<h3><a class=\"anchor\" "
      "href=\"#{0}\" aria-label=\"link to {0}\"></a><code>{1}</code>{2}</h3>\n"
      "{3}</section>\n",
      escaped(told.name), told.signature, told.source, told.text.html);
}

/// All names of a page: first a table of them, then each.
std::string told_list(const std::vector<Told>& all) {
  if (all.empty()) return "";
  std::string table, list;
  for (const Told& told : all) {
    table += fmt::format(
        "<tr><td><a href=\"#{0}\"><code>{0}</code></a></td><td>{1}</td></tr>\n",
        escaped(told.name), told.text.summary);
    list += told_html(told);
  }
  return fmt::format(
      "<table class=\"names\">\n<tbody>\n{}</tbody>\n</table>\n{}", table,
      list);
}

void add_searched(const std::vector<Told>& all, const std::string& page,
                  std::vector<Searched>& searched) {
  for (const Told& told : all)
    searched.push_back(
        {told.kind, told.title, page + "#" + told.name, told.plain});
}

std::vector<Heading> headings_of(const std::vector<Told>& all) {
  std::vector<Heading> out;
  for (const Told& told : all) out.push_back({2, told.name, told.name});
  return out;
}

/// HTML without its tags, for the search.
std::string without_tags(std::string_view html) {
  std::string out;
  bool in_tag = false;
  for (const char c : html) {
    if (c == '<') in_tag = true;
    if (!in_tag) out += c;
    if (c == '>') in_tag = false;
  }
  for (const auto& [entity, text] : {std::pair("&lt;", "<"),
                                     {"&gt;", ">"},
                                     {"&quot;", "\""},
                                     {"&amp;", "&"}})
    for (size_t at = 0; (at = out.find(entity, at)) != out.npos; ++at)
      out.replace(at, std::string_view(entity).size(), text);
  return out;
}

/// The help of a builtin: `code` in it is code, all else as it stands.
std::string help_html(const TextPlace& place, std::string_view help) {
  std::string out;
  while (!help.empty()) {
    const size_t begin = std::min(help.find('`'), help.size());
    const size_t end = help.find('`', begin + 1);
    if (begin == help.size() || end == help.npos) break;
    const std::string_view code = help.substr(begin + 1, end - begin - 1);
    const auto found = place.links.link_of_code(place.page, nullptr, code);
    out += escaped(help.substr(0, begin));
    out += found ? fmt::format("<a href=\"{}\"><code>{}</code></a>", found->url,
                               escaped(code))
                 : fmt::format("<code>{}</code>", escaped(code));
    help.remove_prefix(end + 1);
  }
  return out + escaped(help);
}

Told told_of(const TextPlace& place, const Entry& entry) {
  const Module& module = *place.module;
  const LinkOf link = place.links.link_of(place.page, &module);
  Told out;
  out.name = entry.name;
  out.title =
      module.import_line.empty() ? entry.name : module.name + "." + entry.name;
  out.kind = name(entry.kind);
  std::string decorators;
  for (const std::string& decorator : entry.decorators)
    decorators += decorator + "\n";
  out.signature = entry.kind == Entry::Kind::function
                      ? highlight_signature(entry.signature, link, decorators)
                      : highlight(entry.signature, link);
  out.source = fmt::format(
      " <a class=\"source\" href=\"{}#L{}\" title=\"its source\">source</a>",
      relative(place.page, module.source_place), entry.line);
  TextPlace text = place;
  text.dead_link = [&](std::string_view url, int line) {
    if (place.dead_link)
      place.dead_link(url, entry.documentation.line + line - 1);
  };
  out.text = text_html(text, entry.documentation.text, entry.name + "-", 2);
  out.plain = entry.signature + "  " + without_tags(out.text.summary);
  return out;
}

}  // namespace

Markdown text_html(const TextPlace& place, std::string_view text,
                   const std::string& id_prefix, int deeper) {
  const LinkOf link = place.links.link_of(place.page, place.module);
  MarkdownOptions options;
  options.id_prefix = id_prefix;
  options.deeper = deeper;
  options.code_block = [&](std::string_view code, std::string_view info) {
    return code_html(code, info, link);
  };
  options.code = [&](std::string_view code) -> std::string {
    const auto found = place.links.link_of_code(place.page, place.module, code);
    if (!found) return "";
    return fmt::format("<a href=\"{}\" title=\"{}\"><code>{}</code></a>",
                       found->url, escaped(found->title), escaped(code));
  };
  options.link = [&](std::string_view url, int line) {
    auto out = place.links.link_of_url(place.page, place.path, url);
    if (!out && place.dead_link) place.dead_link(url, line);
    return out;
  };
  options.title = [&](std::string_view url) {
    return place.links.title_of_url(place.path, url);
  };
  return render_markdown(text, options);
}

std::set<std::string> sections_of(std::string_view text) {
  std::set<std::string> out;
  for (const Heading& heading : render_markdown(text, {}).headings)
    out.insert(heading.id);
  return out;
}

std::string title_of(std::string_view text) {
  const Markdown read = render_markdown(text, {});
  return read.headings.empty() ? "" : read.headings[0].text;
}

Page text_page(const TextPlace& place, std::string_view text,
               std::vector<Searched>& searched) {
  Markdown read = text_html(place, text);
  Page out{place.page, "", std::move(read.html), std::move(read.headings)};
  if (!out.headings.empty()) out.title = out.headings[0].text;
  for (const Section& section : read.sections) {
    const bool is_page = section.id.empty() || section.title == out.title;
    if (is_page && section.text.empty() && section.title.empty()) continue;
    searched.push_back({is_page ? "page" : "section",
                        section.title.empty() ? out.title : section.title,
                        is_page ? out.place : out.place + "#" + section.id,
                        section.text});
  }
  return out;
}

Page module_page(const TextPlace& place, std::vector<Searched>& searched) {
  const Module& module = *place.module;
  TextPlace about = place;
  about.dead_link = [&](std::string_view url, int line) {
    if (place.dead_link) place.dead_link(url, module.about.line + line - 1);
  };
  Markdown text = text_html(about, module.about.text, "about-", 1);
  std::vector<Told> all;
  for (const Entry& entry : module.entries)
    all.push_back(told_of(place, entry));
  const LinkOf link = place.links.link_of(place.page, &module);
  const std::string import =
      module.import_line.empty()
          ? ""
          : fmt::format("<pre class=\"code\"><code>{}</code></pre>\n",
                        highlight(module.import_line, link));
  searched.push_back(
      {"module", module.name, module.place, without_tags(text.summary)});
  add_searched(all, module.place, searched);
  return {module.place, module.name,
          fmt::format("<h1>{} <a class=\"source\" href=\"{}\">source</a></h1>\n"
                      "{}{}{}",
                      escaped(module.name),
                      relative(module.place, module.source_place), text.html,
                      import, told_list(all)),
          headings_of(all)};
}

Page source_page(const Links& links, const Module& module) {
  std::string html = highlight(module.syntax->text().str(),
                               links.link_of(module.source_place, &module));
  std::string lines;
  for (size_t at = 0, number = 1; at < html.size(); ++number) {
    const size_t end = std::min(html.find('\n', at), html.size());
    lines += fmt::format(
        "<span class=\"line\" id=\"L{0}\"><a class=\"number\" "
        "href=\"#L{0}\">{0}</a>{1}\n</span>",
        number, html.substr(at, end - at));
    at = end + 1;
  }
  const std::string title = module.syntax->path();
  return {module.source_place,
          title,
          fmt::format("<h1><a href=\"{}\">{}</a></h1>\n<pre class=\"code "
                      "listing\"><code>{}</code></pre>\n",
                      relative(module.source_place, module.place),
                      escaped(title), lines),
          {}};
}

Page family_page(const Links& links, const lang::BuiltinFamily& family,
                 const std::string& place, std::vector<Searched>& searched) {
  const LinkOf link = links.link_of(place, nullptr);
  std::vector<Told> all;
  for (const std::string_view name : family.names) {
    const lang::Builtin* builtin = lang::find_builtin(name);
    if (!builtin) continue;
    Told told;
    told.name = builtin->name;
    told.title = told.name;
    told.kind = "function";
    const std::string label =
        fmt::format("{}({})", builtin->name, builtin->signature);
    told.signature = highlight_signature(label, link);
    const TextPlace page{links, place, "lang/context/builtins.md", nullptr,
                         nullptr};
    told.text = text_html(page, lang::builtin_example(builtin->name),
                          told.name + "-", 2);
    std::string help = help_html(page, builtin->help) + ".";
    std::string others;
    for (const std::string_view other : other_names(builtin->name)) {
      others +=
          fmt::format("{}<code>{}</code>", others.empty() ? "" : ", ", other);
      searched.push_back({"function", std::string(other),
                          place + "#" + told.name,
                          fmt::format("another name of {}", told.name)});
    }
    if (!others.empty()) help += " Also " + others + ".";
    told.text.summary = help_html(page, builtin->help);
    told.text.html = fmt::format("<p>{}</p>\n{}", help, told.text.html);
    told.plain = fmt::format("{}  {}", label, builtin->help);
    all.push_back(std::move(told));
  }
  add_searched(all, place, searched);
  const std::string title(family.title);
  return {place, title,
          fmt::format("<h1>{}</h1>\n{}", escaped(title), told_list(all)),
          headings_of(all)};
}

}  // namespace unisono::host::manual
