// The peer of bench/mpi.py: y = sum over processes of y / processes, with
// MPI_Allreduce, again and again. Prints the least seconds of a turn, of some
// runs, and the first element.
//
// usage: mpirun -n N mpi_allreduce ELEMENTS TURNS RUNS
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
  const int elements = std::atoi(argv[1]), turns = std::atoi(argv[2]),
            runs = std::atoi(argv[3]);
  int process = 0, processes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  const float part = 1.0f / static_cast<float>(processes);
  std::vector<float> y(elements, 1.0f);
  double least = 1e30;
  for (int r = 0; r < runs; ++r) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < turns; ++i) {
      for (float& e : y) e *= part;
      MPI_Allreduce(MPI_IN_PLACE, y.data(), elements, MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
    }
    least = std::min(least, (MPI_Wtime() - start) / turns);
  }
  if (process == 0) std::printf("%.9f %g\n", least, y[0]);
  MPI_Finalize();
}
