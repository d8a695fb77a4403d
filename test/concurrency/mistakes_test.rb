# frozen_string_literal: true

# test: each version

require_relative "support/loop_helpers"

# What a call with a mistake in it says: the method or the argument by its name, and what is allowed.
class MistakesTest < Minitest::Test
  include Heddle::LoopHelpers

  # Calls without the block that they need.
  WITHOUT_BLOCK = {
    "Heddle.run" => -> { Heddle.run },
    "Heddle.async" => -> { Heddle.async },
    "Heddle.scope" => -> { Heddle.scope },
    "Heddle.supervise" => -> { Heddle.supervise },
    "Heddle.timeout" => -> { Heddle.timeout(1) },
    "Heddle.shield" => -> { Heddle.shield },
    "Heddle.map" => -> { Heddle.map([1]) },
    "Heddle.every" => -> { Heddle.every(1) },
    "Heddle.offload" => -> { Heddle.offload },
    "Heddle.without_offload" => -> { Heddle.without_offload },
    "Heddle::Pool" => -> { Heddle::Pool.new },
    "Heddle::Pool#with" => -> { Heddle::Pool.new { Object.new }.with },
    "Heddle::Promise#fulfil" => -> { Heddle::Promise.new.fulfil }
  }.freeze

  # Calls that need a loop.
  WITHOUT_LOOP = {
    "Heddle.async" => -> { Heddle.async {} },
    "Heddle.scope" => -> { Heddle.scope {} },
    "Heddle.supervise" => -> { Heddle.supervise {} },
    "Heddle.timeout" => -> { Heddle.timeout(nil) {} },
    "Heddle.map" => -> { Heddle.map([1]) {} },
    "Heddle.race" => -> { Heddle.race([1]) {} },
    "Heddle.every" => -> { Heddle.every(1) {} },
    "Heddle.task_tree" => -> { Heddle.task_tree },
    "Heddle::Barrier#wait" => -> { Heddle::Barrier.new(2).wait },
    "Heddle::Channel#pop" => -> { Heddle::Channel.new.pop },
    "Heddle::Channel.select" => -> { Heddle::Channel.select(Heddle::Channel.new) },
    "Heddle::Condition#wait" => -> { Heddle::Condition.new.wait },
    "Heddle::Semaphore#acquire" => -> { Heddle::Semaphore.new(1).tap(&:acquire).acquire }
  }.freeze

  # Waits, called with a time limit that is none.
  WAITS = {
    "Heddle.timeout" => ->(limit) { Heddle.timeout(limit) { forever } },
    "Heddle::Barrier#wait" => ->(limit) { Heddle::Barrier.new(2).wait(timeout: limit) },
    "Heddle::Channel#pop" => ->(limit) { Heddle::Channel.new.pop(timeout: limit) },
    "Heddle::Condition#wait" => ->(limit) { Heddle::Condition.new.wait(timeout: limit) },
    "Heddle::Pool.new" => ->(limit) { Heddle::Pool.new(timeout: limit) { 1 } },
    "Heddle::Pool#with" => ->(limit) { Heddle::Pool.new { 1 }.with(timeout: limit) { flunk } },
    "Heddle::Promise#value" => ->(limit) { Heddle::Promise.new.value(timeout: limit) },
    "Heddle::Semaphore#acquire" => ->(limit) { Heddle::Semaphore.new(1).tap(&:acquire).acquire(timeout: limit) },
    "Heddle::Task#wait" => ->(limit) { Heddle.async(background: true) { forever }.wait(timeout: limit) }
  }.freeze

  # Times of a pool that are used later than the call.
  POOL_TIMES = %i[timeout idle_timeout max_age check_after retry_after].freeze

  WITHOUT_BLOCK.each do |name, call|
    define_method(:"test_#{name}_without_its_block_says_that_it_needs_one") do
      error = assert_raises(ArgumentError) { in_loop { instance_exec(&call) } }

      assert_match(/\A#{name} needs a block/, error.message)
    end
  end

  WITHOUT_LOOP.each do |name, call|
    define_method(:"test_#{name}_outside_of_a_loop_says_where_to_call_it") do
      error = assert_raises(Heddle::NoLoopError) { instance_exec(&call) }

      assert_equal "#{name}: this thread runs no event loop. Call it inside Heddle.run { ... }", error.message
    end
  end

  WAITS.each do |name, call|
    define_method(:"test_#{name}_refuses_a_time_limit_that_is_not_a_number") do
      error = assert_raises(ArgumentError, TypeError) { in_loop { instance_exec("1", &call) } }

      assert_match(/must be a number of seconds, or nil|can't convert String into time interval/, error.message)
    end
  end

  def test_pool_refuses_a_time_that_is_not_a_number_when_it_is_made
    POOL_TIMES.each do |name|
      error = assert_raises(ArgumentError) { Heddle::Pool.new(name => "5") { 1 } }

      assert_equal %(#{name}: is "5", but must be a number of seconds, or nil), error.message
    end
  end

  # A pool takes an error of `check` as its answer.
  def test_what_is_called_later_must_respond_to_call
    in_loop do
      %i[check reset close].each do |name|
        error = assert_raises(ArgumentError) { Heddle::Pool.new(name => :ping) { 1 } }

        assert_equal "#{name}: is :ping, but must be an object with `call`, or nil", error.message
      end
      error = assert_raises(ArgumentError) { Heddle.supervise(on_failure: :log) {} }

      assert_equal "on_failure: is :log, but must be an object with `call`, or nil", error.message
    end
  end

  # With 0, the loop would interrupt the task for ever.
  def test_time_for_cleaning_up_must_be_positive
    ["5", 0, -1].each do |wrong|
      message = "cancel_grace: is #{wrong.inspect}, but must be a positive number of seconds, or nil"

      assert_equal message, assert_raises(ArgumentError) { Heddle.run(cancel_grace: wrong) { flunk } }.message
      in_loop do
        assert_equal message, assert_raises(ArgumentError) { Heddle.scope(cancel_grace: wrong) { flunk } }.message
        assert_equal message, assert_raises(ArgumentError) { Heddle.supervise(cancel_grace: wrong) { flunk } }.message
      end
    end
  end

  def test_each_of_a_channel_without_a_block_is_an_enumerator
    in_loop do
      channel = Heddle::Channel.new
      channel << 1 << 2
      channel.close

      assert_equal [[1, 0], [2, 1]], channel.each.with_index.to_a
    end
  end
end
