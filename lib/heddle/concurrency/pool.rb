# frozen_string_literal: true

require "heddle/concurrency/timeout_error"

module Heddle
  # A pool of expensive resources, such as connections. A resource serves one task at a time. The pool grows while tasks
  # wait and the resources don't become slower, and shrinks when resources are idle. The tasks of one loop use it; they
  # get resources in the order of their requests.
  #
  #     database = Heddle::Pool.new { PG.connect(url) }
  #     database.with { |pg| pg.exec("SELECT 1") }
  class Pool
    # Default maximum number of resources of a pool with `max: :auto`.
    DEFAULT_MAX_AUTO = 100
    # Seconds after which an idle resource is closed.
    DEFAULT_IDLE_TIMEOUT = 60
    # Maximum seconds that a task waits for a resource.
    DEFAULT_TIMEOUT = 5
    # Seconds of idle time after which a resource is checked before its next use.
    DEFAULT_CHECK_AFTER = 1
    # Seconds for which a pool that has resources makes no further one after a failed attempt.
    DEFAULT_RETRY_AFTER = 1
    # Resources are replaced up to this fraction of max_age early, so that not all are replaced at once.
    JITTER = 0.1
    # Multiples of this number (mod 1) spread any number of resources evenly over the jitter.
    GOLDEN = 0.6180339887498949
    private_constant :JITTER, :GOLDEN

    # Raised when a waiting task can never get a resource, because all resources are used by tasks that wait for this
    # task, or for others that also wait for a resource.
    class NestedCheckoutError < OwnError; end

    # @return [Array<Pool>] the open pools of this process or Ractor
    def self.all = Registry.pools.keys.reject(&:closed?)

    class << self
      # @return [Boolean, nil] whether to report connections of Active Record and Sequel that are checked out but not
      #   used; nil: only in development. A Heddle::Pool always reports its own connections if their driver is known.
      attr_accessor :report_held_connections
    end

    # @param min [Integer] minimum number of resources, from the first use of the pool on
    # @param max [Integer, :auto] maximum number of resources; `:auto`: the pool adapts it to the speed of the resources
    # @param max_auto [Integer] maximum number of resources with `max: :auto`
    # @param max_total [Integer, nil] maximum number of resources in the pools of this name in all workers of a
    #   server together; nil: only the limit of each worker
    # @param timeout [Numeric, nil] maximum seconds that a task waits for a resource; nil: no limit
    # @param idle_timeout [Numeric, nil] seconds after which an idle resource is closed; nil: never
    # @param max_age [Numeric, nil] seconds after which a resource is replaced, as soon as it is not in use; up to a
    #   tenth earlier, so that not all are replaced at once. nil: never
    # @param check [#call, nil] called with a resource that was idle for `check_after` seconds, or was passed to a block
    #   of {#with} that raised an error. If it returns false or raises a StandardError, the resource is closed, and
    #   another is used. May wait.
    # @param check_after [Numeric] seconds of idle time after which a resource is checked before its next use
    # @param reset [#call, nil] called with a resource that is released. If it returns false or raises a StandardError,
    #   the resource is closed. May wait.
    # @param close [#call, nil] closes a resource; nil: the resource's method `close`, if it has one
    # @param retry_after [Numeric] seconds for which the pool makes no resource after a failed attempt; a pool without
    #   resources tries again at once
    # @param name [String, nil] the pool's name in errors and metrics, in any encoding; nil: file and line of the block
    # @yieldreturn a new resource. The block may wait, and several calls may run at the same time
    # @raise [ArgumentError]
    def initialize(min: 0, max: :auto, max_auto: DEFAULT_MAX_AUTO, max_total: nil, timeout: DEFAULT_TIMEOUT,
                   idle_timeout: DEFAULT_IDLE_TIMEOUT, max_age: nil, check: nil, check_after: DEFAULT_CHECK_AFTER,
                   reset: nil, close: nil, retry_after: DEFAULT_RETRY_AFTER, name: nil, &create)
      raise ArgumentError, "Heddle::Pool needs a block that makes a resource" unless create

      { timeout:, idle_timeout:, max_age:, check_after:, retry_after: }.each { |one, s| Arguments.wait("#{one}:", s) }
      { check:, reset:, close: }.each { |option, one| Arguments.callable("#{option}:", one) }
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

    # @return [Integer] current maximum number of resources
    def limit = @limit.value

    # @return [Integer] number of resources
    def size = @idle.size + @busy.size

    # @return [Integer] number of resources in use
    def busy = @busy.size

    # @return [Integer] number of idle resources
    def idle = @idle.size

    # @return [Integer] number of tasks that wait for a resource
    def waiting = @waiters.size

    # @return [Hash{Symbol => Object}] the pool's name, sizes, counters, and times in seconds. With `max_total`, also
    #   that limit and `size_total`, the number of resources in all workers.
    def statistics
      total = { max_total: @total, size_total: @share ? @share.taken : size } if @total
      { name:, limit:, size:, busy:, idle:, waiting:, **total.to_h, **@statistics.to_h }
    end

    # Acquires a resource for the block, and releases it afterwards. After a StandardError of the block, the resource is
    # checked. If the block is cancelled, its fiber is killed, or it raises another exception, the pool closes the
    # resource, because its state is unknown. A database connection is kept, however, if its driver can cancel the
    # abandoned query; see {Databases}.
    #
    # @param timeout [Numeric, nil] maximum seconds to wait for a resource; nil: no limit
    # @return what the block returns
    # @raise (see #acquire)
    def with(timeout: @timeout)
      raise ArgumentError, "Heddle::Pool#with needs a block that takes the resource" unless block_given?

      slot = take(timeout, caller_locations(1, 1).first)
      slot.block = true
      resource = slot.resource
      fit = true # remains true if the block ends by break, return or throw
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

    # Waits for a resource, which the caller must return with {#release} or {#discard}. Prefer {#with}.
    #
    # @param timeout [Numeric, nil] maximum seconds to wait for a resource; nil: no limit
    # @return the resource
    # @raise [TimeoutError]
    # @raise [NestedCheckoutError] if no resource can ever become free, because all are used by tasks that wait for this
    #   task, or for others that also wait for a resource
    # @raise [ClosedQueueError] if the pool is closed
    # @raise the error of the block that makes resources, if the pool has no resource
    def acquire(timeout: @timeout) = take(timeout, caller_locations(1, 1).first).resource

    # Returns a working resource to the pool.
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
    ensure
      serve_waiters # also if an exception has ended the closing of a resource
    end

    # Gives a broken resource back to the pool, which closes it and can then make another one.
    def discard(resource)
      slot = slot_of(resource)
      @busy.delete(resource)
      returned(slot)
      serve_waiters
      dispose(slot, :broken)
    end

    # Closes the pool. Idle resources are closed at once, the others when they are released. Waiting tasks get a
    # ClosedQueueError.
    #
    # @return [nil]
    def close
      @closed = true
      waiters, @waiters = @waiters, []
      waiters.each(&:refuse)
      share_waiting
      dispose(@idle.shift, :closed) until @idle.empty?
    end

    # @return [Boolean]
    def closed? = @closed

    def inspect = "#<#{self.class} #{name}: #{busy} of #{size} in use, limit #{limit}, #{waiting} tasks wait>"

    private

    # :stopdoc:

    # Closes idle and old resources, makes resources up to the minimum, and reports connections of a known driver that
    # are checked out but not used.
    #
    # @return [Float, nil] seconds until the next idle resource must be closed; nil: no idle resource must be closed
    def tend
      shrink
      refill
      report_held if @driver
      rest
    end

    def report_held
      found = HeldWhileWaiting.find(@busy.values, now) { |slot| @driver.quiet?(slot.resource) }
      HeldWhileWaiting.waiting(found, @upkeep.scheduler).each do |slot|
        slot.reported = true
        @statistics.held_while_waiting += 1
        HeldWhileWaiting.report(name, now - slot.since, Nesting.place(slot.place),
                                HeldWhileWaiting.waits_at(slot.fiber))
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

      @limit.check(now)
      serve_waiters # also when `retry_after` has passed
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
      @idle = [] # a stack: the most recently used resource is reused first, so that the others expire
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

      begin_empty if @process != Process.pid # after a fork, the resources belong to the parent
      deadline = now + Arguments.wait("timeout:", timeout) if timeout
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
