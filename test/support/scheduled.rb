# frozen_string_literal: true

require "heddle/scheduler"

# Runs blocks under a scheduler of the selector under test, by Ruby's interface alone.
module Scheduled
  # Seconds that nothing a test does takes, even on a machine that is busy with other tests: a hang becomes a failure
  # with its backtrace.
  LIMIT = 60

  # Runs the block in a scheduled fiber of a new thread and waits for everything it scheduled.
  # @return the block's value
  def scheduled(scheduler = Heddle::Scheduler.new, &)
    value = failure = nil
    in_thread do
      Fiber.set_scheduler(scheduler)
      Fiber.schedule do
        value = yield scheduler
      rescue StandardError, Minitest::Assertion => e
        failure = e
      end
      Fiber.set_scheduler(nil)
      raise failure if failure
    end
    value
  rescue Minitest::Assertion => e
    raise failure || e # a block that failed may leave fibers that nobody ends
  end

  def in_thread(&)
    thread = Thread.new(&)
    thread.report_on_exception = false
    return thread.value if thread.join(self.class::LIMIT)

    trace = thread.backtrace
    thread.kill
    flunk "hangs after #{self.class::LIMIT} s at\n#{trace&.join("\n")}"
  end

  # Lets the others run until the block is true.
  def until_true
    deadline = now + LIMIT
    turns = 0
    until yield
      raise "not within #{LIMIT} s" if now > deadline

      Fiber.scheduler ? Fiber.scheduler.yield : Thread.pass
      Scheduled.pause(turns += 1)
    end
  end

  # What needs more turns than these takes time: meanwhile the test keeps no processor busy.
  QUICK_TURNS = 500

  # @param turns [Integer] for which a test has waited
  def self.pause(turns) = (sleep 0.0005 if turns > QUICK_TURNS)

  # Runs a Ruby program in a process of its own, without RubyGems, which would take most of the time of its start.
  # @param flags [Array<String>] with --enable=gems for a program that needs one
  # @return [Array(String, Process::Status)] its output, errors included, and its status
  def ruby(program, *arguments, env: {}, flags: [])
    require "open3"
    lib = File.expand_path("../../lib", __dir__)
    Open3.capture2e(env, RbConfig.ruby, "--disable=gems", *flags, "-I#{lib}", "-e", program, *arguments)
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
