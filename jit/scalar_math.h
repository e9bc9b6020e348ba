#pragma once
#include "jit/scalar_ops.h"
