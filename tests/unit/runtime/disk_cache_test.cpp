#include "runtime/files/disk_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/unit/runtime/files.h"

using namespace unisono;

namespace {

constexpr int64_t plenty = int64_t{1} << 30;

std::shared_ptr<DiskCache> open_cache(const std::string& folder,
                                      int64_t most = plenty) {
  auto cache = DiskCache::open(folder, most);
  if (!cache) FAIL(cache.error().message);
  return *cache;
}

std::string why_not(const std::string& folder) {
  auto cache = DiskCache::open(folder, plenty);
  REQUIRE(!cache);
  return cache.error().message;
}

Bytes bytes_for(int number, size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<uint8_t>(number * 31 + i * 7 + (i >> 8));
  return bytes;
}

/// The one entry of a folder.
std::string entry_in(const TemporaryFolder& folder) {
  std::string found;
  for (const auto& item : std::filesystem::directory_iterator(folder.path))
    if (item.path().extension() == ".entry") {
      REQUIRE(found.empty());
      found = item.path();
    }
  REQUIRE(!found.empty());
  return found;
}

size_t entries_in(const std::string& folder) {
  size_t count = 0;
  for (const auto& item : std::filesystem::directory_iterator(folder))
    count += item.path().extension() == ".entry";
  return count;
}

}  // namespace

TEST_CASE(
    "what a disk cache keeps is found again, by this process and others") {
  TemporaryFolder folder;
  const std::string path = folder / "a/b/cache";
  {
    auto cache = open_cache(path);
    CHECK(!cache->find("one"));
    cache->keep("one", bytes_for(1, 5000));
    cache->keep("two", bytes_for(2, 1));
    cache->keep("two", bytes_for(3, 70000));
    CHECK(cache->find("one") == bytes_for(1, 5000));
  }
  struct stat status;
  REQUIRE(stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0700);
  auto cache = open_cache(path + "/");
  CHECK(cache->find("one") == bytes_for(1, 5000));
  CHECK(cache->find("two") == bytes_for(3, 70000));
  CHECK(!cache->find("One"));
  cache->remove("one");
  CHECK(!cache->find("one"));
}

TEST_CASE("a damaged entry is not there, and can be made again") {
  TemporaryFolder folder;
  chmod(folder.path.c_str(), 0700);
  auto cache = open_cache(folder.path);
  const Bytes bytes = bytes_for(1, 300);
  cache->keep("key", bytes);
  const std::string path = entry_in(folder);
  const Bytes good = get_file(path);
  auto lost = [&](const Bytes& bad) {
    put_file(path, bad);
    const bool missing = !cache->find("key");
    CHECK(!std::filesystem::exists(path));
    cache->keep("key", bytes);
    return missing && cache->find("key") == bytes;
  };
  for (size_t size = 0; size < good.size(); size += 13)
    CHECK(lost({good.begin(), good.begin() + static_cast<long>(size)}));
  for (size_t at = 0; at < good.size(); at += 5) {
    Bytes bad = good;
    bad[at] ^= 1;
    CHECK(lost(bad));
  }
  Bytes longer = good;
  longer.push_back(0);
  CHECK(lost(longer));
  SUBCASE("an entry under another key's name") {
    cache->keep("other", bytes_for(2, 300));
    for (const auto& item : std::filesystem::directory_iterator(folder.path))
      if (item.path().extension() == ".entry" && item.path() != path)
        std::filesystem::copy_file(
            item.path(), path,
            std::filesystem::copy_options::overwrite_existing);
    CHECK(!cache->find("key"));
  }
  SUBCASE("an entry that others may write") {
    chmod(path.c_str(), 0622);
    CHECK(!cache->find("key"));
  }
  SUBCASE("a link to an entry") {
    std::filesystem::rename(path, path + "x");
    std::filesystem::create_symlink(path + "x", path);
    CHECK(!cache->find("key"));
    cache->keep("key", bytes);
    CHECK(cache->find("key") == bytes);
  }
  SUBCASE("a folder in its place") {
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    CHECK(!cache->find("key"));
    cache->keep("key", bytes);
    CHECK(!cache->find("key"));
  }
}

TEST_CASE("a folder that is not the user's alone is no cache") {
  TemporaryFolder folder;
  CHECK(why_not("").find("full path") != std::string::npos);
  CHECK(why_not("here/it/is").find("full path") != std::string::npos);
  std::filesystem::create_directory(folder / "open");
  for (mode_t mode : {0755, 0701, 0770, 0720}) {
    chmod((folder / "open").c_str(), mode);
    CHECK(why_not(folder / "open").find("700") != std::string::npos);
  }
  chmod((folder / "open").c_str(), 0700);
  open_cache(folder / "open");
  std::filesystem::create_symlink(folder / "open", folder / "link");
  why_not(folder / "link");
  put_file(folder / "file", {1});
  why_not(folder / "file");
  why_not(folder / "file/below");
  if (geteuid() == 0) {
    open_cache(folder / "theirs");
    REQUIRE(chown((folder / "theirs").c_str(), 12345, 12345) == 0);
    CHECK(why_not(folder / "theirs").find("somebody else") !=
          std::string::npos);
  }
}

TEST_CASE(
    "a folder that cannot be written to keeps nothing, and harms nothing") {
  // As another user where this is the superuser, who may write everywhere.
  TemporaryFolder folder;
  chmod(folder.path.c_str(), 0755);
  const std::string path = folder / "cache";
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (geteuid() == 0) {
      if (chmod(folder.path.c_str(), 0777) != 0 || setuid(12345) != 0) _exit(9);
    }
    auto cache = DiskCache::open(path, plenty);
    if (!cache) _exit(1);
    (*cache)->keep("one", bytes_for(1, 100));
    if (chmod(path.c_str(), 0500) != 0) _exit(2);
    (*cache)->keep("two", bytes_for(2, 100));
    if ((*cache)->find("two") || !(*cache)->find("one")) _exit(3);
    auto again = DiskCache::open(path, plenty);
    if (!again || !(*again)->find("one")) _exit(4);
    if (chmod(path.c_str(), 0700) != 0) _exit(5);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a disk cache stays within its size; what was used last stays") {
  TemporaryFolder folder;
  const std::string path = folder / "cache";
  auto cache = open_cache(path, 20000);
  for (int i = 0; i < 100; ++i) {
    cache->keep(std::to_string(i), bytes_for(i, 1000));
    CHECK(entries_in(path) <= 20);
    CHECK(cache->find(std::to_string(i)) == bytes_for(i, 1000));
    CHECK(cache->find("0") == bytes_for(0, 1000));  // used each time
  }
  CHECK(entries_in(path) >= 10);
  cache->keep("large", bytes_for(1, 20000));
  CHECK(!cache->find("large"));
  // One with less room takes what is there down.
  auto smaller = open_cache(path, 5000);
  smaller->keep("x", bytes_for(1, 1000));
  CHECK(entries_in(path) <= 5);
  CHECK(smaller->find("x") == bytes_for(1, 1000));
}

TEST_CASE("several writers and readers of a disk cache at once") {
  TemporaryFolder folder;
  const std::string path = folder / "cache";
  constexpr int writers = 4, keys = 6, turns = 40;
  std::atomic<int> wrong{0}, found{0};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer)
    threads.emplace_back([&, writer] {
      auto cache = DiskCache::open(path, 20000);  // small: it is pruned, too
      if (!cache) {
        ++wrong;
        return;
      }
      for (int turn = 0; turn < turns; ++turn) {
        const int key = (turn * 5 + writer) % keys;
        const Bytes bytes = bytes_for(key, 3000);
        if (auto kept = (*cache)->find(std::to_string(key))) {
          ++found;
          if (*kept != bytes) ++wrong;
        }
        (*cache)->keep(std::to_string(key), bytes);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(found > 0);
  for (const auto& item : std::filesystem::directory_iterator(path))
    CHECK(item.path().extension() != ".unisono-part");
}

TEST_CASE("what a process that was killed left behind goes") {
  TemporaryFolder folder;
  const std::string path = folder / "cache";
  open_cache(path);
  const std::string left = path + "/key.0123456789abcdef.unisono-part";
  put_file(left, {1, 2, 3});
  open_cache(path)->keep("key", bytes_for(1, 10));
  CHECK(!std::filesystem::exists(left));
}
