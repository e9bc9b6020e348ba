/* A host in C: what the header says is C99, and enough. */
#include <stdio.h>
#include <string.h>
#include <unisono.h>

static int fail(UnisonoError* error) {
  fprintf(stderr, "%s", unisono_error_text(error, 0));
  unisono_error_release(error);
  return 1;
}

static void print(void* user, const char* text, size_t length,
                  UnisonoReply* reply) {
  (void)reply;
  fwrite(text, 1, length, (FILE*)user);
}

int main(void) {
  const char* program = "print(\"hello\")\nsum(arange(5))";
  UnisonoEngine* engine = NULL;
  UnisonoSession* session = NULL;
  UnisonoValue* value = NULL;
  int64_t number = 0;
  UnisonoError* error = unisono_engine_create(NULL, &engine);
  UnisonoSessionOptions options = UNISONO_SESSION_OPTIONS_INIT;
  options.print = print;
  options.user = stdout;
  if (error) return fail(error);
  if ((error = unisono_session_create(engine, &options, &session)))
    return fail(error);
  if ((error = unisono_eval(session, program, strlen(program), "plain.uni",
                            NULL, &value)))
    return fail(error);
  if ((error = unisono_value_get_int(value, &number))) return fail(error);
  printf("%d\n", (int)number);
  unisono_value_release(value);
  unisono_session_release(session);
  unisono_engine_release(engine);
  return 0;
}
