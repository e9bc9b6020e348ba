"""What indexing means, apart from the language's own code: arrays as lists of Python's numbers, for tests/index_programs.py. With
`numpy` set each selection is compared with NumPy's."""
import itertools
import math

numpy = None


def times(sizes):
    return math.prod(sizes)


class Table:
    """An array: its elements in the order of rows; a mask selects where it is true."""

    def __init__(self, shape, values, mask=False):
        self.shape, self.values, self.mask = tuple(shape), list(values), mask
        assert times(self.shape) == len(self.values)

    def each(self, function, *others):
        return Table(self.shape, map(function, self.values, *(other.values for other in others)))


class Misfit(Exception):
    """What is between the brackets does not fit the array."""


class Linear:
    """A number and its derivatives, by the positions that they are along."""

    def __init__(self, value, parts):
        self.value, self.parts = value, parts

    @staticmethod
    def of(x):
        return x if isinstance(x, Linear) else Linear(x, {})

    def combined(self, other, value, mine, its):
        parts = {at: mine * part for at, part in self.parts.items()}
        for at, part in other.parts.items():
            parts[at] = parts.get(at, 0) + its * part
        return Linear(value, parts)

    def __add__(self, other):
        other = Linear.of(other)
        return self.combined(other, self.value + other.value, 1, 1)

    def __sub__(self, other):
        other = Linear.of(other)
        return self.combined(other, self.value - other.value, 1, -1)

    def __mul__(self, other):
        other = Linear.of(other)
        return self.combined(other, self.value * other.value, other.value, self.value)

    def __rsub__(self, other):
        return Linear.of(other) - self

    __radd__, __rmul__ = __add__, __mul__


def strides_of(shape):
    return [times(shape[axis + 1:]) for axis in range(len(shape))]


def moved(table, order):
    """Axes in another order."""
    shape = [table.shape[axis] for axis in order]
    steps = [strides_of(table.shape)[axis] for axis in order]
    return Table(shape, [table.values[sum(map(int.__mul__, at, steps))] for at in itertools.product(*map(range, shape))])


def broadcast(table, shape):
    """Its elements at the places of a larger shape."""
    own = (1,) * (len(shape) - len(table.shape)) + table.shape[max(len(table.shape) - len(shape), 0):]
    steps = [0 if size == 1 else step for size, step in zip(own, strides_of(own))]
    return Table(shape, [table.values[sum(map(int.__mul__, at, steps))] for at in itertools.product(*map(range, shape))])


def common_shape(shapes):
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    out = []
    for sizes in zip(*padded):
        largest = {size for size in sizes if size != 1}
        if len(largest) > 1:
            raise Misfit
        out.append(largest.pop() if largest else 1)
    return tuple(out)


def places(shape, index):
    """The positions in an array of this shape that an index selects: a table of them. Items of an index are ints, slices, None,
    `...`, and tables of ints or of bools. A `...` for no axes is nothing, as in JAX; to NumPy it is something between arrays."""
    named = sum(len(item.shape) if is_mask(item) else item is not None and item is not ... for item in index)
    items = []
    for item in index:
        if item is ...:
            items += [slice(None)] * (len(shape) - named)
        elif is_mask(item):
            true = [at for at, here in zip(itertools.product(*map(range, item.shape)), item.values) if here]
            items += [Table((len(true),), [at[axis] for at in true]) for axis in range(len(item.shape))]
        else:
            items.append(item)
    if ... not in index:
        items += [slice(None)] * (len(shape) - named)
    result = selected(shape, items)
    if numpy:
        every = numpy.arange(times(shape)).reshape(shape)
        theirs = every[tuple(of_numpy(item) for item in index if item is not ... or named < len(shape))]
        assert theirs.shape == result.shape and theirs.reshape(-1).tolist() == result.values, (shape, index, theirs.shape, result.shape)
    return result


def of_numpy(item):
    return numpy.array(item.values, bool if item.mask else int).reshape(item.shape) if isinstance(item, Table) else item


def is_mask(item):
    return isinstance(item, Table) and item.mask


def selected(shape, items):
    """`places` of items of which each but None takes one axis."""
    arrays = any(isinstance(item, Table) for item in items)
    joint = [at for at, item in enumerate(items) if isinstance(item, Table) or (arrays and isinstance(item, int))]
    block = common_shape([items[at].shape for at in joint if isinstance(items[at], Table)])
    together = not joint or joint[-1] - joint[0] == len(joint) - 1
    steps = strides_of(shape)
    sizes, parts = [], []  # of the result: each axis with the positions that it adds
    start, axis, joined, front = 0, 0, [0] * times(block), 0
    for at, item in enumerate(items):
        if joint and at == joint[0]:
            front = len(sizes) if together else 0
        if item is None:
            sizes.append(1)
            parts.append([0])
            continue
        size, step = shape[axis], steps[axis]
        axis += 1
        if isinstance(item, Table):
            if not all(-size <= i < size for i in item.values):
                raise Misfit
            joined = [sum_ + i % size * step for sum_, i in zip(joined, broadcast(item, block).values)]
        elif isinstance(item, slice):
            there = range(*item.indices(size))
            sizes.append(len(there))
            parts.append([i * step for i in there])
        else:
            if not -size <= item < size:
                raise Misfit
            start += item % size * step
    shape = sizes[:front] + list(block) + sizes[front:]
    before, behind = (list(map(sum, itertools.product(*some))) for some in (parts[:front], parts[front:]))
    return Table(shape, [start + a + b + c for a in before for b in joined for c in behind])


def read(table, index):
    return places(table.shape, index).each(lambda at: table.values[at])


def write(table, index, value, op=None):
    """`table[index] op= value`: all is read first; of several that write to one place the last one stays."""
    there = places(table.shape, index)
    new = broadcast(value, there.shape)
    if op:
        new = there.each(lambda at, v: op(table.values[at], v), new)
    out = list(table.values)
    for at, v in zip(there.values, new.values):
        out[at] = v
    return Table(table.shape, out)


def add_all(table, index, value):
    """Also where places repeat."""
    there = places(table.shape, index)
    out = list(table.values)
    for at, v in zip(there.values, broadcast(value, there.shape).values):
        out[at] = out[at] + v
    return Table(table.shape, out)
