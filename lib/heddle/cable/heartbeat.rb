# frozen_string_literal: true

module Heddle
  module Cable
    # The pings of all sockets, in one task. A ping is encoded once for the sockets that get it at the same time; these
    # are spread over the interval.
    class Heartbeat
      INTERVAL = ::ActionCable::Server::Connections::BEAT_INTERVAL
      # Sockets that get a ping in one step.
      STEP = 100
      TEXT = 1
      private_constant :INTERVAL, :STEP, :TEXT

      # @param sockets [Hash{Socket => Object}]
      def initialize(sockets)
        @sockets = sockets
        @scheduler = Fiber.current_scheduler
        @task = nil
      end

      # Idempotent. It ends when there is no socket.
      # @return [void]
      def start
        @task ||= Concurrency::Context.of(@scheduler).root.async(name: "cable heartbeat", background: true) { run }
      end

      private

      def run
        @scheduler.park(INTERVAL)
        beat until @sockets.empty?
      ensure
        @task = nil
      end

      def beat
        steps = @sockets.keys.each_slice(STEP).to_a
        steps.each do |sockets|
          frame = encode
          sockets.each { |socket| socket.ping(frame) }
          @scheduler.park(INTERVAL.to_f / steps.size)
        end
      end

      def encode
        HTTP::WebSocket::Codec.frame(TEXT, %({"type":"ping","message":#{Time.now.to_i}}), nil).freeze
      end
    end
  end
end
