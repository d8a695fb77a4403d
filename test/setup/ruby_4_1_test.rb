# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "shellwords"

# The extension compiles with the functions of Ruby's that 4.0 and 4.1 have changed (test/c/ruby_4_1.h).
class Ruby41Test < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  HEADER = "#{ROOT}/test/c/ruby_4_1.h".freeze
  # Names that the header changes in some way; files without them compile as they do for this Ruby.
  CHANGED = /RUBY_API_VERSION|BLOCKING_OPERATION|RTYPEDDATA|\b(?:rb_fiber_raise|\w*ALLOCV\w*|rb_alloc_tmp_buffer\w*)\b/
  FLAGS = %w[-fsyntax-only -std=gnu17 -D_GNU_SOURCE=1 -Wall -Wextra -Wno-unused-parameter -Wno-variadic-macros
             -Werror].freeze

  def test_extension_compiles_with_the_changed_prototypes
    sources = sources_with(CHANGED)

    assert_operator sources.size, :>, 5
    sources.each { |source| assert_empty compile(source), source }
  end

  def test_extension_calls_no_removed_function
    gone = File.read(HEADER).scan(/^#pragma GCC poison (.*)/).join(" ").split

    assert_empty sources_with(/\b(?:#{gone.join("|")})\(/)
  end

  # The header would be of no use if the compiler did not see its prototypes.
  def test_changed_prototype_is_an_error
    source = "VALUE call(VALUE fiber, const VALUE *argv) { return rb_fiber_raise(fiber, 1, argv); }\n"

    assert_match(/rb_fiber_raise|ruby_4_0_fiber_raise|qualifier/, compile("-", source))
  end

  private

  def sources_with(pattern)
    Dir["#{ROOT}/ext/heddle/**/*.c"].select { |file| File.read(file).match?(pattern) }
  end

  def compile(source, input = "")
    config = RbConfig::CONFIG
    folders = [config["rubyhdrdir"], config["rubyarchhdrdir"], "#{ROOT}/ext/heddle"].map { |folder| "-I#{folder}" }
    command = [*config["CC"].shellsplit, *FLAGS, *folders, "-include", HEADER, "-x", "c", source]
    Open3.capture2e(*command, stdin_data: input).first
  end
end
