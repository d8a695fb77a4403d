#ifndef HEDDLE_RACK_ENV_OF_OBJECT_H
#define HEDDLE_RACK_ENV_OF_OBJECT_H

#include <ruby.h>

/*
 * EnvBuilder#build. `head`: an HTTP::H1::RequestHead; `connection`: an object with remote_address, local_address and
 * local_port.
 */
VALUE heddle_rack_env_of_objects(VALUE builder, VALUE head, VALUE connection);

#endif
