#pragma once

#include "scheduler/account.h"

#include <ruby.h>

/* Returns the account of a running request as a Hash: times in seconds. */
VALUE heddle_account_hash(const heddle_account *account);
void Init_heddle_account(VALUE heddle);
