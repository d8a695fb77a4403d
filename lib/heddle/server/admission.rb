# frozen_string_literal: true

module Heddle
  class Server
    # Keeps the worker from overload: checks the memory and the waits for pools, and sets how many requests may run. The
    # gate of the sockets decides which of the queued requests begins, and when.
    class Admission
      include MonotonicClock

      # Seconds between two checks while requests run or wait.
      BUSY = 0.1
      # Seconds between two checks otherwise.
      QUIET = 1.0
      # Seconds between two checks of the memory.
      MEMORY = 1.0
      # The share of a process's memory for output that waits for slow clients.
      RESPONSES = 0.25
      # Bytes for that output where the memory is not known.
      RESPONSES_UNKNOWN = 268_435_456
      # Minimum rate at which a client reads a response, in bytes a second over `write_timeout`; as in http/h2/limits.c.
      LEAST_RATE = 1_000
      # Seconds between two log lines about the same event.
      SILENCE = 60
      REASONS = {
        memory: "memory is short", pool: "most requests wait for a pool", max_requests: "max_requests",
        threads: "one a thread"
      }.freeze
      private_constant :BUSY, :QUIET, :MEMORY, :RESPONSES, :RESPONSES_UNKNOWN, :LEAST_RATE, :SILENCE, :REASONS

      # @param sockets [Net::Sockets]
      # @param configuration [Configuration]
      # @param log [#event]
      # @param limit [Integer, nil] how many requests run at once, regardless of memory and pools
      # @param reason [Symbol] where that limit is from: :max_requests or :threads
      # @param connections [Integer, nil] how many connections the sockets take, for a line in the log
      # @param memory [#call] returns the bytes that the server uses, or nil
      def initialize(sockets, configuration, log, limit: nil, reason: :max_requests, connections: nil,
                     memory: -> { Memory.compared(configuration.memory_budget) })
        @sockets = sockets
        @most_connections = connections
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
        @said = {}
        # In single mode requests wait without a time limit, because a developer may use a debugger meanwhile.
        sockets.queue(configuration.queue_limit, configuration.mode == :single ? nil : configuration.queue_timeout)
        sockets.limit = @fixed
      end

      # Checks periodically until {#stop}. Must be called in a loop.
      # @return [void]
      def start
        @heartbeat = now
        @context = Concurrency::Context.of(Fiber.scheduler)
        @context.on_pool_wait = method(:crowd) unless @fixed
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
        before = looked = now
        loop do
          pause = rest
          sleep(pause)
          @heartbeat = time = now
          memory = nil
          if time - looked >= MEMORY
            looked = time
            memory = @memory = @read_memory.call
          end
          lag = [time - before - pause, 0.0].max
          elapsed = time - before
          @lag += (lag - @lag) * (1 - Math.exp(-elapsed / AdmissionPolicy::AVERAGED))
          look(elapsed, memory)
          @cut += @sockets.cut_slow_readers(@responses, LEAST_RATE, @write_timeout)
          tell(time)
          before = time
        end
      end

      # Seconds until the next check.
      def rest = @sockets.busy > 0 || @sockets.waiting > 0 || @sockets.limit != @fixed ? BUSY : QUIET

      def look(elapsed, memory)
        limit = @policy.look(AdmissionPolicy::Sample.new(elapsed:, memory:, busy: @sockets.busy,
                                                         pool_waiting: @context.pool_waiting,
                                                         waiting: @sockets.waiting))
        @sockets.limit = limit unless @fixed || limit == @sockets.limit
      end

      # Called without waiting for the next check: until then a hundred requests could begin to wait for a pool, whose
      # time limit may be short.
      def crowd
        limit = @policy.crowd(@sockets.busy, @context.pool_waiting)
        @sockets.limit = limit unless limit == @sockets.limit
      end

      def tell(time)
        if @most_connections && @sockets.connections >= @most_connections
          say(:connections_exhausted, time, limit: @most_connections)
        end
        say_growth(:address_limited, time, :connections, @sockets.refused)
        say_growth(:slow_readers_cut, time, :clients, @cut, responses: @responses)
        limit = @sockets.limit
        if limit && @sockets.waiting > 0
          why = REASONS.fetch(@fixed ? @fixed_reason : @policy.reason)
          say(:requests_queued, time, limit:, reason: why, waiting: @sockets.waiting)
        end
        full, late = @sockets.rejected_full, @sockets.rejected_late
        say_growth(:queue_rejected, time, :requests, full + late, full:, late:)
      end

      # Logs how much a counter has grown since the last log line about it.
      def say_growth(what, time, field, count, **fields)
        grown = count - @reported[what]
        @reported[what] = count if grown > 0 && say(what, time, field => grown, **fields)
      end

      # Maximum bytes of the pending responses of one loop.
      def response_budget(configuration)
        workers = configuration.workers_of_their_own? ? configuration.worker_count : 1
        loops = configuration.mode == :thread ? 1 : configuration.threads
        budget = configuration.memory_budget
        budget ? (budget * RESPONSES / workers / loops).to_i : RESPONSES_UNKNOWN
      end

      # @return [Boolean] whether it was logged
      def say(what, time, **fields)
        return false if @said[what] && time - @said[what] < SILENCE

        @said[what] = time
        @log.event(what, **fields)
        true
      end
    end
  end
end
