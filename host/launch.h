#pragma once
// `unisono launch`: one program in several processes of this machine.
#include <string>
#include <vector>

namespace unisono::host {

/// Starts `processes` of them with `unisono run WORDS`, and waits for them. The
/// exit status is theirs.
int launch(int processes, const std::vector<std::string>& words);

}  // namespace unisono::host
