// Values: made, read, borrowed, handed over by DLPack, passed to functions.
#include <dlpack/dlpack.h>
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "embed/unisono.hpp"

using unisono::Kind;
using unisono::Value;

struct Parameters {
  std::vector<float> w;
  float b = 0;
  bool operator==(const Parameters&) const = default;
};
UNISONO_RECORD(Parameters, w, b)
struct Model {
  Parameters inner;
  int64_t steps = 0;
  std::string name;
};
UNISONO_RECORD(Model, inner, steps, name)

namespace {

// As dlpack.h of later versions has it.
struct Versioned {
  uint32_t major, minor;
  void* manager_ctx;
  void (*deleter)(Versioned*);
  uint64_t flags;
  DLTensor dl_tensor;
};
Versioned* versioned(DLManagedTensorVersioned* tensor) {
  return reinterpret_cast<Versioned*>(tensor);
}

}  // namespace

TEST_CASE("values of the host") {
  CHECK(Value().kind() == UNISONO_VALUE_NONE);
  CHECK(Value(true).as<bool>().value());
  CHECK(Value(-7).as<int>().value() == -7);
  CHECK(Value(-7).as<unsigned>().error().kind() == Kind::misuse);
  CHECK(Value(UINT64_MAX).type() == "u64");
  CHECK(Value(0.25).kind() == UNISONO_VALUE_NUMBER);
  CHECK(Value(0.25).as<double>().value() == 0.25);
  CHECK(std::isnan(Value(std::nan("")).as<double>().value()));
  CHECK(Value("größer").as<std::string>().value() == "größer");
  CHECK_THROWS_AS(Value("\xff"), unisono::Exception);
  CHECK(Value("x").as<int>().error().kind() == Kind::misuse);
  CHECK(Value::scalar(3.5f).type() == "f32");
  CHECK(Value::scalar(3.5f).as<float>().value() == 3.5f);
  CHECK(Value::scalar(true).as<bool>().value());
  CHECK(Value::scalar(int8_t{-3}).as<int>().value() == -3);
  const Value pair = Value::tuple({1, "x"});
  CHECK(pair.type() == "(int, str)");
  CHECK(pair[1].value().as<std::string>().value() == "x");
  CHECK(pair[2].error().kind() == Kind::misuse);
  CHECK(pair["x"].error().kind() == Kind::misuse);
  CHECK_THROWS_AS(Value::record({{"a", 1}, {"a", 2}}), unisono::Exception);
  CHECK_THROWS_AS(Value::record({{"a b", 1}}), unisono::Exception);
}

TEST_CASE("records are structures") {
  const Model model{{{1, 2, 3}, 0.5}, 7, "m"};
  const Value value = Value::of(model);
  CHECK(value.type() == "(inner: (w: f32[3], b: f32), steps: i64, name: str)");
  const Model back = value.as<Model>().value();
  CHECK(back.inner == model.inner);
  CHECK(back.steps == 7);
  CHECK(back.name == "m");
  CHECK(Value::tuple({1}).as<Parameters>().error().kind() == Kind::misuse);
  unisono::Engine engine;
  auto session = engine.session();
  session.eval("def f(p) { (w = p.w * 2.0, b = sum(p.w) + p.b) }").value();
  const auto result =
      session.function("f")->call({Value::of(model.inner)}).value();
  CHECK(result.as<Parameters>().value() == Parameters{{2, 4, 6}, 6.5});
}

TEST_CASE("borrowed memory is not copied, and released once") {
  std::vector<float> x(1000, 2.0f);
  int released = 0;
  unisono::Engine engine;
  {
    auto session = engine.session();
    {
      const Value value =
          Value::borrow(x.data(), {10, 100}, [&] { ++released; });
      CHECK(value.tensor().value().data == x.data());
      session.eval("def f(x) { x }\ndef g(x) { sum(x) }").value();
      const auto same = session.function("f")->call({value}).value();
      CHECK(same.tensor().value().data == x.data());
      CHECK(session.function("g")->call({value}).value().as<float>().value() ==
            2000);
      REQUIRE(session.set("kept", value));
    }
    CHECK(released == 0);
    CHECK(session.eval("kept[3, 4]").value().as<float>().value() == 2);
  }
  CHECK(released == 1);
}

TEST_CASE("nothing writes to borrowed memory") {
  std::vector<float> x(1000, 2.0f);
  unisono::Engine engine;
  auto session = engine.session();
  session.eval("def f(x) { x + 1.0 }\nlet g = pmap(f, donate=0)").value();
  REQUIRE(session.set("x", Value::borrow(x.data(), {1, 1000})));
  session.eval("let y = g(x)").value();
  CHECK(x == std::vector<float>(1000, 2.0f));
  CHECK(session.eval("sum(y)").value().as<float>().value() == 3000);
  const auto f = session.function("g").value();
  CHECK(f.call({Value::borrow(x.data(), {1, 1000})}).value().type() ==
        "f32[1, 1000]");
  CHECK(x == std::vector<float>(1000, 2.0f));
}

TEST_CASE("what is not dense or aligned is copied") {
  std::vector<char> bytes(4 * 10 + 1);
  const float number = 1.5f;
  for (int i = 0; i < 10; ++i)
    std::memcpy(&bytes[1 + 4 * i], &number, sizeof number);
  const int64_t ten = 10;
  UnisonoTensor tensor{&bytes[1], &ten, nullptr, 1, UNISONO_F32};
  UnisonoValue* value = nullptr;
  REQUIRE(unisono_value_borrow(&tensor, nullptr, nullptr, &value) == nullptr);
  CHECK(Value(value).as<std::vector<float>>().value() ==
        std::vector<float>(10, 1.5f));
  const std::vector<int32_t> matrix{0, 1, 2, 3, 4, 5};
  const int64_t shape[] = {3, 2}, strides[] = {1, 3}, backwards[] = {-1, 3};
  tensor = {const_cast<int32_t*>(matrix.data()), shape, strides, 2,
            UNISONO_I32};
  REQUIRE(unisono_value_borrow(&tensor, nullptr, nullptr, &value) == nullptr);
  const Value transposed(value);
  const auto view = transposed.view<int32_t, 2>().value();
  CHECK(std::vector<int32_t>(view.begin(), view.end()) ==
        std::vector<int32_t>{0, 3, 1, 4, 2, 5});
  tensor.data = const_cast<int32_t*>(matrix.data()) + 2;
  tensor.strides = backwards;
  REQUIRE(unisono_value_borrow(&tensor, nullptr, nullptr, &value) == nullptr);
  const Value reversed(value);
  CHECK(reversed.view<int32_t, 2>().value()(0, 1) == 5);
}

TEST_CASE("tensors that are none") {
  const int64_t negative = -1, huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  const int64_t empty[] = {0, int64_t{1} << 62};
  float x = 0;
  UnisonoValue* value = nullptr;
  const UnisonoTensor wrong[] = {
      {&x, nullptr, nullptr, 1, UNISONO_F32},
      {&x, &negative, nullptr, 1, UNISONO_F32},
      {&x, huge, nullptr, 2, UNISONO_F32},
      {&x, huge, nullptr, 2, 13},
      {&x, huge, nullptr, 2, -1},
      {&x, huge, nullptr, 65, UNISONO_F32},
      {&x, huge, nullptr, -1, UNISONO_F32},
      {nullptr, nullptr, nullptr, 0, UNISONO_F32},
  };
  for (const UnisonoTensor& tensor : wrong) {
    UnisonoError* error = unisono_value_copy(&tensor, &value);
    CHECK(unisono_error_kind(error) == UNISONO_MISUSE);
    unisono_error_release(error);
  }
  const UnisonoTensor nothing{nullptr, empty, nullptr, 2, UNISONO_F32};
  REQUIRE(unisono_value_copy(&nothing, &value) == nullptr);
  const Value none(value);
  unisono::Engine engine;
  auto session = engine.session();
  CHECK(session.function("sum")->value().kind() == UNISONO_VALUE_FUNCTION);
  session.eval("def f(x) { sum(x) }").value();
  CHECK(session.function("f")->call({none}).value().as<float>().value() == 0);
}

TEST_CASE("values of other sessions") {
  unisono::Engine engine({.devices = "cpu:2"});
  auto first = std::make_optional(engine.session());
  auto second = engine.session();
  const Value x = first->eval("arange(6)").value();
  const Value split =
      first->eval("axis d = devices()\npmap(fn(x) => x, over=d)(ones((2, 3)))")
          .value();
  const Value function = first->eval("fn(x) => x + 1").value();
  const Value device = first->eval("devices()[0]").value();
  first.reset();
  second.eval("def total(x) { sum(x) }").value();
  const auto total = second.function("total").value();
  CHECK(total.call({x}).value().as<int>().value() == 15);
  CHECK(total.call({split}).value().as<float>().value() == 6);
  CHECK(total.call({function}).error().kind() == Kind::misuse);
  CHECK(total.call({device}).error().kind() == Kind::misuse);
  // Its session is kept by it.
  CHECK(unisono::Function(function).call({2}).value().as<int>().value() == 3);
  REQUIRE(second.set("x", x));
  CHECK(second.eval("x[5]").value().as<int>().value() == 5);
}

TEST_CASE("named arguments, and mistakes in calls") {
  unisono::Engine engine;
  auto session = engine.session();
  session.eval("def f(x: f32[n], *, k: f32 = 2.0) -> f32[n] { x * k }").value();
  const auto f = session.function("f").value();
  const Value x = Value::of(std::vector<float>{1, 2});
  CHECK(f.call({x}).value().as<std::vector<float>>().value() ==
        std::vector<float>{2, 4});
  CHECK(f.call({x}, {{"k", 3.0}}).value().as<std::vector<float>>().value() ==
        std::vector<float>{3, 6});
  CHECK(f.call({x}, {{"j", 3.0}}).error().kind() == Kind::check);
  CHECK(f.call({}).error().kind() == Kind::check);
  CHECK(f.call({Value("x")}).error().kind() == Kind::check);
  CHECK(f.signature() == "f(x: f32[n], *, k: f32 = 2.0) -> f32[n]");
}

TEST_CASE("dlpack, with a version") {
  unisono::Engine engine;
  auto session = engine.session();
  const Value x = session.eval("[[1.5, 2.5], [3.5, 4.5]]").value();
  for (const bool copy : {false, true}) {
    auto* given = versioned(x.to_dlpack(copy).value());
    CHECK(given->major == 1);
    CHECK(given->flags == (copy ? 2 : 1));
    CHECK(given->dl_tensor.ndim == 2);
    CHECK(given->dl_tensor.shape[1] == 2);
    CHECK(given->dl_tensor.dtype.bits == 32);
    CHECK(static_cast<float*>(given->dl_tensor.data)[3] == 4.5f);
    CHECK((given->dl_tensor.data == x.tensor().value().data) == !copy);
    given->deleter(given);
  }
  static int deleted = 0;
  std::vector<int16_t> data{1, 2, 3};
  int64_t three = 3;
  Versioned own{1, 2, nullptr, [](Versioned*) { ++deleted; }, 0, {}};
  own.dl_tensor = {data.data(), {kDLCPU, 0}, 1, {kDLInt, 16, 1},
                   &three,      nullptr,     0};
  auto* tensor = reinterpret_cast<DLManagedTensorVersioned*>(&own);
  {
    const Value value = Value::from_dlpack(tensor).value();
    CHECK(value.type() == "i16[3]");
    CHECK(value.tensor().value().data == data.data());
  }
  CHECK(deleted == 1);
  own.major = 2;
  CHECK(Value::from_dlpack(tensor).error().kind() == Kind::misuse);
  own.major = 1;
  own.dl_tensor.device.device_type = kDLCUDA;
  CHECK(Value::from_dlpack(tensor).error().kind() == Kind::misuse);
  own.dl_tensor.device.device_type = kDLCPU;
  own.dl_tensor.dtype.lanes = 4;
  CHECK(Value::from_dlpack(tensor).error().kind() == Kind::misuse);
  CHECK(deleted == 1);
}

TEST_CASE("dlpack, without a version") {
  const Value x = Value::of(std::vector<double>{1, 2});
  DLManagedTensor* given = nullptr;
  REQUIRE(unisono_value_to_dlpack_unversioned(x.handle(), &given) == nullptr);
  CHECK(static_cast<double*>(given->dl_tensor.data)[1] == 2);
  UnisonoValue* value = nullptr;
  REQUIRE(unisono_value_from_dlpack_unversioned(given, &value) == nullptr);
  CHECK(Value(value).as<std::vector<double>>().value() ==
        std::vector<double>{1, 2});
  UnisonoError* refused =
      unisono_value_to_dlpack_unversioned(Value("x").handle(), &given);
  REQUIRE(refused != nullptr);
  unisono_error_release(refused);
}
