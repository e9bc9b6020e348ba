"""What the namespace says of itself."""
from . import _dtypes
from ._array import DEVICE, check_device


class _Info:
    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True,
                "max dimensions": 64}

    def default_device(self):
        return DEVICE

    def devices(self):
        return [DEVICE]

    def default_dtypes(self, *, device=None):
        check_device(device)
        return {"real floating": _dtypes.float32, "integral": _dtypes.int32,
                "indexing": _dtypes.int32}

    def dtypes(self, *, device=None, kind=None):
        check_device(device)
        return {dtype.name: dtype for dtype in _dtypes.STANDARD
                if kind is None or _dtypes.isdtype(dtype, kind)}


def __array_namespace_info__():
    return _Info()
