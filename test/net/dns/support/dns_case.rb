# frozen_string_literal: true

require "test_helper"
require "open3"
require "socket"
require "heddle"
require "heddle/net/dns"

module Heddle
  module TestHelpers
    # What tests of DNS need: a server in a thread of its own, raw packets, dig.
    module DNSCase
      DNS = Heddle::Net::DNS
      # Seconds that nothing takes.
      LIMIT = 60

      # A server that runs, and how to ask it.
      class Running
        attr_reader :server, :port

        def initialize(server)
          @server = server
          @port = server.addresses.first[/\d+\z/].to_i
        end

        # @return [String, nil] the answer to a datagram; nil when the server said nothing to it, but answers the next
        def udp(bytes)
          socket = UDPSocket.new
          socket.connect("127.0.0.1", port)
          socket.send(bytes, 0)
          probe = DNS::Message.query("probe.test", :A)
          socket.send(probe.encode, 0)
          answer = receive(socket)
          answer.start_with?([probe.id].pack("n")) && !bytes.start_with?([probe.id].pack("n")) ? nil : answer
        ensure
          socket.close
        end

        # @return [DNS::Message] the answer to a message, or to a question
        def ask(name, type = nil, **)
          query = name.is_a?(DNS::Message) ? name : DNS::Message.query(name, type, **)
          DNS::Message.parse(exchange(query.encode))
        end

        # @return [String] the next answer to a datagram
        def exchange(bytes)
          socket = UDPSocket.new
          socket.connect("127.0.0.1", port)
          socket.send(bytes, 0)
          receive(socket)
        ensure
          socket.close
        end

        # @yieldparam [TCPSocket]
        def tcp
          socket = TCPSocket.new("127.0.0.1", port)
          socket.timeout = LIMIT
          yield socket
        ensure
          socket.close
        end

        private

        def receive(socket)
          raise "no answer within #{LIMIT} s" unless socket.wait_readable(LIMIT)

          socket.recv(65_535)
        end
      end

      # Runs a server in a loop of another thread, and the block beside it.
      # @param program [#call] what answers
      # @yieldparam [Running]
      def serving(program, *addresses, **options)
        addresses << "127.0.0.1:0" if addresses.empty?
        server = DNS::Server.new(*addresses, **options) { |query| program.call(query) }
        ready = Thread::Queue.new
        stop = Thread::Queue.new
        thread = Thread.new { run_server(server, ready, stop) }
        thread.report_on_exception = false
        running = ready.pop(timeout: LIMIT) or thread.value
        yield running
      ensure
        stop&.close
        flunk "the server does not end" if thread && !thread.join(LIMIT)
      end

      def run_server(server, ready, stop)
        Heddle.run do
          server.run do
            ready.push(Running.new(server))
            Heddle.async do
              stop.pop
              server.close
            end
          end
        end
      ensure
        ready.close
      end

      # @return [String] what dig prints
      def dig(dns, *arguments)
        output, status = Open3.capture2e(need_program("dig"), "@127.0.0.1", "-p", dns.port.to_s, "+tries=1",
                                         "+time=#{LIMIT}", *arguments)

        assert_predicate status, :success?, output
        output
      end

      # @return [Array<String>] the message in two bytes' length
      def framed(*messages) = messages.map { |bytes| [bytes.bytesize].pack("n") + bytes }.join

      # @return [DNS::Message]
      def read_framed(socket) = DNS::Message.parse(socket.read(socket.read(2).unpack1("n")))

      def wait_until(what)
        limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + LIMIT
        until yield
          flunk "#{what}: not within #{LIMIT} s" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
          sleep 0.001
        end
      end
    end
  end
end
