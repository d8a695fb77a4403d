#include "offload/open_calls.h"

#include "scheduler/take_errinfo.h"

#include <fcntl.h>
#include <sys/stat.h>

/* The argument of Ruby's function that calls open(2). Ruby's own definition is private. */
typedef struct {
    VALUE path;
    int flags;
    mode_t mode;
} open_record;

/*
 * The paths of the trial calls. FILE_NAME is longer than an open_record: if a version of Ruby passes the path itself
 * instead of a record, heddle_open_calls_note does not read beyond the end of the path.
 */
static const char FILE_NAME[] = "/././././././dev/null", FOLDER_NAME[] = "/././././././.";

static const void *open_function, *folder_function;
static VALUE tried_file, tried_folder; /* the path of the trial call that runs now; otherwise 0 */
static VALUE trying_thread;

/* -- the trial ----------------------------------------------------------------------------------------------------- */

void heddle_open_calls_note(void *(*function)(void *), const void *data)
{
    if (!data || !(tried_file || tried_folder) || rb_thread_current() != trying_thread)
        return;
    if (tried_file) {
        const open_record *record = data;
        if (record->path == tried_file && (record->flags & O_ACCMODE) == O_RDONLY)
            open_function = (const void *)function;
    } else if (strncmp(data, FOLDER_NAME, sizeof(FOLDER_NAME)) == 0) {
        folder_function = (const void *)function;
    }
}

static void forget_error(int state, VALUE before)
{
    if (state)
        heddle_take_errinfo();
    rb_set_errinfo(before);
}

void heddle_open_calls_learn(void)
{
    int state = 0;
    VALUE before = rb_errinfo();
    VALUE file = rb_str_freeze(rb_str_new_cstr(FILE_NAME)), folder = rb_str_freeze(rb_str_new_cstr(FOLDER_NAME));
    trying_thread = rb_thread_current();
    tried_file = file;
    VALUE descriptor = heddle_call_protected(rb_cIO, rb_intern("sysopen"), 1, &file, &state);
    tried_file = 0;
    forget_error(state, before);
    if (!state)
        close(NUM2INT(descriptor));
    tried_folder = folder;
    VALUE opened = heddle_call_protected(rb_cDir, rb_intern("new"), 1, &folder, &state);
    tried_folder = 0;
    forget_error(state, before);
    if (!state)
        heddle_call_protected(opened, rb_intern("close"), 0, NULL, &state);
    forget_error(state, before);
    RB_GC_GUARD(file);
    RB_GC_GUARD(folder);
}

/* -- one call ------------------------------------------------------------------------------------------------------ */

/*
 * Is the path a regular file or a folder, or does it not exist? Opening a missing file fails or creates it, and does
 * not wait. Opening a device, such as a modem, may wait.
 */
static bool is_file_or_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode);
}

bool heddle_open_call_never_waits(const void *function, const void *data)
{
    if (function == folder_function)
        return true;
    if (!function || function != open_function)
        return false;
    const open_record *record = data;
    bool makes_file = (record->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
    return makes_file || is_file_or_folder(RSTRING_PTR(record->path));
}
