# frozen_string_literal: true

module Heddle
  module Cable
    # Sends pings to the sockets of one loop, in one task. Each socket gets its first ping one interval after it was
    # opened, so pings are spread over time like the openings. A ping is encoded once for all sockets that get it at the
    # same time.
    class Heartbeat
      include MonotonicClock

      INTERVAL = ::ActionCable::Server::Connections::BEAT_INTERVAL
      # Maximum number of sockets that get a ping in one step, and the minimum seconds between two steps.
      BATCH_SIZE = 100
      PAUSE = 0.005
      TEXT = 1
      private_constant :INTERVAL, :BATCH_SIZE, :PAUSE, :TEXT

      # Must be called in the loop.
      def initialize
        @scheduler = Fiber.current_scheduler
        @due = {}.compare_by_identity # socket => time of its next ping, the earliest first
        @task = nil
      end

      # @return [Array<Socket>] the open sockets
      def sockets = @due.keys

      # @param socket [Socket] a socket that gets pings from now on
      # @return [void]
      def add(socket)
        @due[socket] = now + INTERVAL
        @task ||= Concurrency::Context.of(@scheduler).root.async(name: "cable heartbeat", background: true) { run }
      end

      # @param socket [Socket]
      # @return [void]
      def delete(socket) = @due.delete(socket)

      private

      def run
        while (due = @due.first&.last)
          @scheduler.park([due - now, PAUSE].max)
          ping_due(now)
        end
      ensure
        @task = nil
      end

      def ping_due(time)
        sockets = @due.lazy.take_while { |_, due| due <= time }.first(BATCH_SIZE).map(&:first)
        frame = encode unless sockets.empty?
        sockets.each do |socket|
          @due.delete(socket)
          @due[socket] = time + INTERVAL
          socket.ping(frame)
        end
      end

      def encode
        HTTP::WebSocket::Codec.frame(TEXT, %({"type":"ping","message":#{Time.now.to_i}}), nil).freeze
      end
    end
  end
end
