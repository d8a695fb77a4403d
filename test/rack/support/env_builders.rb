# frozen_string_literal: true

require "heddle/rack"
require_relative "../../http/h1/support/head_parsers"
require_relative "../../support/native_library"

# The server's EnvBuilder, compiled from its own sources, with a method `build` that takes a parsed head and addresses
# in place of an exchange. The library itself makes envs of connections only.
module EnvBuilders
end

require NativeLibrary.new(File.expand_path("env_builders.c", __dir__)).path
