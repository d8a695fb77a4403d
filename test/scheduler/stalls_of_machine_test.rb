# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require_relative "../offload/support/native_calls"

# A process that the machine pauses counts no stall; one that blocks for as long itself does.
class StallsOfMachineTest < Minitest::Test
  # Holds Ruby's lock in native code until something is in the pipe, and says what was reported of it.
  PROGRAM = <<~RUBY
    require ARGV[0]
    require "heddle"
    Heddle.enable :stall_report, threshold: 0.3
    Heddle::Protection.reporting_to(->(*) {}) do
      Heddle.run do
        sleep 0.001
        NativeCalls.hold_between($stdout.fileno, $stdin.fileno)
        sleep 0.001
      end
    end
    seconds = Heddle::Stalls.statistics[:seconds]
    puts seconds
  RUBY
  PAUSE = 1.2
  # How often the watch waits for its next look before it has looked once for certain.
  LOOKS = 4
  LIMIT = 60

  def setup
    skip "pauses are told from stalls on Linux" unless RUBY_PLATFORM.include?("linux")
    @go, go = IO.pipe.reverse
    @said, said = IO.pipe
    library = File.expand_path("../../lib", __dir__)
    @pid = spawn(RbConfig.ruby, "-I#{library}", "-e", PROGRAM, NativeCallsLibrary.path, in: go, out: said)
    [go, said].each(&:close)
    @said.timeout = LIMIT
    @said.gets # it holds the lock
  end

  def teardown
    Process.kill("KILL", @pid)
    Process.wait(@pid)
    [@go, @said].each(&:close)
  end

  # Seconds that the program has counted as stalls.
  def seconds_of_stalls
    @go.write("g")
    Float(@said.gets)
  end

  # The one thread that is not waiting for something is the watch's.
  def wait_for_a_look
    before = waits_of_threads
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + LIMIT
    until waits_of_threads.any? { |thread, waits| waits - before.fetch(thread, waits) >= LOOKS }
      flunk "the watch does not look" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.01
    end
  end

  def waits_of_threads
    Dir.glob("/proc/#{@pid}/task/*/status").to_h { |path| [path, Integer(File.read(path)[/^voluntary\D+(\d+)/, 1])] }
  end

  # The watch sees the call before the pause, and looks again before it ends.
  def test_while_a_process_is_stopped_it_has_no_stall
    wait_for_a_look
    Process.kill("STOP", @pid)
    sleep PAUSE
    Process.kill("CONT", @pid)
    wait_for_a_look

    assert_operator seconds_of_stalls, :<, PAUSE / 2
  end

  def test_a_call_that_takes_as_long_is_one
    sleep PAUSE

    assert_operator seconds_of_stalls, :>, PAUSE / 2
  end
end
