# frozen_string_literal: true

module Heddle
  # The part of {Pool} in which tasks wait for resources and the pool serves them.
  class Pool
    include MonotonicClock

    # A waiting task gets this object in place of a resource, as the permission to make one.
    PERMISSION = Object.new.freeze
    private_constant :PERMISSION

    private

    def await(deadline, place, first: false)
      waiter = Waiter.new(place)
      first ? @waiters.unshift(waiter) : @waiters.push(waiter)
      serve_waiters
      began = now
      context = waiter.context
      context.pool_waiting += 1
      @statistics.waits += 1
      begin
        wait_as(waiter, deadline && [deadline - began, 0].max)
        waited = true
      ensure
        context.pool_waiting -= 1
        @statistics.wait_seconds += now - began
        share_waiting if !waiter.given? && @waiters.delete(waiter)
        # If an exception or Fiber#kill has ended the wait, another task gets the item. This call is the last one here,
        # because it may raise.
        pass_on(waiter.item) if !waited && waiter.given?
      end
      finish_wait(waiter, deadline)
    end

    def wait_as(waiter, timeout)
      error = nesting_error(waiter) unless waiter.given?
      raise error if error

      schedule_check(waiter.context)
      Account.wait_for(Account::CHECKOUT) { waiter.wait(timeout) }
    end

    # While tasks wait, the pool checks at an interval whether to grow, and whether there is a deadlock.
    def schedule_check(context = Concurrency::Context.of(Fiber.scheduler))
      @check_alarm ||= context.alarms.add(AdaptiveLimit::POLL_INTERVAL, @upkeep, :check_waiting)
    end

    def finish_wait(waiter, deadline)
      if waiter.given?
        return waiter.item unless waiter.item.equal?(PERMISSION)

        @creating -= 1
        return create(deadline, waiter.place)
      end
      raise waiter.error if waiter.error
      raise ClosedQueueError, "#{name} was closed while this task waited for a resource" if @closed

      @statistics.timeouts += 1
      raise TimeoutError, "#{name}: no resource became free in time; #{busy} of #{size} resources are in use (limit " \
                          "#{limit}), and #{waiting} other tasks wait"
    end

    # Passes on an item if the task that got it was cancelled meanwhile.
    def pass_on(item)
      if item.equal?(PERMISSION)
        @creating -= 1
        @share&.return_one
        serve_waiters
      else
        release(item.resource)
      end
    end

    # Ends the wait of tasks that can never get a resource. Thousands of tasks may wait, so two quick tests come before
    # the check of each task: was a resource released since the last check, and is there a resource that no waiter
    # blocks?
    def fail_nested
      came_back, @came_back = @came_back, false
      return if came_back || !Nesting.possible?(@waiters, @busy.values)

      @waiters.dup.each do |waiter|
        error = nesting_error(waiter)
        waiter.fail(error) if error && @waiters.delete(waiter)
      end
    end

    # @return [NestedCheckoutError, nil]
    def nesting_error(waiter)
      return if size + @creating < @limit.max || @creating.positive? || !waiter.inside_holder?(@holders)

      slots = @busy.values
      stuck = Nesting.stuck(waiter, @waiters, slots)
      return warn_of_nesting(waiter, slots) unless stuck

      @statistics.nested += 1
      NestedCheckoutError.new(Nesting.message(name, waiter, stuck, slots.size))
    end

    def warn_of_nesting(waiter, slots)
      return if @warned || (own = slots.find { |slot| waiter.blocks?(slot) }).nil?

      @warned = true
      Events.report(:pool_nested_checkout, pool: name, place: Nesting.place(waiter.place),
                                           checked_out: Nesting.place(own.place))
      nil
    end

    # Gives idle resources to waiting tasks, and permissions to make more. Resources may be idle while tasks wait,
    # because the limit was lowered.
    def serve_waiters
      @waiters.shift.give(busy_again(@idle.pop)) while !@waiters.empty? && !@idle.empty? && @busy.size < limit
      while !@waiters.empty? && allot?
        @creating += 1
        @waiters.shift.give(PERMISSION)
      end
      share_waiting
    end
  end
end
