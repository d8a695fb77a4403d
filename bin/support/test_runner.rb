# frozen_string_literal: true

# Runs test files, each in a process of its own, on several Rubies; bin/test calls it.

require "etc"
require "optparse"
require "tmpdir"
require_relative "test_interpreter"
require_relative "test_process"
require_relative "test_report"

# Decides which file runs on which Ruby with which selector, and runs them side by side.
class TestRunner
  ROOT = File.expand_path("../..", __dir__)

  # Test files at a time: about a third of their time they wait.
  JOBS = Etc.nprocessors + 1

  # Folders whose tests depend on the selector: they run with each.
  EACH_SELECTOR = %w[test/selector/ test/scheduler/].freeze

  # Folders whose tests run with fibers, and once more with each of these.
  EACH_MODE = %w[test/server/conformance/].freeze
  MODES = %w[thread].freeze

  # @param arguments [Array<String>] test files and folders with some
  # @return [Array<String>] the files, relative to the root
  def self.files(arguments)
    arguments.flat_map do |argument|
      path = File.expand_path(argument).delete_prefix("#{ROOT}/")
      next path if path.end_with?(".rb", ".c") && File.file?(File.join(ROOT, path))

      found = Dir.glob("#{path}/**/*_test.rb", base: ROOT).sort
      abort "#{argument} is neither a test file nor a folder with some" if found.empty? && path != "test/c"
      found
    end.uniq
  end

  # @param rubies [Array<TestInterpreter>]
  # @param root [String] the folder that holds test/
  # @param jobs [Integer] processes at a time
  # @param arguments [Array<String>] handed on to minitest
  # @param selectors [Array<String>, nil] run with these only
  # @param limit [Numeric] seconds that a file may take
  # @param durations [Integer] how many of the slowest files are named at the end
  # @param retries [Integer] how many files that failed are run a second time, alone
  def initialize(rubies:, root: ROOT, jobs: JOBS, arguments: [], selectors: nil, limit: 300, durations: 0, retries: 0,
                 out: $stdout)
    @rubies = rubies
    @root = root
    @jobs = jobs
    @arguments = arguments
    @selectors = selectors
    @limit = limit
    @retries = retries
    @doubtful = {}
    @report = TestReport.new(out:, durations:, some_may_be_empty: arguments.any?)
  end

  attr_reader :report

  # Runs the files and returns the report.
  # @param files [Array<String>] relative to the root
  # @param commands [Hash{String => Array<String>}] programs that end with a closing line of their own, by title
  def run(files, commands: {})
    # A background job of a shell ignores these, and so would every program that it starts: tests of Ctrl-C would hang.
    %w[INT QUIT].each { |signal| trap(signal, "DEFAULT") }
    alone, together = plan(files).partition { |process| marked?(process.file, "alone") }
    # Long ones first: at the end of a run one of them would leave processors idle.
    together = together.partition { |process| marked?(process.file, "long") }.flatten
    together.unshift(*commands.map { |title, command| TestCommand.new(title:, command:, root: @root, limit: 900) })
    Dir.mktmpdir("heddle-test") do |folder|
      run_all(together, folder, @jobs) { |process, result| settle(process, result) }
      run_all(alone, folder, 1) { |process, result| settle(process, result) }
      run_doubtful(folder)
    end
    @report
  end

  # Every run of the given files, those of one Ruby after those of another.
  def plan(files)
    @rubies.flat_map do |ruby|
      files.flat_map do |file|
        selectors_for(ruby, file).product(modes_for(file)).map do |selector, mode|
          TestProcess.new(ruby:, file:, selector:, mode:, root: @root, arguments: @arguments, limit: @limit)
        end
      end
    end
  end

  # A comment in the first lines of a file: `# test: alone` (no other test beside it), `# test: each selector`,
  # `# test: each mode`, `# test: once` (not with each selector), `# test: long` (it comes first), `# test: sanitize`
  # and `# test: not sanitized` (see bin/sanitize).
  def marked?(file, word)
    return false unless file

    @marks ||= Hash.new do |marks, path|
      marks[path] = File.foreach(File.join(@root, path)).first(12).join.scan(/^# test: (.+)$/).flatten.map(&:strip)
    end
    @marks[file].include?(word)
  end

  private

  # `nil` is the default selector, which is the best one: it is not run a second time by its name.
  def selectors_for(ruby, file)
    return @selectors if @selectors
    return [nil] unless file.start_with?(*EACH_SELECTOR) || marked?(file, "each selector")
    return [nil] if marked?(file, "once")

    [nil, *ruby.selectors.drop(1)]
  end

  # `nil` is the default mode.
  def modes_for(file)
    file.start_with?(*EACH_MODE) || marked?(file, "each mode") ? [nil, *MODES] : [nil]
  end

  def run_all(processes, folder, jobs, &)
    waiting = processes.dup
    running = {}
    until waiting.empty? && running.empty?
      while running.size < jobs && (process = waiting.shift)
        running[process.start(folder)] = process
      end
      finish(running, &)
    end
  rescue SignalException
    running.each_value(&:stop)
    raise
  end

  def finish(running)
    pid, status = Process.wait2(-1, Process::WNOHANG)
    if pid.nil?
      running.each_value(&:stop_if_too_slow)
      sleep 0.01
    elsif (process = running.delete(pid))
      yield process, process.result(status)
    end
  end

  # What has crashed or hung is a failure, whatever it does the next time.
  def settle(process, result)
    return @report.add(result) if result.failed == 0 || result.broken || @doubtful.size >= @retries

    @report.doubt(result)
    @doubtful[process] = result
  end

  def run_doubtful(folder)
    run_all(@doubtful.keys, folder, 1) do |process, second|
      @report.add(second)
      @report.unsteady(@doubtful[process]) if second.failed == 0
    end
  end
end
