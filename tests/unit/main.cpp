// Besides doctest's own reporters there is `-r=times`: the seconds of processor
// time that each test case takes, in all its threads and subcases.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdio>
#include <ctime>

namespace {

struct Times : doctest::IReporter {
  explicit Times(const doctest::ContextOptions&) {}

  static double now() { return double(std::clock()) / CLOCKS_PER_SEC; }

  void test_case_start(const doctest::TestCaseData& data) override {
    name = data.m_name;
    began = now();
  }
  void test_case_end(const doctest::CurrentTestCaseStats&) override {
    std::printf("%8.2f s  %s\n", now() - began, name);
  }
  void test_run_end(const doctest::TestRunStats& stats) override {
    std::printf("%8.2f s in all, %u cases failed\n", now(),
                stats.numTestCasesFailed);
  }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

  const char* name = "";
  double began = 0;
};

DOCTEST_REGISTER_REPORTER("times", 1, Times);

}  // namespace
