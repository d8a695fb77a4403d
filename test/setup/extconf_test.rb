# frozen_string_literal: true

# test: long
# test: each version

require "test_helper"
require "open3"
require "tmpdir"

# What a person reads when the extension can't be built.
class ExtconfTest < Minitest::Test
  EXTCONF = File.join(ROOT, "ext/heddle/extconf.rb")

  def test_without_a_compiler_one_line_names_what_to_install
    said, status = configure("CC" => "no-such-compiler")

    refute_predicate status, :success?
    assert_equal 1, said.lines.size, said
    assert_match(/\Aheddle: no C compiler \(no-such-compiler is not on PATH\), install one: \S/, said)
  end

  def test_a_broken_compiler_is_reported_as_such
    said, status = configure("CC" => "false")

    refute_predicate status, :success?
    assert_match(/^heddle: false can't build a program/, said)
  end

  def test_an_older_ruby_is_refused
    said, status = configure({}, "-e", 'RUBY_VERSION = "3.2.9"; load ARGV.fetch(0)')

    refute_predicate status, :success?
    assert_equal "heddle: needs CRuby 3.3 or newer, this is ruby 3.2.9: install a newer Ruby.\n", said
  end

  def test_windows_is_refused
    said, status = configure({}, "-rrbconfig", "-e",
                             'RbConfig::CONFIG["host_os"] = "mingw32"; load ARGV.fetch(0)')

    refute_predicate status, :success?
    assert_equal 1, said.lines.size, said
    assert_includes said, "Windows is not supported"
  end

  # The one file that differs; the rest of the extension is not built for this.
  def test_without_zlib_nothing_of_it_is_called
    Dir.mktmpdir do |folder|
      said, = Open3.capture2e({ "RUBYOPT" => "-W0", "HEDDLE_ZLIB" => "0" }, RbConfig.ruby, EXTCONF, chdir: folder)
      made, status = Open3.capture2e("make", "http-websocket-deflate.o", chdir: folder)
      assert_predicate status, :success?, "#{said}\n#{made}"
      symbols, = Open3.capture2("nm", "-u", File.join(folder, "http-websocket-deflate.o"))

      refute_match(/inflate|deflateInit/, symbols)
      refute_match(/^LIBS = .*-lz\b/, File.read(File.join(folder, "Makefile")))
    end
  end

  private

  def configure(environment, *options)
    Dir.mktmpdir do |folder|
      Open3.capture2e({ "RUBYOPT" => "-W0", **environment }, RbConfig.ruby, *options, EXTCONF, chdir: folder)
    end
  end
end
