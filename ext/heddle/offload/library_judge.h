#pragma once

/*
 * Judges a loaded library by its mapped ELF file: may each of its functions run on any thread? Functions depend on the
 * thread if they use thread-local storage, locks with an owner, system calls about the calling thread, or callbacks
 * into Ruby.
 *
 * Examines the thread-local storage, the imports and the machine code of the library, and of each library that it
 * needs. How a library uses an import is not known. So a library is safe only if all imports are known to be
 * independent of the thread. In doubt a library counts as unsafe, because a wrong "unsafe" costs only time.
 *
 * Uses no Ruby. Works on Linux on x86-64 and ARM64; elsewhere no library counts as safe.
 */

#include "native_code/elf_object.h"

enum { HEDDLE_JUDGEMENT_REASON = 192 };

typedef struct {
    bool safe;
    char reason[HEDDLE_JUDGEMENT_REASON]; /* the reason why the library is not safe; "" if it is */
} heddle_judgement;

/*
 * Judges the library that contains the address. `ruby` is NULL, or an address in Ruby's own library, whose functions
 * are judged by their names. Acquires the dynamic linker's lock, but loads and unloads nothing.
 */
heddle_judgement heddle_library_judge(const void *address, const void *ruby);

/*
 * Does the library that contains the address directly need only libc, Ruby's library, and libraries whose file names
 * begin with one of `names`? If not, sets `reason`. Always true on systems where Heddle can't examine libraries.
 */
bool heddle_library_needs_only(const void *address, const void *ruby, const char *const *names, size_t count,
                               char reason[HEDDLE_JUDGEMENT_REASON]);

/* Is the file one of libc's own (libc, libm, libpthread, the dynamic linker …)? */
bool heddle_library_is_libc(const char *path);

/* Is this function of libc independent of the thread that calls it? */
bool heddle_libc_function_neutral(const char *name);
/*
 * Can this function of libc take long, and is it independent of the calling thread, whatever its arguments are? Used
 * for programs that call libc directly, with Fiddle.
 */
bool heddle_libc_function_waits(const char *name);
/* Is this function of Ruby's C API independent of the thread that calls it? */
bool heddle_ruby_function_neutral(const char *name);
