# frozen_string_literal: true

module Heddle
  class Server
    # Drains a loop's sockets when the server stops: accepts no new connections, and waits until every request is
    # answered. Runs in the loop.
    class Drain
      include MonotonicClock

      # A connection that has been idle for at least this many seconds is closed at once. Other idle connections may
      # still send a request.
      LAST_REQUEST_TIMEOUT = 0.25
      # Seconds between two checks whether to stop at once. They are needed because another thread may request an
      # immediate stop just before the drain begins to wait.
      POLL_INTERVAL = 1.0
      # Seconds between two checks for connections that can be handed off, or that the application has taken over.
      HANDOFF_INTERVAL = 0.02
      # Maximum seconds to wait until a busy WebSocket is idle, so that it can be handed off to another worker.
      IDLE_WAIT = 1.0
      # WebSockets are handed off for at most this share of stop_timeout, or for IDLE_WAIT seconds if that is longer.
      # The handoff takes time because the application is asked for the state of each WebSocket. The rest of
      # stop_timeout is for closing the WebSockets that were not handed off.
      STATE_SHARE = 0.2
      # Seconds within which clients of Action Cable may close their connections.
      CABLE_CLOSE_TIMEOUT = 1.0
      private_constant :LAST_REQUEST_TIMEOUT, :POLL_INTERVAL, :HANDOFF_INTERVAL, :IDLE_WAIT, :STATE_SHARE,
                       :CABLE_CLOSE_TIMEOUT

      # @param sockets [Net::Sockets]
      # @param engine [HTTP::Engine] the HTTP service of the sockets
      # @param configuration [Configuration]
      # @param log [Log]
      # @param handoff_sender [BasicSocket, false, nil] see {Server#stop}
      # @param handoff_receiver [BasicSocket, nil] the socket from which this worker and the others receive connections
      #   that were handed off
      # @param replaced [#call] returns whether other workers keep serving; false from the moment at which all stop
      # @yieldreturn [Boolean] whether to stop at once
      def initialize(sockets, engine, configuration, log, replaced:, handoff_sender: nil, handoff_receiver: nil,
                     &at_once)
        @sockets = sockets
        @engine = engine
        @log = log
        @handoff_sender = handoff_sender
        @handoff_receiver = handoff_receiver
        @replaced = replaced
        @at_once = at_once
        @scheduler = Fiber.scheduler
        @stop_timeout = configuration.stop_timeout.to_f
        @deadline = now + @stop_timeout
      end

      # Runs until every request is answered, stop_timeout has passed, or the block of {#initialize} returns true. To
      # make this method call that block at once, wake the fiber that runs it.
      # @yield when the loop has stopped accepting connections
      # @return [Boolean] whether every request was answered
      def run(&)
        # WebSockets are closed with 1001 (going away), or with 1012 (service restart) if other workers keep serving.
        # The close frames are spread over at most 80 % of stop_timeout (HTTP::Engine#drain). The remaining time is for
        # clients that are slow to close.
        @engine.drain(@handoff_sender.nil? ? 1001 : 1012, @stop_timeout * 0.8)
        @sockets.wake_at_end(Fiber.current)
        @handoff_sender ? hand_off_all(&) : drain_queue(&)
        wait_until(@deadline)
        close_detached
        @sockets.ended?
      end

      private

      # Used when no other worker keeps serving, or the other workers can't receive connections. Serves the connections
      # in the kernel's queue, because perhaps no other process can accept them. A client that has just
      # connected, or is sending a request, gets a response that announces the end of the connection.
      def drain_queue
        @sockets.accept_rest
        accept_own_handoffs if @handoff_receiver
        yield
        @sockets.shutdown_idle(LAST_REQUEST_TIMEOUT)
        wait_until([@deadline, now + LAST_REQUEST_TIMEOUT].min)
        @sockets.shutdown_idle
      end

      # The other workers stop as well, or can't receive connections. So this worker stops handing off, and takes back
      # the connections that no other worker has received.
      def accept_own_handoffs
        nil while @sockets.accept_handoff(@handoff_receiver)
      end

      # Other workers keep serving the same listening sockets. They get the idle connections, so that clients with
      # keep-alive connections see no closed connection.
      def hand_off_all
        @sockets.stop_listening
        yield
        hand_off_web_sockets
        loop do
          # Idle connections that can't be handed off, mostly those with TLS, are closed.
          @sockets.shutdown_idle(LAST_REQUEST_TIMEOUT) if @sockets.hand_off_idle(@handoff_sender)
          break unless wait_until([@deadline, now + HANDOFF_INTERVAL].min)
        end
      rescue SystemCallError => e
        @log.event(:handoff_failed, reason: e.message)
      ensure
        @sockets.shutdown_idle
      end

      # Hands off WebSockets before their clients get a close frame. Busy WebSockets have a moment to become idle.
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

      # Connections that the application has taken over (rack.hijack) can't be handed off. While other workers keep
      # serving, these connections remain open until stop_timeout has passed. When the whole server stops, waiting would
      # not help their clients, so they are not kept open. At the end, Action Cable's own server asks its clients to
      # reconnect, and they have a moment to close their connections.
      def close_detached
        await_detached(@deadline, &@replaced)
        await_detached(now + CABLE_CLOSE_TIMEOUT) { true } if @engine.detached? && Rails.close_cables(@log)
      end

      def await_detached(time)
        @scheduler.park(HANDOFF_INTERVAL) while yield && @engine.detached? && now < time && !@at_once.call
      end

      # Waits until nothing is left to wait for, this time has come, or the server must stop at once.
      # @return [Boolean] whether to wait longer: something is left to wait for, and stop_timeout has not passed
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
