# frozen_string_literal: true

require "heddle/concurrency/timeout_error"

module Heddle
  # Expensive resources that serve one task at a time, such as connections. The pool is as large as the work needs: it
  # grows while tasks wait and the resource is fast enough, and shrinks when resources are idle. For the tasks of one
  # loop, first come first served.
  #
  #     database = Heddle::Pool.new { PG.connect(url) }
  #     database.with { |pg| pg.exec("SELECT 1") }
  class Pool
    # Default maximum number of resources of a pool with `max: :auto`.
    DEFAULT_MAX_AUTO = 100
    # Seconds after which an idle resource is closed.
    DEFAULT_IDLE_TIMEOUT = 60
    # Seconds that a task waits for a resource.
    DEFAULT_TIMEOUT = 5
    # Seconds of idle time after which a resource is checked before its next use.
    DEFAULT_CHECK_AFTER = 1
    # Seconds until the next attempt when another resource could not be made.
    DEFAULT_RETRY_AFTER = 1
    # A resource may be replaced earlier by up to this part of max_age, so that not all are replaced at once.
    JITTER = 0.1
    # The fractional parts of multiples of this number spread any number of resources evenly over the jitter.
    GOLDEN = 0.6180339887498949
    private_constant :JITTER, :GOLDEN

    # Raised when a waiting task can never be served, because the tasks around it hold all resources of the pool.
    class NestedCheckoutError < OwnError; end

    # @return [Array<Pool>] pools of this process or Ractor that are in use
    def self.all = Registry.pools.keys.reject(&:closed?)

    class << self
      # @return [Boolean, nil] whether idle check-outs of Active Record and Sequel are reported, as for every
      #   Heddle::Pool; nil: in development only
      attr_accessor :report_held_connections
    end

    # @param min [Integer] how many are kept, idle or not, once the pool was used
    # @param max [Integer, :auto] maximum number of resources; `:auto` adds resources while that makes the tasks faster
    # @param max_auto [Integer] maximum number of resources with `max: :auto`
    # @param max_total [Integer, nil] maximum number of resources in the pools of this name, over all workers of a
    #   server; a process without other workers may make all of them. nil: each worker has only its own limit
    # @param timeout [Numeric, nil] seconds that a task waits for a resource; nil: forever
    # @param idle_timeout [Numeric, nil] seconds after which an idle resource is closed; nil: never
    # @param max_age [Numeric, nil] seconds after which a resource is replaced, when it is not in use; up to a tenth
    #   earlier, so that not all are replaced at once. nil: never
    # @param check [#call, nil] called with a resource that was idle for long, or whose block raised an error; if it
    #   returns false or raises a StandardError, the resource is closed, and another is taken or made. May wait.
    # @param check_after [Numeric] seconds of idle time after which a resource is checked before its next use
    # @param reset [#call, nil] called with a resource that is released; if it returns false or raises a StandardError,
    #   the resource is closed. May wait.
    # @param close [#call, nil] closes a resource; nil: its method `close`, if it has one
    # @param retry_after [Numeric] seconds until the next attempt when another resource could not be made
    # @param name [String, nil] the pool's name in errors and metrics, in any encoding; nil: file and line of the block
    # @yieldreturn another resource; the block may wait, and several may be made at once
    # @raise [ArgumentError]
    def initialize(min: 0, max: :auto, max_auto: DEFAULT_MAX_AUTO, max_total: nil, timeout: DEFAULT_TIMEOUT,
                   idle_timeout: DEFAULT_IDLE_TIMEOUT, max_age: nil, check: nil, check_after: DEFAULT_CHECK_AFTER,
                   reset: nil, close: nil, retry_after: DEFAULT_RETRY_AFTER, name: nil, &create)
      raise ArgumentError, "Heddle::Pool needs a block that makes a resource" unless create

      @create, @check, @reset, @close = create, check, reset, close
      @name = PrintableText.line(name || "Heddle::Pool of #{Concurrency.place(create)}")
      @total = max_total
      @limit = limit_for(max, max_auto, name)
      @min = count(:min, min, 0, @limit.max)
      @timeout, @idle_timeout, @max_age = timeout, idle_timeout, max_age
      @check_after, @retry_after = check_after, retry_after
      @statistics = Statistics.new
      @upkeep = Upkeep.new(self, method(:tend), method(:check_waiting))
      @closed = @warned = @came_back = false
      @driver = nil
      begin_empty
      Registry.pools[self] = true
    end

    # @return [String]
    attr_reader :name

    # @return [Integer] maximum number of resources; with `max: :auto`, the current one
    def limit = @limit.value

    # @return [Integer] number of resources
    def size = @idle.size + @busy.size

    # @return [Integer] number of resources in use
    def busy = @busy.size

    # @return [Integer] number of idle resources
    def idle = @idle.size

    # @return [Integer] number of tasks that wait for a resource
    def waiting = @waiters.size

    # @return [Hash{Symbol => Object}] its name, sizes, counts, and times in seconds. With `max_total` also that limit,
    #   and `size_total`, the number of resources of all workers.
    def statistics
      total = { max_total: @total, size_total: @share ? @share.taken : size } if @total
      { name:, limit:, size:, busy:, idle:, waiting:, **total.to_h, **@statistics.to_h }
    end

    # Acquires a resource for the block, and releases it afterwards. If the block is cancelled, its fiber killed, or it
    # raises an exception that is not a StandardError, the resource is closed, because its state is unknown. After a
    # StandardError the resource is checked. A connection of the gem pg is kept when the database server confirms that
    # it has cancelled the abandoned query; see {Databases}.
    #
    # @param timeout [Numeric, nil] seconds to wait for a resource; nil: forever
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

    # Waits for a resource, which must be returned with {#release} or {#discard}. Prefer {#with}.
    #
    # @param timeout [Numeric, nil] the maximum number of seconds to wait for one; nil: forever
    # @raise [TimeoutError]
    # @raise [NestedCheckoutError] when no resource can ever be released, because the tasks that hold them wait for this
    #   one
    # @raise [ClosedQueueError] when the pool is closed
    # @raise the error of the block that makes resources, when the pool has none
    def acquire(timeout: @timeout) = take(timeout, caller_locations(1, 1).first).resource

    # Returns a resource in working order.
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

    # Returns a broken resource: it is closed, and another can be made.
    def discard(resource)
      slot = slot_of(resource)
      @busy.delete(resource)
      returned(slot)
      serve_waiters
      dispose(slot, :broken)
    end

    # Closes the idle resources at once, and every other resource when it is released. Waiting tasks get a
    # ClosedQueueError.
    #
    # @return [nil]
    def close
      @closed = true
      waiters, @waiters = @waiters, []
      waiters.each(&:refuse)
      share_waiting
      idle, @idle = @idle, []
      idle.each { |slot| dispose(slot, :closed) }
      nil
    end

    # @return [Boolean]
    def closed? = @closed

    def inspect = "#<#{self.class} #{name}: #{busy} of #{size} in use, limit #{limit}, #{waiting} wait>"

    private

    # :stopdoc:

    # Closes idle and old resources, makes missing ones, and reports those that are held without being used.
    #
    # @return [Float, nil] seconds until the next idle resource has to be closed; nil: none has to be
    def tend
      shrink
      refill
      report_held if @driver
      rest
    end

    def report_held
      found = Unused.find(@busy.values, now) { |slot| @driver.quiet?(slot.resource) }
      Unused.waiting(found, @upkeep.scheduler).each do |slot|
        slot.reported = true
        @statistics.held_while_waiting += 1
        Unused.report(name, now - slot.since, Nesting.place(slot.place), Unused.waits_at(slot.fiber))
      end
    end

    def rest
      times = @idle.map { |slot| [slot.retire_at, closes_idle? ? slot.since + @idle_timeout : Float::INFINITY].min }
      first = times.min
      [first - now, 0].max if first&.finite?
    end

    # Called by {Alarms} while tasks wait.
    def check_waiting
      @check_alarm = nil
      return if @waiters.empty?

      serve_waiters if @limit.check(now) || @share
      fail_nested
      schedule_check
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
      max == :auto ? AdaptiveLimit.new(own) : FixedLimit.new(own)
    end

    def begin_empty
      @process = Process.pid
      @share = Registry.sharing&.open(@name, @total) if @total
      @idle = [] # a stack: the last used resource is taken first, so that others stay idle and the pool shrinks
      @busy = {}.compare_by_identity
      @holders = Holders.new
      @waiters = []
      @creating = 0
      @not_before = @check_alarm = nil
      @upkeep.forget
    end

    # @return [Slot]
    def take(timeout, place)
      raise ClosedQueueError, "#{name} is closed" if @closed

      begin_empty if @process != Process.pid # in a fork the resources, such as connections, stay the parent's
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
