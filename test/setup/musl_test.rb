# frozen_string_literal: true

require "test_helper"
require "heddle/native"
require "open3"
require "rbconfig"

# Heddle is built on musl, too, whose libc has less than glibc's (docs/platforms.md). A function that musl lacks breaks
# the build on Alpine, and no other test would notice.
class MuslTest < Minitest::Test
  # What glibc's headers make of a function that musl has under its own name.
  ALIASES = { "__register_atfork" => "pthread_atfork" }.freeze
  # Functions that the build takes only where it finds them (extconf.rb), or where malloc is glibc's (__GLIBC__).
  OPTIONAL = %w[pthread_mutex_clocklock mallinfo malloc_trim].freeze
  HEADERS = /\A__(?:isoc\d+_)?(?<name>\w+?)(?:_chk)?\z/

  def test_the_extension_calls_no_function_that_musl_lacks
    need_program("musl-gcc")
    skip "needs Linux and glibc" unless RbConfig::CONFIG["host_os"].match?(/linux(-gnu)?\z/)
    musl = symbols(Dir["/lib/ld-musl-*.so.1"].first, "--defined-only") # musl's loader and libc are one file
    called = symbols(Heddle::Native.path, "--undefined-only").grep(/@GLIBC/).map { |name| name[/\A[^@]+/] } - OPTIONAL

    assert_includes called, "read"
    assert_empty(called.reject { |name| musl.include?(name) || musl.include?(plain(name)) })
  end

  private

  def plain(name) = ALIASES.fetch(name) { name[HEADERS, :name] }

  def symbols(library, which)
    listed, status = Open3.capture2("nm", "-D", which, library)

    assert_predicate status, :success?
    listed.lines.map { |line| line.split.last }
  end
end
