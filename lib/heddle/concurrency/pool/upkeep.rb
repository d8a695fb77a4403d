# frozen_string_literal: true

module Heddle
  class Pool
    # The upkeep task of a pool, which runs while the pool is in use or has resources to close. It closes idle and old
    # resources, keeps the minimum, and reports resources whose fibers wait for something else.
    #
    # @api private
    class Upkeep
      # Seconds between two checks while the pool is in use.
      POLL_INTERVAL = 0.5

      # @return [Scheduler, nil] the loop whose tasks use the pool
      attr_reader :scheduler

      # @param pool [Pool]
      # @param tend [#call] closes idle resources; returns the seconds until it must close another one, or nil if there
      #   is none to close
      # @param check_waiting [#call, nil] called while tasks wait: adapts the limit, serves them, finds deadlocks
      def initialize(pool, tend, check_waiting = nil)
        @pool = pool
        @tend = tend
        @check_waiting = check_waiting
        @task = @scheduler = nil
        @asleep = @used = false
      end

      # Called when a resource is acquired. Starts the task, or wakes it if it sleeps because the pool was not in use.
      def used(scheduler)
        @used = true
        @scheduler = scheduler
        if @task.nil? || @task.ended? then start(scheduler)
        elsif @asleep
          @asleep = false
          @task.scheduler.unpark(@task.fiber)
        end
      end

      # Called by {Alarms}.
      def check_waiting = @check_waiting.call

      # The task does not exist in a forked child.
      def forget = @task = nil

      private

      # Starts the task in the loop's root task, because it must outlive the first task that uses the pool.
      def start(scheduler)
        root = Concurrency::Context.of(scheduler).root if scheduler.is_a?(Scheduler)
        return if root.nil? || root.ended? || root.cancelled?

        @asleep = false
        @task = root.async(name: "upkeep of #{@pool.name}", background: true) { tend(scheduler) }
      rescue FiberError # no memory for the fiber's stack; the next check-out tries again
        @task = nil
      end

      def tend(scheduler)
        while (seconds = check)
          @asleep = !@used
          scheduler.park(seconds)
          @asleep = false
        end
      end

      # @return [Float, nil] seconds until the next check; nil: the pool is not in use and has no resource to close
      def check
        rest = @tend.call
        used = @used
        @used = @pool.busy.positive?
        return rest unless used

        [POLL_INTERVAL, rest || POLL_INTERVAL].min
      end
    end
  end
end
