// What processes of a cluster tell each other.
#include "runtime/cluster/cluster.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "runtime/array.h"
#include "runtime/cluster/cluster_device.h"
#include "tests/unit/runtime/cluster_group.h"

using namespace unisono;

TEST_CASE("everybody's bytes reach everybody, whatever comes first") {
  for (const int processes : {2, 3, 5, 16}) {
    for (const int64_t count : {0, 1, 7, 100'000}) {
      CAPTURE(processes);
      CAPTURE(count);
      Group group{.processes = processes, .faults = "reorder 7"};
      group.run([&](Cluster& cluster) -> Group::End {
        const int own = cluster.process();
        const auto value = [](int from, int to) { return 100 * from + to; };
        std::vector<std::vector<int>> sent, got;
        std::vector<Message> sends, receives;
        for (int p = 0; p < processes; ++p) {
          sent.emplace_back(static_cast<size_t>(count), value(own, p));
          got.emplace_back(static_cast<size_t>(count), -1);
        }
        const int64_t bytes = count * 4;
        for (int p = 0; p < processes; ++p) {
          if (p == own) continue;
          // In two pieces.
          sends.push_back(
              {p,
               {{sent[p].data(), bytes / 8 * 4},
                {sent[p].data() + count / 2, bytes - bytes / 8 * 4}}});
          receives.push_back({p, {{got[p].data(), bytes}}});
        }
        for (int turn = 0; turn < 3; ++turn) {
          cluster.at(fmt::format("turn {}", turn));
          for (auto& row : got) std::ranges::fill(row, -1);
          if (auto done = cluster.exchange(sends, receives, 42); !done)
            return ok(done);
          for (int p = 0; p < processes; ++p)
            for (const int element : got[p])
              if (p != own && element != value(p, own))
                return std::pair(1, std::string("wrong bytes"));
        }
        return ok(Unit{});
      });
      group.check(0, "");
    }
  }
}

TEST_CASE("a broadcast comes from any process, and a barrier holds") {
  Group group{.processes = 4, .faults = "slow 2 0 30; slow 0 3 10"};
  std::atomic<int> before{0};
  group.run([&](Cluster& cluster) -> Group::End {
    for (int from = 0; from < 4; ++from) {
      int value = cluster.process() == from ? 10 + from : -1;
      if (auto done = cluster.broadcast(from, &value, sizeof value); !done)
        return ok(done);
      if (value != 10 + from) return std::pair(1, std::string("wrong value"));
    }
    ++before;
    if (auto done = cluster.barrier(); !done) return ok(done);
    if (before != 4) return std::pair(1, std::string("no barrier"));
    return ok(Unit{});
  });
  group.check(0, "");
}

TEST_CASE("processes that go different ways are told so, with both places") {
  Group group{.processes = 3};
  group.run([&](Cluster& cluster) -> Group::End {
    cluster.at(cluster.process() == 2 ? "train.uni:14" : "train.uni:12");
    return ok(cluster.barrier());
  });
  group.check(1,
              "process 2 is at train.uni:14, and process 0 at train.uni:12: "
              "every process must do the same\n");
  Group other{.processes = 2};
  other.run([&](Cluster& cluster) -> Group::End {
    cluster.at("train.uni:12");
    return ok(cluster.barrier(cluster.process()));
  });
  other.check(1,
              "process 1 and process 0 do different things at train.uni:12: "
              "every process must do the same\n");
  Group early{.processes = 2};
  early.run([&](Cluster& cluster) -> Group::End {
    if (cluster.process() == 1) return ok(Unit{});
    cluster.at("train.uni:3");
    return ok(cluster.barrier());
  });
  early.check(1,
              "process 1 is at the end of the program, and process 0 at "
              "train.uni:3: every process must do the same\n");
  // In a tree it tells another one first.
  Group last{.processes = 4};
  last.run([&](Cluster& cluster) -> Group::End {
    if (cluster.process() == 3) return ok(Unit{});
    cluster.at("train.uni:3");
    return ok(cluster.barrier());
  });
  for (int p = 0; p < 4; ++p) CHECK(last.outcomes[p].end.status == 1);
  CHECK(last.outcomes[0].end.messages->starts_with(
      "process 3 has ended, and process 0 is at train.uni:3: "));
}

TEST_CASE("the first failure is everybody's, and one process tells of it") {
  Group group{.processes = 4};
  group.run([&](Cluster& cluster) -> Group::End {
    if (cluster.process() >= 2)
      return std::pair(3, fmt::format("mistake {}\n", cluster.process()));
    return ok(cluster.barrier());
  });
  group.check(3, "mistake 2\n");
  // One that comes later in the program is not it, though it is the first
  // process's.
  Group later{.processes = 2};
  later.run([&](Cluster& cluster) -> Group::End {
    cluster.begin_run();
    if (cluster.process() == 1) {
      cluster.note_failure(3);
      return std::pair(1, std::string("device 3\n"));
    }
    cluster.end_run();
    return std::pair(1, std::string("the host\n"));
  });
  later.check(1, "device 3\n");
}

TEST_CASE("a process that is gone is named by the others") {
  Group group{.processes = 3};
  group.run([&](Cluster& cluster) -> Group::End {
    if (cluster.process() == 1) return std::nullopt;
    return ok(cluster.barrier());
  });
  CHECK(*group.outcomes[0].end.messages ==
        "process 1 is gone: it was killed, or its host is down\n");
  CHECK(group.outcomes[0].end.status == 1);
  CHECK(group.outcomes[2].end.status == 1);
  CHECK_FALSE(group.outcomes[2].end.messages);
  Group first{.processes = 3};
  first.run([&](Cluster& cluster) -> Group::End {
    if (cluster.process() == 0) return std::nullopt;
    return ok(cluster.barrier());
  });
  first.check(1, "process 0 is gone: it was killed, or its host is down\n", 1);
}

TEST_CASE("a process that lags is named when the time is over") {
  Group group{.processes = 3, .limit = std::chrono::seconds(2)};
  group.run([&](Cluster& cluster) -> Group::End {
    cluster.at("step.uni:5");
    if (cluster.process() == 2) {
      std::this_thread::sleep_for(std::chrono::seconds(6));
      return std::nullopt;
    }
    return ok(cluster.barrier());
  });
  CHECK(*group.outcomes[0].end.messages ==
        "process 2 did not come to step.uni:5 in 2 s\n");
  CHECK(group.outcomes[0].end.status == 1);
  CHECK(group.outcomes[1].end.status == 1);
}

TEST_CASE("what members print comes in the order of exchanges and positions") {
  Group group{.processes = 3, .faults = "reorder 1"};
  group.run([&](Cluster& cluster) -> Group::End {
    cluster.begin_run();
    for (int phase = 0; phase < 2; ++phase) {
      // Positions go round.
      cluster.begin_member(2 - cluster.process());
      for (const char* line : {"a", "b"})
        cluster.output(
            fmt::format("{}{}{}\n", phase, 2 - cluster.process(), line));
      cluster.end_member();
      std::vector<Message> others;
      for (int p = 0; p < 3; ++p)
        if (p != cluster.process()) others.push_back({p});
      if (auto done = cluster.exchange(others, others, 0); !done)
        return ok(done);
    }
    cluster.end_run();
    if (auto done = cluster.settle(); !done) return ok(done);
    cluster.output("end\n");
    return ok(Unit{});
  });
  group.check(0, "");
  CHECK(group.printed ==
        "00a\n00b\n01a\n01b\n02a\n02b\n10a\n10b\n11a\n11b\n12a\n12b\nend\n");
}

TEST_CASE("texts of any length come to the first process") {
  for (const int processes : {2, 3, 5, 8, 13}) {
    CAPTURE(processes);
    Group group{.processes = processes, .faults = "reorder 2"};
    group.run([&](Cluster& cluster) -> Group::End {
      const auto text = [](int process) {
        return std::string(static_cast<size_t>(process * process * 40 % 9000),
                           static_cast<char>('a' + process));
      };
      auto texts = cluster.gather_texts(text(cluster.process()));
      if (!texts) return ok(texts.error());
      bool good = static_cast<int>(texts->size()) ==
                  (cluster.process() == 0 ? processes : 0);
      for (size_t p = 0; p < texts->size(); ++p)
        good = good && (*texts)[p] == text(static_cast<int>(p));
      return std::pair(good ? 0 : 1, std::string());
    });
    group.check(0, "");
  }
}

TEST_CASE("at the end is printed what nobody has waited for") {
  for (const int processes : {2, 4, 7}) {
    Group group{.processes = processes, .faults = "reorder 3"};
    std::string expected;
    for (int p = 0; p < processes; ++p) expected += fmt::format("line {}\n", p);
    group.run([&](Cluster& cluster) -> Group::End {
      cluster.begin_run();
      cluster.begin_member(cluster.process());
      cluster.output(fmt::format("line {}\n", cluster.process()));
      cluster.end_member();
      cluster.end_run();
      return ok(Unit{});
    });
    group.check(0, "");
    CHECK(group.printed == expected);
  }
}

TEST_CASE("one that fails when others are at the end") {
  for (const int failing : {0, 1, 4, 6}) {
    CAPTURE(failing);
    Group group{.processes = 7};
    group.run([&](Cluster& cluster) -> Group::End {
      if (cluster.process() != failing) return ok(Unit{});
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return std::pair(3, std::string("mistake\n"));
    });
    for (int p = 0; p < 7; ++p) CHECK(group.outcomes[p].end.status == 3);
    CHECK(group.outcomes[0].end.messages == "mistake\n");
  }
}

TEST_CASE("what says that a process is at the end may travel for long") {
  // Longer than others wait there before they tell all, and are told.
  for (const std::string faults :
       {"slow 1 0 2500", "slow 0 1 2500; slow 2 0 2500"}) {
    CAPTURE(faults);
    Group group{.processes = 3, .faults = faults};
    group.run([&](Cluster&) -> Group::End { return ok(Unit{}); });
    group.check(0, "");
  }
}

TEST_CASE("exchanges go on while their process does other things") {
  Group group{.processes = 3, .faults = "reorder 5"};
  group.run([&](Cluster& cluster) -> Group::End {
    Background& background = cluster.background();
    std::array<std::array<int, 3>, 20> all{};
    for (size_t i = 0; i < all.size(); ++i) {
      all[i][static_cast<size_t>(cluster.process())] =
          static_cast<int>(i) * 10 + cluster.process();
      background.begin(
          [&cluster, &values = all[i]] {
            return cluster.all_gather(values.data(), sizeof(int));
          },
          [] {});
    }
    while (!background.is_done(background.last())) std::this_thread::yield();
    bool good = static_cast<bool>(background.status());
    for (size_t i = 0; i < all.size(); ++i)
      for (int p = 0; p < 3; ++p)
        good = good &&
               all[i][static_cast<size_t>(p)] == static_cast<int>(i) * 10 + p;
    return std::pair(good ? 0 : 1, std::string());
  });
  group.check(0, "");
}

TEST_CASE("what is begun aside has its number and place from then on") {
  Group group{.processes = 3, .faults = "reorder 4"};
  group.run([&](Cluster& cluster) -> Group::End {
    const int own = cluster.process(), next = (own + 1) % 3;
    int sent = own, got = -1, later = -1;
    std::atomic<bool> went_on = false;
    const auto pass_on = [&](int& to) {
      const Message send{next, {{&sent, sizeof sent}}};
      const Message receive{(own + 2) % 3, {{&to, sizeof to}}};
      return cluster.exchange({&send, 1}, {&receive, 1}, 7);
    };
    cluster.at("the reshard");
    cluster.begin_aside(
        [&] {
          while (!went_on) std::this_thread::yield();
          return pass_on(got);
        },
        {&got}, [] {});
    CHECK(cluster.arrival(&got) != 0);
    CHECK(cluster.arrival(&later) == 0);
    // Nothing has been sent, and the program is in a run.
    cluster.at("the run");
    cluster.begin_run();
    CHECK_FALSE(cluster.background().is_done(cluster.arrival(&got)));
    went_on = true;
    if (auto done = pass_on(later); !done) return ok(done);
    CHECK(got == (own + 2) % 3);
    CHECK(later == (own + 2) % 3);
    CHECK(cluster.arrival(&got) == 0);
    cluster.end_run();
    return ok(cluster.barrier());
  });
  group.check(0, "");
}

TEST_CASE("who differs in what was begun aside is told that place") {
  Group group{.processes = 2};
  group.run([&](Cluster& cluster) -> Group::End {
    int number = 0;
    cluster.at(fmt::format("reshard {}", cluster.process()));
    cluster.begin_aside(
        [&] {
          const Message message{1 - cluster.process(), {{&number, 4}}};
          return cluster.process() == 0
                     ? cluster.exchange({&message, 1}, {}, 7)
                     : cluster.exchange({}, {&message, 1}, 7);
        },
        {&number}, [] {});
    cluster.at("the run");
    cluster.begin_run();
    cluster.end_run();
    return ok(cluster.barrier());
  });
  group.check(1,
              "process 0 is at reshard 0, and process 1 at reshard 1: every "
              "process must do the same\n");
}

TEST_CASE("after a failure there are the lines that one process would print") {
  Group group{.processes = 3};
  group.run([&](Cluster& cluster) -> Group::End {
    cluster.begin_run();
    cluster.begin_member(cluster.process());
    cluster.output(fmt::format("line {}\n", cluster.process()));
    cluster.end_member();
    if (cluster.process() == 1) {
      cluster.note_failure(1);
      return std::pair(1, std::string("mistake\n"));
    }
    std::vector<Message> others;
    for (int p = 0; p < 3; ++p)
      if (p != cluster.process()) others.push_back({p});
    return ok(cluster.exchange(others, others, 0));
  });
  group.check(1, "mistake\n");
  CHECK(group.printed == "line 0\nline 1\n");
}

TEST_CASE("a plan of faults that cannot be read says what it may be") {
  CHECK(Faults::parse("die 1 7; hang 2 5; slow 0 1 20; reorder 3; eager"));
  CHECK(Faults::parse(""));
  for (const char* text : {"die", "die 1", "die 1 x", "slow 1 2", "burn 1 2",
                           "reorder 1 2", "eager 1"}) {
    CAPTURE(text);
    CHECK_FALSE(Faults::parse(text));
  }
}

TEST_CASE("arrays move between devices of processes, and to the host in all") {
  Group group{.processes = 3};
  group.run([&](Cluster& cluster) -> Group::End {
    // The caller keeps the cluster.
    const std::shared_ptr<Cluster> shared(&cluster, [](Cluster*) {});
    const auto owned = make_cluster_devices(shared);
    std::vector<Device*> devices;
    for (const auto& device : owned) devices.push_back(device.get());
    Device& home = home_device(devices);
    if (&home == devices[0] || home.name() != "cpu:0" || devices.size() != 6)
      return std::pair(1, std::string("wrong devices"));
    std::vector<int32_t> numbers(6 * 12);
    std::iota(numbers.begin(), numbers.end(), 0);
    const auto whole =
        array_from_host(home, DType::I32, {6, 12}, numbers.data());
    if (!whole) return std::pair(1, whole.error().message);
    const auto same = [&](const Array& array) {
      const auto bytes = array_to_host(array);
      return bytes &&
             std::memcmp(bytes->data(), numbers.data(), bytes->size()) == 0;
    };
    std::vector<Device*> reversed(devices.rbegin(), devices.rend());
    for (const Sharding& first :
         {Sharding{0, devices}, Sharding{1, devices}, Sharding{-1, devices},
          Sharding{0, reversed}, Sharding{-1, {devices[3]}},
          Sharding::on_mesh({{2, 1}, {3, 0}}, devices)}) {
      const auto placed = reshard(*whole, first);
      if (!placed || !same(*placed)) return std::pair(1, first.to_string());
      for (const Sharding& second :
           {Sharding{1, reversed}, Sharding{0, devices}, Sharding{-1, {&home}},
            Sharding{-1, reversed},
            Sharding::on_mesh({{3, 1}, {2, 0}}, devices)}) {
        const auto moved = reshard(*placed, second);
        if (!moved || !same(*moved))
          return std::pair(1, first.to_string() + " -> " + second.to_string());
      }
    }
    return ok(Unit{});
  });
  group.check(0, "");
}
