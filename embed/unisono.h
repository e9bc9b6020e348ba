/* Unisono inside another program: the C interface.
 *
 * An engine has devices and compiled code, a session has the names of one
 * program, a value is what a name holds; docs/embedding.md shows how they are
 * used, unisono.hpp is C++ over this file.
 *
 * Ownership. What a function gives through its last parameter, or makes, is a
 * reference of the caller's, given back by the function `..._release` of its
 * type; another one is taken by `..._retain`. Null may be released. An object
 * lives as long as somebody has a reference to it; a session keeps its engine,
 * and a value of a session keeps that session. Text that comes without an
 * owner of its own (`const char*`) ends with a zero byte and lives as long as
 * the object that it was asked of, unless its function says less.
 *
 * Errors. A function that may fail gives a UnisonoError, or null for success;
 * after an error, it has written to none of its parameters. Nothing is
 * printed, no signal is raised, and no exception passes through these
 * functions. The process ends only where Unisono finds that its own state is
 * broken.
 *
 * Threads. Engines, values, errors, stops and typed functions may be used by
 * any number of threads at once. A session is used by one thread at a time,
 * not always the same one; a call that comes while another thread uses it, or
 * from a callback of its own, fails with UNISONO_BUSY. Calls of a function
 * wait until its session is free.
 *
 * The process's signals, locale, standard streams, environment and current
 * CUDA context are left as they are. The floating-point state is that of C
 * while a function of this file runs, and what it was before afterwards.
 *
 * Compatibility. This interface only grows. A structure that may grow begins
 * with `struct_size`, which the caller sets to its sizeof; the macros
 * UNISONO_..._INIT do so and leave all else at 0, which is always a sensible
 * choice. Enumerations are passed as int32_t and may get new values.
 */
#ifndef UNISONO_H
#define UNISONO_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define UNISONO_API __attribute__((visibility("default")))
#define UNISONO_MAY_FAIL \
  __attribute__((visibility("default"), warn_unused_result))
#else
#define UNISONO_API
#define UNISONO_MAY_FAIL
#endif

/* A structure with its size in it, and 0 in all else. */
#ifdef __cplusplus
template <class Structure>
inline Structure unisono_init() {
  Structure all = Structure();
  all.struct_size = sizeof(Structure);
  return all;
}
#define UNISONO_INIT(Structure) unisono_init<Structure>()
extern "C" {
#else
#define UNISONO_INIT(Structure) {.struct_size = sizeof(Structure)}
#endif

/* Raised by one when something is added. A program works with every library
 * whose unisono_abi_version() is at least the UNISONO_ABI_VERSION that it was
 * compiled with. */
#define UNISONO_ABI_VERSION 1
UNISONO_API uint32_t unisono_abi_version(void);
/* "0.2.0" */
UNISONO_API const char* unisono_version(void);

typedef struct UnisonoEngine UnisonoEngine;
typedef struct UnisonoSession UnisonoSession;
typedef struct UnisonoValue UnisonoValue;
typedef struct UnisonoTyped UnisonoTyped;
typedef struct UnisonoStop UnisonoStop;
typedef struct UnisonoError UnisonoError;
typedef struct UnisonoReply UnisonoReply;

/* ---- errors ------------------------------------------------------------- */

/* What kind of thing went wrong, for code that decides by it. */
typedef enum UnisonoErrorKind {
  UNISONO_NO_ERROR = 0,  /* of unisono_session_warnings alone */
  UNISONO_SYNTAX = 1,    /* the text is no program */
  UNISONO_CHECK = 2,     /* names, types, sizes or axes do not fit */
  UNISONO_RUNTIME = 3,   /* it failed while it ran: an index, an assertion */
  UNISONO_FILE = 4,      /* a file cannot be read or written, or must not be */
  UNISONO_LIMIT = 5,     /* a limit of the session, of the call, or of every
                            program (a text has 16 MiB) is reached */
  UNISONO_CANCELLED = 6, /* a stop was requested */
  UNISONO_MEMORY = 7,    /* the machine has not so much memory */
  UNISONO_DEVICE = 8,   /* a device is lost, does not answer, or is not there */
  UNISONO_HOST = 9,     /* a callback of the host said that it failed */
  UNISONO_MISUSE = 10,  /* a function of this file was called wrongly */
  UNISONO_BUSY = 11,    /* the session is in use */
  UNISONO_INTERNAL = 12 /* a mistake in Unisono itself */
} UnisonoErrorKind;

typedef enum UnisonoSeverity {
  UNISONO_SEVERITY_ERROR = 0,
  UNISONO_SEVERITY_WARNING = 1,
  UNISONO_SEVERITY_NOTE = 2,
  UNISONO_SEVERITY_PERFORMANCE = 3
} UnisonoSeverity;

/* The bytes [begin, end) of a source text. Lines and columns count from 1,
 * columns in code points. `file` is null for what has no place, the name that
 * the text was given otherwise. */
typedef struct UnisonoPlace {
  const char* file;
  int32_t line, column, end_line, end_column;
  uint32_t begin, end;
} UnisonoPlace;

/* One message: one sentence, and what belongs to it. */
typedef struct UnisonoMessage {
  size_t struct_size;
  const char* code; /* "U0301", which `unisono explain` knows */
  int32_t severity; /* UnisonoSeverity */
  const char* text;
  UnisonoPlace where;
  const char* label; /* what stands at the place: "f32[6, 3]"; may be "" */
  size_t note_count; /* other places: unisono_error_note */
  size_t fact_count; /* what else is known: unisono_error_fact */
  const char* help;  /* a suggestion, or "" */
} UnisonoMessage;
#define UNISONO_MESSAGE_INIT UNISONO_INIT(UnisonoMessage)

/* UnisonoErrorKind */
UNISONO_API int32_t unisono_error_kind(const UnisonoError* error);
/* The sentence of the first message that is an error. */
UNISONO_API const char* unisono_error_summary(const UnisonoError* error);
/* All messages as the command line shows them, with lines of the program,
 * line ends included; plain, or with colours (ANSI). */
UNISONO_API const char* unisono_error_text(const UnisonoError* error,
                                           int colour);
/* All messages as `unisono check --json` prints them. */
UNISONO_API const char* unisono_error_json(const UnisonoError* error);
UNISONO_API size_t unisono_error_message_count(const UnisonoError* error);
/* Fills in `message`. 0 if there is no message of this number. */
UNISONO_API int unisono_error_message(const UnisonoError* error, size_t index,
                                      UnisonoMessage* message);
/* A note of a message: its place and its text. 0 if there is none. */
UNISONO_API int unisono_error_note(const UnisonoError* error, size_t message,
                                   size_t index, UnisonoPlace* where,
                                   const char** text);
/* Null if there is no such fact. */
UNISONO_API const char* unisono_error_fact(const UnisonoError* error,
                                           size_t message, size_t index);
/* An error of the host's own, for what it builds on this file; never null. */
UNISONO_API UnisonoError* unisono_error_create(int32_t kind,
                                               const char* message,
                                               size_t length);
UNISONO_API void unisono_error_release(UnisonoError* error);

/* ---- engines ------------------------------------------------------------ */

typedef struct UnisonoEngineOptions {
  size_t struct_size;
  /* As for `--devices`: "cpu:4" (four CPU devices), "cuda", "cuda:0,cuda:1",
   * "sim:8". Null: one CPU device. */
  const char* devices;
  /* Threads that compute, the calling one included. 0: one per processor. */
  int32_t workers;
  /* Not 0: nothing is compiled, all is evaluated by the reference evaluator,
   * which is slow. */
  int32_t reference_only;
  /* A folder where compiled kernels are kept for later processes. Null: none.
   */
  const char* cache_folder;
  /* The bytes that all CPU devices of a session may have together; 0: 80 % of
   * the machine's memory. */
  int64_t device_bytes;
} UnisonoEngineOptions;
#define UNISONO_ENGINE_OPTIONS_INIT UNISONO_INIT(UnisonoEngineOptions)

/* `options` may be null. Fails with UNISONO_MISUSE or UNISONO_DEVICE. */
UNISONO_MAY_FAIL UnisonoError* unisono_engine_create(
    const UnisonoEngineOptions* options, UnisonoEngine** engine);
UNISONO_API UnisonoEngine* unisono_engine_retain(UnisonoEngine* engine);
UNISONO_API void unisono_engine_release(UnisonoEngine* engine);
UNISONO_API size_t unisono_engine_device_count(const UnisonoEngine* engine);

/* ---- callbacks ---------------------------------------------------------- */

/* Callbacks are called on threads of the engine's, one at a time for each
 * session, while the call that led to them waits. They must not use that
 * session; everything else they may. What they have to say they say to `reply`,
 * which is there until they return. */

/* What an import gives: the module's text, which is copied. */
UNISONO_API void unisono_reply_text(UnisonoReply* reply, const char* text,
                                    size_t length);
/* The callback has failed: the program ends with this error (UNISONO_HOST). */
UNISONO_API void unisono_reply_fail(UnisonoReply* reply, const char* message,
                                    size_t length);

/* One or more whole lines that the program prints. */
typedef void (*UnisonoPrint)(void* user, const char* text, size_t length,
                             UnisonoReply* reply);
/* `import "PATH"`: the path is as written, with the folder of the importing
 * text's name before it. */
typedef void (*UnisonoImport)(void* user, const char* path,
                              UnisonoReply* reply);
/* Told once that `user` is not needed any more; on any thread. */
typedef void (*UnisonoRelease)(void* user);

/* ---- sessions ----------------------------------------------------------- */

/* What a program may do besides computing. */
typedef enum UnisonoGrant {
  /* Read and write files: load, save, visualize, plots, and imports that no
   * callback answers. */
  UNISONO_GRANT_FILES = 1
} UnisonoGrant;

typedef struct UnisonoSessionOptions {
  size_t struct_size;
  uint32_t grants; /* UnisonoGrant, joined by `|` */
  uint32_t depth;  /* how deep calls nest; 0: 1000, and no more */
  /* Bytes that all arrays on the session's CPU devices may have together; 0:
   * what the engine says. On GPUs that is the engine's alone. */
  int64_t device_bytes;
  /* Bytes of text and of numbers on the host that the program may make in one
   * call, whether it still needs them or not; 0: no limit. */
  int64_t host_bytes;
  /* Where `print` goes. Null: nowhere. */
  UnisonoPrint print;
  /* Null: files, if they are granted, else there is nothing to import but the
   * standard library. */
  UnisonoImport import;
  void* user;             /* for both */
  UnisonoRelease release; /* may be null */
  /* What `args()` gives. */
  const char* const* arguments;
  size_t argument_count;
  /* Milliseconds for which devices wait in a collective for one that computes;
   * 0: a minute; -1: for ever. */
  int64_t watchdog;
} UnisonoSessionOptions;
#define UNISONO_SESSION_OPTIONS_INIT UNISONO_INIT(UnisonoSessionOptions)

/* `options` may be null. If it fails, `release` is not called. */
UNISONO_MAY_FAIL UnisonoError* unisono_session_create(
    UnisonoEngine* engine, const UnisonoSessionOptions* options,
    UnisonoSession** session);
/* Not from a callback of the session. */
UNISONO_API void unisono_session_release(UnisonoSession* session);

/* Limits of one call. */
typedef struct UnisonoCallOptions {
  size_t struct_size;
  UnisonoStop* stop;        /* null: nobody stops it */
  int64_t wall_nanoseconds; /* 0: as long as it takes */
  /* Expressions that the interpreter may walk while it runs; what compiled code
   * does is one. 0: no limit. */
  int64_t steps;
} UnisonoCallOptions;
#define UNISONO_CALL_OPTIONS_INIT UNISONO_INIT(UnisonoCallOptions)

/* Checks a program and runs it. `name` is what messages call the text; null:
 * "<eval>". `result`, which may be null, gets the value of the last statement,
 * if that is an expression, else `none`. A program that fails has changed no
 * name. */
UNISONO_MAY_FAIL UnisonoError* unisono_eval(UnisonoSession* session,
                                            const char* source, size_t length,
                                            const char* name,
                                            const UnisonoCallOptions* options,
                                            UnisonoValue** result);
/* Checks a program, and runs nothing. */
UNISONO_MAY_FAIL UnisonoError* unisono_check(UnisonoSession* session,
                                             const char* source, size_t length,
                                             const char* name);
/* The warnings and notes of the session's last call that succeeded; null if
 * there are none. The caller releases it. */
UNISONO_API UnisonoError* unisono_session_warnings(
    const UnisonoSession* session);

typedef enum UnisonoCompleteness {
  UNISONO_COMPLETE = 0,   /* a program */
  UNISONO_INCOMPLETE = 1, /* the beginning of one: it needs another line */
  UNISONO_INVALID = 2     /* no text that follows makes it one */
} UnisonoCompleteness;
/* What an interactive host asks before it evaluates. */
UNISONO_API int32_t unisono_completeness(const char* source, size_t length);

/* What a name of the session, or of the standard library, holds. UNISONO_CHECK
 * if there is no such name. */
UNISONO_MAY_FAIL UnisonoError* unisono_session_get(UnisonoSession* session,
                                                   const char* name,
                                                   UnisonoValue** value);
/* As `name = value` in a program: a new name, or a new meaning. */
UNISONO_MAY_FAIL UnisonoError* unisono_session_set(UnisonoSession* session,
                                                   const char* name,
                                                   const UnisonoValue* value);
/* The names that programs and unisono_session_set defined, in alphabetical
 * order: a tuple of texts. */
UNISONO_MAY_FAIL UnisonoError* unisono_session_names(UnisonoSession* session,
                                                     UnisonoValue** names);
/* A value as `print` shows it: a text. */
UNISONO_MAY_FAIL UnisonoError* unisono_session_format(UnisonoSession* session,
                                                      const UnisonoValue* value,
                                                      UnisonoValue** text);

/* ---- values ------------------------------------------------------------- */

typedef enum UnisonoDtype {
  UNISONO_BOOL = 0, /* a byte, 0 or 1 */
  UNISONO_I8 = 1,
  UNISONO_I16 = 2,
  UNISONO_I32 = 3,
  UNISONO_I64 = 4,
  UNISONO_U8 = 5,
  UNISONO_U16 = 6,
  UNISONO_U32 = 7,
  UNISONO_U64 = 8,
  UNISONO_F16 = 9,
  UNISONO_BF16 = 10,
  UNISONO_F32 = 11,
  UNISONO_F64 = 12
} UnisonoDtype;

/* Elements in the host's memory. This structure does not grow. */
typedef struct UnisonoTensor {
  void* data;
  const int64_t* shape;   /* `rank` sizes */
  const int64_t* strides; /* in elements; null: dense, the last axis fastest */
  int32_t rank;           /* at most 64 */
  int32_t dtype;          /* UnisonoDtype */
} UnisonoTensor;

typedef enum UnisonoValueKind {
  UNISONO_VALUE_NONE = 0,
  UNISONO_VALUE_BOOL = 1,   /* a truth value of the host */
  UNISONO_VALUE_INT = 2,    /* an `int` of the host: a size */
  UNISONO_VALUE_NUMBER = 3, /* a number without an element type, as written */
  UNISONO_VALUE_TEXT = 4,
  UNISONO_VALUE_ARRAY = 5, /* scalars, too */
  UNISONO_VALUE_TUPLE = 6,
  UNISONO_VALUE_RECORD = 7,
  UNISONO_VALUE_FUNCTION = 8,
  UNISONO_VALUE_OTHER = 9 /* a type, a device, an axis, a module, ... */
} UnisonoValueKind;

UNISONO_API UnisonoValue* unisono_value_retain(const UnisonoValue* value);
UNISONO_API void unisono_value_release(UnisonoValue* value);
/* UnisonoValueKind */
UNISONO_API int32_t unisono_value_kind(const UnisonoValue* value);
/* As `typeof` says it: "f32[3]", "(w: f32[64], b: f32)". */
UNISONO_MAY_FAIL UnisonoError* unisono_value_type(const UnisonoValue* value,
                                                  const char** type);

UNISONO_MAY_FAIL UnisonoError* unisono_value_none(UnisonoValue** value);
UNISONO_MAY_FAIL UnisonoError* unisono_value_bool(int truth,
                                                  UnisonoValue** value);
UNISONO_MAY_FAIL UnisonoError* unisono_value_int(int64_t number,
                                                 UnisonoValue** value);
/* A number that takes the element type of what it meets, as `0.1` in a program
 * does. It is finite. A number with an element type is a tensor of rank 0. */
UNISONO_MAY_FAIL UnisonoError* unisono_value_number(double number,
                                                    UnisonoValue** value);
/* UTF-8 (else UNISONO_MISUSE), which is copied. */
UNISONO_MAY_FAIL UnisonoError* unisono_value_text(const char* text,
                                                  size_t length,
                                                  UnisonoValue** value);
/* An array with a copy of the elements. */
UNISONO_MAY_FAIL UnisonoError* unisono_value_copy(const UnisonoTensor* tensor,
                                                  UnisonoValue** value);
/* An array whose elements stay where they are: nothing is copied as long as
 * they are dense, aligned to their size and used on CPU devices. They must not
 * change until `release(user)` has been called, which happens once, on any
 * thread, when nothing needs them any more; not if this function fails. */
UNISONO_MAY_FAIL UnisonoError* unisono_value_borrow(const UnisonoTensor* tensor,
                                                    UnisonoRelease release,
                                                    void* user,
                                                    UnisonoValue** value);
UNISONO_MAY_FAIL UnisonoError* unisono_value_tuple(
    const UnisonoValue* const* items, size_t count, UnisonoValue** value);
UNISONO_MAY_FAIL UnisonoError* unisono_value_record(
    const char* const* names, const UnisonoValue* const* fields, size_t count,
    UnisonoValue** value);

/* What a value is; UNISONO_MISUSE if it is of another kind. A scalar array is
 * read as the number that it is, if that fits: an integer one as an int64_t,
 * any as a double, `bool` as a truth value. */
UNISONO_MAY_FAIL UnisonoError* unisono_value_get_bool(const UnisonoValue* value,
                                                      int* truth);
UNISONO_MAY_FAIL UnisonoError* unisono_value_get_int(const UnisonoValue* value,
                                                     int64_t* number);
UNISONO_MAY_FAIL UnisonoError* unisono_value_get_number(
    const UnisonoValue* value, double* number);
UNISONO_MAY_FAIL UnisonoError* unisono_value_get_text(const UnisonoValue* value,
                                                      const char** text,
                                                      size_t* length);
/* The elements, dense, which nobody may change; numbers without an element type
 * count as f64 or i64. They lie where they are computed if that is one CPU
 * device, else they are copied at the first time. They live as long as the
 * value. */
UNISONO_MAY_FAIL UnisonoError* unisono_value_get_tensor(
    const UnisonoValue* value, UnisonoTensor* tensor);
/* The same, of which `data` is null: nothing is copied. */
UNISONO_MAY_FAIL UnisonoError* unisono_value_get_array_type(
    const UnisonoValue* value, UnisonoTensor* tensor);

/* Of tuples and records; 0 of all others. */
UNISONO_API size_t unisono_value_size(const UnisonoValue* value);
UNISONO_MAY_FAIL UnisonoError* unisono_value_item(const UnisonoValue* value,
                                                  size_t index,
                                                  UnisonoValue** item);
UNISONO_MAY_FAIL UnisonoError* unisono_value_field(const UnisonoValue* value,
                                                   const char* name,
                                                   UnisonoValue** field);
/* Null if there is no such field. */
UNISONO_API const char* unisono_value_field_name(const UnisonoValue* value,
                                                 size_t index);

/* DLPack, as NumPy, PyTorch and JAX speak it: the form with a version, and the
 * one without. Structures are those of dlpack.h. */
struct DLManagedTensorVersioned;
struct DLManagedTensor;
/* The tensor belongs to the value from then on, if this succeeds. It is
 * borrowed as by unisono_value_borrow; it must lie in the host's memory. */
UNISONO_MAY_FAIL UnisonoError* unisono_value_from_dlpack(
    struct DLManagedTensorVersioned* tensor, UnisonoValue** value);
UNISONO_MAY_FAIL UnisonoError* unisono_value_from_dlpack_unversioned(
    struct DLManagedTensor* tensor, UnisonoValue** value);
/* The elements, in the host's memory. Whoever gets the tensor calls its
 * `deleter`. What is not copied is marked as read-only in the form with a
 * version; the other one cannot say so, and is always a copy. */
UNISONO_MAY_FAIL UnisonoError* unisono_value_to_dlpack(
    const UnisonoValue* value, int copy,
    struct DLManagedTensorVersioned** tensor);
UNISONO_MAY_FAIL UnisonoError* unisono_value_to_dlpack_unversioned(
    const UnisonoValue* value, struct DLManagedTensor** tensor);

/* ---- functions ---------------------------------------------------------- */

/* Calls a function: `count` arguments, then `named_count` ones with names.
 * Values of other sessions may be passed, unless they are functions or belong
 * to the other's devices. */
UNISONO_MAY_FAIL UnisonoError* unisono_call(
    const UnisonoValue* function, const UnisonoValue* const* arguments,
    size_t count, const char* const* names, const UnisonoValue* const* named,
    size_t named_count, const UnisonoCallOptions* options,
    UnisonoValue** result);
/* "(x: f32[n], y: f32[n]) -> f32" */
UNISONO_MAY_FAIL UnisonoError* unisono_function_signature(
    const UnisonoValue* function, const char** signature);

/* A function compiled for arguments of some types, which are those of
 * `examples`: of arrays the element type and the shape count, and nothing of
 * their elements; all other values are part of the code. Names that the
 * function reads outside itself are what they are now. Fails as a call with
 * these arguments would, and for what cannot be compiled. */
UNISONO_MAY_FAIL UnisonoError* unisono_typed_create(
    const UnisonoValue* function, const UnisonoValue* const* examples,
    size_t count, UnisonoTyped** typed);
UNISONO_API UnisonoTyped* unisono_typed_retain(UnisonoTyped* typed);
UNISONO_API void unisono_typed_release(UnisonoTyped* typed);
/* The arrays of the arguments, and those of the result, in the order in which
 * they stand in the trees. */
UNISONO_API size_t unisono_typed_argument_count(const UnisonoTyped* typed);
UNISONO_API size_t unisono_typed_result_count(const UnisonoTyped* typed);
/* Element type and shape; `data` is null. 0 if there is none of this number. */
UNISONO_API int unisono_typed_argument(const UnisonoTyped* typed, size_t index,
                                       UnisonoTensor* tensor);
UNISONO_API int unisono_typed_result(const UnisonoTyped* typed, size_t index,
                                     UnisonoTensor* tensor);
/* Runs it: arguments[i] are the dense elements of the i-th argument, aligned to
 * their size, results[i] is memory for those of the i-th result. Results lie
 * apart from each other and from the arguments. Any number of threads may call
 * it at once, callbacks of its session, too. `options` may be null; steps are
 * not counted. After an error the results hold anything. */
UNISONO_MAY_FAIL UnisonoError* unisono_typed_call(
    const UnisonoTyped* typed, const void* const* arguments,
    void* const* results, const UnisonoCallOptions* options);

/* ---- stops -------------------------------------------------------------- */

/* Ends calls that were given it: those under way, within some 50 ms, and those
 * that begin later. */
UNISONO_MAY_FAIL UnisonoError* unisono_stop_create(UnisonoStop** stop);
UNISONO_API UnisonoStop* unisono_stop_retain(UnisonoStop* stop);
UNISONO_API void unisono_stop_release(UnisonoStop* stop);
/* From any thread, but not from a signal handler. */
UNISONO_API void unisono_stop_request(UnisonoStop* stop);
/* Calls that begin from now on are not stopped. */
UNISONO_API void unisono_stop_reset(UnisonoStop* stop);

/* ---- host functions ----------------------------------------------------- */

typedef enum UnisonoFunctionFlags {
  /* The function does more than compute its result: it is called once for each
   * call in the program, in order. Without this flag calls may be left out,
   * repeated and reordered. */
  UNISONO_FUNCTION_HAS_EFFECTS = 1
} UnisonoFunctionFlags;

/* Reads `arguments`, which are dense, and writes all elements of `results`,
 * whose types the declaration says. */
typedef void (*UnisonoHostFunction)(void* user, const UnisonoTensor* arguments,
                                    const UnisonoTensor* results,
                                    UnisonoReply* reply);

/* Defines a function that the host computes, by the head of its definition:
 * "def clip(x: f32[n], most: f32) -> f32[n]". It may be called in compiled code
 * and under vmap. It has no derivative but by a rule, which the declaration may
 * give: "@custom_jvp(rule) def root(x: f64) -> f64", where `rule` is any
 * function of the language, and may call others that the host computes.
 * `release` may be null; it is told of `user` when the function is gone, not if
 * this fails. */
UNISONO_MAY_FAIL UnisonoError* unisono_define_function(
    UnisonoSession* session, const char* declaration, uint32_t flags,
    UnisonoHostFunction function, void* user, UnisonoRelease release);

#ifdef __cplusplus
}
#endif

#endif /* UNISONO_H */
