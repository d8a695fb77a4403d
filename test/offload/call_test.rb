# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/offloaded"

# A native call that releases Ruby's lock blocks only its own fiber, whatever it does meanwhile.
class OffloadCallTest < Minitest::Test
  include Offloaded

  # Each call waits until so many are inside at once: one after the other none would ever return.
  def all_meet(number, method, *arguments)
    in_loop do
      Array.new(number) { Heddle.async { NativeCalls.public_send(method, number, *arguments) } }.map(&:value)
    end
  end

  def test_fifty_calls_are_under_way_at_once
    assert_equal [:met], all_meet(50, :meet).uniq
    assert_operator NativeCalls.most_inside, :>=, 50
  end

  def test_every_way_to_release_the_lock_is_offloaded
    assert_equal %i[met met met], all_meet(3, :meet2)
    [0, NativeCalls::INTR_FAIL, NativeCalls::UBF_ASYNC_SAFE, NativeCalls::OFFLOAD_SAFE,
     NativeCalls::INTR_FAIL | NativeCalls::OFFLOAD_SAFE].each do |flags|
      assert_equal %i[met met met], all_meet(3, :meet_nogvl, flags), "flags #{flags}"
    end
  end

  def test_a_call_by_way_of_a_table_of_functions_is_offloaded
    assert_equal %i[met met], all_meet(2, :meet_by_table)
  end

  def test_a_function_runs_on_another_thread
    refute(in_loop { NativeCalls.same_thread? })
  end

  def test_the_value_and_errno_come_back
    assert_equal [7, true], in_loop { NativeCalls.set_errno(7) }
    assert_equal([[4, true]] * 10, in_loop { Heddle.map(1..10) { NativeCalls.set_errno(4) } })
  end

  def test_other_fibers_run_during_an_offloaded_call
    turns = in_loop do
      call = Heddle.async { NativeCalls.meet(2) }
      until_inside 1
      count = 0
      ticks = Heddle.async { 20.times { Fiber.scheduler.yield && (count += 1) || (count += 1) } }
      ticks.wait
      NativeCalls.meet(2)
      call.wait
      count
    end

    assert_equal 20, turns
  end

  # Its end is looked for before anybody sleeps: that must not keep the loop from looking at what else there is.
  def test_brief_calls_one_after_another_leave_others_their_turns
    calls = in_loop do
      reading, writing = IO.pipe
      late = false
      readers = [Heddle.async { reading.gets }, Heddle.async { sleep(0.001) && late = true }]
      count = 0
      until readers.all?(&:ended?)
        assert_equal [5, true], NativeCalls.set_errno(5)
        writing.puts "now" if (count += 1) == 300
      end
      assert late
      count
    end

    assert_operator calls, :>=, 300
  end

  # -- callbacks -----------------------------------------------------------------------------------------------------

  def test_a_callback_runs_on_the_thread_and_the_fiber_that_called
    in_loop do
      here = [Thread.current, Fiber.current]
      there = nil
      value, count, ended = NativeCalls.call_back(3) { |index| (there = [Thread.current, Fiber.current]) && index }

      assert_equal [2, 3, true], [value, count, ended]
      assert_equal here, there
    end
  end

  def test_callbacks_wait_beside_each_other
    arrived = 0
    in_loop do
      Heddle.map(1..10) do
        NativeCalls.call_back(1) do
          arrived += 1
          Fiber.scheduler.yield until arrived == 10
        end
      end
    end

    assert_equal 10, arrived
  end

  def test_a_callback_may_make_native_calls_itself
    values = in_loop { Heddle.map(1..3) { NativeCalls.call_back(1) { NativeCalls.meet(3) }.first } }

    assert_equal %i[met met met], values
  end

  def test_an_exception_in_a_callback_is_raised_in_the_fiber
    error = assert_raises(IndexError) { in_loop { NativeCalls.call_back(2) { raise IndexError, "inside" } } }

    assert_equal "inside", error.message
  end

  def test_no_further_callback_of_the_call_is_run_after_an_exception
    asked = []
    assert_raises(IndexError) { in_loop { NativeCalls.call_back(3) { |index| (asked << index) && raise(IndexError) } } }

    assert_equal [0], asked
  end

  def test_a_callback_may_leave_the_call
    assert_equal(:left, in_loop { catch(:out) { NativeCalls.call_back(2) { throw :out, :left } } })
    assert_equal(:broken, in_loop { NativeCalls.call_back(2) { break :broken } })
  end

  # -- memory -----------------------------------------------------------------------------------------------------

  # Nothing but the fiber's own C stack holds the String while another thread reads it.
  def test_the_callers_strings_stay_where_they_are_while_garbage_is_collected
    length = 100_000
    sums = in_loop do
      calls = ("a".."e").map { |letter| Heddle.async { NativeCalls.sum_later(6, letter, length) } }
      until_inside 5
      10.times { Array.new(1000) { "x" * 100 } }
      GC.start
      GC.compact if GC.respond_to?(:compact)
      last = NativeCalls.sum_later(6, "f", length)
      calls.map(&:value) << last
    end

    assert_equal(("a".."f").map { |letter| letter.ord * length }, sums)
  end

  def test_a_function_may_allocate_so_much_that_garbage_is_collected
    before = GC.count
    in_loop { Heddle.map(1..4) { NativeCalls.allocate(64) } }

    assert_operator GC.count, :>, before
  end

  def test_calls_survive_a_collection_at_every_allocation
    offloading <<~RUBY
      Heddle.run do
        NativeCalls.call_back(1) { 0 }
        tasks = 2.times.map { |i| Heddle.async { [NativeCalls.meet(2), NativeCalls.call_back(1) { |n| [n, i] }.first] } }
        GC.stress = true
        values = tasks.map(&:value)
        GC.stress = false
        abort values.inspect unless values == 2.times.map { |i| [:met, [0, i]] }
      end
    RUBY
  end

  # -- fibers within fibers -------------------------------------------------------------------------------------------

  def test_an_enumerators_own_fiber_may_call
    values = in_loop do
      Heddle.map(1..3) do |number|
        enumerator = Enumerator.new do |to|
          to << NativeCalls.meet(3)
          sleep 0
          to << NativeCalls.set_errno(number).first
        end
        [enumerator.next, enumerator.next]
      end
    end

    assert_equal [[:met, 1], [:met, 2], [:met, 3]], values
  end

  def test_a_fiber_that_the_program_resumes_itself_may_call
    value = nil
    in_thread do
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.new(blocking: false) { value = NativeCalls.set_errno(3) }.resume
    end

    assert_equal [3, true], value
  end

  def test_a_loop_of_another_thread_calls_beside_this_one
    first = Thread.new { in_loop { NativeCalls.meet(2) } }
    second = Thread.new { in_loop { NativeCalls.meet(2) } }

    assert_equal %i[met met], [first.value, second.value]
  end
end
