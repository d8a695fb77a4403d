#include <ruby.h>

RUBY_FUNC_EXPORTED void Init_heddle(void)
{
#ifdef HAVE_RB_EXT_RACTOR_SAFE
    rb_ext_ractor_safe(true);
#endif
    rb_define_module("Heddle");
}
