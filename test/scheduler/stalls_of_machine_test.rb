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
  # Seconds in which the watch has looked, below the threshold.
  LOOK = 0.2
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

  # The watch sees the call before the pause, and looks again while it lasts.
  def test_while_a_process_is_stopped_it_has_no_stall
    sleep LOOK
    Process.kill("STOP", @pid)
    sleep PAUSE
    Process.kill("CONT", @pid)
    sleep LOOK # it has to see the pause before the call ends

    assert_operator seconds_of_stalls, :<, PAUSE / 2
  end

  def test_a_call_that_takes_as_long_is_one
    sleep PAUSE

    assert_operator seconds_of_stalls, :>, PAUSE / 2
  end
end
