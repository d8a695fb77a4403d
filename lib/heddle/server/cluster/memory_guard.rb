# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Keeps the memory of all processes of the server within one budget. It measures the memory, reports it to the
      # admission of each worker, and replaces workers that use too much. A process's memory is its PSS: resident memory
      # would count the mold's pages again for each worker.
      class MemoryGuard
        # Seconds between two measurements while there is plenty of memory, and between two replacements.
        INTERVAL = 10
        # Above this share of the budget, the memory is measured at each check.
        NEAR = 0.75
        # If the budget is exceeded, a worker is replaced only when it is this many times as large as its mold.
        # Otherwise its successor would not be smaller.
        GROWN = 1.25
        # Seconds between two log lines about a shortage of memory.
        LOG_INTERVAL = 600
        private_constant :INTERVAL, :NEAR, :GROWN, :LOG_INTERVAL

        # @param fleet [Fleet]
        # @param log [#event]
        # @param clock [#call] seconds
        # @param budget [#call] bytes of all processes, or nil
        # @param others [#call] the ids of the processes other than workers
        # @param memory [#used, #proportional] see {Memory}
        # @yieldparam bytes [Integer] what all processes use
        def initialize(fleet, log, clock, budget:, others: -> { [] }, memory: Memory, &publish)
          @fleet = fleet
          @log = log
          @clock = clock
          @budget = budget
          @others = others
          @memory = memory
          @publish = publish
          @measured_at = @replaced_at = @logged_at = -Float::INFINITY
        end

        # @return [Integer, nil] bytes that all processes used at the last measurement
        attr_reader :used

        # @return [Integer, nil] bytes that they may use
        def budget = @budget.call

        # @return [Boolean] whether there is no room for another process
        def short? = !used.nil? && !budget.nil? && used > budget

        # Must be called about every second.
        # @return [void]
        def check
          others = @others.call
          now = @clock.call
          return unless now - @measured_at >= INTERVAL || near?(others)

          @measured_at = now
          measure(others)
          replace_one(now) if now - @replaced_at >= INTERVAL && @fleet.workers.all?(&:serving?)
        end

        private

        # Resident memory costs nothing to read, and is never less than the proportional share.
        def near?(others)
          limit = budget or return false
          [*others, *@fleet.workers.filter_map(&:pid)].sum { |pid| @memory.used(pid) || 0 } > limit * NEAR
        end

        def measure(others)
          @sizes = {}.compare_by_identity
          @fleet.workers.each { |worker| @sizes[worker] = (worker.pid && @memory.proportional(worker.pid)) || 0 }
          @used = @sizes.values.sum + others.sum { |pid| @memory.proportional(pid) || 0 }
          @publish&.call(@used)
        end

        # One at a time, so that not all workers are new and slow.
        def replace_one(now)
          worker, event, fields = oversized || over_budget
          return unless worker && @fleet.start(worker.index, replaces: worker) # later, when one can be started

          @replaced_at = now
          @log.event(event, **worker.fields, memory: @sizes[worker], **fields)
        end

        def oversized
          @fleet.workers.each do |worker|
            limit = worker.mold.configuration.worker_memory_limit
            next unless limit > 0 && @sizes[worker] > limit * worker.limit_share

            return [worker, :worker_memory_exceeded, { limit: }]
          end
          nil
        end

        # Without a limit, the largest worker is replaced when all processes together use too much.
        def over_budget
          limit = budget
          return unless limit && @used > limit

          grown = @fleet.workers.select { |worker| unlimited?(worker) && grown?(worker) }
          worker = grown.max_by { |one| @sizes[one] } or return log_shortage(limit)
          [worker, :memory_budget_exceeded, { used: @used, limit: }]
        end

        def grown?(worker)
          mold = worker.mold.pid && @memory.proportional(worker.mold.pid)
          !mold.nil? && @sizes[worker] > mold * GROWN
        end

        def unlimited?(worker) = worker.mold.configuration.worker_memory_limit == 0

        def log_shortage(limit)
          return if @measured_at - @logged_at < LOG_INTERVAL

          @logged_at = @measured_at
          @log.event(:memory_short, used: @used, limit:)
          nil
        end
      end
    end
  end
end
