# frozen_string_literal: true

require "net/http"
require "socket"
require "tmpdir"

module Bench
  module HTTP
    # A contestant at work: its process, its port, what it used so far and what it printed.
    class Server
      HOST = "127.0.0.1"
      READY_PATH = "/hello"
      START_LIMIT = 60 # seconds
      ENDING = 0.5 # seconds
      ENVIRONMENT = { "RACK_ENV" => "production", "APP_ENV" => "production", "RAILS_ENV" => nil, "RUBYOPT" => nil,
                      "WEB_CONCURRENCY" => nil }.freeze

      # @param contestant [Contestant]
      # @param ruby_flags [Array<String>]
      # @yieldparam server [Server] that answers requests; it is ended when the block returns
      # @raise [Child::Failed] with the server's own words, if it had any
      def self.run(contestant, ruby_flags:)
        Dir.mktmpdir("bench-http") do |folder|
          server = new(contestant, folder, ruby_flags)
          server.await
          begin
            yield server
          rescue Child::Failed => e
            raise server.ends? ? Child::Failed.new("#{e.message}; #{server.ending}") : e
          end
        ensure
          server&.close
        end
      end

      attr_reader :port, :pid

      # @return [String] the base of its addresses
      def url = "http://#{HOST}:#{port}"

      # @return [ProcessTree]
      def tree = ProcessTree.new(@pid)

      # @return [Boolean]
      def ended? = !!(@status || reap(Process::WNOHANG))

      # @return [Boolean] whether it has ended, or does so at once: its connections are closed before it can be reaped
      def ends?
        deadline = now + ENDING
        sleep(0.005) until ended? || now > deadline
        ended?
      end

      # @return [String] how it ended, and its last words
      def ending
        how = @status.signaled? ? "signal #{Signal.signame(@status.termsig)}" : "status #{@status.exitstatus}"
        "the server ended (#{how}): #{LastWords.of(File.read(@output))}"
      end

      # Waits until it answers.
      #
      # @raise [Child::Failed]
      def await
        deadline = now + START_LIMIT
        until answers?
          raise Child::Failed, ending if ended?
          raise Child::Failed, "did not answer within #{START_LIMIT} s; #{LastWords.of(File.read(@output))}" if
            now > deadline

          sleep(0.02) # a server has no common way to say that it is ready
        end
      end

      # Makes one request and looks at the answer.
      #
      # @param path [String]
      # @param body [String, nil] of a POST
      # @param expected [String, Regexp] the body that must come
      # @raise [Child::Failed] that says what came instead
      def check(path, expected:, body: nil)
        answer = request(path, body)
        raise Child::Failed, "answered #{answer.code}" unless answer.code == "200"
        return if expected === answer.body # rubocop:disable Style/CaseEquality

        raise Child::Failed, "answered with #{answer.body.to_s.bytesize} bytes that are not those of the application"
      rescue SystemCallError, IOError, Timeout::Error, Net::ProtocolError, Net::HTTPBadResponse => e
        raise Child::Failed, "no right answer to #{path}: #{e.class}"
      end

      # Ends the server and what it has forked; it was put into a group of its own for that. Itsi's workers leave it.
      def close
        [-@pid, *tree.pids.drop(1)].each { |pid| kill(pid) }
        reap(0) unless @status
      ensure
        @reservation.close
      end

      private

      def initialize(contestant, folder, ruby_flags)
        @reservation, @port = reserve
        @output = File.join(folder, "output")
        @pid = Process.spawn(ENVIRONMENT.merge(contestant.environment),
                             *contestant.command(@port, folder, ruby_flags),
                             chdir: folder, pgroup: true, in: File::NULL, out: @output, err: %i[child out])
      end

      # A bound socket that does not listen keeps a port from all programs but those that share addresses.
      def reserve
        socket = Socket.new(:INET, :STREAM)
        socket.setsockopt(:SOCKET, :REUSEADDR, true)
        socket.setsockopt(:SOCKET, :REUSEPORT, true)
        socket.bind(Addrinfo.tcp(HOST, 0))
        [socket, socket.local_address.ip_port]
      end

      def answers?
        request(READY_PATH, nil).code == "200"
      rescue SystemCallError, IOError, Timeout::Error, Net::ProtocolError, Net::HTTPBadResponse
        false
      end

      def request(path, body)
        Net::HTTP.start(HOST, port, nil, open_timeout: 2, read_timeout: 5, max_retries: 0) do |http|
          body ? http.post(path, body) : http.get(path, "accept-encoding" => "identity")
        end
      end

      def kill(pid)
        Process.kill(:KILL, pid)
      rescue Errno::ESRCH
        nil
      end

      def reap(flags)
        _, status = Process.wait2(@pid, flags)
        @status = status
      rescue Errno::ECHILD
        nil
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
