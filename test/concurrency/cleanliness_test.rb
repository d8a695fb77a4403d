# frozen_string_literal: true

require_relative "support/loop_helpers"

# R13: no global state. What a loop opens, starts and allocates is gone with it.
class CleanlinessTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_a_thousand_starts_and_stops_leave_nothing_behind
    some_work # loads what it needs
    collect
    before = census
    globals = global_variables.sort
    1_000.times { some_work }
    collect

    census.each { |what, count| assert_operator count, :<=, before[what] + allowance(what), "more #{what} than before" }
    assert_equal globals, global_variables.sort
    assert_nil Fiber.scheduler
    assert_equal "DEFAULT", trap("QUIT", "DEFAULT")
  end

  def test_failed_runs_leave_nothing_behind_either
    failing_work
    collect
    before = census
    200.times { failing_work }
    collect

    census.each { |what, count| assert_operator count, :<=, before[what] + allowance(what), "more #{what} than before" }
  end

  private

  def some_work
    in_loop do
      channel = Heddle::Channel.new(1)
      Heddle.async { 3.times { |i| channel << i } && channel.close }
      channel.each { |_| }
      Heddle.timeout(5) { Heddle.map(1..3, limit: 2) { turns(1) } }
      Heddle.async(background: true) { forever }
    end
  end

  def failing_work
    assert_raises(KeyError) do
      in_loop do
        Heddle.async { forever }
        Heddle.timeout(5) { turns(2) && raise(KeyError) }
      end
    end
  end

  def census
    {
      descriptors: Dir.children("/dev/fd").size, threads: Thread.list.size, fibers: count(Fiber),
      schedulers: count(Heddle::Scheduler), tasks: count(Heddle::Task), channels: count(Heddle::Channel)
    }
  end

  def count(klass) = ObjectSpace.each_object(klass).count

  # The collector looks at the machine stack, too, and may take an old word there for an object.
  def allowance(what) = %i[descriptors threads].include?(what) ? 0 : 5

  def collect
    3.times { GC.start }
  end
end
