#pragma once
// Products of matrices by cuBLASLt on one stream.
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "runtime/cuda/cublas_library.h"
#include "runtime/grid_library/grid_library.h"

namespace unisono::cublas {

/// Where the library comes from: opened when it is first asked for, as that
/// takes a while. Thread-safe.
class Source {
 public:
  /// As Library::open takes them.
  Source(std::string path, int driver_version)
      : path_(std::move(path)), driver_version_(driver_version) {}
  /// Null if there is none.
  std::shared_ptr<const Library> library();

 private:
  const std::string path_;
  const int driver_version_;
  std::once_flag opened_;
  std::shared_ptr<const Library> library_;
};

/// Of one context, which is current when a member is called. Thread-safe.
/// Whatever the library answers, a product that it did not take can still be
/// done otherwise.
class Products {
 public:
  /// Null if the library does not start there.
  static std::unique_ptr<Products> open(std::shared_ptr<const Library> library);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// Chooses how the product is done, once for each; false if the library does
  /// not do it.
  bool prepare(const MatrixProduct& product);
  /// Puts it to the stream: arguments are a, b, c. Bytes of the workspace are
  /// those of workspace_bytes. False if nothing was put there.
  bool launch(const MatrixProduct& product, std::span<void* const> arguments,
              void* workspace, cuda::Stream stream);

  static constexpr size_t workspace_bytes = size_t{32} << 20;

 private:
  struct Plan;
  Products(std::shared_ptr<const Library> library, Handle handle);
  std::unique_ptr<Plan> make(const MatrixProduct& product) const;

  std::shared_ptr<const Library> library_;
  const Handle handle_;
  std::mutex mutex_;
  /// Null: not by the library.
  std::map<MatrixProduct, std::unique_ptr<Plan>> plans_;
};

}  // namespace unisono::cublas
