# frozen_string_literal: true

require_relative "support/loop_helpers"

class ChannelTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_items_come_out_in_the_order_they_went_in
    channel = Heddle::Channel.new
    channel << 1 << nil << 3

    assert_equal 3, channel.size
    assert_equal [1, nil, 3], Array.new(3) { channel.pop }
    assert_empty channel
  end

  def test_pop_waits_for_an_item_first_come_first_served
    got = []
    in_loop do
      channel = Heddle::Channel.new
      3.times { |i| Heddle.async { got << [i, channel.pop] } }
      turns
      assert_equal 3, channel.num_waiting
      channel << :a << :b << :c
    end

    assert_equal [[0, :a], [1, :b], [2, :c]], got
  end

  def test_push_waits_while_there_is_no_room
    log = []
    in_loop do
      channel = Heddle::Channel.new(2)
      Heddle.async { 5.times { |i| channel.push(i) && log << i } }
      turns
      assert_equal [0, 1], log
      assert_equal 0, channel.pop
      turns
      assert_equal [0, 1, 2], log
      assert_equal [1, 2, 3, 4], Array.new(4) { channel.pop }
    end
  end

  def test_capacity_of_zero_passes_items_from_task_to_task
    log = []
    in_loop do
      channel = Heddle::Channel.new(0)
      Heddle.async { 3.times { |i| channel.push(i) && log << "pushed #{i}" } }
      turns
      assert_empty log
      3.times do |i|
        assert_equal i, channel.pop
        turns
        assert_equal "pushed #{i}", log.last
      end
    end
  end

  def test_a_hundred_thousand_items_through_a_bounded_one
    sum = 0
    in_loop do
      channel = Heddle::Channel.new(64)
      Heddle.async do
        100_000.times { |i| channel.push(i) }
        channel.close
      end
      channel.each { |i| sum += i }
    end

    assert_equal 4_999_950_000, sum
  end

  def test_many_producers_and_consumers_lose_nothing
    got = []
    in_loop do
      channel = Heddle::Channel.new(3)
      Heddle.async do
        Heddle.map(0...10) { |n| 100.times { |i| channel << ((n * 100) + i) } }
        channel.close
      end
      4.times { Heddle.async { channel.each { |item| turns(item % 3) && got << item } } }
    end

    assert_equal (0...1000).to_a, got.sort
  end

  def test_close_wakes_receivers
    in_loop do
      channel = Heddle::Channel.new
      tasks = Array.new(3) { Heddle.async { channel.pop } }
      turns
      channel.close
      assert_equal [nil, nil, nil], tasks.map(&:value)
      assert_predicate channel, :closed?
    end
  end

  def test_close_wakes_senders_and_rejects_further_items
    in_loop do
      channel = Heddle::Channel.new(1)
      channel << 1
      Heddle.supervise do
        pusher = Heddle.async { channel << 2 }
        turns
        channel.close.close
        assert_raises(ClosedQueueError) { pusher.value }
      end
      assert_raises(ClosedQueueError) { channel << 3 }
      assert_equal [1, nil], [channel.pop, channel.pop]
    end
  end

  def test_timeouts
    in_loop do
      channel = Heddle::Channel.new(1)
      assert_nil channel.pop(timeout: 0.001)
      assert channel.push(1, timeout: 0.001)
      assert_nil channel.push(2, timeout: 0.001)
      assert_nil channel.push(2, timeout: 0)
      assert_equal 0, channel.num_waiting
      assert_equal [1], Array.new(channel.size) { channel.pop }
    end
  end

  # As with Thread::Queue: programs compute what is left of a time limit.
  def test_a_negative_timeout_has_passed_and_an_infinite_one_never_does
    in_loop do
      channel = Heddle::Channel.new(1)
      assert_nil channel.pop(timeout: -1)
      assert_nil Heddle::Channel.select(channel, timeout: -0.5)
      waiting = Heddle.async { [channel.pop(timeout: Float::INFINITY), channel.pop(timeout: 2r**70)] }
      turns
      channel << 1
      channel << 2
      assert_equal [1, 2], waiting.value
      assert channel.push(3, timeout: -1)
      assert_nil channel.push(4, timeout: -1)
    end
  end

  def test_cancelled_waiters_leave_the_queues
    in_loop do
      channel = Heddle::Channel.new(1)
      taker = Heddle.async { channel.pop }
      turns
      taker.cancel
      turns
      channel << 1
      pusher = Heddle.async { channel << 2 }
      turns
      pusher.cancel
      turns
      assert_equal [1, 0], [channel.size, channel.num_waiting]
    end
  end

  def test_item_for_a_receiver_that_is_cancelled_goes_to_the_next_receiver
    in_loop do
      channel = Heddle::Channel.new
      victim = Heddle.async { channel.pop && flunk }
      turns
      channel << 1 << 2
      victim.cancel
      victim.wait
      assert_equal [1, 2], [channel.pop, channel.pop]

      victim = Heddle.async { channel.pop && flunk }
      other = Heddle.async { channel.pop }
      turns
      channel << 3
      victim.cancel
      assert_equal 3, other.value
    end
  end

  def test_select_prefers_the_first_channel_that_is_ready
    a, b = Heddle::Channel.new, Heddle::Channel.new
    b << :b
    a << :a

    assert_equal [a, :a], Heddle::Channel.select(a, b)
    assert_equal [b, :b], Heddle::Channel.select(a, b)
  end

  def test_select_waits_for_the_first_item_of_any
    in_loop do
      a, b = Heddle::Channel.new, Heddle::Channel.new(0)
      task = Heddle.async { Heddle::Channel.select(a, b) }
      turns
      b << 1
      a << 2
      assert_equal [b, 1], task.value
      assert_equal [a, 2], Heddle::Channel.select(a, b)
      assert_equal [0, 0], [a.num_waiting, b.num_waiting]
    end
  end

  def test_select_is_over_when_all_are_closed_and_empty
    in_loop do
      a, b = Heddle::Channel.new, Heddle::Channel.new
      task = Heddle.async { Heddle::Channel.select(a, b) }
      turns
      a.close
      turns
      refute_predicate task, :ended?
      b << 1
      assert_equal [b, 1], task.value

      task = Heddle.async { Heddle::Channel.select(a, b) }
      turns
      b.close
      assert_nil task.value
      assert_nil Heddle::Channel.select(a, b)
    end
  end

  def test_select_gives_up_after_its_timeout_and_when_cancelled
    in_loop do
      a, b = Heddle::Channel.new, Heddle::Channel.new
      assert_nil Heddle::Channel.select(a, b, timeout: 0.001)
      victim = Heddle.async { Heddle::Channel.select(a, b) }
      turns
      b << :kept
      victim.cancel
      victim.wait
      assert_equal :kept, b.pop
      assert_equal [0, 0], [a.num_waiting, b.num_waiting]
    end
  end

  def test_each_can_be_left
    channel = Heddle::Channel.new
    channel << 1 << 2
    channel.each { |item| break if item == 1 }

    assert_equal 2, channel.pop
    channel.close
    assert_same channel, channel.each { flunk }
  end

  def test_each_lets_errors_of_its_block_out
    from, to = Heddle::Channel.new, Heddle::Channel.new.close
    from << 1

    assert_raises(ClosedQueueError) { from.each { |item| to << item } }
  end

  def test_wait_with_another_scheduler_raises_and_names_it
    error = nil
    Thread.new do
      other = Class.new(Object) do
        %i[block unblock kernel_sleep io_wait fiber_interrupt close].each { |name| define_method(name) { |*| nil } }
        def fiber(&) = Fiber.new(blocking: false, &).tap(&:resume)
      end
      Fiber.set_scheduler(other.new)
      Fiber.schedule { error = assert_raises(Heddle::NoLoopError) { Heddle::Channel.new.pop } }
    end.join

    assert_match(/Heddle::Channel#pop: this thread has another scheduler/, error.message)
  end

  def test_waiting_needs_a_loop
    error = assert_raises(Heddle::NoLoopError) { Heddle::Channel.new.pop }
    assert_match(/Heddle\.run/, error.message)
    assert_raises(ArgumentError) { Heddle::Channel.new(-1) }
  end
end
