// What processes that were killed while they wrote leave behind goes; what is
// being written, or is not ours, stays.
#include "runtime/files/unfinished_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/unit/runtime/files.h"

namespace unisono {
namespace {

/// Begins a file for `path` in another process, which is killed then.
void leave_unfinished(const std::string& path) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto file = UnfinishedFile::create(AT_FDCWD, path, 0666);
    if (!file || write(file->descriptor(), "half", 4) != 4) _exit(1);
    raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
}

}  // namespace

TEST_CASE("what a killed process left behind goes") {
  TemporaryFolder folder;
  put_file(folder / "x.npy", {1, 2, 3});
  leave_unfinished(folder / "x.npy");
  leave_unfinished(folder / "y.npy");
  CHECK(folder.files() == 3);
  remove_abandoned(folder.path.string());
  CHECK(folder.files() == 1);
  CHECK(get_file(folder / "x.npy") == Bytes{1, 2, 3});
}

TEST_CASE("what is being written stays") {
  TemporaryFolder folder;
  auto file = UnfinishedFile::create(AT_FDCWD, folder / "x.npy", 0644);
  REQUIRE(file);
  CHECK(folder.files() == 1);
  remove_abandoned(folder.path.string());
  CHECK(folder.files() == 1);
  REQUIRE(write(file->descriptor(), "whole", 5) == 5);
  CHECK(file->replace());
  remove_abandoned(folder.path.string());
  CHECK(get_file(folder / "x.npy") == Bytes{'w', 'h', 'o', 'l', 'e'});
}

TEST_CASE("what is not ours stays") {
  TemporaryFolder folder;
  put_file(folder / "x.npy.0123456789abcdef.unisono-part", {1});
  put_file(folder / "elsewhere", {1});
  const char* others[] = {"x.npy.0123456789abcde.unisono-part",
                          "x.npy-0123456789abcdef.unisono-part",
                          "x.npy.0123456789ABCDEF.unisono-part",
                          "x.npy.0123456789abcdef.tmp", "x.unisono-part"};
  for (const char* name : others) put_file(folder / name, {1});
  REQUIRE(mkdir((folder / "d.0123456789abcdef.unisono-part").c_str(), 0755) ==
          0);
  REQUIRE(symlink((folder / "elsewhere").c_str(),
                  (folder / "l.0123456789abcdef.unisono-part").c_str()) == 0);
  REQUIRE(mkfifo((folder / "p.0123456789abcdef.unisono-part").c_str(), 0600) ==
          0);
  if (geteuid() == 0) {
    put_file(folder / "u.0123456789abcdef.unisono-part", {1});
    REQUIRE(chown((folder / "u.0123456789abcdef.unisono-part").c_str(), 12345,
                  12345) == 0);
  }
  const size_t before = folder.files();
  remove_abandoned(folder.path.string());
  CHECK(folder.files() == before - 1);
  CHECK(
      !std::filesystem::exists(folder / "x.npy.0123456789abcdef.unisono-part"));
  remove_abandoned(folder / "no such folder");
}

TEST_CASE("writers and who removes get along") {
  TemporaryFolder folder;
  std::atomic<bool> done{false};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (!done) remove_abandoned(folder.path.string());
    });
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        auto file = UnfinishedFile::create(
            AT_FDCWD, folder / ("x" + std::to_string(t)), 0644);
        if (!file || write(file->descriptor(), "abc", 3) != 3 ||
            !file->replace())
          ++failed;
      }
    });
  for (size_t t = 2; t < threads.size(); ++t) threads[t].join();
  done = true;
  for (size_t t = 0; t < 2; ++t) threads[t].join();
  CHECK(failed == 0);
  CHECK(folder.files() == 3);
}

TEST_CASE("a name as long as names can be") {
  TemporaryFolder folder;
  const std::string name(255, 'n');
  auto file = UnfinishedFile::create(AT_FDCWD, folder / name, 0644);
  REQUIRE(file);
  CHECK(file->replace());
  CHECK(std::filesystem::exists(folder / name));
  CHECK(folder.files() == 1);
}

}  // namespace unisono
