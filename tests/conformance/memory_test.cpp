#include "tests/conformance/driver.h"

using namespace driver_test;

TEST_CASE("a driver has the functions that are required") {
  CHECK_MESSAGE(driver().missing.empty(), driver().missing);
  CHECK(driver().library != nullptr);
}

TEST_CASE("memory: bytes come back as they went") {
  Session s;
  std::vector<int> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = int(i * i);
  DevicePointer p = s.upload(values);
  CHECK(s.download<int>(p, values.size()) == values);
  CHECK(s.d.mem_free(p) == success);
}
