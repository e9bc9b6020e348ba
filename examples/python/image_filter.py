"""A filter over an image that NumPy owns: Unisono reads it where it lies, on four devices."""
import numpy

import unisono

PROGRAM = """
# The mean of each pixel's 3 x 3 neighbours, with the edge repeated.
def blur(image: f32[h, w]) -> f32[h, w] {
  let rows = concat((image[:1], image, image[-1:]), axis=0)
  let all = concat((rows[:, :1], rows, rows[:, -1:]), axis=1)
  let across = all[:, :-2] + all[:, 1:-1] + all[:, 2:]
  (across[:-2] + across[1:-1] + across[2:]) / 9
}

# A stack of images, some on each device.
let blur_all = pmap(blur, in_axes=0, out_axes=0)
"""

image = numpy.zeros((8, 5, 7), numpy.float32)
image[:, 2, 3] = 9 * numpy.arange(1, 9)

with unisono.Session("cpu:4") as session:
    session.run(PROGRAM, "blur.uni")
    blurred = numpy.asarray(session["blur_all"](image))  # no copy, in either direction

print(blurred.shape, blurred.dtype, "writeable" if blurred.flags.writeable else "read-only")
print(blurred[2])
