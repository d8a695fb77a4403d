# frozen_string_literal: true

# Runs test files, each in a process of its own, on several Rubies; bin/test calls it.

require "etc"
require "optparse"
require "tmpdir"
require_relative "idle_processors"
require_relative "test_interpreter"
require_relative "test_plan"
require_relative "test_process"
require_relative "test_report"

# Runs the files of a plan side by side and adds up what they counted.
class TestRunner
  ROOT = File.expand_path("../..", __dir__)

  # Test files at a time.
  JOBS = Etc.nprocessors
  # So many times as many while processors idle: files wait for most of their time.
  FILLED = 4

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

  # @param plan [TestPlan]
  # @param root [String] the folder that holds test/
  # @param jobs [Integer] processes at a time
  # @param fill [IdleProcessors, nil] changes that number while they run, up to {FILLED} times as many
  # @param arguments [Array<String>] handed on to minitest
  # @param limit [Numeric] seconds that a file may take
  # @param durations [Integer] how many of the files that cost most are named at the end
  # @param fork [Boolean] whether files for the Ruby that runs this are forks of this process; the nightly's never are
  def initialize(plan:, root: ROOT, jobs: JOBS, fill: nil, arguments: [], limit: 600, durations: 0, out: $stdout,
                 fork: false)
    @plan = plan
    @root = root
    @jobs = jobs
    @fill = fill
    @arguments = arguments
    @limit = limit
    @fork = fork && !plan.nightly? && Process.respond_to?(:fork)
    @report = TestReport.new(out:, durations:, some_may_be_empty: arguments.any?)
  end

  attr_reader :report

  # Runs the files and returns the report.
  # @param files [Array<String>] relative to the root
  # @param commands [Hash{String => Array<String>}] programs that end with a closing line of their own, by title
  def run(files, commands: {})
    # A background job of a shell ignores these, and so would every program that it starts: tests of Ctrl-C would hang.
    %w[INT QUIT].each { |signal| trap(signal, "DEFAULT") }
    alone, together = processes(files).partition { |process| @plan.marked?(process.file, "alone") }
    # Long ones first: at the end of a run one of them would leave processors idle.
    together = together.partition { |process| @plan.marked?(process.file, "long") }.flatten
    TestProcess.preload(@root) if @fork
    together.unshift(*commands.map { |title, command| TestCommand.new(title:, command:, root: @root, limit: 900) })
    Dir.mktmpdir("heddle-test") do |folder|
      run_all(together, folder, @jobs)
      run_all(alone, folder, 1)
    end
    @report
  end

  private

  def processes(files)
    @plan.runs(files).map do |run|
      cached = !@plan.nightly? || !run.selector.nil?
      forked = @fork && File.identical?(run.ruby.path, RbConfig.ruby)
      TestProcess.new(run:, root: @root, arguments: @arguments, limit: @limit, cached:, forked:)
    end
  end

  def run_all(processes, folder, jobs)
    waiting = processes.dup
    running = {}
    wanted = jobs
    until waiting.empty? && running.empty?
      while running.size < wanted && (process = waiting.shift)
        running[process.start(folder)] = process
      end
      finish(running)
      wanted = filled(wanted, jobs) if running.size == wanted
    end
  rescue SignalException
    running.each_value(&:stop)
    raise
  end

  # A file that runs alone stays alone.
  def filled(wanted, jobs)
    return wanted if @fill.nil? || jobs == 1

    (wanted + @fill.change).clamp(jobs, FILLED * jobs)
  end

  def finish(running)
    before = children_seconds
    pid, status = Process.wait2(-1, Process::WNOHANG)
    if pid.nil?
      running.each_value(&:stop_if_too_slow)
      sleep 0.01
    elsif (process = running.delete(pid))
      @report.add(process.result(status, children_seconds - before))
    end
  end

  # Processor time of the children that were waited for, and of those that they waited for: what one wait adds is that
  # of one test process.
  def children_seconds = Process.times.then { |times| times.cutime + times.cstime }
end
