# frozen_string_literal: true

# test: alone

require "test_helper"
require "support/scheduled"
require "heddle"
require_relative "../offload/support/native_calls"

require NativeCallsLibrary.path

# Each thing that can hold up a loop is told from the others, with its place.
class StallsTest < Minitest::Test
  include Scheduled

  THRESHOLD = 0.04
  LONG = 0.16

  def setup
    @told = []
    Heddle::Stalls.reset
    Heddle.enable :stall_report, threshold: THRESHOLD
  end

  def teardown
    Heddle.disable :stall_report
  end

  def compute(seconds)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    nil until Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
  end

  # The stalls of a loop in which the block is called.
  def stalls_of(&block)
    Heddle::Stalls.telling(@told.method(:push)) do
      scheduled do
        sleep 0.001
        block.call
        sleep 0.001
        until_true { @told.any? }
      end
    end
    Heddle::Stalls.recent
  end

  def assert_stall(cause, stalls, seconds: LONG)
    found = stalls.find { |stall| stall.cause == cause }

    assert found, "none of #{stalls.map(&:to_s)}"
    assert_operator found.seconds, :>=, seconds - 0.03
    found
  end

  def test_a_native_call_that_releases_rubys_lock
    line = nil
    stall = assert_stall(:native, stalls_of { (line = __LINE__) && NativeCalls.sleep_for(LONG) })

    assert_match(/stalls_test.rb:#{line}/, stall.place)
  end

  def test_a_native_call_that_holds_rubys_lock
    line = nil
    stall = assert_stall(:native_with_gvl, stalls_of { (line = __LINE__) && NativeCalls.hold(LONG) })

    assert_match(/stalls_test.rb:#{line}/, stall.place)
  end

  def test_ruby_code
    stall = assert_stall(:ruby, stalls_of { compute(LONG) })

    assert_match(/compute/, stall.backtrace.join("\n"))
    assert_match(/stalls_test.rb/, stall.place)
  end

  def test_another_thread_with_rubys_lock
    stalls = stalls_of do
      thread = Thread.new { NativeCalls.hold(LONG) }
      sleep 0.001 while thread.alive?
    end

    assert_stall(:waiting_for_gvl, stalls, seconds: LONG / 2)
  end

  def test_what_is_quick_is_no_stall
    scheduled do
      50.times do
        sleep 0.001
        compute(0.001)
      end
    end

    assert_empty(Heddle::Stalls.recent.reject { |stall| stall.cause == :waiting_for_gvl })
  end

  def test_a_line_tells_what_and_where_and_what_to_do
    stall = stalls_of { compute(LONG) }.find { |one| one.cause == :ruby }

    assert_includes @told, stall
    assert_match(/\Astall of \d+ ms: Ruby code, at .*stalls_test.rb:\d+/, stall.to_s)
    assert_match(/Heddle.enable :preempt/, Heddle::Stalls.line(stall, advise: true))
  end

  def test_one_place_is_told_a_few_times_a_minute_and_counted_each_time
    times = Heddle::Stalls::LINES + 3
    stalls_of do
      times.times do
        NativeCalls.hold(THRESHOLD * 2)
        sleep 0.001
      end
      until_true { Heddle::Stalls.recent.size >= times }
    end

    assert_operator Heddle::Stalls.statistics[:by_cause][:native_with_gvl][:count], :>, Heddle::Stalls::LINES
    assert_operator @told.count { |stall| stall.cause == :native_with_gvl }, :<=, Heddle::Stalls::LINES
  end

  def test_who_is_preempted_stalls_nobody
    Heddle.enable :preempt, slice: 0.005
    scheduled do
      Fiber.schedule { 60.times { sleep 0.005 } }
      compute(LONG * 2)
    end

    assert_empty(Heddle::Stalls.recent.select { |stall| stall.cause == :ruby })
  ensure
    Heddle.disable :preempt
  end

  def test_endpoints_are_counted_by_method_and_two_segments_and_no_more_than_a_few
    stall = Heddle::Stall.new([:ruby, 1.0, 0.2, "GET /users/1/edit", "/app/x.rb:3:show\n"])

    assert_equal ["GET /users/1", "/app/x.rb:3 in show"], [stall.endpoint, stall.place]
    assert_equal "POST /users", Heddle::Stall.new([:ruby, 1.0, 0.2, "POST /users", ""]).endpoint
    found = Array.new(Heddle::Stalls::ENDPOINTS + 50) { |i| [:native, 1.0, 0.5, "GET /page#{i}", ""] }
    found.each { |one| Heddle::Stalls.send(:count, Heddle::Stall.new(one)) }
    endpoints = Heddle::Stalls.statistics[:by_endpoint]

    assert_equal Heddle::Stalls::ENDPOINTS + 1, endpoints.size
    assert_equal 50, endpoints[Heddle::Stalls::OTHERS][:count]
  end
end
