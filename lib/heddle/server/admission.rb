# frozen_string_literal: true

module Heddle
  class Server
    # Keeps the worker from overload: checks the memory and the waits for pools, and sets how many requests may run. The
    # gate of the sockets decides which of the queued requests begins, and when.
    class Admission
      include MonotonicClock

      # Seconds between two checks while requests run or wait.
      BUSY_INTERVAL = 0.1
      # Seconds between two checks otherwise.
      IDLE_INTERVAL = 1.0
      # Seconds between two checks of the memory.
      MEMORY_INTERVAL = 1.0
      # The share of a process's memory for output that waits for slow clients.
      RESPONSE_SHARE = 0.25
      # Bytes for that output where the memory is not known.
      RESPONSE_BYTES = 268_435_456
      # Minimum rate at which a client reads a response, in bytes a second over `write_timeout`; as in http/h2/limits.c.
      MIN_RATE = 1_000
      # Seconds between two log lines about the same event.
      LOG_INTERVAL = 60
      REASONS = {
        memory: "memory is short", pool: "most requests wait for a pool", max_requests: "max_requests",
        threads: "one a thread"
      }.freeze
      private_constant :BUSY_INTERVAL, :IDLE_INTERVAL, :MEMORY_INTERVAL, :RESPONSE_SHARE, :RESPONSE_BYTES, :MIN_RATE,
                       :LOG_INTERVAL, :REASONS

      # @param sockets [Net::Sockets]
      # @param configuration [Configuration]
      # @param log [#event]
      # @param limit [Integer, nil] how many requests run at once, regardless of memory and pools
      # @param reason [Symbol] where that limit is from: :max_requests or :threads
      # @param connections [Integer, nil] how many connections the sockets may have, for the log line about this limit
      # @param memory [#call] returns the bytes that the server uses, or nil
      def initialize(sockets, configuration, log, limit: nil, reason: :max_requests, connections: nil,
                     memory: -> { Memory.compared(configuration.memory_budget) })
        @sockets = sockets
        @max_connections = connections
        @log = log
        @fixed = limit
        @fixed_reason = reason
        @policy = AdmissionPolicy.new(memory_limit: configuration.memory_budget)
        @read_memory = memory
        @memory = nil
        @responses = response_budget(configuration)
        @write_timeout = configuration.http.write_timeout
        @cut = 0
        @reported = Hash.new(0)
        @heartbeat = now
        @lag = 0.0
        @logged_at = {}
        # In single mode requests wait without a time limit, because a developer may use a debugger meanwhile.
        sockets.queue(configuration.queue_limit, configuration.mode == :single ? nil : configuration.queue_timeout)
        sockets.limit = @fixed
      end

      # Checks periodically until {#stop}. Must be called in a loop.
      # @return [void]
      def start
        @heartbeat = now
        @context = Concurrency::Context.of(Fiber.scheduler)
        @context.on_pool_wait = method(:limit_for_pools) unless @fixed
        @task = Heddle.async(name: "admission", background: true) { run }
      end

      # @return [void]
      def stop = @task&.cancel

      # @return [Float] seconds since the last check; more than about one means that the loop is blocked
      def heartbeat_age = now - @heartbeat

      # @return [Hash{Symbol => Numeric, Symbol, nil}] `limit`: how many requests may run at once (nil: any number);
      #   `limited_by`: why (:max_requests, :threads, :memory, :pool or nil); `waiting`: requests that wait for their
      #   turn; `lag`: seconds by which the loop was late lately; `heartbeat_age`: seconds since its last heartbeat;
      #   `memory`: bytes of the server (nil: not known); `pool_waiting`: tasks that wait for something from a pool;
      #   `rejected_full`, `rejected_late`: requests that got 503 because the queue was full, or because they had waited
      #   for too long
      def statistics
        { limit: @sockets.limit, limited_by: @fixed ? @fixed_reason : @policy.reason, waiting: @sockets.waiting,
          lag: @lag, heartbeat_age:, memory: @memory, pool_waiting: @context&.pool_waiting || 0,
          rejected_full: @sockets.rejected_full, rejected_late: @sockets.rejected_late }
      end

      private

      def run
        before = measured = now
        loop do
          pause = check_interval
          sleep(pause)
          @heartbeat = time = now
          memory = nil
          if time - measured >= MEMORY_INTERVAL
            measured = time
            memory = @memory = @read_memory.call
          end
          lag = [time - before - pause, 0.0].max
          elapsed = time - before
          @lag += (lag - @lag) * (1 - Math.exp(-elapsed / AdmissionPolicy::AVERAGED))
          update_limit(elapsed, memory)
          @cut += @sockets.cut_slow_readers(@responses, MIN_RATE, @write_timeout)
          log_limits(time)
          before = time
        end
      end

      def check_interval
        @sockets.busy > 0 || @sockets.waiting > 0 || @sockets.limit != @fixed ? BUSY_INTERVAL : IDLE_INTERVAL
      end

      def update_limit(elapsed, memory)
        limit = @policy.update(AdmissionPolicy::Sample.new(elapsed:, memory:, busy: @sockets.busy,
                                                           pool_waiting: @context.pool_waiting,
                                                           waiting: @sockets.waiting))
        @sockets.limit = limit unless @fixed || limit == @sockets.limit
      end

      # Called each time that a task begins to wait for a pool. Until the next check a hundred requests could do so, and
      # the pool's time limit may be short.
      def limit_for_pools
        limit = @policy.limit_for_pools(@sockets.busy, @context.pool_waiting)
        @sockets.limit = limit unless limit == @sockets.limit
      end

      def log_limits(time)
        if @max_connections && @sockets.connections >= @max_connections
          log_event(:connections_exhausted, time, limit: @max_connections)
        end
        log_growth(:address_limited, time, :connections, @sockets.refused)
        log_growth(:slow_readers_cut, time, :clients, @cut, responses: @responses)
        limit = @sockets.limit
        if limit && @sockets.waiting > 0
          why = REASONS.fetch(@fixed ? @fixed_reason : @policy.reason)
          log_event(:requests_queued, time, limit:, reason: why, waiting: @sockets.waiting)
        end
        full, late = @sockets.rejected_full, @sockets.rejected_late
        log_growth(:queue_rejected, time, :requests, full + late, full:, late:)
      end

      # Logs how much a counter has grown since the last log line about it.
      def log_growth(what, time, field, count, **fields)
        grown = count - @reported[what]
        @reported[what] = count if grown > 0 && log_event(what, time, field => grown, **fields)
      end

      # Maximum bytes of the pending responses of one loop.
      def response_budget(configuration)
        workers = configuration.worker_processes? ? configuration.worker_count : 1
        loops = configuration.mode == :thread ? 1 : configuration.threads
        budget = configuration.memory_budget
        budget ? (budget * RESPONSE_SHARE / workers / loops).to_i : RESPONSE_BYTES
      end

      # @return [Boolean] whether it was logged
      def log_event(what, time, **fields)
        return false if @logged_at[what] && time - @logged_at[what] < LOG_INTERVAL

        @logged_at[what] = time
        @log.event(what, **fields)
        true
      end
    end
  end
end
