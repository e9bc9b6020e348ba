"""The Python array API standard, version 2024.12, computed by Unisono.

Functions, element types and the array object are the standard's:
https://data-apis.org/array-api/2024.12. There are no complex numbers, and no
extensions but `linalg`. docs/array-api.md says what passes the
standard's test suite.
"""
import math as _math

from . import _dtypes, _elementwise, _functions, linalg
from ._array import (API_VERSION as __array_api_version__, Array, asarray,
                     astype, from_dlpack)
from ._dtypes import (bfloat16, bool, can_cast, finfo, float16, float32,
                      float64, iinfo, int8, int16, int32, int64, isdtype,
                      result_type, uint8, uint16, uint32, uint64)
from ._info import __array_namespace_info__

e, inf, nan, newaxis, pi = _math.e, _math.inf, _math.nan, None, _math.pi
globals().update(_elementwise.FUNCTIONS)
globals().update(_functions.FUNCTIONS)
