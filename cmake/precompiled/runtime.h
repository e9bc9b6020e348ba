#include "cmake/precompiled/standard.h"
#include "runtime/device.h"
#include "runtime/result.h"
