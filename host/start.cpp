#include <commit.h>

#include "host/main.h"

int main(int argc, char** argv) {
  return unisono::host::command_line(argc, argv, UNISONO_COMMIT);
}
