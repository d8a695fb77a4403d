# frozen_string_literal: true

require "socket"

module Heddle
  module CLI
    class Demo
      # A response body that runs many clients for a few seconds. Each keeps a connection, and sends one request after
      # the other. The clients run in a process of their own, so that they don't use the server's core if there are two
      # cores. The process reports in lines of JSON.
      class Crowd
        # Seconds between two lines, and seconds after which a client without a response gives up.
        INTERVAL = 0.5
        TIMEOUT = 10
        # The program of the process, which loads the same code as this one.
        SCRIPT = "require 'heddle/cli/demo'; Heddle::CLI::Demo::Crowd.main(ARGV)"
        private_constant :INTERVAL, :TIMEOUT, :SCRIPT

        # @param arguments [Array<String>] host, port, path, clients, seconds
        def self.main(arguments)
          $stdout.sync = true
          new(*arguments).run($stdin) { |line| $stdout.write("#{JSON.generate(line)}\n") }
        rescue Errno::EPIPE
          # The browser has gone.
        end

        # @param stopping [#call] returns whether the server stops; the clients then stop, too
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

        # Starts the process. It ends when its standard input is closed, at the end of this response body.
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
        # @param input [IO] the process ends at once when this input ends
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

        # One client: sends a request, waits for the response, sends the next.
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

        # The response is so small that it comes in one piece.
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
