# frozen_string_literal: true

module Heddle
  class Server
    # The end of a loop's sockets in order: nothing new, an answer for all that was asked. In the loop.
    class Drain
      include MonotonicClock

      # Seconds that an idle client has for a last request.
      LAST_WORD = 0.25
      # Seconds between looks at whether to stop at once: a request from another thread may come just
      # before it begins to wait.
      LOOK = 1.0
      # Seconds between two looks for connections that other workers can have, or that the application has taken over.
      GIVING = 0.02
      # Seconds in which WebSockets may come to rest that can go to another worker.
      REST = 1.0
      # The part of stop_timeout in which they are asked for their state; most of it is for those that are closed.
      ASKING = 0.2
      # Seconds that clients of Action Cable have to say goodbye.
      GOODBYE = 1.0
      private_constant :LAST_WORD, :LOOK, :GIVING, :REST, :ASKING, :GOODBYE

      # @param sockets [Net::Sockets]
      # @param engine [HTTP::Engine] what they speak
      # @param configuration [Configuration]
      # @param log [Log]
      # @param giving [BasicSocket, nil] see {Server#stop}
      # @param taking [BasicSocket, nil] where connections are that workers have handed off
      # @yieldreturn [Boolean] whether to stop at once
      def initialize(sockets, engine, configuration, log, giving: nil, taking: nil, &at_once)
        @sockets = sockets
        @engine = engine
        @log = log
        @giving = giving
        @taking = taking
        @at_once = at_once
        @scheduler = Fiber.scheduler
        @stop_timeout = configuration.stop_timeout.to_f
        @deadline = now + @stop_timeout
      end

      # Goes on until everything is answered, the time is up, or it has to stop at once; being woken makes it look.
      # @yield when nothing more is accepted
      # @return [Boolean] whether everything was answered
      def run(&)
        # A worker that is replaced has a successor: 1012. The time left is for those who take theirs to close.
        @engine.drain(@giving ? 1012 : 1001, @stop_timeout * 0.8)
        @sockets.wake_at_end(Fiber.current)
        @giving ? give(&) : let_come_to_rest(&)
        wait_until(@deadline)
        end_detached
        @sockets.ended?
      end

      private

      # No other process answers clients that are connected but not accepted yet. A client that has just connected, or
      # just sends a request, gets a response, which says that it is the last one.
      def let_come_to_rest
        @sockets.accept_rest
        take_rest if @taking
        yield
        @sockets.shutdown_idle(LAST_WORD)
        wait_until([@deadline, now + LAST_WORD].min)
        @sockets.shutdown_idle
      end

      # The other workers stop as well, and may take nothing more. From now on this one hands nothing off. It takes back
      # the connections that it handed off and no other has taken.
      def take_rest
        nil while @sockets.accept_handoff(@taking)
      end

      # Other workers serve the same sockets. A client whose response promised keep-alive finds its connection open.
      def give
        @sockets.stop_listening
        yield
        give_web_sockets
        loop do
          # Connections that can't move to another process, TLS above all, are closed.
          @sockets.shutdown_idle(LAST_WORD) if @sockets.hand_off_idle(@giving)
          break unless wait_until([@deadline, now + GIVING].min)
        end
      rescue SystemCallError => e
        @log.notice("idle connections can't be handed off, and are closed: #{e.message}")
      ensure
        @sockets.shutdown_idle
      end

      # Before their clients get a close frame. Those that are busy have a moment to come to rest.
      def give_web_sockets
        handoff = @engine.websocket_loader
        deadline = [@deadline, now + REST].min
        end_of_asking = now + [REST, @stop_timeout * ASKING].max
        until (left = @engine.websocket_clients.select { |client| handoff.movable?(client) }).empty?
          results = left.map { |client| !@at_once.call && now < end_of_asking ? handoff.give(client, @giving) : :busy }
          break if @at_once.call || now >= deadline

          @scheduler.park(GIVING) unless results.all?(:done)
        end
      end

      # Connections that the application has taken over can't go to another process. At a reload they live on until the
      # time is up; a server that stops has no successor whose clients could be spared a second connection.
      def end_detached
        await_detached(@deadline) if @giving
        await_detached(now + GOODBYE) if @engine.detached? && Rails.close_cables(@log)
      end

      def await_detached(time)
        @scheduler.park(GIVING) while @engine.detached? && now < time && !@at_once.call
      end

      # @return [Boolean] whether there is something left to wait for
      def wait_until(time)
        until over? || (left = time - now) <= 0
          @scheduler.park([left, LOOK].min)
        end
        !over? && now < @deadline
      end

      def over? = @sockets.ended? || @at_once.call
    end
  end
end
