# frozen_string_literal: true

require_relative "support/loop_helpers"
require_relative "../support/fiber_of"

class PoolTest < Minitest::Test
  include Heddle::LoopHelpers

  # Something that is dear to make.
  Resource = Struct.new(:number, :closed, :healthy) do
    def close = closed << "#{number} closed"
  end

  # A pool whose time the test moves on.
  class StillPool < Heddle::Pool
    attr_writer :time

    def now = @time ||= 0.0
  end

  def setup
    @made = []
    @closed = []
  end

  def test_lends_one_to_the_block_and_takes_it_back
    in_loop do
      pool = new_pool
      assert_equal 1, pool.with { |resource| [pool.busy, pool.idle] == [1, 0] && resource.number }
      assert_equal [1, 0, 1], [pool.size, pool.busy, pool.idle]
      assert_equal 1, pool.with(&:number)
    end
  end

  def test_a_name_of_any_encoding_is_shown_in_utf8
    { "\xFF" => "\\xFF", "é".encode("UTF-16LE") => "é", :things => "things", "a\nb" => "a\\x0Ab" }.each do |name, shown|
      pool = Heddle::Pool.new(max: 1, name:) { Object.new }
      Heddle.run { pool.with { assert_equal shown, pool.statistics[:name] } }
    end
  end

  def test_grows_while_users_wait_up_to_its_limit
    in_loop do
      pool = new_pool(max: 8)
      Heddle.map(1..50) { pool.with { turns } }
      assert_equal 8, pool.size
      assert_equal 8, @made.size
    end
  end

  def test_does_not_grow_for_sequential_users
    in_loop do
      pool = new_pool
      100.times { pool.with { turns(1) } }
      assert_equal 1, pool.size
    end
  end

  def test_doubles_instead_of_exploding
    most = making = 0
    in_loop do
      pool = Heddle::Pool.new(max: 40) do
        most = [most, making += 1].max
        assert_operator making, :<=, [@made.size, 1].max
        turns
        making -= 1
        new_resource
      end
      Heddle.map(1..100) { pool.with { forever_until { pool.size == 40 } } }
    end

    assert_operator most, :>, 4
  end

  def test_serves_waiters_in_order_of_arrival
    order = []
    in_loop do
      pool = new_pool(max: 1)
      Heddle.map(1..6) { |n| pool.with { (order << n) && turns(2) } }
    end

    assert_equal [1, 2, 3, 4, 5, 6], order
  end

  def test_stays_usable_without_growing_while_creation_fails
    refused = 0
    in_loop do
      pool = StillPool.new(max: 10, retry_after: 5) do
        (refused += 1) && raise(IOError, "too many connections") if @made.size == 2

        new_resource
      end
      assert_equal((1..20).to_a, Heddle.map(1..20) { |n| pool.with { turns(2) && n } })
      assert_equal [2, 1], [pool.size, refused]
      pool.time = 6
      Heddle.map(1..20) { pool.with { turns(2) } }
      assert_equal [2, 2], [pool.size, refused]
    end
  end

  def test_a_waiter_whose_creation_failed_keeps_its_place_in_the_queue
    order = []
    in_loop do
      pool = Heddle::Pool.new { @made.empty? ? new_resource : turns && raise(IOError, "too many connections") }
      first = pool.acquire
      Heddle.async { pool.with { order << :tried } }
      turns(1)
      Heddle.async { pool.with { order << :came_later } }
      turns(10)
      assert_equal 2, pool.waiting
      pool.release(first)
    end

    assert_equal %i[tried came_later], order
  end

  def test_all_waiters_get_the_error_when_no_resource_can_be_created
    in_loop do
      pool = Heddle::Pool.new { turns && raise(IOError, "down") }
      messages = Heddle.map(1..5) { assert_raises(IOError) { pool.with { flunk } }.message }
      assert_equal ["down"] * 5, messages
      assert_equal [0, 0], [pool.size, pool.waiting]
    end
  end

  def test_shrinks_when_some_lie_idle
    in_loop do
      pool = StillPool.new(idle_timeout: 10) { new_resource }
      barrier = Heddle::Barrier.new(5)
      Heddle.map(1..5) { pool.with { barrier.wait } }
      assert_equal 5, pool.idle
      pool.time = 11
      pool.with {}
      assert_equal 1, pool.size
      assert_equal 4, @closed.size
    end
  end

  def test_unhealthy_ones_are_replaced
    in_loop do
      pool = new_pool(check: :healthy.to_proc, check_after: 0)
      pool.with { |resource| resource.healthy = false }
      assert_equal 2, pool.with(&:number)
      assert_equal ["1 closed"], @closed
    end
  end

  def test_a_check_that_raises_means_unhealthy
    in_loop do
      pool = new_pool(check: ->(resource) { resource.number > 1 || raise(IOError) }, check_after: 0)
      assert_equal 1, pool.with(&:number)
      assert_equal 2, pool.with(&:number)
    end
  end

  def test_a_recently_used_resource_is_not_checked
    in_loop do
      pool = StillPool.new(check: ->(_) { false }, check_after: 1) { new_resource }
      2.times { assert_equal 1, pool.with(&:number) }
      pool.time = 1.5
      assert_equal 2, pool.with(&:number)
    end
  end

  def test_after_an_error_it_is_checked_and_after_a_cancelling_closed
    in_loop do
      pool = new_pool(check: :healthy.to_proc)
      assert_raises(KeyError) { pool.with { raise KeyError } }
      assert_equal 1, pool.idle
      assert_raises(KeyError) do
        pool.with do |resource|
          resource.healthy = false
          raise KeyError
        end
      end
      assert_equal 0, pool.size

      assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.002) { pool.with { forever } } }
      assert_equal ["1 closed", "2 closed"], @closed
      assert_equal 0, pool.size
    end
  end

  def test_after_its_fiber_was_killed_it_is_closed
    in_loop do
      pool = new_pool(max: 1)
      victim = Heddle.async { pool.with { forever } }
      turns(1) until pool.busy == 1
      fiber_of(victim).kill
      assert_equal [["1 closed"], 0], [@closed, pool.size]
      assert_equal 2, pool.with(&:number)
    end
  end

  { "task_that_is_cancelled" => :cancel.to_proc, "fiber_that_is_killed" => ->(task) { fiber_of(task).kill } }
    .each do |victim_that, strike|
    define_method("test_a_#{victim_that}_while_it_gives_one_back_leaves_no_place_taken") do
      in_loop do
        resets = 0
        pool = new_pool(max: 1, reset: ->(_) { (resets += 1) > 1 || forever })
        victim = Heddle.async { pool.with(&:number) }
        turns(1) until resets == 1
        strike.call(victim)
        turns(1) until victim.ended?
        assert_equal [["1 closed"], 0], [@closed, pool.busy]
        assert_equal 2, pool.with(&:number)
      end
    end
  end

  def test_is_released_when_the_block_is_left_by_throw_or_break
    in_loop do
      pool = new_pool
      assert_equal 1, catch(:out) { pool.with { |resource| throw :out, resource.number } }
      assert_equal [1, 0], [pool.idle, pool.busy]
    end
  end

  def test_cancelled_waiter_leaves_the_queue
    in_loop do
      pool = new_pool(max: 1)
      one = pool.acquire
      victim = Heddle.async { pool.acquire }
      other = Heddle.async { pool.with(&:number) }
      turns
      victim.cancel
      turns
      pool.release(one)
      assert_equal 1, other.value
      assert_equal 0, pool.busy
    end
  end

  { "task_that_is_cancelled" => :cancel.to_proc, "fiber_that_is_killed" => ->(task) { fiber_of(task).kill } }
    .each do |victim_that, strike|
    define_method("test_one_given_to_a_#{victim_that}_at_that_moment_is_not_lost") do
      in_loop do
        pool = new_pool(max: 1)
        one = pool.acquire
        victim = Heddle.async { pool.acquire && flunk }
        turns
        pool.release(one)
        strike.call(victim)
        victim.wait
        assert_equal [1, 0], [pool.idle, pool.busy]
      end
    end
  end

  def test_cancelled_while_one_is_made_leaves_room_for_the_next
    in_loop do
      pool = Heddle::Pool.new(max: 1) { @made.empty? && (@made << :begun) ? forever : new_resource }
      victim = Heddle.async { pool.acquire }
      turns(1) until @made == [:begun] # the first use of a pool may wait for files that it loads
      other = Heddle.async { pool.with(&:number) }
      turns(1) until pool.waiting == 1
      victim.cancel
      assert_equal 2, other.value
      assert_equal 1, pool.size
    end
  end

  def test_cancelled_while_another_one_is_made_lets_the_next_make_it
    in_loop do
      pool = Heddle::Pool.new(max: 3) { @made.size == 1 ? (@made << :begun) && forever : new_resource }
      pool.acquire
      victim = Heddle.async { pool.acquire }
      turns(1) until @made.last == :begun
      other = Heddle.async { pool.with(&:number) }
      turns(1) until pool.waiting == 1
      victim.cancel
      assert_equal 3, other.value
    end
  end

  def test_timeout_error_names_the_holders
    in_loop do
      pool = new_pool(max: 1, name: "things")
      held = Thread::Queue.new
      other = Heddle.async { pool.with { held.push(true) && forever } }
      held.pop
      error = assert_raises(Heddle::TimeoutError) { pool.acquire(timeout: 0.001) }
      assert_equal "things: no resource became free in time; 1 of 1 resources are in use (limit 1), and 0 other " \
                   "tasks wait", error.message
      assert_equal [0, 1], [pool.waiting, pool.statistics[:timeouts]]
      other.cancel
    end
  end

  def test_close_closes_the_idle_ones_and_later_the_others
    in_loop do
      pool = new_pool(max: 2)
      busy = pool.acquire
      pool.with {}
      Heddle.supervise do
        pool.acquire
        waiting = Heddle.async { pool.acquire }
        turns
        pool.close
        assert_raises(ClosedQueueError) { waiting.value }
      end
      assert_raises(ClosedQueueError) { pool.acquire }
      pool.release(busy)
      assert_includes @closed, "1 closed"
    end
  end

  def test_child_after_fork_makes_its_own
    in_loop do
      pool = new_pool(max: 1)
      pool.with {}
      lent = pool.acquire
      waiting = Heddle.async { pool.with(&:number) }
      reader, writer = IO.pipe
      pid = fork do
        writer << pool.with(&:number) << @closed.inspect
        writer.close
        exit!(0)
      end
      writer.close
      assert_equal "2[]", reader.read
      Process.wait(pid)
      pool.release(lent)
      assert_equal 1, waiting.value
    end
  end

  def test_only_acquired_resources_can_be_released
    in_loop do
      pool = new_pool
      one = pool.acquire
      pool.release(one)
      assert_raises(ArgumentError) { pool.release(one) }
      assert_raises(ArgumentError) { pool.discard(Object.new) }
    end
  end

  def test_own_way_to_close_and_errors_of_it
    in_loop do
      log = []
      pool = Heddle::Pool.new(close: ->(thing) { log << thing }) { "thing" }
      pool.discard(pool.acquire)
      assert_equal ["thing"], log

      pool = Heddle::Pool.new(close: ->(_) { raise IOError, "gone" }) { "thing" }
      _, err = capture_io { pool.discard(pool.acquire) }
      assert_match(/could not close "thing": gone/, err)
    end
  end

  def test_mistakes
    assert_raises(ArgumentError) { Heddle::Pool.new }
    error = assert_raises(ArgumentError) { Heddle::Pool.new(max: 0) {} }
    assert_equal "max: is 0, but must be :auto, or 1 or more", error.message
    error = assert_raises(ArgumentError) { Heddle::Pool.new(max: 4, min: 5) {} }
    assert_equal "min: is 5, but must be from 0 to 4", error.message
  end

  private

  def new_pool(**options) = Heddle::Pool.new(**options) { new_resource }

  def new_resource
    @made << :made
    Resource.new(@made.size, @closed, true)
  end

  def forever_until
    Fiber.scheduler.yield until yield
  end
end
