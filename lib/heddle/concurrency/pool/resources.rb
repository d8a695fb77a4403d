# frozen_string_literal: true

module Heddle
  # The part of {Pool} that makes resources, checks them, and closes idle, old and broken ones.
  class Pool
    include MonotonicClock

    private

    # May the pool make another resource, according to its own limit? An empty pool makes one resource at a time.
    # In any other pool, the number of resources being made never exceeds the number of existing ones. So a burst of
    # tasks does not make the whole pool at once, and these tasks can get resources that are released meanwhile. After a
    # failure, a pool that is not empty makes no resource for `retry_after` seconds.
    def grow?
      return false if size + @creating >= limit

      size.zero? ? @creating.zero? : @creating < size && (@not_before.nil? || now >= @not_before)
    end

    def create(deadline, place)
      slot = make
    rescue StandardError
      raise if size.zero?

      # The failed attempt shows that no more resources can be made for now, so this task waits for an existing one.
      @not_before = now + @retry_after
      @limit.refused(size)
      await(deadline, place, first: true)
    else
      @not_before = nil
      @busy[slot.resource] = slot
      serve_waiters
      slot
    ensure
      # The next waiting task makes its own attempt, also when this task was cancelled or killed.
      serve_waiters unless slot
    end

    def make
      @creating += 1
      drivers = Concurrency.drivers&.call
      drivers&.install if Ractor.current == Ractor.main # patches of drivers affect the whole process
      resource = @create.call
      @driver = drivers&.driver(resource)
      @statistics.created += 1
      slot = Slot.new(resource, retire_at)
    ensure
      @creating -= 1
      @share&.return_one unless slot
    end

    def retire_at
      return Float::INFINITY unless @max_age

      now + (@max_age * (1 - (JITTER * (@statistics.created * GOLDEN % 1))))
    end

    # @return [Slot, nil] nil: there is no usable idle resource
    def take_idle
      while (slot = @idle.pop)
        @busy[slot.resource] = slot
        fit = false
        time = now
        begin
          fit = slot.retire_at > time && alive?(slot.resource) &&
                (time - slot.since < @check_after || healthy?(slot.resource))
          return slot if fit
        ensure
          discard_unfit(slot) unless fit # also when this fiber is cancelled during the check
        end
      end
    end

    def discard_unfit(slot)
      @busy.delete(slot.resource)
      serve_waiters
      dispose(slot, slot.retire_at > now ? :broken : :age)
    end

    def busy_again(slot, time = now)
      slot.vacate(time)
      @busy[slot.resource] = slot
    end

    def returned(slot, time = now)
      @holders.remove(slot) if slot.fiber
      held = time - slot.since
      @statistics.held_seconds += held
      @came_back = true
      # AdaptiveLimit keeps each of these times until its next check. While no task waits, there is no check, and the
      # times would pile up.
      @limit.returned(held) unless @waiters.empty?
    end

    # Has the other side, such as a database server, kept the connection open?
    def alive?(resource) = @driver.nil? || @driver.alive?(resource)

    # Ends a transaction or query that a database connection still has when it is released.
    # @return [Boolean] false: the connection must be closed
    def ready?(resource) = @driver.nil? || @driver.clean(resource)

    def reset?(resource)
      @reset.nil? || @reset.call(resource) != false
    rescue StandardError
      false
    end

    # Makes the resource ready for the next task. This may wait. An exception during the wait must not leave the slot in
    # use.
    # @return [Boolean] false: the resource must be closed
    def settled?(resource)
      settled = ready?(resource) && reset?(resource)
      known = true
      settled
    ensure
      discard(resource) unless known
    end

    # A fiber that is being killed can't wait, so another fiber cancels the query.
    def abandon(resource)
      return discard(resource) unless @driver && Fiber.current_scheduler

      Fiber.schedule do
        fit = false
        fit = @driver.recover(resource)
      ensure
        fit ? release(resource) : discard(resource)
      end
    end

    def healthy?(resource)
      @check.nil? || @check.call(resource)
    rescue StandardError
      false
    end

    def slot_of(resource)
      @busy[resource] or
        raise ArgumentError, "#{resource.inspect} is not checked out from #{name}, or was already released"
    end

    def closes_idle? = @idle_timeout && size > @min

    def shrink
      time = now
      retire(time) if @max_age
      return unless @idle_timeout

      dispose(@idle.shift, :idle) while size > @min && !@idle.empty? && @idle.first.since + @idle_timeout <= time
    end

    def retire(time)
      # Removes each resource only just before it is closed, so that if closing one raises, the others stay in the list.
      while (index = @idle.index { |slot| slot.retire_at <= time })
        dispose(@idle.delete_at(index), :age)
      end
    end

    # Makes resources until there are `min`. If a resource can't be made, the next check tries again.
    def refill
      release(busy_again(make).resource) until @closed || size + @creating >= @min || @share&.take == false
    rescue StandardError
      nil
    end

    def dispose(slot, reason)
      resource = slot.resource
      @statistics.closed[reason] += 1
      end_resource(resource) unless @driver && !@driver.open?(resource)
    ensure
      @share&.return_one
    end

    def end_resource(resource)
      if @close then @close.call(resource)
      elsif resource.respond_to?(:close) then resource.close
      end
    rescue StandardError => e
      Events.report(:pool_close_failed, pool: name, resource: resource.inspect, error: "#{e.message} (#{e.class})")
    end
  end
end
