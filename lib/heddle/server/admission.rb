# frozen_string_literal: true

module Heddle
  class Server
    # Protects a worker from overload. It checks the memory and the waits for pools, and sets how many requests may run
    # at once. Below that limit, the gate (ext/heddle/net/request_gate.h) decides when the next queued request begins.
    # It also disconnects clients that read their responses too slowly.
    class Admission
      include MonotonicClock

      # Seconds between two checks while requests run or wait, or while {AdmissionPolicy} limits them.
      BUSY_INTERVAL = 0.1
      # Seconds between two checks at any other time.
      IDLE_INTERVAL = 1.0
      # Seconds between two checks of the memory.
      MEMORY_INTERVAL = 1.0
      # The share of the server's memory limit that the unsent responses of all its loops may use together.
      RESPONSE_SHARE = 0.25
      # Bytes that the unsent responses of one loop may use if the memory limit is not known.
      RESPONSE_BYTES = 268_435_456
      # Minimum rate at which a client must read a response, in bytes per second, averaged over `write_timeout`. The
      # same value is in http/h2/limits.c.
      MIN_RATE = 1_000
      # Seconds between two log lines about the same event.
      LOG_INTERVAL = 60
      REASONS = {
        memory: "memory is short", pool: "most requests wait for a pool", max_requests: "max_requests",
        threads: "one request for each thread"
      }.freeze
      private_constant :BUSY_INTERVAL, :IDLE_INTERVAL, :MEMORY_INTERVAL, :RESPONSE_SHARE, :RESPONSE_BYTES, :MIN_RATE,
                       :LOG_INTERVAL, :REASONS

      # @param sockets [Net::Sockets]
      # @param configuration [Configuration]
      # @param log [#event]
      # @param limit [Integer, nil] a fixed maximum of requests that run at once; nil: {AdmissionPolicy} computes it
      # @param reason [Symbol] what sets the fixed maximum: :max_requests or :threads
      # @param connections [Integer, nil] the maximum number of connections, for a log line when it is reached; nil: no
      #   such line
      # @param memory [#call] returns the bytes that the server uses; nil: not known
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

      # Ends the checks.
      # @return [void]
      def stop = @task&.cancel

      # @return [Float] seconds since the last check. A value well above IDLE_INTERVAL means that the loop is blocked.
      def heartbeat_age = now - @heartbeat

      # @return [Hash{Symbol => Numeric, Symbol, nil}] `limit`: maximum number of requests that run at once (nil: there
      #   is no limit); `limited_by`: its reason (:max_requests, :threads, :memory, :pool or nil); `waiting`: requests
      #   that have not begun; `lag`: recent delay of the loop in seconds; `heartbeat_age`: seconds since the last
      #   check; `memory`: bytes that the server uses (nil: not known); `pool_waiting`: tasks that wait for a resource
      #   of a pool; `rejected_full`, `rejected_late`: requests that got 503, because the queue was full or because they
      #   had waited for too long
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

      # Called each time that a task begins to wait for a connection of Active Record's pool. The next periodic check
      # may be too late: by then, a hundred more requests could wait, and the pool's time limit may be short.
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

      # Returns how many bytes the unsent responses of one loop may use.
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
