# frozen_string_literal: true

module Heddle
  class Server
    # Serves in one loop of a server: opens its sockets, limits its requests ({Admission}), and drains it when the
    # server stops.
    class Serving
      # Seconds between two checks whether to stop, and whether requests have loaded gems that must be adapted. Although
      # {#stop} wakes the loop, the check is needed: another thread may call {#stop} just before the loop begins to
      # wait.
      POLL_INTERVAL = 1.0
      # Seconds within which cancelled requests must end, and seconds between two checks whether they have ended.
      CANCEL_TIMEOUT = 0.5
      CANCEL_INTERVAL = 0.01
      private_constant :POLL_INTERVAL, :CANCEL_TIMEOUT, :CANCEL_INTERVAL

      # @return [HTTP::Engine, nil] the engine that counts requests and their durations; nil: the loop has not begun
      attr_reader :engine

      # @return [BasicSocket, false, nil] see {Server#stop}
      attr_writer :handoff_sender

      # @param configuration [Configuration]
      # @param log [Log]
      # @param loops [Integer] how many loops share the process's limits
      # @param runners [RunnerThreads, nil] the threads that run the application; nil: the loop's fibers run it
      def initialize(configuration, log, loops: 1, runners: nil)
        @configuration = configuration
        @log = log
        @loops = loops
        @runners = runners
        @stopping = false
        @reserve = 0
        @main = @scheduler = @sockets = @engine = @admission = @connection_limit = nil
        @scoreboard_slot = @handoff_sockets = @handoff_sender = nil
      end

      # Makes this process one of several workers. Must be called before {#serve}.
      # @param scoreboard [Net::Scoreboard]
      # @param slot [Integer]
      # @param handoff_sockets [Array(BasicSocket, BasicSocket), nil] the socket that sends connections to other
      #   workers, and the socket that receives connections from them
      # @param reserve [Integer] this worker's rank among the reserve workers (they serve only while all others are
      #   blocked); 0: it is not a reserve worker
      # @return [void]
      def join_cluster(scoreboard, slot, handoff_sockets: nil, reserve: 0)
        @scoreboard_slot = [scoreboard, slot]
        @handoff_sockets = handoff_sockets
        @reserve = reserve
      end

      # Serves until {#stop} is called. Then waits until the running requests are answered, at most as long as the
      # option `stop_timeout` allows. Must be called in a loop.
      #
      # @param app [#call]
      # @param listeners [Listeners] closed when the first loop has stopped accepting
      # @yield once, when the loop accepts requests
      # @return [Boolean] whether every request was answered
      def serve(app, listeners)
        @scheduler = Fiber.scheduler
        @main = Fiber.current
        handler = RequestHandler.new(app, @configuration, @log, runners: @runners)
        @engine = handler.engine
        sockets = open_sockets(handler, listeners)
        admission = @admission = build_admission(sockets)
        @sockets = sockets
        @runners&.serve(sockets)
        admission.start
        yield if block_given?
        await_stop
        await_drain_delay(sockets)
        drain(sockets, listeners)
      ensure
        @main = @sockets = nil
        @log.count_gone(sockets.clients_gone) if sockets # so that the last status of an ending worker includes them
        admission&.stop
        sockets&.close
      end

      # Stops accepting, closes idle connections and lets running requests finish. May be called from any thread.
      # @param now [Boolean] whether to cancel running requests at once
      # @return [void]
      def stop(now: false)
        @stopping = now || @stopping == :now ? :now : :drain
        wake
      end

      # @param socket [BasicSocket]
      # @return [Boolean, nil] see {Server#accept_handoff}
      def accept_handoff(socket) = @sockets&.accept_handoff(socket)

      # @return [Hash{Symbol => Numeric, Boolean, Symbol, nil}, nil] see {Server#statistics}; nil while the loop does
      #   not serve
      def statistics
        sockets = @sockets or return
        loop = @scheduler.statistics
        connections, running, transit = sockets.connections, sockets.running, sockets.transit
        { connections:, running:, transit:, idle: connections - running - transit,
          accepted: sockets.accepted, accepting: sockets.accepting?,
          handed_off: sockets.handed_off, handoffs_received: sockets.handoffs_received,
          reserve: sockets.reserve, reserve_deferred: sockets.reserve_deferred,
          reserve_activations: sockets.reserve_activations, clients_gone: sockets.clients_gone,
          refused: sockets.refused,
          fibers: @scheduler.fiber_count, handshakes: sockets.handshakes, failed_handshakes: sockets.failed_handshakes,
          ticks: loop[:ticks], preemptions: loop[:preemptions],
          **PubSub::Subscription.statistics(@scheduler).transform_keys { |name| :"pubsub_#{name}" },
          **@admission.statistics }
      end

      # @return [Array<Array(Fiber, Array, Thread)>] see {Server#running_requests}
      def running_requests
        found = @sockets&.running_requests || []
        @runners ? found.map { |fiber, request| [fiber, request, @runners.serving(fiber)] } : found
      end

      # @return [Symbol, nil] the name of the loop's selector; nil while the loop does not serve
      def selector = @sockets && @scheduler.selector

      # @return [String] see {Server#task_tree}
      def task_tree = @sockets ? TaskTree.new(Concurrency::Context.of(@scheduler)).to_s : ""

      private

      def wake
        main = @main
        @scheduler.unpark(main) if main
      end

      def await_stop
        until @stopping
          @scheduler.park(POLL_INTERVAL)
          Adaptations.update(@configuration)
        end
      end

      # If the whole server stops, load balancers need some time to notice that its health checks fail. If only this
      # worker stops, the others keep serving, and there is no delay.
      def await_drain_delay(sockets)
        return unless @handoff_sender.nil?

        sockets.leave
        deadline = MonotonicClock.now + @configuration.drain_delay
        while @stopping != :now && (left = deadline - MonotonicClock.now) > 0
          @scheduler.park([left, POLL_INTERVAL].min)
        end
      end

      def build_admission(sockets)
        limits = { limit: loop_share(@configuration.max_requests) }
        limits = { limit: @runners.size, reason: :threads } if @runners
        limits[:memory] = @scoreboard_slot.first.method(:memory) if @scoreboard_slot
        Admission.new(sockets, @configuration, @log, connections: @connection_limit, **limits)
      end

      # This loop's share of a limit that applies to the whole process; nil: there is no limit (0).
      def loop_share(limit)
        [limit.fdiv(@loops).ceil, 1].max if limit > 0
      end

      def open_sockets(handler, listeners)
        @connection_limit = loop_share(ConnectionLimit.of(@configuration))
        proxies = @configuration.trusted_networks
        sockets = Net::Sockets.new(@scheduler, max_connections: @connection_limit,
                                               handshake_timeout: @configuration.http.head_timeout.to_f,
                                               proxies:, service: handler.engine, &handler)
        sockets.stand_by(@reserve) if @reserve.positive?
        listeners.each { |listener| listener.attach(sockets, proxies) }
        join(sockets, handler.engine) if @scoreboard_slot
        sockets.enable_handoff(@handoff_sockets.first) if @handoff_sockets
        sockets
      end

      def join(sockets, engine)
        sockets.join(*@scoreboard_slot)
        engine.share_disk(*@scoreboard_slot)
        Heddle.async(name: "pools", background: true) { watch_pools(sockets) }
      end

      # Pools with `max_total` share that limit with the same pools of the other workers. Runs in a task that reacts
      # when another worker waits for a share of the limit, or returns one.
      def watch_pools(sockets)
        sockets.wake_at_pool_change(Fiber.current)
        seconds = nil
        loop do
          @scheduler.park(seconds)
          seconds = Pool::Registry.shares_changed
        end
      end

      def drain(sockets, listeners)
        drain = Drain.new(sockets, @engine, @configuration, @log,
                          replaced: -> { !@handoff_sender.nil? }, handoff_sender: @handoff_sender,
                          handoff_receiver: @handoff_sockets&.last) do
          @stopping == :now
        end
        return true if drain.run { listeners.close }

        cancel_running(sockets)
        false
      end

      def cancel_running(sockets)
        running = sockets.serving
        unanswered = running.size + sockets.waiting
        transfers = sockets.transit
        listed = RunningRequests.describe(sockets.running_requests)
        sockets.end_queue
        @log.event(:requests_cut_off, requests: unanswered, running: listed,
                                      timeout: (@configuration.stop_timeout unless @stopping == :now),
                                      transfers: (transfers if transfers > 0))
        cancel(running)
        # The connections stay open for a moment, so that cancelled requests can respond with 503.
        deadline = MonotonicClock.now + CANCEL_TIMEOUT
        @scheduler.park(CANCEL_INTERVAL) until sockets.serving.empty? || MonotonicClock.now >= deadline
        # Ends callbacks of WebSockets and event streams that have begun meanwhile. Requests are left out: they were
        # cancelled above, and may still run their ensure clauses.
        cancel(sockets.serving - sockets.running_requests.map(&:first))
      end

      def cancel(fibers) = fibers.each { |fiber| @scheduler.interrupt(fiber, Cancelled.new("the server stops")) }
    end
  end
end
