# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "test_command"

# One test file on one Ruby with one selector, in one mode of the server.
class TestProcess < TestCommand
  attr_reader :run

  # @param run [TestPlan::Run]
  # @param cached [Boolean] whether Ruby code that was compiled before is not compiled again
  # @param forked [Boolean] whether it is a fork of this process, which {.preload} has made ready
  def initialize(run:, root:, arguments:, limit:, cached: true, forked: false)
    @run = run
    @file = run.file
    @arguments = arguments
    @cached = cached
    @forked = forked
    super(title: [run.ruby.version, run.selector, run.mode, @file].compact.join(" "), root:, limit:,
          command: [run.ruby.path, "-Ilib", "-Itest", @file, *arguments])
  end

  # Loads what each test file begins with: its forks start in a third of the processor time of a new Ruby.
  # @param root [String] the folder that holds test/
  def self.preload(root)
    require File.join(root, "test/support/code_cache")
    require_relative "gem_paths"
    %w[minitest rack].each { |name| gem name }
    %w[minitest minitest/spec minitest/mock].each { |library| require library }
    Process.warmup
  end

  def start(folder)
    @counts = File.join(folder, "#{object_id}.json")
    FileUtils.rm_f(@counts)
    super
  end

  private

  # What the gems need, a test that is started by hand finds out itself.
  FOR_GEMS = %w[GEM_HOME GEM_PATH BUNDLER_VERSION].freeze
  private_constant :FOR_GEMS

  def environment = chosen.merge("HEDDLE_TEST_RESULT" => @counts, "RUBYOPT" => ruby_options)

  # As Ruby starts with the command.
  def run_command
    return super unless @forked

    $stdout.sync = false
    $LOAD_PATH.unshift(*%w[lib test].map { |folder| File.join(@root, folder) }).uniq!
    ARGV.replace(@arguments)
    $PROGRAM_NAME = @file
    load(File.join(@root, @file))
  end

  # Those of Ruby itself end at a blank.
  def ruby_options
    path = File.join(@root, "test/support/code_cache.rb")
    "-I#{path.delete_suffix(".rb")} -r#{path}" if @cached && File.exist?(path) && !path.match?(/\s/)
  end

  def chosen = run.ruby.environment.merge("HEDDLE_SELECTOR" => run.selector, "HEDDLE_MODE" => run.mode)

  def again(output)
    settings = chosen.compact.except(*FOR_GEMS).map { |name, value| "#{name}=#{value.shellescape}" }
    seed = output[/^Run options:.* --seed (\d+)/, 1]
    command = @command - (seed ? ["--seed", seed] : [])
    [*settings, command.shelljoin, *(seed && "--seed #{seed}")].join(" ")
  end

  # As test/support/result_reporter.rb has noted it.
  def running
    File.read("#{@counts}.running")
  rescue Errno::ENOENT
    nil
  end

  def counted(_output)
    JSON.parse(File.read(@counts), symbolize_names: true)
  rescue Errno::ENOENT, JSON::ParserError
    nil
  end
end
