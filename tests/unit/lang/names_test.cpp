// Names of an environment, with a table and without, are found.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lang/context/names.h"
#include "runtime/tuning/tuning.h"

using namespace unisono;
using namespace unisono::lang;

TEST_CASE("names come and go: few are looked through, many are in a table") {
  const size_t few = tuning().most_names_looked_through;
  Names names;
  std::vector<std::string> known;
  const auto has = [&](const std::string& name) {
    return names.find(name) != names.end();
  };
  const auto check = [&] {
    REQUIRE(names.size() == known.size());
    size_t at = 0;
    for (const auto& [name, binding] : names) CHECK(name == known[at++]);
    for (const std::string& name : known) {
      REQUIRE(has(name));
      CHECK(names.at(name).type_record ==
            static_cast<int64_t>(std::stoi(name.substr(1))));
    }
    CHECK_FALSE(has("n"));
    CHECK_FALSE(has("n100000"));
  };
  const auto add = [&](size_t number) {
    known.push_back("n" + std::to_string(number));
    names[known.back()].type_record = static_cast<int64_t>(number);
    // A name that is there is the same one.
    CHECK(names[known.back()].type_record == static_cast<int64_t>(number));
  };
  const auto erase = [&](size_t at) {
    names.erase(known[at]);
    known.erase(known.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (size_t i = 0; i < 10 * few; ++i) {
    add(i);
    check();
  }
  // The first, the last, some between; and one that is not there.
  names.erase("nothing");
  erase(0);
  check();
  erase(known.size() - 1);
  check();
  while (known.size() > few / 2) {
    erase(known.size() / 3);
    check();
  }
  for (size_t i = 0; i < 2 * few; ++i) add(10 * few + i);
  check();
  names.clear();
  known.clear();
  check();
}
