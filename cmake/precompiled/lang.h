#include "cmake/precompiled/standard.h"
#include "lang/context/walk.h"
