# frozen_string_literal: true

require "shellwords"

# What a program that runs tests counted. `again` is the command line that does the same once more, `file` what it ran,
# `processor` the seconds of processor time that it and its own children took.
TestResult = Data.define(:title, :passed, :failed, :skipped, :failures, :skips, :output, :seconds, :processor, :file,
                         :again) do
  def initialize(processor: 0, file: nil, again: nil, **) = super
end

# A program that runs tests and ends with a closing line, such as "3 passed, 0 failed".
class TestCommand
  CLOSING_LINE = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/

  attr_reader :title, :file

  def initialize(title:, command:, root:, limit:)
    @title = title
    @command = command
    @root = root
    @limit = limit
  end

  # @return [Integer] the process id
  def start(folder)
    @output = File.join(folder, "#{object_id}.out")
    @started = now
    @pid = launch
  end

  # A group of its own, so that what the test started ends with it.
  def stop(signal = :TERM)
    Process.kill(signal, -@pid)
  rescue Errno::ESRCH
    nil
  end

  def stop_if_too_slow
    return if now - @started < @limit || @stopped

    @stopped = true
    stop(:KILL)
  end

  # @param status [Process::Status]
  # @param processor [Numeric] seconds of processor time
  def result(status, processor)
    stop(:KILL) # whatever it left behind
    seconds = now - @started
    output = File.binread(@output).force_encoding(Encoding::UTF_8).scrub
    counts = counted(output)
    counts = broken(status) if counts.nil? || (counts[:failed].zero? && !status.success?)

    TestResult.new(title:, file:, output:, seconds:, processor:, again: again(output), **counts)
  end

  private

  def launch
    fork do
      Process.setpgid(0, 0)
      Dir.chdir(@root)
      $stdin.reopen(File::NULL)
      $stdout.reopen(@output, "w")
      $stderr.reopen($stdout)
      ENV.update(environment)
      run_command
    end
  end

  # In the fork.
  def run_command = exec(*@command)

  def environment = {}

  def again(_output) = @command.shelljoin

  # The test that was running when the program ended, if that is known.
  def running = nil

  def counted(output)
    passed, failed, skipped = output.scan(CLOSING_LINE).last&.map(&:to_i)
    passed && { passed:, failed:, skipped: skipped.to_i, failures: failed.zero? ? [] : [title],
                skips: Array.new(skipped.to_i, title) }
  end

  # It ended before it could count, or badly after all its tests had passed: that is a failure.
  def broken(status)
    reason = @stopped ? "still running after #{@limit} s" : "ended with #{status.inspect[/pid \d+ (.*)>/, 1] || status}"
    reason += ", in #{running}" if running
    { passed: 0, failed: 1, skipped: 0, failures: ["#{title}: #{reason}"], skips: [] }
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
