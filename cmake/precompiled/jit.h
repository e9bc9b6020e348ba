#include "cmake/precompiled/standard.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "jit/ir/graph.h"
