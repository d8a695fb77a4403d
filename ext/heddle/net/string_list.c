#include "net/string_list.h"

static long count_strings(const heddle_string_list *list)
{
    return RB_TYPE_P(list->data, T_ARRAY) ? RARRAY_LEN(list->data) : 1;
}

static VALUE string_at(const heddle_string_list *list, long i)
{
    return RB_TYPE_P(list->data, T_ARRAY) ? RARRAY_AREF(list->data, i) : list->data;
}

heddle_string_list heddle_string_list_of(VALUE data)
{
    heddle_string_list list = {.data = data};
    for (long i = 0; i < count_strings(&list); i++)
        Check_Type(string_at(&list, i), T_STRING);
    return list;
}

int heddle_string_list_gather(heddle_string_list *list, struct iovec pieces[HEDDLE_PIECES])
{
    int used = 0;
    for (long i = list->first; i < count_strings(list) && used < HEDDLE_PIECES; i++) {
        VALUE string = string_at(list, i);
        size_t size = (size_t)RSTRING_LEN(string), skipped = used ? 0 : list->sent;
        if (skipped < size) {
            pieces[used++] = (struct iovec){RSTRING_PTR(string) + skipped, size - skipped};
        } else if (!used) {
            list->first = i + 1;
            list->sent -= size;
        }
    }
    return used;
}

void heddle_string_list_copy(heddle_string_list *list)
{
    if (list->copied)
        return;
    VALUE copy = rb_ary_new();
    for (long i = list->first; i < count_strings(list); i++)
        rb_ary_push(copy, rb_str_new_frozen(string_at(list, i)));
    list->data = copy;
    list->first = 0;
    list->copied = true;
}
