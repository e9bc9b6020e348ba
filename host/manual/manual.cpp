#include "host/manual/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "host/lsp/files.h"
#include "host/manual/content.h"
#include "host/manual/html.h"
#include "host/manual/pages.h"
#include "host/session/source_files.h"
#include "lang/source/explain.h"
#include "lang/source/stdlib.h"
#include "lang/source/utf8.h"
#include "lang/syntax/parser.h"
#include "lang/syntax/read_source.h"
#include "runtime/dtype.h"

namespace unisono::host {
namespace manual {
namespace {

namespace fs = std::filesystem;

/// A Markdown text that becomes a page.
struct TextSource {
  std::string path;  // for links; of ours, in the repository
  std::string text;
  std::string title, place;
  const lang::SourceFile* file = nullptr;  // null: one of ours
};

class Builder {
 public:
  Builder(const ManualOptions& options, std::string_view version,
          lang::SourceMap& sources, lang::Diagnostics& diagnostics)
      : options_(options), sources_(sources), diagnostics_(diagnostics) {
    site_.version = version;
  }

  Result<ManualWritten> build() {
    TRY(read_names());
    const bool whole = options_.all || options_.names.empty();
    if (whole) add_own_texts();
    for (const lang::StdlibModule& module : lang::stdlib_modules())
      if (whole) add_library_module(module);
    if (diagnostics_.has_errors()) return ManualWritten{};
    site_.title = title();
    declare(whole);
    make_pages(whole);
    if (diagnostics_.has_errors()) return ManualWritten{};
    TRY(write_site(site_, options_.folder));
    size_t names = 0;
    for (const Searched& entry : site_.searched)
      names += entry.kind != "page" && entry.kind != "section" &&
               entry.kind != "module" && entry.kind != "message" &&
               entry.kind != "elsewhere";
    written_.index = (fs::path(options_.folder) / "index.html").string();
    written_.pages = site_.pages.size();
    written_.names = names;
    return std::move(written_);
  }

 private:
  // ---- what goes in

  Status read_names() {
    for (const std::string& name : options_.names) {
      std::error_code error;
      if (lang::is_stdlib_module(name) && !fs::exists(name, error)) {
        for (const lang::StdlibModule& module : lang::stdlib_modules())
          if (module.name == name && !options_.all) add_library_module(module);
        continue;
      }
      if (!fs::exists(name, error)) {
        std::vector<std::string_view> modules;
        for (const lang::StdlibModule& module : lang::stdlib_modules())
          modules.push_back(module.name);
        return Error{.message = fmt::format(
                         "`{}` is not there, and no module of the standard "
                         "library: {}",
                         lang::visible(name), fmt::join(modules, ", "))};
      }
      const std::vector<std::string> files =
          TRY(source_files({name}, {".uni", ".md"}));
      if (files.empty())
        return Error{.message = fmt::format("there is no .uni and no .md file "
                                            "in `{}`",
                                            lang::visible(name))};
      for (const std::string& path : files)
        add_file(path, fs::is_directory(name, error) ? name : "");
    }
    return Unit{};
  }

  void add_file(const std::string& path, const std::string& folder) {
    const std::string key = lsp::file_key(path);
    if (!files_.insert(key).second) return;
    Result<std::string> text = lang::read_source(path);
    if (!text) {
      diagnostics_.report(lang::Code::cannot_read, {},
                          fmt::format("`{}`", path), text.error().message);
      return;
    }
    const fs::path within = folder.empty()
                                ? fs::path(path).filename()
                                : fs::path(path).lexically_relative(folder);
    const std::string name = unique(fs::path(within).replace_extension());
    if (fs::path(path).extension() == ".md") {
      TextSource page;
      page.path = key;
      page.file = &sources_.add(path, *text);
      page.text = std::move(*text);
      page.title = title_of(page.text);
      if (page.title.empty()) page.title = name;
      page.place = "pages/" + name + ".html";
      members("Pages").push_back({page.title, page.place});
      texts_.push_back(std::move(page));
      return;
    }
    // Messages refer to a file that outlives this object.
    if (!lang::parse(sources_.add(path, *text), diagnostics_).ok) return;
    auto syntax = std::make_shared<lsp::Syntax>(path, std::move(*text));
    add_module({name,
                fmt::format("import \"{}\" as {}", path, last_part(name)),
                "modules/" + name + ".html",
                "source/modules/" + name + ".html",
                key,
                std::move(syntax),
                {},
                {}},
               "Modules");
  }

  /// A name that no other file of this manual has.
  std::string unique(const fs::path& path) {
    const std::string wanted = path.generic_string();
    std::string out = wanted;
    for (int i = 2; !taken_.insert(out).second; ++i)
      out = fmt::format("{}-{}", wanted, i);
    return out;
  }

  static std::string last_part(const std::string& name) {
    return fs::path(name).filename().string();
  }

  void add_library_module(const lang::StdlibModule& module) {
    const std::string name(module.name);
    if (!files_.insert(name).second) return;
    auto syntax = std::make_shared<lsp::Syntax>(
        fmt::format("stdlib/{}.uni", name), std::string(module.text));
    add_module({name,
                lang::is_prelude_module(name) ? "" : "import " + name,
                fmt::format("library/{}.html", name),
                fmt::format("source/library/{}.html", name),
                name,
                std::move(syntax),
                {},
                {}},
               "Standard library");
  }

  void add_module(Module module, const std::string& group) {
    read_entries(module);
    members(group).push_back({module.name, module.place});
    modules_.push_back(std::make_unique<Module>(std::move(module)));
  }

  /// README.md and docs/, in the order in which README.md names them.
  void add_own_texts() {
    std::vector<GuidePage> pages = guide_pages();
    const auto readme =
        std::ranges::find(pages, "README", &GuidePage::name)->text;
    std::ranges::sort(pages, {}, [&](const GuidePage& page) {
      const size_t place = readme.find(fmt::format("](docs/{}.md)", page.name));
      return std::pair(page.name == "README" ? 0 : place, page.name);
    });
    for (const GuidePage& page : pages) {
      const bool is_front = page.name == "README";
      TextSource text;
      text.path = is_front ? "README.md" : fmt::format("docs/{}.md", page.name);
      text.text = page.text;
      text.title = is_front ? "Unisono" : title_of(page.text);
      text.place = is_front && options_.names.empty()
                       ? "index.html"
                       : fmt::format("guide/{}.html", page.name);
      members("Guide").push_back({text.title, text.place});
      texts_.push_back(std::move(text));
    }
  }

  /// The members of a group, which is made where it is not there yet.
  std::vector<Group::Member>& members(const std::string& title) {
    auto group = std::ranges::find(site_.groups, title, &Group::title);
    if (group == site_.groups.end())
      group = site_.groups.insert(site_.groups.end(), {title, {}});
    return group->members;
  }

  std::string title() const {
    if (options_.names.empty()) return "Unisono";
    if (options_.names.size() > 1) return "Manual";
    const fs::path name = fs::path(options_.names[0]).lexically_normal();
    const std::string stem = name.stem().string();
    return stem.empty() || stem == "." ? "Manual" : stem;
  }

  // ---- where everything is

  void declare(bool whole) {
    for (const auto& module : modules_) {
      const bool is_prelude = lang::is_prelude_module(module->key);
      std::set<std::string> names;
      for (const Entry& entry : module->entries) {
        Target target{module->place + "#" + entry.name, entry.signature,
                      entry.kind == Entry::Kind::type};
        if (is_prelude) links_.add_prelude(entry.name, target);
        links_.add_member(last_part(module->name), entry.name, target);
        links_.add_member(module->key, entry.name, std::move(target));
        names.insert(entry.name);
      }
      // The same text as Markdown, for who reads the repository.
      if (whole && lang::is_stdlib_module(module->key))
        links_.add_page(fmt::format("docs/stdlib/{}.md", module->name),
                        module->place, module->name, names);
      links_.add_page(module->key, module->place, module->name,
                      std::move(names));
    }
    for (const lang::BuiltinFamily& family : lang::builtin_families()) {
      const std::string place = family_place(family);
      for (const std::string_view name : family.names) {
        const lang::Builtin* builtin = lang::find_builtin(name);
        if (!builtin) continue;
        Target target{whole ? fmt::format("{}#{}", place, builtin->name) : "",
                      fmt::format("{}({}): {}", builtin->name,
                                  builtin->signature, builtin->help),
                      false};
        for (const std::string_view other : other_names(builtin->name))
          links_.add_prelude(std::string(other), target);
        links_.add_prelude(std::string(builtin->name), std::move(target));
      }
    }
    for (const DType dtype : all_dtypes)
      links_.add_prelude(
          std::string(name(dtype)),
          {whole ? "guide/language.html#3-types" : "", "", true});
    for (const TextSource& text : texts_)
      links_.add_page(text.path, text.place, text.title,
                      sections_of(text.text));
    if (!whole) return;
    for (const lang::ErrorPage& page : lang::error_pages())
      links_.add_page(fmt::format("docs/errors/{}.md", page.code),
                      message_place(page.code), std::string(page.code),
                      sections_of(page.text));
  }

  static std::string family_place(const lang::BuiltinFamily& family) {
    return fmt::format("functions/{}.html", slug(family.title));
  }
  static std::string message_place(std::string_view code) {
    return fmt::format("messages/{}.html", code);
  }

  // ---- pages

  void make_pages(bool whole) {
    if (whole) add_functions();
    for (const TextSource& text : texts_) add_text(text);
    for (const auto& module : modules_) {
      site_.pages.push_back(
          module_page({links_, module->place, module->key, module.get(),
                       dead_links(*module->syntax->program().file)},
                      site_.searched));
      site_.pages.push_back(source_page(links_, *module));
    }
    if (whole) add_messages();
    if (!options_.names.empty()) add_index();
  }

  /// Reports links to nowhere in a file, unless they lead to files that the
  /// manual leaves out.
  std::function<void(std::string_view, int)> dead_links(
      const lang::SourceFile& file) {
    return [this, &file](std::string_view url, int line) {
      const std::string path = path_of_url(url);
      std::error_code error;
      if (!path.empty() &&
          fs::exists(fs::path(file.path()).parent_path() / path, error))
        return;
      const size_t found = file.text().find(
          url, file.line_offset(std::min(line, file.line_count())));
      const auto at = file.place(
          static_cast<uint32_t>(std::min(found, file.text().size())));
      written_.dead_links.push_back(fmt::format(
          "{}:{}:{}: the link `{}` leads nowhere", lang::visible(file.path()),
          at.line, at.column, lang::visible(url)));
    };
  }

  void add_text(const TextSource& text) {
    TextPlace place{links_, text.place, text.path, nullptr, nullptr};
    if (text.file) place.dead_link = dead_links(*text.file);
    Page page = text_page(place, text.text, site_.searched);
    if (page.title.empty()) page.title = text.title;
    site_.pages.push_back(std::move(page));
  }

  void add_functions() {
    std::vector<Group::Member> found;
    for (const lang::BuiltinFamily& family : lang::builtin_families()) {
      const std::string place = family_place(family);
      found.push_back({std::string(family.title), place});
      site_.pages.push_back(family_page(links_, family, place, site_.searched));
    }
    // Before the library, behind the guide.
    const auto library =
        std::ranges::find(site_.groups, "Standard library", &Group::title);
    site_.groups.insert(library, {"Functions", std::move(found)});
    for (const ElsewhereName& name : elsewhere_names())
      site_.searched.push_back({"elsewhere", std::string(name.name),
                                "guide/library.html", std::string(name.help)});
  }

  void add_messages() {
    std::string rows;
    const std::string index = "messages/index.html";
    members("Messages").push_back({"All messages", index});
    for (const lang::ErrorPage& message : lang::error_pages()) {
      const std::string place = message_place(message.code);
      std::vector<Searched> searched;
      const std::string path = fmt::format("docs/errors/{}.md", message.code);
      Page page = text_page({links_, place, path, nullptr, nullptr},
                            message.text, searched);
      const std::string_view title =
          std::string_view(page.title).substr(message.code.size() + 2);
      rows +=
          fmt::format("<tr><td><a href=\"{}\">{}</a></td><td>{}</td></tr>\n",
                      relative(index, place), message.code, escaped(title));
      std::string text;
      for (const Searched& part : searched) text += part.text + " ";
      site_.searched.push_back({"message", page.title, place, text});
      page.headings.clear();
      site_.pages.push_back(std::move(page));
    }
    site_.pages.push_back(
        {index,
         "Messages",
         fmt::format("<h1>Messages</h1>\n<p>What <code>unisono explain "
                     "CODE</code> prints, for each message.</p>\n<table "
                     "class=\"names\">\n<tbody>\n{}</tbody>\n</table>\n",
                     rows),
         {}});
  }

  /// The front page of a manual of somebody's files.
  void add_index() {
    std::string rows;
    for (const auto& module : modules_) {
      if (module->place.starts_with("library/") && options_.all) continue;
      const Markdown about =
          text_html({links_, "index.html", "", module.get(), nullptr},
                    module->about.text);
      rows += fmt::format(
          "<tr><td><a href=\"{}\"><code>{}</code></a></td><td>{}</td></tr>\n",
          relative("index.html", module->place), escaped(module->name),
          about.summary);
    }
    for (const TextSource& text : texts_)
      if (text.file)
        rows += fmt::format(
            "<tr><td><a href=\"{}\">{}</a></td><td></td></tr>\n",
            relative("index.html", text.place), escaped(text.title));
    site_.pages.push_back(
        {"index.html",
         site_.title,
         fmt::format("<h1>{}</h1>\n<table class=\"names\">\n<tbody>\n{}"
                     "</tbody>\n</table>\n",
                     escaped(site_.title), rows),
         {}});
  }

  const ManualOptions& options_;
  lang::SourceMap& sources_;
  lang::Diagnostics& diagnostics_;
  ManualWritten written_;
  Site site_;
  Links links_;
  std::vector<std::unique_ptr<Module>> modules_;
  std::vector<TextSource> texts_;
  std::set<std::string> files_;  // keys of those that are here already
  std::set<std::string> taken_;  // names of pages
};

}  // namespace
}  // namespace manual

Result<ManualWritten> write_manual(const ManualOptions& options,
                                   std::string_view version,
                                   lang::SourceMap& sources,
                                   lang::Diagnostics& diagnostics) {
  return manual::Builder(options, version, sources, diagnostics).build();
}

}  // namespace unisono::host
