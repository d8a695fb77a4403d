# frozen_string_literal: true

require "heddle/concurrency/taker"
require "heddle/concurrency/timeout_error"

module Heddle
  # Things that are dear to make and serve one task at a time: connections, above all. The pool is as large as the work
  # needs: it grows while tasks wait and the resource answers (one more can be made), and shrinks when some lie idle.
  # For the tasks of one loop, first come first served.
  #
  #     database = Heddle::Pool.new(limit: 20, check: ->(pg) { pg.status == PG::CONNECTION_OK }) { PG.connect(url) }
  #     database.with { |pg| pg.exec("SELECT 1") }
  class Pool
    # How many it makes at most.
    DEFAULT_LIMIT = 100
    # Seconds after which one that nobody needed is closed.
    DEFAULT_IDLE_TIMEOUT = 60
    # Seconds that one may lie idle and still be lent without a check.
    DEFAULT_CHECK_AFTER = 1
    # Seconds without a new attempt when one more could not be made, but others are in use.
    DEFAULT_RETRY_AFTER = 1

    # @param limit [Integer] how many it makes at most
    # @param idle_timeout [Numeric] seconds after which one that nobody needed is closed; looked at when others come
    #   back
    # @param check [#call, nil] given one that lay idle for long, or whose block raised an error; false or a
    #   StandardError: it is closed, and another is taken or made. May wait.
    # @param check_after [Numeric] seconds that one may lie idle and still be lent without a check
    # @param close [#call, nil] ends one; nil: its method `close`, if it has one
    # @param retry_after [Numeric] seconds without a new attempt when one more could not be made
    # @yieldreturn one more; may wait, several are made at once
    def initialize(limit: DEFAULT_LIMIT, idle_timeout: DEFAULT_IDLE_TIMEOUT, check: nil,
                   check_after: DEFAULT_CHECK_AFTER, close: nil, retry_after: DEFAULT_RETRY_AFTER, &create)
      raise ArgumentError, "Heddle::Pool needs a block that makes one" unless create
      unless limit.is_a?(Integer) && limit >= 1
        raise ArgumentError, "the limit is #{limit.inspect}, but must be 1 or more"
      end

      @create, @check, @close = create, check, close
      @limit, @idle_timeout, @check_after, @retry_after = limit, idle_timeout, check_after, retry_after
      @closed = false
      @driver = nil
      begin_empty
    end

    # @return [Integer] how many it makes at most
    attr_reader :limit

    # @return [Integer] how many there are
    def size = @idle.size + @busy.size

    # @return [Integer] how many are in use
    def busy = @busy.size

    # @return [Integer] how many are not
    def idle = @idle.size

    # @return [Integer] how many tasks wait for one
    def waiting = @takers.size

    # Lends one to the block. If the block is cancelled, or ends by what is no StandardError, it is closed afterwards,
    # because nobody knows in which state it is; after a StandardError it is checked. A connection of the gem pg is kept
    # when the server confirms that it has cancelled the query that was abandoned; see {Databases}.
    #
    # @param timeout [Numeric, nil] seconds to wait for one at most
    # @return what the block returns
    # @raise (see #acquire)
    def with(timeout: nil)
      resource = acquire(timeout: timeout)
      fit = true # also when the block is left by break, return or throw
      begin
        yield resource
      rescue StandardError
        fit = false
        fit = healthy?(resource) if ready?(resource)
        raise
      rescue Exception
        fit = false
        fit = @driver.recover(resource) if @driver
        raise
      ensure
        fit ? release(resource) : discard(resource)
      end
    end

    # Waits for one; it has to be given back with {#release} or {#discard}. Better use {#with}.
    #
    # @param timeout [Numeric, nil] seconds to wait for one at most
    # @raise [TimeoutError]
    # @raise [ClosedQueueError] when the pool is closed
    # @raise the error with which none could be made, when there is none at all
    def acquire(timeout: nil)
      raise ClosedQueueError, "the pool is closed" if @closed

      begin_empty if @process != Process.pid # what the parent has is the parent's, its connections above all
      deadline = now + timeout if timeout
      if @takers.empty?
        resource = take_idle
        return resource if resource
        return create(deadline) if grow?
      end
      await(deadline)
    end

    # Gives one back, in good order.
    def release(resource)
      return discard(resource) if @busy.key?(resource) && !ready?(resource)

      lent(resource)
      if @closed then dispose(resource)
      elsif (taker = @takers.shift)
        @busy[resource] = true
        taker.give(resource)
      else
        @idle.push([resource, now])
        shrink
      end
    end

    # Gives one back that is broken: it is closed, and another can be made.
    def discard(resource)
      lent(resource)
      let_next_create
      dispose(resource)
    end

    # Closes those that are idle, and each of the others when it comes back. Whoever waits gets a ClosedQueueError.
    def close
      @closed = true
      takers, @takers = @takers, []
      takers.each(&:refuse)
      idle, @idle = @idle, []
      idle.each { |resource,| dispose(resource) }
      nil
    end

    # @return [Boolean]
    def closed? = @closed

    private

    def begin_empty
      @process = Process.pid
      @idle = [] # the one used last is the last, and taken first: so the others get old, and the pool shrinks
      @busy = {}.compare_by_identity
      @takers = []
      @creating = 0
      @not_before = nil
    end

    # What a waiting task is given instead of a resource: leave to make one.
    LEAVE = Object.new.freeze
    private_constant :LEAVE

    def await(deadline, first: false)
      taker = Concurrency::Taker.new("Heddle::Pool#acquire")
      first ? @takers.unshift(taker) : @takers.push(taker)
      let_next_create
      context = Concurrency::Context.of(Fiber.current_scheduler)
      context.pool_waiting += 1
      begin
        taker.wait(deadline && [deadline - now, 0].max)
      rescue Exception
        pass_on(taker.item) if taker.given?
        raise
      ensure
        context.pool_waiting -= 1
        @takers.delete(taker)
      end
      received(taker, deadline)
    end

    def received(taker, deadline)
      if taker.given?
        return taker.item unless taker.item.equal?(LEAVE)

        @creating -= 1
        return create(deadline)
      end
      raise ClosedQueueError, "the pool was closed while a task waited" if @closed

      raise TimeoutError, "nothing became free in time: #{busy} of the pool's #{size} are in use (its limit is " \
                          "#{@limit}), and #{waiting} more tasks wait"
    end

    # Given to a task that was cancelled in the meantime.
    def pass_on(item)
      if item.equal?(LEAVE)
        @creating -= 1
        let_next_create
      else
        release(item)
      end
    end

    # At most as many are made at once as there are: a pool doubles, it doesn't explode, and those who wait get what
    # comes back meanwhile.
    def grow?
      return false if size + @creating >= @limit

      size.zero? ? @creating.zero? : @creating < size && (@not_before.nil? || now >= @not_before)
    end

    def let_next_create
      while !@takers.empty? && grow?
        @creating += 1
        @takers.shift.give(LEAVE)
      end
    end

    def create(deadline)
      resource = make
    rescue StandardError
      raise if size.zero?

      # It answers no more for now; those that exist serve on.
      @not_before = now + @retry_after
      await(deadline, first: true)
    else
      @not_before = nil
      @busy[resource] = true
      let_next_create
      resource
    ensure
      let_next_create if size.zero? # each one who waits gets the error of an attempt of its own
    end

    def make
      @creating += 1
      Databases.install
      @create.call.tap { |resource| @driver = Databases.driver(resource) }
    ensure
      @creating -= 1
    end

    def take_idle
      while (resource, since = @idle.pop)
        @busy[resource] = true
        fit = false
        begin
          fit = now - since < @check_after || healthy?(resource)
          return resource if fit
        ensure
          discard(resource) unless fit # also when cancelled amid the check
        end
      end
    end

    # Databases' connections may come back in a transaction or with a query under way.
    def ready?(resource) = @driver.nil? || @driver.clean(resource)

    def healthy?(resource)
      @check.nil? || @check.call(resource)
    rescue StandardError
      false
    end

    def lent(resource)
      return if @busy.delete(resource)

      raise ArgumentError, "#{resource.inspect} was not lent by this pool, or has been given back before"
    end

    def shrink
      limit = now - @idle_timeout
      dispose(@idle.shift.first) while !@idle.empty? && @idle.first.last <= limit
    end

    def dispose(resource)
      return if @driver && !@driver.open?(resource)

      if @close then @close.call(resource)
      elsif resource.respond_to?(:close) then resource.close
      end
    rescue StandardError => e
      warn("Heddle::Pool could not close #{resource.inspect}: #{Visible.lines(e.message)} (#{e.class})")
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
