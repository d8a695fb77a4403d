# frozen_string_literal: true

require_relative "support/loop_helpers"
require "English"

# What waits in channels, and what they hold, survives the garbage collector, compaction and fork.
class ChannelMemoryTest < Minitest::Test
  include Heddle::LoopHelpers

  def teardown
    GC.stress = false
  end

  def test_items_and_waiters_survive_a_collector_that_runs_all_the_time
    in_loop do
      there, back = Heddle::Channel.new(1), Heddle::Channel.new(0)
      Heddle.async { there.each { |item| back << "#{item} back" } }
      GC.stress = true
      got = Array.new(15) do |i|
        there << "item #{i}"
        back.pop(timeout: 30)
      end
      GC.stress = false
      there.close
      assert_equal Array.new(15) { |i| "item #{i} back" }, got
    end
  end

  def test_items_survive_compaction_wherever_they_are
    skip "this Ruby can't compact" unless GC.respond_to?(:compact)

    in_loop do
      channels = Array.new(3) { Heddle::Channel.new(1) }
      channels.each { |channel| channel << ["held by #{channels.index(channel)}"] }
      pushers = channels.map { |channel| Heddle.async { channel << ["waited #{channels.index(channel)}"] } }
      empty = Array.new(2) { Heddle::Channel.new }
      taker = Heddle.async { Heddle::Channel.select(*empty) }
      turns
      empty.last << ["given"]
      GC.compact
      assert_equal [empty.last, ["given"]], taker.value
      assert_equal([["held by 0"], ["held by 1"], ["held by 2"]], channels.map(&:pop))
      pushers.each(&:wait)
      GC.compact
      assert_equal([["waited 0"], ["waited 1"], ["waited 2"]], channels.map(&:pop))
    end
  end

  def test_unreferenced_channel_keeps_its_waiters
    in_loop do
      taker = Heddle.async { Heddle::Channel.new.pop }
      pusher = Heddle.async { Heddle::Channel.new(0) << 1 }
      turns
      3.times { GC.start }
      assert_equal %i[waiting waiting], [taker.state, pusher.state]
      [taker, pusher].each(&:cancel).each(&:wait)
    end
  end

  def test_child_after_fork_has_the_items_and_not_the_waiters
    in_loop do
      empty, full = Heddle::Channel.new, Heddle::Channel.new(1)
      full << :held
      tasks = [Heddle.async { empty.pop }, Heddle.async { full << :waiting }]
      turns
      pid = fork do
        GC.start
        empty << 1 << 2
        exit!([empty.pop, empty.pop, full.pop] == [1, 2, :held] ? 0 : 1)
      end
      Process.wait(pid)
      assert_equal 0, $CHILD_STATUS.exitstatus
      tasks.each(&:cancel)
    end
  end

  def test_channel_forgets_the_fibers_of_a_loop_that_was_closed_during_their_clean_up
    channels = [Heddle::Channel.new, Heddle::Channel.new(0)]
    close_loop_during(-> { channels.first.pop }, -> { channels.last << 1 })
    GC.start

    assert_equal [0, 0], channels.map(&:num_waiting)
    in_loop do
      channels.first << 2

      assert_equal 2, channels.first.pop
      assert_nil channels.last.pop(timeout: 0)
    end
  end
end
