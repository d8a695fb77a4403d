# frozen_string_literal: true

require "heddle/autoloads"
require "heddle/concurrency/timeout_error"

module Heddle
  # Expensive resources that serve one task at a time, such as connections. The pool is as large as the work needs: it
  # grows while tasks wait and the resource answers, and shrinks when some are idle. For the tasks of one loop, first
  # come first served.
  #
  #     database = Heddle::Pool.new { PG.connect(url) }
  #     database.with { |pg| pg.exec("SELECT 1") }
  class Pool
    # How many a pool makes at most whose limit finds itself.
    DEFAULT_MAX_AUTO = 100
    # Seconds after which one that no fiber needed is closed.
    DEFAULT_IDLE_TIMEOUT = 60
    # Seconds that a task waits for one.
    DEFAULT_TIMEOUT = 5
    # Seconds that one may be idle and still be handed out without a check.
    DEFAULT_CHECK_AFTER = 1
    # Seconds without a new attempt when one more could not be made, but others are in use.
    DEFAULT_RETRY_AFTER = 1
    # The part of its age by which a resource may be replaced earlier, so that not all are replaced at once.
    JITTER = 0.1
    # Spreads any number of resources evenly over the jitter: the fractional parts of its multiples.
    GOLDEN = 0.6180339887498949
    private_constant :JITTER, :GOLDEN

    # One more task waits than can ever be served: it runs inside tasks that hold all the pool has.
    class NestedCheckoutError < StandardError
      include Heddle::Error
    end

    # @return [Array<Pool>] pools of this process or Ractor that are in use
    def self.all = Registry.pools.keys.reject(&:closed?)

    class << self
      # @return [Boolean, nil] whether idle check-outs of Active Record and Sequel are reported, as for every
      #   Heddle::Pool; nil: in development only
      attr_accessor :report_held_connections
    end

    # @param min [Integer] how many are kept, idle or not, once one was needed
    # @param max [Integer, :auto] how many it makes at most; `:auto`: as many as make the tasks faster
    # @param max_auto [Integer] how many it makes at most with `max: :auto`
    # @param max_total [Integer, nil] how many all workers of a server make together at most, for their pools of this
    #   name; a process without others may make as many. nil: each worker has its limit for itself
    # @param timeout [Numeric, nil] seconds that a task waits for one; nil: forever
    # @param idle_timeout [Numeric, nil] seconds after which one that no fiber needed is closed; nil: never
    # @param max_age [Numeric, nil] seconds after which one is replaced, when it is not in use; up to a tenth earlier,
    #   so that not all are replaced at once. nil: never
    # @param check [#call, nil] given one that was idle for long, or whose block raised an error; false or a
    #   StandardError: it is closed, and another is taken or made. May wait.
    # @param check_after [Numeric] seconds that one may be idle and still be handed out without a check
    # @param reset [#call, nil] given one that comes back; false or a StandardError: it is closed. May wait.
    # @param close [#call, nil] ends one; nil: its method `close`, if it has one
    # @param retry_after [Numeric] seconds without a new attempt when one more could not be made
    # @param name [String, nil] what errors and metrics call it, in any encoding; nil: where the block stands
    # @yieldreturn one more; may wait, several are made at once
    # @raise [ArgumentError]
    def initialize(min: 0, max: :auto, max_auto: DEFAULT_MAX_AUTO, max_total: nil, timeout: DEFAULT_TIMEOUT,
                   idle_timeout: DEFAULT_IDLE_TIMEOUT, max_age: nil, check: nil, check_after: DEFAULT_CHECK_AFTER,
                   reset: nil, close: nil, retry_after: DEFAULT_RETRY_AFTER, name: nil, &create)
      raise ArgumentError, "Heddle::Pool needs a block that makes a resource" unless create

      @create, @check, @reset, @close = create, check, reset, close
      @name = Visible.line(name || "Heddle::Pool of #{Concurrency.place(create)}")
      @total = max_total
      @limit = limit_for(max, max_auto, name)
      @min = count(:min, min, 0, @limit.max)
      @timeout, @idle_timeout, @max_age = timeout, idle_timeout, max_age
      @check_after, @retry_after = check_after, retry_after
      @statistics = Statistics.new
      @upkeep = Upkeep.new(self, method(:tend), method(:look))
      @closed = @warned = @came_back = false
      @driver = nil
      begin_empty
      Registry.pools[self] = true
    end

    # @return [String]
    attr_reader :name

    # @return [Integer] how many it makes at most; with `max: :auto`, now
    def limit = @limit.value

    # @return [Integer] how many there are
    def size = @idle.size + @busy.size

    # @return [Integer] how many are in use
    def busy = @busy.size

    # @return [Integer] how many are not
    def idle = @idle.size

    # @return [Integer] how many tasks wait for one
    def waiting = @waiters.size

    # @return [Hash{Symbol => Object}] its name, sizes, and counts; seconds. With `max_total`: that and
    #   `size_total`, how many all workers have.
    def statistics
      total = { max_total: @total, size_total: @share ? @share.taken : size } if @total
      { name:, limit:, size:, busy:, idle:, waiting:, **total.to_h, **@statistics.to_h }
    end

    # Lends one to the block. If the block is cancelled, or its fiber killed, or it ends by what is no StandardError, it
    # is closed afterwards, because its state is unknown; after a StandardError it is checked. A connection of the gem
    # pg is kept when the server confirms that it has cancelled the query that was abandoned; see {Databases}.
    #
    # @param timeout [Numeric, nil] seconds to wait for one at most; nil: forever
    # @return what the block returns
    # @raise (see #acquire)
    def with(timeout: @timeout)
      slot = take(timeout, caller_locations(1, 1).first)
      slot.block = true
      resource = slot.resource
      fit = true # also when the block is left by break, return or throw
      begin
        value = yield resource
        ended = true
        value
      rescue StandardError
        fit = false
        fit = healthy?(resource) if alive?(resource) && ready?(resource)
        raise
      rescue Exception
        fit = false
        fit = @driver.recover(resource) if @driver
        raise
      ensure
        if !fit then discard(resource)
        elsif ended then release(resource)
        else Concurrency.unless_killed(-> { abandon(resource) }) { release(resource) }
        end
      end
    end

    # Waits for one; it has to be given back with {#release} or {#discard}. Better use {#with}.
    #
    # @param timeout [Numeric, nil] seconds to wait for one at most; nil: forever
    # @raise [TimeoutError]
    # @raise [NestedCheckoutError] when none can ever come back, because the tasks that have them wait for this one
    # @raise [ClosedQueueError] when the pool is closed
    # @raise the error with which none could be made, when there is none at all
    def acquire(timeout: @timeout) = take(timeout, caller_locations(1, 1).first).resource

    # Gives one back, in good order.
    def release(resource)
      slot = slot_of(resource)
      return discard(resource) unless settled?(resource)

      @busy.delete(resource)
      time = now
      returned(slot, time)
      if @closed then dispose(slot, :closed)
      elsif slot.retire_at <= time then dispose(slot, :age)
      elsif yields? then dispose(slot, :shared)
      elsif @busy.size < limit && (waiter = @waiters.shift) then waiter.give(busy_again(slot, time))
      else
        slot.vacate(time)
        @idle.push(slot)
        shrink
      end
      serve_waiters
    end

    # Gives one back that is broken: it is closed, and another can be made.
    def discard(resource)
      slot = slot_of(resource)
      @busy.delete(resource)
      returned(slot)
      serve_waiters
      dispose(slot, :broken)
    end

    # Closes those that are idle, and each of the others when it comes back. Tasks that wait get a ClosedQueueError.
    #
    # @return [nil]
    def close
      @closed = true
      waiters, @waiters = @waiters, []
      waiters.each(&:refuse)
      say_whether_waiting
      idle, @idle = @idle, []
      idle.each { |slot| dispose(slot, :closed) }
      nil
    end

    # @return [Boolean]
    def closed? = @closed

    def inspect = "#<#{self.class} #{name}: #{busy} of #{size} in use, limit #{limit}, #{waiting} wait>"

    private

    # Closes what is idle or old, makes what is missing, reports what is held for nothing.
    #
    # @return [Float, nil] seconds until something idle is to be closed; nil: nothing will be
    def tend
      shrink
      refill
      report_held if @driver
      rest
    end

    def report_held
      found = Held.find(@busy.values, now) { |slot| @driver.quiet?(slot.resource) }
      Held.waiting(found, @upkeep.scheduler).each do |slot|
        slot.reported = true
        @statistics.held_while_waiting += 1
        Held.report(name, now - slot.since, Nesting.place(slot.place), Held.waits_at(slot.fiber))
      end
    end

    def rest
      times = @idle.map { |slot| [slot.retire_at, closes_idle? ? slot.since + @idle_timeout : Float::INFINITY].min }
      first = times.min
      [first - now, 0].max if first&.finite?
    end

    # Called by the clock while tasks wait.
    def look
      @looking = nil
      return if @waiters.empty?

      serve_waiters if @limit.look(now) || @share
      fail_nested
      look_soon
    end

    def count(name, value, least, greatest = Float::INFINITY)
      return value if value.is_a?(Integer) && value >= least && value <= greatest

      allowed = greatest.finite? ? "from #{least} to #{greatest}" : "#{least} or more"
      allowed = ":auto, or #{allowed}" if name == :max
      raise ArgumentError, "#{name}: is #{value.inspect}, but must be #{allowed}"
    end

    def limit_for(max, max_auto, name)
      own = max == :auto ? count(:max_auto, max_auto, 1) : count(:max, max, 1)
      own = check_total(@total, name, own)
      max == :auto ? FoundLimit.new(own) : FixedLimit.new(own)
    end

    def begin_empty
      @process = Process.pid
      @share = Registry.sharing&.open(@name, @total) if @total
      @idle = [] # the one used last is the last, and taken first: so the others get old, and the pool shrinks
      @busy = {}.compare_by_identity
      @holders = Holders.new
      @waiters = []
      @creating = 0
      @not_before = @looking = @yielded = nil
      @upkeep.forget
    end

    # @return [Slot]
    def take(timeout, place)
      raise ClosedQueueError, "#{name} is closed" if @closed

      begin_empty if @process != Process.pid # resources stay the parent's, connections above all
      deadline = now + timeout if timeout
      slot = (take_idle if @busy.size < limit) || (create(deadline, place) if allot?) if @waiters.empty?
      slot ||= await(deadline, place)
      slot.place = place
      scheduler = Fiber.current_scheduler
      @holders.add(slot.occupy(now, scheduler))
      @upkeep.used(scheduler)
      slot
    end
  end
end

Heddle::Autoloads.load("heddle/concurrency/pool")
