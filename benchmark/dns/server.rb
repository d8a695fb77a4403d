# frozen_string_literal: true

require "socket"
require "tmpdir"
require_relative "../../test/support/free_port"

module Bench
  module DNS
    # A contestant at work, on core 0 where the machine has two.
    class Server
      HOST = "127.0.0.1"
      START_LIMIT = 10 # seconds
      QUERY = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x05bench\x04test\x00\x00\x01\x00\x01".b

      # @param contestant [Contestant]
      # @param ruby_flags [Array<String>]
      # @yieldparam server [Server] that answers; it is ended when the block returns
      # @raise [Child::Failed] with the server's own words, if it had any
      def self.run(contestant, ruby_flags:)
        Dir.mktmpdir("bench-dns") do |folder|
          server = new(contestant, folder, ruby_flags)
          server.await
          yield server
        ensure
          server&.close
        end
      end

      attr_reader :port

      def initialize(contestant, folder, ruby_flags)
        @port = FreePort.find
        @output = File.join(folder, "output")
        @pid = Process.spawn(contestant.environment, *Child.pin(0), *contestant.command(@port, folder, ruby_flags),
                             chdir: folder, pgroup: true, in: File::NULL, %i[out err] => @output)
      end

      # @return [Float] CPU seconds of the server's processes so far
      def cpu_seconds = ProcessTree.new(@pid).cpu_seconds

      # Waits until it answers.
      # @raise [Child::Failed]
      def await
        deadline = now + START_LIMIT
        socket = UDPSocket.new.tap { |udp| udp.connect(HOST, port) }
        until answers?(socket)
          raise Child::Failed, "the server ended: #{LastWords.of(File.read(@output))}" if ended?
          raise Child::Failed, "did not answer within #{START_LIMIT} s" if now > deadline
        end
      ensure
        socket&.close
      end

      # @return [void]
      def close
        Process.kill(:KILL, -@pid)
        Process.wait(@pid) unless @ended
      rescue Errno::ESRCH
        nil
      end

      private

      def ended? = @ended ||= !Process.wait(@pid, Process::WNOHANG).nil?

      def answers?(socket)
        socket.send(QUERY, 0)
        socket.wait_readable(0.1) && socket.recv(512).bytesize > QUERY.bytesize
      rescue Errno::ECONNREFUSED
        sleep(0.02) # a server has no common way to say that it is ready
        false
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
