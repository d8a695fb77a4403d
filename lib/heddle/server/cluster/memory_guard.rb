# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Keeps the memory of all processes of the server within one budget. It measures the memory, publishes it to the
      # admission of each worker, and replaces workers that use too much. The memory of a process is its PSS, which
      # counts a share of each shared page. RSS would count the pages that workers share with the mold (the process that
      # they are forked from) once for each worker.
      class MemoryGuard
        # Seconds between two measurements while the memory is well below the budget, and between two replacements.
        INTERVAL = 10
        # Above this share of the budget, the memory is measured at each call of {#check}.
        NEAR = 0.75
        # If the budget is exceeded, a worker is replaced only if it is more than this many times as large as its mold.
        # The replacement of a smaller worker would save too little memory.
        GROWN = 1.25
        # Seconds between two log lines about a shortage of memory.
        LOG_INTERVAL = 600
        private_constant :INTERVAL, :NEAR, :GROWN, :LOG_INTERVAL

        # @param fleet [Fleet]
        # @param log [#event]
        # @param clock [#call] returns the time in seconds
        # @param budget [#call] returns the bytes that all processes together may use; nil: there is no limit
        # @param others [#call] returns the ids of the server's processes that are not workers
        # @param memory [#used, #proportional] see {Memory}
        # @yield after each measurement
        # @yieldparam bytes [Integer] the memory of all processes
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

        # @return [Integer, nil] the memory of all processes in bytes, at the last measurement; nil: not measured yet
        attr_reader :used

        # @return [Integer, nil] the bytes that all processes together may use; nil: there is no limit
        def budget = @budget.call

        # @return [Boolean] whether the budget is exceeded, so that no further process should start
        def short? = !used.nil? && !budget.nil? && used > budget

        # Measures the memory if it is time, and replaces a worker if needed. Must be called about every second.
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

        # RSS is cheap to read, and never less than PSS.
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

        # Replaces one worker at a time, because new workers are slow at first.
        def replace_one(now)
          worker, event, fields = oversized || over_budget
          return unless worker && @fleet.start(worker.index, replaces: worker) # the next check tries again

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

        # When the budget is exceeded, chooses the largest of the workers that have no limit of their own
        # (`worker_memory_limit`) and have grown.
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
