# frozen_string_literal: true

require "socket"
require "heddle/http"
require "heddle/net/sockets"

module Heddle
  module TestHelpers
    # A client and a server in one loop, each with its end of a pair of sockets. Made in a scheduled fiber.
    class Conversation
      # Bytes that the other end has not taken yet; for Unix sockets of Linux, and as an option elsewhere.
      SIOCOUTQ = 0x5411
      SO_NWRITE = 0x1024
      # Turns of the loop without news, after which there will be none.
      QUIET_TURNS = 5
      # Seconds that nothing a test waits for takes, even on a busy machine.
      PATIENCE = 60
      private_constant :SIOCOUTQ, :SO_NWRITE, :QUIET_TURNS, :PATIENCE

      # @return [Heddle::HTTP::Engine]
      attr_reader :engine
      # @return [Heddle::Net::Sockets]
      attr_reader :sockets
      # @return [BasicSocket] the client's end
      attr_reader :client
      # @return [String] what the client has read
      attr_reader :output
      # @return [Array<String>] the same, read by read: with `kind: :packets` one for each of the server's writes
      attr_reader :reads
      # @return [Array<Array(Integer, String)>] status and reason
      attr_reader :rejections
      # @return [Array<Exception>] what has left the block
      attr_reader :raised

      # @param scheduler [Scheduler]
      # @param kind [Symbol] :stream, :packets (a Unix socket that keeps each write apart), :tcp
      # @param reads [Boolean] whether the client reads what comes
      # @param limits [Hash] of the HTTP configuration, and stream_bodies and body_folder of the engine
      # @yieldparam exchange [Heddle::HTTP::Exchange]
      def initialize(scheduler, kind: :stream, reads: true, set: nil, limits: {}, &handler)
        @handler = handler
        @rejections = []
        @raised = []
        @served = 0
        start(scheduler, set, limits)
        mine, @client = pair(kind)
        @sockets.adopt(mine)
        mine.close
        @output = "".b
        @reads = []
        @ended = false
        @patient = !reads
        @buffer = "".b
      end

      # Sends pieces, each of which the server has taken before the next one comes.
      def say(*pieces)
        pieces.each do |piece|
          @client.write(piece)
          await { taken? }
        end
      end

      # Whether the server has ended its side.
      def ended? = @ended

      # No more comes from the client.
      def hang_up
        @client.shutdown(Socket::SHUT_WR)
      rescue Errno::ENOTCONN
        nil
      end

      # The client is gone, with a reset where the kind is :tcp.
      def vanish
        @client.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii")) if @client.is_a?(TCPSocket)
        @client.close
        @ended = true
      end

      # Waits until what has come is answered and the answers are read.
      # @return [self]
      def settle
        quiet = 0
        before = nil
        await do
          news = [@output.bytesize, @served]
          quiet = news == before && (@ended || @served == @engine.requests) ? quiet + 1 : 0
          before = news
          quiet > QUIET_TURNS
        end
        self
      end

      # Reads until the server has ended its side.
      def await_end = await { @ended }

      # Lets the others run until the block is true.
      def await
        limit = now + PATIENCE
        turns = 0
        until yield
          raise "not within #{PATIENCE} s, the client has got #{@output.inspect[0, 500]}" if now > limit

          turn
          Scheduled.pause(turns += 1)
        end
      end

      # The client reads from here on.
      def read = @patient = false

      # Is the connection open, for the server?
      def open? = @sockets.connections == 1

      def close
        @sockets.close
        @client.close
      end

      private

      def start(scheduler, set, limits)
        told = ->(_, status, reason, _) { @rejections << [status, reason] }
        bodies, limits = limits.partition { |name, _| %i[stream_bodies body_folder].include?(name) }.map(&:to_h)
        @engine = HTTP::Engine.new(HTTP::Limits.new(**limits), on_rejection: told, **bodies)
        @sockets = Net::Sockets.new(scheduler, set:, service: @engine) { |exchange| answer(exchange) }
      end

      def answer(exchange)
        @handler.call(exchange)
      rescue Exception => e
        @raised << e
      ensure
        @served += 1
      end

      def pair(kind)
        case kind
        when :stream then UNIXSocket.pair
        when :packets then UNIXSocket.pair(:SEQPACKET)
        when :tcp
          listener = TCPServer.new("127.0.0.1", 0)
          client = TCPSocket.new("127.0.0.1", listener.local_address.ip_port)
          [listener.accept, client].tap { listener.close }
        end
      end

      def taken?
        return @client.getsockopt(Socket::SOL_SOCKET, SO_NWRITE).int == 0 unless RUBY_PLATFORM.include?("linux")

        bytes = [0].pack("i")
        @client.ioctl(SIOCOUTQ, bytes)
        bytes.unpack1("i") == 0
      rescue IOError, Errno::EBADF
        raise unless @client.closed? # it has vanished, maybe while another thread asked

        true
      end

      # In no fiber of its own, which would keep a socket open that the client closes.
      def turn
        Thread.pass # what is offloaded needs the lock, too
        return unless Fiber.scheduler # a thread that serves: the loop reads

        Fiber.scheduler.yield
        return if @ended || @patient

        case (bytes = @client.read_nonblock(1_048_576, @buffer, exception: false))
        when String
          @reads << bytes.dup
          @output << bytes
        when nil then @ended = true
        end
      rescue SystemCallError, IOError # a thread that serves may have closed it
        @ended = true
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
