#include "offload/library_judge.h"

/*
 * Functions of libc that do the same on every thread. A library that imports any other function of libc runs in place.
 * So a function may be listed only if it neither reads nor writes state of the calling thread, except errno, which
 * Heddle copies from the offload thread. It must keep no lock after the call, and return no pointer to a buffer that
 * belongs to the thread.
 *
 * Not listed on purpose: pthread_*, sem_*, dlopen, dlsym, syscall, prctl, sched_*, set*id, signals, setjmp, locales,
 * strerror, strtok, inet_ntoa, localtime and similar functions, ioctl, getaddrinfo (the resolver has state for each
 * thread), random, setenv.
 */
static const char *const libc_functions[] = {
    /* memory and strings */
    "malloc", "calloc", "realloc", "reallocarray", "free", "posix_memalign", "aligned_alloc", "memalign",
    "malloc_usable_size", "mmap", "mmap64", "munmap", "madvise", "msync",
    "memcpy", "memmove", "memset", "memcmp", "memchr", "memrchr", "memmem", "mempcpy", "memccpy", "rawmemchr", "bcmp",
    "bcopy", "bzero", "explicit_bzero",
    "strlen", "strnlen", "strcpy", "stpcpy", "strncpy", "stpncpy", "strlcpy", "strcat", "strncat", "strlcat", "strcmp",
    "strncmp", "strcasecmp", "strncasecmp", "strchr", "strrchr", "strchrnul", "strstr", "strcasestr", "strpbrk",
    "strspn",
    "strcspn", "strdup", "strndup", "strtok_r", "strsep", "strerror_r", "xpg_strerror_r", "index", "rindex",
    /* numbers and tables */
    "strtol", "strtoll", "strtoul", "strtoull", "strtod", "strtof", "strtold", "strtoimax", "strtoumax", "atoi", "atol",
    "atoll", "atof", "abs", "labs", "llabs", "div", "ldiv", "lldiv", "qsort", "qsort_r", "bsearch", "rand_r", "ffs",
    "ctype_b_loc", "ctype_tolower_loc", "ctype_toupper_loc", "isalnum", "isalpha", "iscntrl", "isdigit", "isgraph",
    "islower", "isprint", "ispunct", "isspace", "isupper", "isxdigit", "tolower", "toupper", "htonl", "htons", "ntohl",
    "ntohs", "inet_pton", "inet_ntop", "inet_aton",
    /* text input and output: a FILE is locked only within one call */
    "snprintf", "vsnprintf", "sprintf", "vsprintf", "asprintf", "vasprintf", "printf", "vprintf", "fprintf", "vfprintf",
    "dprintf", "vdprintf", "puts", "fputs", "fputc", "putc", "putchar", "fgets", "fgetc", "getc", "ungetc", "fread",
    "fwrite", "fopen", "fopen64", "fdopen", "freopen", "fclose", "fflush", "fseek", "fseeko", "fseeko64", "ftell",
    "ftello", "ftello64", "rewind", "feof", "ferror", "clearerr", "fileno", "setvbuf", "setbuf", "getline", "getdelim",
    "sscanf", "vsscanf", "fscanf", "stdin", "stdout", "stderr", "perror",
    /* time; library_judge.c finds in a library's code where clock_gettime may read the thread's own clock */
    "clock_gettime", "clock_getres", "clock_nanosleep", "gettimeofday", "time", "difftime", "nanosleep", "usleep",
    "sleep", "gmtime_r", "timegm",
    /* descriptors, files and sockets, which belong to the process */
    "read", "pread", "pread64", "readv", "preadv", "write", "pwrite", "pwrite64", "writev", "pwritev", "open", "open64",
    "open64_2", "open_2", "openat", "openat64", "creat", "close", "lseek", "lseek64", "dup", "dup2", "dup3", "pipe",
    "pipe2", "fsync", "fdatasync", "sync_file_range", "ftruncate", "ftruncate64", "truncate", "truncate64",
    "posix_fadvise", "posix_fallocate", "fallocate", "flock", "lockf", "stat", "stat64", "lstat", "lstat64", "fstat",
    "fstat64", "fstatat", "xstat", "fxstat", "lxstat", "statx", "statvfs", "fstatvfs", "access", "faccessat", "unlink",
    "unlinkat", "rename", "renameat", "link", "symlink", "readlink", "realpath", "mkdir", "rmdir", "mkstemp",
    "mkostemp",
    "chmod", "fchmod", "utimensat", "futimens", "opendir", "readdir_r", "closedir", "isatty", "poll", "ppoll", "select",
    "pselect", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "eventfd", "eventfd_read", "eventfd_write",
    "timerfd_create", "timerfd_settime", "inotify_init1", "inotify_add_watch", "inotify_rm_watch", "sendfile",
    "sendfile64", "copy_file_range", "splice", "memfd_create",
    "socket", "socketpair", "bind", "listen", "accept", "accept4", "connect", "shutdown", "send", "sendto", "sendmsg",
    "recv", "recvfrom", "recvmsg", "getsockopt", "setsockopt", "getsockname", "getpeername", "freeaddrinfo",
    "gai_strerror",
    /* the process */
    "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getenv", "secure_getenv", "getpagesize", "sysconf",
    "getauxval", "uname", "gethostname", "getrandom", "getentropy", "arc4random", "arc4random_buf", "waitpid", "kill",
    "abort", "errno_location", "environ",
    /* functions that compilers and linkers add */
    "stack_chk_fail", "stack_chk_guard", "fortify_fail", "chk_fail", "assert_fail", "cxa_finalize", "cxa_atexit",
    "gmon_start__", "ITM_registerTMCloneTable", "ITM_deregisterTMCloneTable", "fdelt_chk", "fdelt_warn",
};

/*
 * Functions of Ruby's C API, by the beginnings of their names, except those in ruby_exceptions. A library may call them
 * only with the GVL, so it calls them on the fiber's own thread, and not on an offload thread.
 */
static const char *const ruby_functions[] = {
    "rb_ary_", "rb_str_", "rb_define_", "rb_undef", "rb_alias", "rb_include_", "rb_prepend_", "rb_singleton_",
    "rb_attr", "rb_id2", "rb_id_", "rb_sym_", "rb_sym2", "rb_to_", "rb_any_", "rb_inspect", "rb_num", "rb_int",
    "rb_uint", "rb_fix", "rb_flo", "rb_Float", "rb_Integer", "rb_String", "rb_Array", "rb_Hash", "rb_big", "rb_dbl_",
    "rb_ll2", "rb_ull2", "rb_rational_", "rb_Rational", "rb_Complex", "rb_range_", "rb_struct_", "rb_time_", "rb_utf8_",
    "rb_usascii_", "rb_ascii8bit_", "rb_locale_", "rb_filesystem_", "rb_default_", "rb_string_", "rb_sprintf",
    "rb_vsprintf", "rb_raise", "rb_sys_", "rb_syserr_", "rb_bug", "rb_fatal", "rb_warn", "rb_loaderror",
    "rb_notimplement", "rb_frozen_", "rb_out_of_int", "rb_obj", "rb_gc_", "rb_global_variable", "rb_data_",
    "rb_alloc_tmp_buffer", "rb_free_tmp_buffer", "rb_write_barrier", "rb_yield", "rb_block_", "rb_need_block",
    "rb_iterate", "rb_proc_", "rb_funcall", "rb_apply", "rb_respond_to", "rb_ivar_", "rb_iv_", "rb_path2", "rb_path_to",
    "rb_gv_", "rb_scan_args", "rb_get_kwargs", "rb_keyword_", "rb_protect", "rb_rescue", "rb_jump_tag",
    "rb_set_errinfo", "rb_throw", "rb_require", "rb_Enumer", "rb_nogvl", "rb_thread_call_without_gvl",
    "rb_thread_check_ints", "rb_thread_wait_for", "rb_thread_schedule", "rb_thread_fd_", "rb_io_", "rb_update_max_fd",
    "rb_pipe", "rb_file_", "rb_get_path", "rb_random_", "rb_genrand_", "rb_hash", "rb_lastline_", "rb_reg_",
    "rb_backref_", "rb_frame_", "rb_tracepoint_",
    /* classes, modules, exceptions and other data; functions begin with rb_c, rb_m and rb_e, too */
    "rb_c", "rb_m", "rb_e", "rb_stdout", "rb_stderr", "rb_stdin", "rb_fs", "rb_output_", "ruby_xmalloc", "ruby_xcalloc",
    "ruby_xrealloc", "ruby_xfree", "ruby_strdup", "ruby_snprintf", "ruby_vsnprintf", "ruby_strtod", "ruby_strtoul",
    "ruby_scan_", "ruby_verbose_ptr", "ruby_debug_ptr", "ruby_abi_version", "ruby_version", "ruby_api_version",
    "ruby_description", "ruby_digit36", "ruby_qsort", "ruby_each_words", "ruby_setenv", "ruby_getcwd",
    "ruby_malloc_size_overflow", "rbimpl_", "onig", "Onig", "st_", "rb_st_",
};

static const char *const ruby_exceptions[] = {
    "rb_thread_call_with_gvl",      /* runs a callback on the fiber's thread; its caller is on an offload thread */
    "rb_thread_lock_native_thread", /* binds the Ruby thread to its native thread */
};

/*
 * Functions of libc that can wait, or compute for long (qsort), and do the same on any thread, whatever their arguments
 * are. They are offloaded when a program calls libc directly, with Fiddle. Such calls of other functions of libc run in
 * place, because these are quick, or may depend on the thread.
 */
static const char *const waiting_functions[] = {
    "sleep", "usleep", "nanosleep", "poll", "ppoll", "select", "pselect", "epoll_wait", "read", "pread", "pread64",
    "readv", "preadv", "write", "pwrite", "pwrite64", "writev", "pwritev", "send", "sendto", "sendmsg", "recv",
    "recvfrom", "recvmsg", "connect", "accept", "accept4", "fsync", "fdatasync", "flock", "lockf", "waitpid", "qsort",
    "sendfile", "sendfile64", "copy_file_range",
};

/*
 * Skips leading underscores, the prefixes that glibc gives to ISO C's scanf and strtol, and the suffix of functions
 * from fortified headers. Returns the length of the rest.
 */
static size_t plain_name(const char **name)
{
    static const char *const prefixes[] = {"isoc99_", "isoc23_"};
    *name += strspn(*name, "_");
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (strncmp(*name, prefixes[i], strlen(prefixes[i])) == 0)
            *name += strlen(prefixes[i]);
    }
    size_t length = strlen(*name);
    if (length > 4 && strcmp(*name + length - 4, "_chk") == 0)
        length -= 4;
    return length;
}

static bool list_contains(const char *const *list, size_t count, const char *name)
{
    size_t length = plain_name(&name);
    for (size_t i = 0; length && i < count; i++) {
        const char *known = list[i];
        if (known[0] == name[0] && (strcmp(known, name) == 0 || (strncmp(known, name, length) == 0 && !known[length])))
            return true;
    }
    return false;
}

bool heddle_libc_function_neutral(const char *name)
{
    return list_contains(libc_functions, sizeof(libc_functions) / sizeof(libc_functions[0]), name);
}

bool heddle_libc_function_waits(const char *name)
{
    return list_contains(waiting_functions, sizeof(waiting_functions) / sizeof(waiting_functions[0]), name);
}

bool heddle_ruby_function_neutral(const char *name)
{
    for (size_t i = 0; i < sizeof(ruby_exceptions) / sizeof(ruby_exceptions[0]); i++) {
        if (strcmp(name, ruby_exceptions[i]) == 0)
            return false;
    }
    for (size_t i = 0; i < sizeof(ruby_functions) / sizeof(ruby_functions[0]); i++) {
        if (strncmp(name, ruby_functions[i], strlen(ruby_functions[i])) == 0)
            return true;
    }
    return false;
}
