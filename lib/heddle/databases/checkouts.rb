# frozen_string_literal: true

require "heddle/runtime"
require "heddle/databases/app_lines"
require "weakref"

module Heddle
  const_get(:Pool) # loads it now; later, a fiber would load files while it has the lock of a pool

  module Databases
    # The check-outs of one pool of Active Record or Sequel, and the tasks that wait for a connection. As in {Pool}, a
    # wait ends with an error when no connection can ever be returned.
    #
    # A subclass for each library defines `name`, `pairs`, `holds?`, `quiet?`, `checked_out`, `transaction?` and
    # `error_class`.
    class Checkouts
      # Seconds between two checks whether waiting tasks can still get a connection.
      POLL_INTERVAL = 0.1
      # Heddle's record of a pool. The record must refer neither to the pool nor to its connections, which refer to the
      # pool: see {SideTable}.
      #
      # - waiters [Hash{Pool::Waiter => Symbol, nil}] the recorded waits ({#wait}), each with its shard
      # - check_alarms [Hash{Concurrency::Context => Object}] the alarm for each loop's next check of its waits
      # - waiting [Hash{Fiber => Symbol, nil}] Sequel only: all fibers that wait, each with its shard
      # - warned [Boolean, nil] whether a nested check-out was reported
      State = Struct.new(:waiters, :check_alarms, :waiting, :warned)
      # The record of a connection's last user.
      class Slot < Pool::Slot
        def initialize(connection)
          super(WeakRef.new(connection), nil)
        end

        # @return [Object, nil] the connection; nil: it was garbage collected
        def resource
          @resource.__getobj__
        rescue WeakRef::RefError
          nil
        end
      end
      STATES = SideTable.new(:heddle_checkouts)
      SLOTS = SideTable.new(:heddle_slots)
      private_constant :POLL_INTERVAL, :State, :Slot, :STATES, :SLOTS

      class << self
        # @param connection [Object] a connection that was returned to its pool, or closed
        # @return [void]
        def forget(connection) = SLOTS[connection]&.vacate(nil)

        # Warns in development, once per process, if a task has its own connection while a task around it is in a
        # transaction.
        #
        # @param task [Task, ImplicitTask] the calling task
        # @yield [fibers] the fibers of the tasks around it; the block returns whether one of them is in a transaction
        def warn_of_transaction(task)
          task = task.parent&.task
          return if !task.is_a?(Concurrency::TaskFrame) || @warned_of_transaction || !Databases.development?

          around = [task.fiber]
          around << task.fiber while (task = task.parent&.task).is_a?(Concurrency::TaskFrame)
          return unless yield(around)

          @warned_of_transaction = true
          Events.report(:transaction_not_shared, place: AppLines.innermost(caller))
        end
      end

      # @param pool [Object] the library's pool
      def initialize(pool)
        @pool = pool
        @state = STATES.fetch(pool) { State.new(*Array.new(3) { {}.compare_by_identity }) }
      end

      # Records a check-out. Must be called by the fiber that has checked the connection out. The library itself records
      # the fiber. Heddle records more only for tasks and for {HeldWhileWaiting}. Most requests start no task, so for
      # them the recording costs nothing.
      #
      # @param connection [Object]
      # @param scheduler [Scheduler]
      # @return [void]
      def taken(connection, scheduler)
        task = Concurrency::Context.of(scheduler).task
        report = HeldWhileWaiting.report?
        slot = SLOTS[connection]
        return slot&.vacate(nil) unless task || report

        slot ||= SLOTS[connection] = Slot.new(connection)
        slot.vacate(nil)
        slot.block = true
        slot.occupy(Concurrency.now, scheduler)
        HeldWhileWaiting.of(scheduler).taken(slot, self) if report
        Checkouts.warn_of_transaction(task) { |fibers| transaction?(fibers) } if task
      end

      # Runs the block, in which the calling fiber waits for a connection. The wait is recorded only if the fiber, or a
      # task that waits for it, possibly has a connection. Otherwise the wait can't delay the return of a connection.
      #
      # @param scheduler [Scheduler]
      # @param server [Symbol, nil] the shard, if the pool has several
      # @raise [Exception] the library's error for a missing connection, if no connection can ever be returned
      def wait(scheduler, server = nil, &)
        return Account.wait_for(Account::CHECKOUT, &) unless keeps_connections?(scheduler, server)

        waiter = Pool::Waiter.new(nil) # without a backtrace, which is expensive and only needed for the error
        @state.waiters[waiter] = server
        error = nesting_error(waiter, server)
        raise error if error

        schedule_check(waiter.context) if waiter.nested?
        Account.wait_for(Account::CHECKOUT, &)
      ensure
        @state.waiters.delete(waiter)
        take_back(scheduler, waiter) if waiter&.error
      end

      # @param _slot [Pool::Slot] a slot whose fiber waits for something else
      # @return [String] what to do, for the report
      def advice(_slot) = Pool::HeldWhileWaiting::ADVICE

      # @param server [Symbol, nil] the shard, if the pool has several
      # @return [Array<Fiber>, nil] the fibers that have a connection; nil: the pool can open another connection
      def holders(server) = pairs(server)&.map(&:first)

      private

      def keeps_connections?(scheduler, server)
        Pool::Waiter.nested?(Concurrency::Context.of(scheduler).task) ||
          may_hold?(scheduler.current_fiber || Fiber.current, server)
      end

      # Called by a fiber that is about to wait. The fiber has locked the pool, except a pool of Sequel's type
      # `timed_queue`.
      #
      # @return [Boolean] whether the fiber possibly has a connection; true also if the pool can open another
      #   connection
      def may_hold?(fiber, server)
        holders = holders(server)
        holders.nil? || holders.include?(fiber)
      end

      def schedule_check(context)
        @state.check_alarms[context] ||= context.alarms.add(POLL_INTERVAL, -> { check_waiting(context) }, :call)
      end

      # Checks whether a waiting task of this loop can never get a connection. Concurrency::Alarms calls it.
      def check_waiting(context)
        @state.check_alarms.delete(context)
        nested = @state.waiters.select { |waiter,| waiter.context.equal?(context) && waiter.nested? }
        nested.each do |waiter, server|
          error = nesting_error(waiter, server) or next

          @state.waiters.delete(waiter)
          waiter.interrupt(error)
        end
        schedule_check(context) unless nested.empty?
      end

      # @return [Exception, nil] the library's error for a missing connection; nil: a connection may be returned
      def nesting_error(waiter, server)
        holders = holders(server)
        return unless holders && waiter.inside_holder?(holders) && (pairs = pairs(server))

        slots = pairs.filter_map { |owner, connection| slot_of(owner, connection) if owner }
        waiters = @state.waiters.filter_map { |one, its| one if its == server }
        stuck = Pool::Nesting.stuck(waiter, waiters, slots) if slots.size == pairs.size
        return warn_of_nesting(waiter, slots) unless stuck

        error_class.new(message(waiter, slots.size, stuck.first))
      end

      # Returns the slot recorded at the check-out. If there is none, returns a new slot, which contains only the fiber.
      def slot_of(owner, connection)
        slot = SLOTS[connection]
        slot&.fiber.equal?(owner) ? slot : Pool::Slot.new(connection, nil).occupied_by(owner)
      end

      def message(waiter, count, slot)
        lines = Concurrency.backtrace(slot.fiber)
        "deadlock: all #{count} connections of the pool #{name} are in use by tasks that wait for the task that " \
          "requests a connection at #{AppLines.innermost(Concurrency.backtrace(waiter.fiber))}. One of them was " \
          "checked out at #{checked_out(slot, lines)}, and its task waits at #{AppLines.innermost(lines)}. Return " \
          "the connection to the pool before such a wait, or make the pool larger"
      end

      def warn_of_nesting(waiter, slots)
        return if @state.warned || (own = slots.find { |slot| waiter.blocks?(slot) }).nil?

        @state.warned = true
        Events.report(:pool_nested_checkout, pool: name, place: AppLines.innermost(Concurrency.backtrace(waiter.fiber)),
                                             checked_out: checked_out(own, Concurrency.backtrace(own.fiber)))
        nil
      end

      # Withdraws the error, because the wait has ended before the error was raised.
      def take_back(scheduler, waiter)
        pending = scheduler.uninterrupt(waiter.fiber)
        scheduler.interrupt(waiter.fiber, pending) unless pending.nil? || pending.equal?(waiter.error)
      end
    end
  end
end
