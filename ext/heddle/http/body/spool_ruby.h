#pragma once

/* Heddle::HTTP::SpooledBody: a complete body in a file, for the application. */

#include "http/body/spool.h"

#include <ruby.h>

/* Makes the Ruby object of a complete spool. The object has a reference to the spool. */
VALUE heddle_spooled_body(heddle_body_spool *spool);
void Init_heddle_spooled_body(VALUE http);
