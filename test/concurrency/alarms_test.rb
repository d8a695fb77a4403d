# frozen_string_literal: true

require_relative "support/loop_helpers"
require "English"

class AlarmsTest < Minitest::Test
  # Alarms whose time the test moves on.
  class StillAlarms < Heddle::Concurrency::Alarms
    attr_writer :time

    def now = @time ||= 0.0
  end

  # As much of a scheduler as the alarms need: runs its fiber by hand.
  class Stage
    def spawn(job)
      @fiber = Fiber.new { job.call }
    end

    def park(seconds)
      @parked = seconds
      Fiber.yield
    end

    def unpark(_fiber)
      @parked = nil
    end

    attr_reader :parked

    def run
      @fiber.resume if @fiber.alive?
    end

    def ended? = !@fiber.alive?
  end

  # Notes that it was called.
  class Target
    def initialize(name, log)
      @name = name
      @log = log
    end

    def ring = @log << @name
  end

  def setup
    @stage = Stage.new
    @alarms = StillAlarms.new(@stage)
    @log = []
  end

  def test_alarms_ring_in_the_order_of_their_time
    [3, 1, 2, 0.5, 2.5].each { |seconds| add(seconds) }
    at(0)
    assert_in_delta 0.5, @stage.parked

    at(2)
    assert_equal [0.5, 1, 2], @log
    at(10)

    assert_equal [0.5, 1, 2, 2.5, 3], @log
    assert_predicate @stage, :ended?
  end

  def test_removed_ones_do_not_ring_and_the_last_ends_the_fiber
    first = add(1)
    second = add(2)
    at(0)
    @alarms.remove(first)
    @alarms.remove(first)
    at(1.5)
    assert_empty @log

    @alarms.remove(second)
    @stage.run

    assert_predicate @stage, :ended?
    add(1)
    at(3)
    assert_equal [1], @log
  end

  def test_an_earlier_one_wakes_the_fiber
    add(5)
    at(0)
    assert_in_delta 5, @stage.parked
    add(1)
    assert_nil @stage.parked
  end

  def test_thousands_that_come_and_go_leave_no_list_behind
    keep = add(1_000)
    10_000.times { |i| @alarms.remove(add(10 + (i % 13))) }
    alarms = @alarms.instance_variable_get(:@heap)

    assert_same keep, alarms.first
    alarms.remove(keep)
    assert_predicate alarms, :empty?
  end

  def test_of_equal_times_the_first_that_was_added_rings_first
    %w[a b c].each { |name| @alarms.add(1, Target.new(name, @log), :ring) }
    at(1)

    assert_equal %w[a b c], @log
  end

  def test_alarms_ring_after_the_method_of_another_has_raised
    add(1)
    @alarms.add(1, -> { raise IndexError }, :call)
    add(1)
    add(2)
    assert_raises(IndexError) { at(1) }
    at(1)
    at(2)

    assert_equal [1, 1, 2], @log
    assert_predicate @stage, :ended?
  end

  def test_a_forked_child_forgets_its_parents_alarms_and_has_its_own
    parents = add(1)
    pid = fork do
      add(2)
      at(3)
      @alarms.remove(parents)
      exit!(@log == [2] ? 0 : 1)
    end
    Process.wait(pid)

    assert_predicate $CHILD_STATUS, :success?
    at(3)
    assert_equal [1], @log
  end

  private

  def add(seconds) = @alarms.add(seconds, Target.new(seconds, @log), :ring)

  def at(time)
    @alarms.time = time
    @stage.run
  end
end
