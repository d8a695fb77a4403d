# frozen_string_literal: true

require "heddle/runtime"
require "json"
require "socket"

module Heddle
  module CLI
    class Demo
      # Many clients in a process of their own, so that the server has a core to itself where there are two: each keeps
      # a connection and asks over it, one request after the other, for a few seconds. It tells of itself in lines of
      # JSON.
      class Crowd
        # Seconds between two lines.
        NEWS = 0.5
        # Seconds after which a client gives up that gets no answer.
        PATIENCE = 10
        private_constant :NEWS, :PATIENCE

        # The program of the process, see {Burst}.
        # @param arguments [Array<String>] host, port, path, clients, seconds
        def self.main(arguments)
          host, port, path, clients, seconds = arguments
          $stdout.sync = true
          crowd = new(host:, port: Integer(port), path:, clients: Integer(clients), seconds: Float(seconds))
          crowd.run($stdin) { |line| $stdout.write("#{JSON.generate(line)}\n") }
        rescue Errno::EPIPE
          # The browser listens no more.
        end

        # @param clients [Integer] how many connections
        # @param seconds [Float] how long they ask
        def initialize(host:, port:, path:, clients:, seconds:)
          @host = host
          @port = port
          @request = "GET #{path} HTTP/1.1\r\nHost: #{host}:#{port}\r\n\r\n".freeze
          @clients = clients
          @seconds = seconds
          @times = []
          @failures = []
        end

        # @param leash [IO] at whose end it ends at once
        # @yieldparam sample [Hash]
        def run(leash)
          Heddle.run do
            Heddle.async(background: true) { exit!(1) if leash.read }
            began = now
            @deadline = began + @seconds
            Heddle.scope do |scope|
              @clients.times { scope.async { visit } }
              while (left = @deadline - now).positive?
                yield({ event: "going", answers: @times.size, at: (now - began).round(3) })
                sleep [left, NEWS].min
              end
            end
            yield summary(now - began)
          end
        end

        # One client: asks, waits for the answer, asks again.
        def visit
          socket = TCPSocket.new(@host, @port)
          socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
          socket.timeout = PATIENCE
          buffer = +""
          while (asked = now) < @deadline
            socket.write(@request)
            socket.readpartial(4096, buffer)
            check(buffer)
            @times << (now - asked)
          end
        rescue StandardError => e
          @failures << "#{e.class}: #{e.message}"
        ensure
          socket&.close
        end

        private

        # The answer is so small that it comes in one piece.
        def check(answer)
          return if answer.start_with?("HTTP/1.1 200 ") && answer.end_with?(Panels::Live::HELLO)

          raise IOError, "the answer was #{answer.byteslice(0, 60).inspect}"
        end

        def summary(seconds)
          sorted = @times.sort
          { event: "done", clients: @clients, answers: sorted.size, seconds: seconds.round(3),
            median: sorted[sorted.size / 2], p99: sorted[(sorted.size * 0.99).floor],
            failed: @failures.size, message: @failures.first }
        end

        def now
          MonotonicClock.now
        end
      end
    end
  end
end
