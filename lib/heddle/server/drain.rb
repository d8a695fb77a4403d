# frozen_string_literal: true

module Heddle
  class Server
    # Drains a loop's sockets: accepts nothing new, and answers every request. Runs in the loop.
    class Drain
      include MonotonicClock

      # Seconds that an idle client has for a last request.
      LAST_REQUEST_TIMEOUT = 0.25
      # Seconds between checks whether to stop at once, because another thread may request that just before the drain
      # begins to wait.
      POLL_INTERVAL = 1.0
      # Seconds between two checks for connections that can be handed off, or that the application has taken over.
      HANDOFF_INTERVAL = 0.02
      # Seconds that a busy WebSocket has to become idle, so that it can be handed off to another worker.
      IDLE_WAIT = 1.0
      # The share of stop_timeout in which WebSockets are handed off, for which their state is asked. The rest is for
      # sockets that are closed.
      STATE_SHARE = 0.2
      # Seconds that clients of Action Cable may take to close their connections.
      CABLE_CLOSE_TIMEOUT = 1.0
      private_constant :LAST_REQUEST_TIMEOUT, :POLL_INTERVAL, :HANDOFF_INTERVAL, :IDLE_WAIT, :STATE_SHARE,
                       :CABLE_CLOSE_TIMEOUT

      # @param sockets [Net::Sockets]
      # @param engine [HTTP::Engine] the service of the sockets
      # @param configuration [Configuration]
      # @param log [Log]
      # @param handoff_sender [BasicSocket, false, nil] see {Server#stop}
      # @param handoff_receiver [BasicSocket, nil] from which workers receive connections that others hand off
      # @yieldreturn [Boolean] whether to stop at once
      def initialize(sockets, engine, configuration, log, handoff_sender: nil, handoff_receiver: nil, &at_once)
        @sockets = sockets
        @engine = engine
        @log = log
        @handoff_sender = handoff_sender
        @handoff_receiver = handoff_receiver
        @at_once = at_once
        @scheduler = Fiber.scheduler
        @stop_timeout = configuration.stop_timeout.to_f
        @deadline = now + @stop_timeout
      end

      # Runs until every request is answered, the time is up, or it must stop at once. Waking the fiber makes it check.
      # @yield when nothing more is accepted
      # @return [Boolean] whether everything was answered
      def run(&)
        # WebSockets are closed with 1001 (going away); if other workers continue, with 1012 (service restart). The rest
        # of the time is for clients that are slow to close.
        @engine.drain(@handoff_sender.nil? ? 1001 : 1012, @stop_timeout * 0.8)
        @sockets.wake_at_end(Fiber.current)
        @handoff_sender ? hand_off_all(&) : drain_queue(&)
        wait_until(@deadline)
        close_detached
        @sockets.ended?
      end

      private

      # No other process answers clients that are connected but not accepted yet. A client that has just connected, or
      # is sending a request, gets a response, which announces the end of the connection.
      def drain_queue
        @sockets.accept_rest
        accept_own_handoffs if @handoff_receiver
        yield
        @sockets.shutdown_idle(LAST_REQUEST_TIMEOUT)
        wait_until([@deadline, now + LAST_REQUEST_TIMEOUT].min)
        @sockets.shutdown_idle
      end

      # The other workers stop as well, and may receive no more connections. So this worker hands no connection off from
      # now on, and takes back the connections that no other worker has received.
      def accept_own_handoffs
        nil while @sockets.accept_handoff(@handoff_receiver)
      end

      # Other workers serve the same sockets. A client whose response promised keep-alive finds its connection open.
      def hand_off_all
        @sockets.stop_listening
        yield
        hand_off_web_sockets
        loop do
          # Connections that can't move to another process, TLS above all, are closed.
          @sockets.shutdown_idle(LAST_REQUEST_TIMEOUT) if @sockets.hand_off_idle(@handoff_sender)
          break unless wait_until([@deadline, now + HANDOFF_INTERVAL].min)
        end
      rescue SystemCallError => e
        @log.event(:handoff_failed, reason: e.message)
      ensure
        @sockets.shutdown_idle
      end

      # Hands WebSockets off before their clients get a close frame. Busy sockets have a moment to become idle.
      def hand_off_web_sockets
        handoff = @engine.websocket_loader
        deadline = [@deadline, now + IDLE_WAIT].min
        state_deadline = now + [IDLE_WAIT, @stop_timeout * STATE_SHARE].max
        until (left = @engine.websocket_clients.select { |client| handoff.movable?(client) }).empty?
          results = left.map do |client|
            !@at_once.call && now < state_deadline ? handoff.hand_off(client, @handoff_sender) : :busy
          end
          break if @at_once.call || now >= deadline

          @scheduler.park(HANDOFF_INTERVAL) unless results.all?(:done)
        end
      end

      # Connections that the application has taken over can't move to another process. At a reload they stay open until
      # the time is up. When the whole server stops, waiting would not help their clients.
      def close_detached
        await_detached(@deadline) if @handoff_sender
        await_detached(now + CABLE_CLOSE_TIMEOUT) if @engine.detached? && Rails.close_cables(@log)
      end

      def await_detached(time)
        @scheduler.park(HANDOFF_INTERVAL) while @engine.detached? && now < time && !@at_once.call
      end

      # @return [Boolean] whether connections or requests are left to wait for
      def wait_until(time)
        until finished? || (left = time - now) <= 0
          @scheduler.park([left, POLL_INTERVAL].min)
        end
        !finished? && now < @deadline
      end

      def finished? = @sockets.ended? || @at_once.call
    end
  end
end
