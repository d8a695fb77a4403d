# frozen_string_literal: true

# test: each version

require "test_helper"
require "open3"
require "tmpdir"
require "heddle"
require "support/code_cache"
require "support/constants"

# Instructions that Ruby has compiled are kept for the next process of a test run.
class CodeCacheTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir
    @path = File.join(@folder, "file.rb")
    File.write(@path, "1")
  end

  def teardown = FileUtils.rm_rf(@folder)

  def cached
    Constants.replace(CodeCache, :PASSING, []) do
      Constants.replace(CodeCache, :FOLDER, @folder) { yield RubyVM::InstructionSequence.load_iseq(@path) }
    end
  end

  def test_kept_instructions_are_used_until_the_file_changes
    cached do |code|
      kept = CodeCache.place(@path)

      assert_equal 1, code.eval
      CodeCache.keep(RubyVM::InstructionSequence.compile("2", @path, @path), kept)
    end

    assert_equal(2, cached(&:eval))
    File.write(@path, "30")

    assert_equal(30, cached(&:eval))
  end

  def test_file_that_is_broken_temporary_or_compiled_with_warnings_is_left_to_ruby
    assert_nil RubyVM::InstructionSequence.load_iseq(@path)
    verbose, $VERBOSE = $VERBOSE, true

    cached { |code| assert_nil code }
    $VERBOSE = verbose
    File.write(@path, "def")

    cached { |code| assert_nil code }
  ensure
    $VERBOSE = verbose
  end

  def test_file_that_a_fiber_of_a_loop_loads_is_left_to_ruby
    cached { assert_nil(Heddle.run { RubyVM::InstructionSequence.load_iseq(@path) }) }
  end

  CACHE = File.expand_path("../support/code_cache.rb", __dir__)

  # What Ruby has loaded, and where it looks for more.
  def loaded(options, *flags)
    output, status = Open3.capture2e({ "RUBYOPT" => options }, RbConfig.ruby, *flags, "-e", "puts $LOADED_FEATURES, $:")

    assert_predicate status, :success?, output
    output.lines(chomp: true)
  end

  def test_ruby_starts_as_it_does_without_the_cache
    [[], %w[--disable=did_you_mean], %w[-rrack]].each do |flags|
      cached = loaded("-I#{CACHE.delete_suffix(".rb")} -r#{CACHE}", *flags)

      assert_equal loaded(nil, *flags), cached - [CACHE, CACHE.sub(".rb", "/rubygems.rb")]
      assert_operator cached.index(CACHE), :<, cached.index { |path| path.end_with?("rubygems/specification.rb") }
    end
  end

  def test_ruby_that_is_to_load_no_gems_loads_none
    assert_empty loaded("-I#{CACHE.delete_suffix(".rb")} -r#{CACHE}", "--disable=gems").grep(/rubygems/)
  end
end
