#pragma once
// Products of matrices by cuBLASLt on one stream.
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "runtime/cuda/cublas_library.h"
#include "runtime/kernel_library/kernel_library.h"

namespace unisono::cublas {

/// Opens the library when it is first asked for, as that takes a second.
/// Thread-safe.
class Source {
 public:
  /// The arguments of Library::open.
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

/// The library in one context, which is current whenever a member is called.
/// Thread-safe. Members report no errors: a product that the library does not
/// take is done by a kernel of ours.
class Products {
 public:
  /// Null if the library does not start in this context.
  static std::unique_ptr<Products> open(std::shared_ptr<const Library> library);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// Chooses the library's algorithm, once for each product; false if it has
  /// none.
  bool prepare(const MatrixProduct& product);
  /// Puts a product that was prepared in the stream. Arguments are the
  /// addresses of a, b and c; `workspace` has workspace_bytes. False if nothing
  /// was put in the stream.
  bool launch(const MatrixProduct& product, std::span<void* const> arguments,
              void* workspace, cuda::Stream stream);

  static constexpr size_t workspace_bytes = size_t{32} << 20;

 private:
  struct Plan;
  Products(std::shared_ptr<const Library> library, Handle handle);
  std::unique_ptr<Plan> make(const MatrixProduct& product) const;

  std::shared_ptr<const Library> library_;
  HandleOpaque* const handle_;
  std::mutex mutex_;
  /// Null of products that the library does not take.
  std::map<MatrixProduct, std::unique_ptr<Plan>> plans_;
};

}  // namespace unisono::cublas
