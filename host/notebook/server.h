#pragma once
// The server of xeus, with what a notebook expects of it beside.
#include <memory>
#include <xeus/xeus_context.hpp>
#include <xeus/xkernel_configuration.hpp>
#include <xeus/xserver.hpp>

namespace unisono::host {

/// Messages to the shell arrive on the thread that starts the kernel, those
/// that must be heard while it is busy (shutdown) on another one. After a cell
/// that failed, those that were waiting are aborted.
std::unique_ptr<xeus::xserver> make_server(
    xeus::xcontext& context, const xeus::xconfiguration& configuration,
    nlohmann::json::error_handler_t bad_utf8);

}  // namespace unisono::host
