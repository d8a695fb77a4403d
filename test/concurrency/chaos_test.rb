# frozen_string_literal: true

require_relative "support/loop_helpers"

# Random programs of nested scopes, time limits, failures and cancellings over shared semaphores, channels and pools,
# and over Ruby's own locks, queues and condition variables. Whatever happens in them, they end, and what they shared is
# whole afterwards. HEDDLE_SEED repeats one.
class ChaosTest < Minitest::Test
  include Heddle::LoopHelpers

  ROUNDS = 150

  # Raised on purpose.
  class Planned < StandardError; end

  def setup
    @seed = Integer(ENV.fetch("HEDDLE_SEED") { Random.new_seed & 0xFFFF_FFFF })
  end

  def test_random_programs_end_and_leave_everything_whole
    ROUNDS.times { |round| play(Random.new(@seed + round)) }
  rescue Minitest::Assertion, StandardError => e
    raise e.class, "HEDDLE_SEED=#{@seed}: #{e.message}", e.backtrace
  end

  private

  def play(random)
    @random = random
    @semaphore = Heddle::Semaphore.new(2)
    @channel = Heddle::Channel.new(random.rand(3))
    @pool = Heddle::Pool.new(max: 2, close: ->(_) {}) { turns(@random.rand(3)) && Object.new }
    @inside = 0
    share_primitives_of_ruby
    in_loop(cancel_grace: 0.05) do
      Heddle.async(background: true) { loop { @channel << turns(1) } }
      Heddle.async(background: true) { loop { turns(1) && @channel.pop } }
      6.times { Heddle.async { survive { step(4) } } }
    end
    assert_whole
  end

  # What is woken one by one has to be handed on, also when the one that was woken is cancelled.
  def share_primitives_of_ruby
    @mutex = Mutex.new
    @tokens = Queue.new([1, 2])
    @seats = SizedQueue.new(2)
    @state = Mutex.new
    @vacancy = ConditionVariable.new
    @vacant = 2
  end

  def assert_whole
    assert_equal [false, 2, 0, 2], [@mutex.locked?, @tokens.size, @seats.size, @vacant]
    assert_equal [2, 0, 0], [@semaphore.free, @semaphore.waiting, @inside]
    assert_equal [0, 0, 0], [@pool.busy, @pool.waiting, @channel.num_waiting]
    assert_operator @pool.size, :<=, 2
  end

  def survive
    yield
  rescue Planned, Heddle::TimeoutError, Heddle::Pool::NestedCheckoutError
    nil
  end

  # One random thing, with random things inside.
  def step(depth)
    return turns(@random.rand(4)) if depth.zero?

    case @random.rand(16)
    when 0 then raise Planned
    when 1 then survive { Heddle.timeout(@random.rand * 0.002) { many(depth) } }
    when 2 then survive { Heddle.scope { many(depth) } }
    when 3 then survive { Heddle.map(1..3, limit: 2) { step(depth - 1) } }
    when 4 then survive { Heddle.race([1, 2, 3], ignore: [Planned]) { step(depth - 1) } }
    when 5 then cancelled_scope(depth)
    when 6 then locked { step(depth - 1) }
    when 7 then survive { @pool.with(timeout: 0.005) { step(depth - 1) } }
    when 8 then Heddle::Channel.select(@channel, Heddle::Channel.new, timeout: 0.001)
    when 9 then cleaning_up(depth)
    when 10 then Heddle.async { survive { step(depth - 1) } }
    else with_ruby { turns(@random.rand(3)) }
    end
  end

  def with_ruby(&)
    case @random.rand(5)
    when 0 then @mutex.synchronize(&)
    when 1 then with_token(&)
    when 2 then seated(&)
    when 3 then sleep(@random.rand * 0.001)
    else signalled(&)
    end
  end

  def many(depth)
    @random.rand(1..3).times do
      Heddle.async { step(depth - 1) }
      step(depth - 1)
    end
  end

  def cancelled_scope(depth)
    survive do
      Heddle.scope do |scope|
        Heddle.async { turns(@random.rand(5)) && scope.cancel }
        many(depth)
      end
    end
  end

  def cleaning_up(depth)
    step(depth - 1)
  ensure
    turns(@random.rand(3))
  end

  def locked
    @semaphore.acquire(timeout: 0.005) do
      @inside += 1
      assert_operator @inside, :<=, 2
      yield
    ensure
      @inside -= 1
    end
  end

  def with_token
    token = @tokens.pop
    yield
  ensure
    @tokens << token if token
  end

  def seated
    taken = @seats << self
    yield
  ensure
    @seats.pop if taken
  end

  # No task waits while it has the lock, beside for the condition. So the lock at the end never waits.
  def signalled
    @state.synchronize do
      @vacancy.wait(@state) while @vacant.zero?
      @vacant -= 1
    end
    taken = true
    yield
  ensure
    @state.synchronize { (@vacant += 1) && @vacancy.signal } if taken
  end
end
