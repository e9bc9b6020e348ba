#include <filesystem>
#include <nlohmann/json.hpp>

#include "cmake/precompiled/standard.h"
#include "lang/source/diagnostics.h"
#include "lang/syntax/ast.h"
