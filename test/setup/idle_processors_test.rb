# frozen_string_literal: true

require "test_helper"
require "etc"
require "tempfile"
require_relative "../../bin/support/idle_processors"

# Whether one more test file should run at a time, or one less.
class IdleProcessorsTest < Minitest::Test
  def setup
    @now = 0
    @stat = Tempfile.new
    pass(seconds: 0, idle: 0)
    @processors = IdleProcessors.new(path: @stat.path, clock: -> { @now }, nice: 0)
  end

  def teardown = @stat.close!

  # So many seconds pass, in which all processors together idle for so many.
  def pass(seconds:, idle:, waiting: 0, nice: 0)
    @now += seconds
    @nice = (@nice || 0) + nice
    @idle = (@idle || 0) + idle
    @waiting = (@waiting || 0) + waiting
    ticks = Etc.sysconf(Etc::SC_CLK_TCK)
    File.write(@stat.path, "cpu  9 #{@nice * ticks} 9 #{@idle * ticks} #{@waiting * ticks} 0 0\ncpu0 9 9 9 9 9 0 0\n")
  end

  def test_one_more_file_runs_when_half_of_a_processor_idles_in_the_window
    pass(seconds: 2, idle: 0.75, waiting: 0.25)

    assert_equal 1, @processors.change
    pass(seconds: 2, idle: 0.875)

    assert_equal 0, @processors.change
  end

  def test_programs_of_a_lower_priority_count_as_idle_unless_the_tests_have_it_too
    equal = IdleProcessors.new(path: @stat.path, clock: -> { @now }, nice: 5)
    pass(seconds: 2, idle: 0.25, nice: 1)

    assert_equal 1, @processors.change
    assert_equal 0, equal.change
  end

  def test_one_file_less_runs_when_no_processor_idles
    pass(seconds: 2, idle: 0.25)

    assert_equal 0, @processors.change
    pass(seconds: 2, idle: 0.125)

    assert_equal(-1, @processors.change)
  end

  def test_answer_begins_a_window_so_that_a_start_shows_before_the_next
    pass(seconds: 4, idle: 8)

    assert_equal 1, @processors.change
    pass(seconds: 0.5, idle: 8)

    assert_equal 0, @processors.change, "the window is open"
    pass(seconds: 0.5, idle: 0)

    assert_equal 1, @processors.change
  end

  def test_system_without_proc_has_no_idle_processor
    processors = IdleProcessors.new(path: "/nowhere/stat", clock: -> { @now })
    @now += 10

    assert_equal 0, processors.change
  end
end
