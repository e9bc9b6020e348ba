#include "host/cluster/shared_gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "runtime/cluster/cluster_device.h"
#include "runtime/cluster/host_mover.h"
#include "runtime/cluster/tell_all.h"
#include "runtime/nccl/nccl_mover.h"

namespace unisono::host {
namespace {

using Problem = std::array<char, 512>;

/// The first process's problem.
template <class T>
Status check_problems(const Cluster& cluster, const std::vector<T>& all) {
  const int p = first_problem(all);
  if (p < 0) return Unit{};
  return Error{.kind = Error::Kind::device_lost,
               .message = fmt::format("{}: {}", cluster.label(p),
                                      all[p].problem.data())};
}

Error uneven(const std::string& host, int gpus, int processes) {
  if (gpus == 0)
    return {.kind = Error::Kind::device_lost,
            .message = fmt::format("the CUDA driver of {} found no GPU", host)};
  std::vector<int> fitting;
  for (int n = 1; n <= gpus; ++n)
    if (gpus % n == 0) fitting.push_back(n);
  return {.message = fmt::format(
              "{} has {} {}, which {} processes there cannot share evenly: "
              "start {} there, or name the GPUs that each process takes, as in "
              "`--devices cuda:0`",
              host, gpus, gpus == 1 ? "GPU" : "GPUs", processes,
              fmt::join(fitting, " or "))};
}

}  // namespace

Result<std::vector<int>> share_gpus(const std::vector<HostGpus>& all,
                                    int process) {
  std::vector<int> own;
  std::vector<int> counts;
  for (size_t p = 0; p < all.size(); ++p) {
    int processes = 0, before = 0;
    bool alike = true;
    for (size_t q = 0; q < all.size(); ++q) {
      if (all[q].host != all[p].host) continue;
      before += q < p ? 1 : 0;
      ++processes;
      alike &= all[q].visible == all[p].visible;
    }
    const int gpus = all[p].count;
    if (!alike) {  // each sees its own
      processes = 1;
      before = 0;
    }
    if (gpus % processes != 0 || gpus == 0)
      return uneven(all[p].host, gpus, processes);
    const int each = gpus / processes;
    counts.push_back(each);
    for (int i = 0; static_cast<int>(p) == process && i < each; ++i)
      own.push_back(before * each + i);
  }
  for (size_t p = 1; p < counts.size(); ++p)
    if (counts[p] != counts[0])
      return Error{.message = fmt::format(
                       "process 0 on {} would have {} GPUs, and process {} on "
                       "{} {}: all have the same number, so start as many "
                       "processes for each GPU of every host, or name the GPUs "
                       "that each process takes, as in `--devices cuda:0`",
                       all[0].host, counts[0], p, all[p].host, counts[p])};
  return own;
}

Result<DeviceRequest> request_own_gpus(Cluster& cluster,
                                       DeviceRequest request) {
  if (cluster.devices_each() > 0) return request;
  struct Seen {
    int count = 0;
    std::array<char, 256> visible{};
    Problem problem{};
  } own;
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  set_text(own.visible, visible ? visible : "all");
  if (const auto count = count_gpus())
    own.count = *count;
  else
    set_text(own.problem, count.error().message);
  const std::vector<Seen> all = TRY(tell_all(cluster, own));
  TRY(check_problems(cluster, all));
  std::vector<HostGpus> hosts;
  for (int p = 0; p < cluster.processes(); ++p)
    hosts.push_back({cluster.host(p), all[p].count, all[p].visible.data()});
  request.gpus = TRY(share_gpus(hosts, cluster.process()));
  cluster.set_devices_each(static_cast<int>(request.gpus.size()));
  return request;
}

Result<CommonDevices> open_devices_together(
    const std::shared_ptr<Cluster>& cluster, const DeviceRequest& request,
    std::shared_ptr<DiskCache> cache) {
  if (request.kind == DeviceRequest::Kind::cpu)
    return CommonDevices{make_cluster_devices(cluster), "", ""};
  const int each = cluster->devices_each();
  auto gpus = std::make_shared<ClusterGpus>();
  gpus->kind = request.kind == DeviceRequest::Kind::sim ? "sim" : "cuda";
  std::vector<std::string> names;
  for (int i = 0; i < each; ++i)
    names.push_back(
        fmt::format("{}:{}", gpus->kind, cluster->process() * each + i));
  auto opened = open_devices(request, std::move(cache), names);
  struct Opened {
    std::array<int, max_devices> capabilities{};
    Problem problem{};
  } own;
  if (!opened)
    set_text(own.problem, opened.error().message);
  else
    for (int i = 0; i < each; ++i)
      own.capabilities[i] = (*opened)[i]->capability();
  const std::vector<Opened> all = TRY(tell_all(*cluster, own));
  TRY(check_problems(*cluster, all));
  for (const Opened& process : all)
    gpus->capabilities.insert(gpus->capabilities.end(),
                              process.capabilities.begin(),
                              process.capabilities.begin() + each);
  std::vector<std::shared_ptr<Device>> devices;
  for (auto& device : *opened) devices.push_back(std::move(device));
  const char* given = std::getenv("UNISONO_NCCL");
  const std::string library = given ? given : "";
  std::string why;
  if (!library.empty() || request.kind == DeviceRequest::Kind::cuda) {
    auto nccl = TRY(open_nccl_mover(cluster, devices, library));
    gpus->mover = std::move(nccl.mover);
    why = std::move(nccl.why);
  }
  if (!gpus->mover) gpus->mover = make_host_mover(*cluster);
  std::string moved_by = gpus->mover->name();
  return CommonDevices{make_cluster_devices(cluster, std::move(gpus), devices),
                       std::move(why), std::move(moved_by)};
}

}  // namespace unisono::host
