# frozen_string_literal: true

require "socket"

module Heddle
  module CLI
    class Demo
      # A response body that runs many clients for a few seconds. Each client opens one connection, and sends one
      # request after the other over it. The clients run in a separate process, so that a machine with two cores runs
      # them on another core than the server. The process prints its reports as lines of JSON.
      class Crowd
        # Seconds between two reports, and seconds after which a client fails if it gets no response.
        INTERVAL = 0.5
        TIMEOUT = 10
        # The program of the separate process, which gets the load path of this process.
        SCRIPT = "require 'heddle/cli/demo'; Heddle::CLI::Demo::Crowd.main(ARGV)"
        private_constant :INTERVAL, :TIMEOUT, :SCRIPT

        # @param arguments [Array<String>] host, port, path, number of clients, seconds
        def self.main(arguments)
          $stdout.sync = true
          new(*arguments).run($stdin) { |line| $stdout.write("#{JSON.generate(line)}\n") }
        rescue Errno::EPIPE
          # The browser has disconnected.
        end

        # @param stopping [#call] returns whether the server is stopping; if so, the clients stop, too
        def initialize(host, port, path, clients, seconds, stopping: -> { false })
          @arguments = [host, port, path, clients, seconds].map(&:to_s)
          @stopping = stopping
          @host = host
          @port = port
          @request = "GET #{path} HTTP/1.1\r\nHost: #{host}:#{port}\r\n\r\n".freeze
          @clients = clients.to_i
          @seconds = seconds.to_f
          @times = []
          @failures = []
        end

        # Starts the process, and yields its reports. The process ends after its last report, or earlier if this
        # response body ends: then IO.popen closes the standard input of the process.
        #
        # @yieldparam line [String] JSON
        def each
          command = [RbConfig.ruby, "-I#{$LOAD_PATH.join(File::PATH_SEPARATOR)}", "-W0", "-e", SCRIPT, *@arguments]
          IO.popen(command, "r+") do |crowd|
            crowd.each_line do |line|
              yield line
              break if @stopping.call
            end
          end
        end

        # Runs the clients. Called in the process that {#each} has started.
        #
        # @param input [IO] when it reaches its end, the process ends at once
        # @yieldparam sample [Hash]
        def run(input)
          Heddle.run do
            Heddle.async(background: true) { exit!(1) if input.read }
            began = MonotonicClock.now
            @deadline = began + @seconds
            Heddle.scope do |scope|
              @clients.times { scope.async { visit } }
              while (left = @deadline - MonotonicClock.now).positive?
                yield({ event: "going", answers: @times.size, at: (MonotonicClock.now - began).round(3) })
                sleep [left, INTERVAL].min
              end
            end
            yield summary(MonotonicClock.now - began)
          end
        end

        # Runs one client, which sends a request, waits for the response, then sends the next.
        def visit
          socket = TCPSocket.new(@host, @port)
          socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
          socket.timeout = TIMEOUT
          buffer = +""
          while (asked = MonotonicClock.now) < @deadline
            socket.write(@request)
            socket.readpartial(4096, buffer)
            check(buffer)
            @times << (MonotonicClock.now - asked)
          end
        rescue StandardError => e
          @failures << "#{e.class}: #{e.message}"
        ensure
          socket&.close
        end

        private

        # Checks the response, which is so small that one read returns all of it.
        def check(answer)
          return if answer.start_with?("HTTP/1.1 200 ") && answer.end_with?(HELLO)

          raise IOError, "the response was #{answer.byteslice(0, 60).inspect}"
        end

        def summary(seconds)
          sorted = @times.sort
          { event: "done", clients: @clients, answers: sorted.size, seconds: seconds.round(3),
            median: sorted[sorted.size / 2], p99: sorted[(sorted.size * 0.99).floor],
            failed: @failures.size, message: @failures.first }
        end
      end
    end
  end
end
