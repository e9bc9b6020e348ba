#include "host/process.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "runtime/stack_thread.h"

namespace unisono::host {
namespace {

constexpr size_t usual_stack_bytes = size_t{8} << 20;
constexpr int most_reused_bytes = 32 << 20;  // the largest that malloc takes

}  // namespace

void prepare_process() {
  // What one operation frees the next one asks for. The system would clear each
  // page of it in between.
  mallopt(M_MMAP_THRESHOLD, most_reused_bytes);
  mallopt(M_TRIM_THRESHOLD, 2 * most_reused_bytes);
  std::signal(SIGXFSZ, SIG_IGN);
  // Else the next file that is opened would be our standard output. Reading and
  // writing them stays an error.
  for (int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(standard, F_GETFD) < 0 && errno == EBADF)
      open("/dev/null", standard == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void on_enough_stack(const std::function<void()>& body) {
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 ||
      limit.rlim_cur >= usual_stack_bytes)  // RLIM_INFINITY is the largest
    return body();
  // Threads that are started later get such a stack, too.
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, usual_stack_bytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
  const StackThread thread(usual_stack_bytes, body);
  if (!thread.started()) body();  // no memory for it: on what there is
}

}  // namespace unisono::host
