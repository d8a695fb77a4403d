#pragma once

#include "scheduler/account.h"

#include <ruby.h>

/* The account of a running request, as a Hash. */
VALUE heddle_account_hash(const heddle_account *account);
void Init_heddle_account(VALUE heddle);
