#pragma once
#include "lang/context/value.h"

namespace unisono::host {

/// Whether a leaf of a value means the same in every session and on all
/// devices: a number, text or type of the host, or a function of the language
/// itself.
bool is_host_value(const lang::Value& leaf);

}  // namespace unisono::host
