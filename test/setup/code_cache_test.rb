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
      CodeCache.keep(RubyVM::InstructionSequence.compile("2", @path, @path).to_binary, kept)
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
  OWN = [CACHE, *%w[/rubygems.rb /rubygems/defaults/ruby.rb].map { |path| CACHE.sub(".rb", path) }].freeze
  CACHED = "-I#{CACHE.delete_suffix(".rb")} -r#{CACHE}".freeze

  # What Ruby has loaded, and where it looks for more.
  def loaded(options, *flags, program: "puts $LOADED_FEATURES, $:.join(':')")
    output, status = Open3.capture2e({ "RUBYOPT" => options }, RbConfig.ruby, *flags, "-e", program)

    assert_predicate status, :success?, output
    output.lines(chomp: true)
  end

  def test_ruby_starts_as_it_does_without_the_cache
    [[], %w[--disable=did_you_mean], %w[-rrack]].each do |flags|
      cached = loaded(CACHED, *flags)

      # RubyGems loads some of its files later.
      assert_equal loaded(nil, *flags).sort, (cached - OWN).sort
      assert_operator cached.index(CACHE), :<, cached.index { |path| path.end_with?("rubygems/specification.rb") }
    end
  end

  # As programs are that name all folders of their parent's load path.
  def test_ruby_starts_with_rubygems_of_another_folder_that_comes_first
    folder = File.dirname($LOADED_FEATURES.find { |path| path.end_with?("/rubygems/specification.rb") }, 2)

    assert_includes loaded(CACHED, "-I#{folder}"), OWN.last
  end

  def test_ruby_that_is_to_load_no_gems_loads_none
    assert_empty loaded(CACHED, "--disable=gems").grep(/rubygems/)
  end

  def test_files_of_gems_that_ruby_comes_with_activate_them_as_without_the_cache
    program = 'require "json"; require "open3"; require "net/http"; puts Gem.loaded_specs.values.map(&:full_name)'

    assert_equal loaded(nil, program:), loaded(CACHED, program:)
  end
end
