#include "scheduler/recorder_places.h"

#include <ruby/debug.h>

enum {
    PREFIXES = 16,
    PREFIX = 256, /* the maximum size of a prefix in bytes, including the final NUL */
    FEWEST = 16,  /* the number of frames that the first attempt reads */
    DEPTH = 256,  /* the maximum number of frames that are read */
};

enum {
    OF_APPLICATION,
    OF_RUBY, /* Ruby's or Heddle's code: counts as code of its caller, and is never a place */
    OF_GEM,
};

static struct {
    char text[PREFIX];
    size_t size;
    int kind;
} prefixes[PREFIXES];
static unsigned prefix_count;

void heddle_places_set_prefixes(VALUE list)
{
    prefix_count = 0;
    for (long i = 0; i < RARRAY_LEN(list) && prefix_count < PREFIXES; i++) {
        VALUE pair = RARRAY_AREF(list, i), text = rb_ary_entry(pair, 0);
        size_t size = strlen(StringValueCStr(text));
        if (size >= PREFIX)
            continue;
        memcpy(prefixes[prefix_count].text, RSTRING_PTR(text), size + 1);
        prefixes[prefix_count].size = size;
        prefixes[prefix_count++].kind = NUM2INT(rb_ary_entry(pair, 1));
    }
}

/* Returns the kind of the file, and sets `skip` to the size of the path's prefix. */
static int kind_of(const char *path, size_t size, size_t *skip)
{
    for (unsigned i = 0; i < prefix_count; i++) {
        size_t prefix = prefixes[i].size;
        if (size < prefix || memcmp(path, prefixes[i].text, prefix) != 0)
            continue;
        *skip = prefix;
        return prefixes[i].kind;
    }
    return OF_APPLICATION;
}

static uint16_t number_of(heddle_places *self, const char *text)
{
    uint32_t hash = 2166136261;
    for (const char *byte = text; *byte; byte++)
        hash = (hash ^ (uint8_t)*byte) * 16777619;
    for (unsigned i = 0; i < HEDDLE_PLACES; i++) {
        unsigned at = (hash + i) % HEDDLE_PLACES;
        if (!at)
            continue;
        if (!self->texts[at][0]) {
            snprintf(self->texts[at], HEDDLE_PLACE_SIZE, "%s", text);
            self->used++;
            return (uint16_t)at;
        }
        if (strcmp(self->texts[at], text) == 0)
            return (uint16_t)at;
    }
    return 0;
}

typedef struct {
    VALUE frame;
    int line, kind;
    VALUE path; /* Qfalse if the frame is a method in C */
    size_t skip; /* the number of bytes at the beginning of the path that the text leaves out */
} place_frame;

static place_frame frame_of(VALUE frame, int line)
{
    place_frame one = {.frame = frame, .line = line, .kind = OF_RUBY};
    VALUE path = rb_profile_frame_path(frame);
    if (RB_TYPE_P(path, T_STRING)) {
        one.path = path;
        one.kind = kind_of(RSTRING_PTR(path), (size_t)RSTRING_LEN(path), &one.skip);
    }
    return one;
}

static uint16_t number_of_frame(heddle_places *self, const place_frame *one)
{
    char text[HEDDLE_PLACE_SIZE];
    VALUE label = one->path ? rb_profile_frame_base_label(one->frame)
                            : rb_profile_frame_qualified_method_name(one->frame);
    int size = RB_TYPE_P(label, T_STRING) ? (int)RSTRING_LEN(label) : 0;
    const char *name = size ? RSTRING_PTR(label) : "";
    if (!one->path) {
        snprintf(text, sizeof(text), "%.*s", size, name);
    } else {
        /* a long path is cut at its beginning, because its end says more */
        size_t room = HEDDLE_PLACE_SIZE - 40, length = (size_t)RSTRING_LEN(one->path), skip = one->skip;
        if (length - skip > room)
            skip = length - room;
        snprintf(text, sizeof(text), "%.*s:%d%s%.*s", (int)(length - skip), RSTRING_PTR(one->path) + skip, one->line,
                 size ? " in " : "", size, name);
    }
    return text[0] ? number_of(self, text) : 0;
}

typedef struct {
    uint16_t *numbers;
    unsigned count, most;
} stack;

static void push(heddle_places *self, stack *to, const place_frame *one)
{
    uint16_t number = to->count < to->most ? number_of_frame(self, one) : 0;
    if (number)
        to->numbers[to->count++] = number;
}

void heddle_places_read_stack(heddle_places *self, uint16_t *numbers, unsigned most, uint16_t *place)
{
    VALUE frames[DEPTH];
    int lines[DEPTH], i = 0;
    stack to = {.numbers = numbers, .most = most};
    /* the frame of a gem or of C that was read last; it is added if the application has called it */
    place_frame inner = {0};
    bool innermost = true, found = false;
    uint16_t of_gem = 0;
    *place = 0;
    /* rb_profile_frames of Ruby 3.3 can't skip the innermost frames, so each attempt reads them again. */
    for (int limit = FEWEST; limit <= DEPTH; limit *= 2) {
        int count = rb_profile_frames(0, limit, frames, lines);
        for (; i < count; i++) {
            place_frame one = frame_of(frames[i], lines[i]);
            if (one.kind == OF_APPLICATION) {
                if (inner.frame)
                    push(self, &to, &inner);
                inner = (place_frame){0};
                push(self, &to, &one);
                if (!found)
                    *place = number_of_frame(self, &one);
                found = true;
                if (!most)
                    return;
            } else if (one.kind == OF_GEM || !one.path) {
                if (one.kind == OF_GEM && !of_gem)
                    of_gem = number_of_frame(self, &one);
                if (innermost)
                    push(self, &to, &one);
                else
                    inner = one;
            } else {
                continue;
            }
            innermost = false;
        }
        if (count < limit)
            break;
    }
    if (!found)
        *place = of_gem;
}

uint16_t heddle_places_find(heddle_places *self)
{
    uint16_t place;
    heddle_places_read_stack(self, NULL, 0, &place);
    return place;
}
