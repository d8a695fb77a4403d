/*
 * The methods of Heddle::Selector that tell which selectors are compiled in, and why one does not work here.
 */

#include "binding.h"

#include "selector/selector.h"

/*
 * call-seq: built -> Array of Symbol
 *
 * Returns the names of the selectors that are compiled in, best first.
 */
static VALUE selector_built(VALUE self)
{
    VALUE names = rb_ary_new();
    for (int i = 0; heddle_selectors[i]; i++)
        rb_ary_push(names, ID2SYM(rb_intern(heddle_selectors[i]->name)));
    return names;
}

/*
 * call-seq: kernel_unavailable_reason(name) -> String or nil
 *
 * Returns why this selector does not work: it is not compiled in, or the kernel does not support it. Returns nil if it
 * works.
 */
static VALUE selector_unavailable_reason(VALUE self, VALUE name)
{
    const heddle_selector_operations *operations = heddle_selector_find(rb_id2name(rb_to_id(name)));
    char reason[256] = "";
    if (!operations)
        return rb_sprintf("%" PRIsVALUE " is not built in on this platform", name);
    return operations->probe(reason, sizeof(reason)) == 0 ? Qnil : rb_str_new_cstr(reason);
}

void Init_heddle_selector(VALUE heddle)
{
    VALUE selector = rb_define_module_under(heddle, "Selector");
    rb_define_singleton_method(selector, "built", selector_built, 0);
    rb_define_private_method(rb_singleton_class(selector), "kernel_unavailable_reason", selector_unavailable_reason, 1);
}
