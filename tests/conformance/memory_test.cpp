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

TEST_CASE("memory: fills, copies with a pitch, pinned memory of the host") {
  Session s;
  DevicePointer p = s.allocate<unsigned>(64);
  CHECK(s.d.memset_d32(p, 0x01020304, 64) == success);
  CHECK(s.d.memset_d8(p + 4, 0xff, 4) == success);
  CHECK(s.d.memset_d16_async(p + 8, 0xabcd, 2, nullptr) == success);
  auto got = s.download<unsigned>(p, 4);
  CHECK(got ==
        std::vector<unsigned>{0x01020304, 0xffffffff, 0xabcdabcd, 0x01020304});
  // Columns 1 and 2 of a matrix of 4 × 4.
  std::vector<unsigned> matrix(16);
  for (unsigned i = 0; i < 16; ++i) matrix[i] = i;
  CHECK(s.d.memcpy_htod(p, matrix.data(), 64) == success);
  unsigned part[8] = {};
  Copy2D c{};
  c.srcMemoryType = MemoryType::device;
  c.srcDevice = p;
  c.srcXInBytes = 4;
  c.srcPitch = 16;
  c.dstMemoryType = MemoryType::host;
  c.dstHost = part;
  c.dstPitch = 8;
  c.WidthInBytes = 8;
  c.Height = 4;
  CHECK(s.d.memcpy_2d(&c) == success);
  CHECK(part[0] == 1);
  CHECK(part[3] == 6);
  CHECK(part[7] == 14);
  void* pinned = nullptr;
  CHECK(s.d.mem_host_alloc(&pinned, 64, host_alloc_portable) == success);
  CHECK(s.d.memcpy_dtoh_async(pinned, p, 64, nullptr) == success);
  CHECK(s.d.ctx_synchronize() == success);
  CHECK(static_cast<unsigned*>(pinned)[15] == 15);
  CHECK(s.d.mem_free_host(pinned) == success);
  CHECK(s.d.mem_free(p) == success);
}

TEST_CASE("memory: wrong calls are refused") {
  Session s;
  DevicePointer p = s.allocate<unsigned>(16);
  DevicePointer q = 0;
  char byte = 0;
  CHECK(s.d.mem_alloc(&q, 0) == invalid_value);
  CHECK(s.d.mem_alloc(&q, size_t{1} << 50) == out_of_memory);
  CHECK(s.d.memcpy_dtoh(&byte, 0, 1) == invalid_value);
  CHECK(s.d.mem_free(p + 4) == invalid_value);
  CHECK(s.d.mem_free(p) == success);
}

TEST_CASE("memory: an address knows what it belongs to") {
  Session s;
  DevicePointer p = s.allocate<unsigned>(16), base = 0;
  size_t size = 0;
  CHECK(s.d.mem_get_address_range(&base, &size, p + 12) == success);
  CHECK(base == p);
  CHECK((simulated() ? size == 64 : size >= 64));
  MemoryType type{};
  CHECK(s.d.pointer_get_attribute(&type, PointerAttribute::memory_type, p) ==
        success);
  CHECK(type == MemoryType::device);
  int ordinal = -1;
  CHECK(s.d.pointer_get_attribute(&ordinal, PointerAttribute::device_ordinal,
                                  p) == success);
  CHECK(ordinal == 0);
  CHECK(s.d.mem_free(p) == success);
}

TEST_CASE("contexts: a stack for each thread, and reference counts") {
  Session s("devices=2", 1);
  Context current = nullptr, popped = nullptr;
  CHECK(s.d.ctx_get_current(&current) == success);
  CHECK(current == s.context[0]);
  CHECK(s.d.ctx_push_current(s.context[0]) == success);
  CHECK(s.d.ctx_pop_current(&popped) == success);
  CHECK(popped == s.context[0]);
  Device device = -1;
  CHECK(s.d.ctx_get_device(&device) == success);
  CHECK(device == 0);
  unsigned flags = 0;
  int active = 0;
  CHECK(s.d.primary_ctx_get_state(0, &flags, &active) == success);
  CHECK(active == 1);
  Context again = nullptr;
  CHECK(s.d.primary_ctx_retain(&again, 0) == success);
  CHECK(again == s.context[0]);
  CHECK(s.d.primary_ctx_release(0) == success);
  CHECK(s.d.primary_ctx_get_state(0, &flags, &active) == success);
  CHECK(active == 1);
}

TEST_CASE("devices: attributes make sense") {
  Session s;
  int count = 0, value = 0;
  CHECK(s.d.device_get_count(&count) == success);
  CHECK(count >= 1);
  Device device = -1;
  CHECK(s.d.device_get(&device, count) == invalid_device);
  CHECK(s.d.device_get_attribute(&value, DeviceAttribute::warp_size, 0) ==
        success);
  CHECK(value == 32);
  CHECK(s.d.device_get_attribute(&value, DeviceAttribute::unified_addressing,
                                 0) == success);
  CHECK(value == 1);
  char name[100] = "";
  CHECK(s.d.device_get_name(name, sizeof(name), 0) == success);
  CHECK(std::strlen(name) > 0);
  size_t total = 0, free = 0;
  CHECK(s.d.device_total_mem(&total, 0) == success);
  CHECK(s.d.mem_get_info(&free, &total) == success);
  CHECK(free <= total);
  const char* text = nullptr;
  CHECK(s.d.get_error_name(illegal_address, &text) == success);
  CHECK(std::string(text) == "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_CASE("modules: globals, logs, cubins") {
  Session s;
  const char* ptx =
      ".version 7.0\n.target sm_70\n.address_size 64\n"
      ".visible .global .align 4 .u32 value[3] = {5, 6, 7};\n"
      ".visible .entry k() { ret; }\n";
  Module module = s.load(ptx);
  DevicePointer p = 0;
  size_t bytes = 0;
  CHECK(s.d.module_get_global(&p, &bytes, module, "value") == success);
  CHECK(bytes == 12);
  CHECK(s.download<unsigned>(p, 3) == std::vector<unsigned>{5, 6, 7});
  CHECK(s.d.module_unload(module) == success);

  char log[1000] = "";
  JitOption options[] = {JitOption::error_log_buffer,
                         JitOption::error_log_buffer_size_bytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  const char* wrong =
      ".version 7.0\n.target sm_70\n.address_size 64\n"
      ".visible .entry k() {\n nonsense.s32 1, 2;\n ret; }\n";
  CHECK(s.d.module_load_data_ex(&module, wrong, 2, options, values) ==
        invalid_ptx);
  CHECK(std::string(log).find("line 5") != std::string::npos);

  LinkState link = nullptr;
  void* cubin = nullptr;
  CHECK(s.d.link_create(0, nullptr, nullptr, &link) == success);
  CHECK(s.d.link_add_data(link, JitInput::ptx, const_cast<char*>(ptx),
                          std::strlen(ptx) + 1, "k", 0, nullptr,
                          nullptr) == success);
  CHECK(s.d.link_complete(link, &cubin, &bytes) == success);
  std::vector<char> image(static_cast<char*>(cubin),
                          static_cast<char*>(cubin) + bytes);
  CHECK(s.d.link_destroy(link) == success);
  CHECK(s.d.module_load_data(&module, image.data()) == success);
  s.function(module, "k");
  CHECK(s.d.module_unload(module) == success);
}
