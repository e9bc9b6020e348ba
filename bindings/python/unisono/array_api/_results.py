"""Results with several arrays, whose names the standard says."""
from collections import namedtuple

UniqueAll = namedtuple("UniqueAll",
                       "values indices inverse_indices counts")
UniqueCounts = namedtuple("UniqueCounts", "values counts")
UniqueInverse = namedtuple("UniqueInverse", "values inverse_indices")
Eigh = namedtuple("Eigh", "eigenvalues eigenvectors")
QR = namedtuple("QR", "Q R")
Slogdet = namedtuple("Slogdet", "sign logabsdet")
SVD = namedtuple("SVD", "U S Vh")
