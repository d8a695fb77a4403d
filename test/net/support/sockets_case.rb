# frozen_string_literal: true

require "test_helper"
require "socket"
require "tmpdir"
require "support/scheduled"
require "heddle/net/sockets"
require "timeout"

module Heddle
  module TestHelpers
    # What tests of the server's sockets need: a server in the loop that the test's own fiber is a client of.
    module SocketsCase
      include Scheduled

      # A server's sockets and how to connect to them.
      Server = Struct.new(:sockets, :listener, :scheduler) do
        def connect
          path = listener.local_address.unix? && listener.local_address.unix_path
          path ? UNIXSocket.new(path) : TCPSocket.new(listener.local_address.ip_address, port)
        end

        def port = listener.local_address.ip_port
      end

      # How events are heard of; nil in a test that runs with the default alone.
      def set = nil

      # Runs the block in a loop with a server.
      # @param handler [#call] what the sockets call with a connection
      def serve(handler, listener: nil, **options)
        scheduled do |scheduler|
          listener ||= TCPServer.new("127.0.0.1", 0)
          sockets = Heddle::Net::Sockets.new(scheduler, set:, **options, &handler)
          sockets.listen(listener)
          yield Server.new(sockets, listener, scheduler)
        ensure
          sockets&.close
          listener&.close
        end
      end

      # Answers each input with itself, for as long as there is some.
      def echo
        lambda do |connection|
          input = connection.readpartial(65_536)
          next unless input

          connection.write(input)
          connection.idle!
        end
      end

      # Closes so that the peer gets a reset.
      def reset(socket)
        socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
        socket.close
      end

      # A handler that gives its connections to the test, and keeps them open until the test is done with them.
      def handing_over(to)
        lambda do |connection|
          to << connection
          until_true { connection.closed? }
        end
      end

      # What a process said, without the notes that a sanitizer may make.
      def plain(output) = output.lines.grep_v(/ASan|False positive|sanitizers/).join

      # What the block raises of these kinds; nil where it raises nothing.
      def error_of(*kinds)
        yield
        nil
      rescue *kinds => e
        e
      end
    end

    # The ways to hear of events that this system has. A module of tests is run with each.
    SOCKET_SETS = RUBY_PLATFORM.include?("linux") ? %i[epoll selector].freeze : %i[selector].freeze

    # Makes a test class for each way. A set of epoll's hears of its sockets without the loop's selector.
    def self.with_each_event_set(tests)
      (thorough? ? SOCKET_SETS : %i[selector]).each do |name|
        kind = Class.new(Minitest::Test) do
          include SocketsCase
          include tests

          define_method(:set) { name }
        end
        Object.const_set("#{tests.name.delete_suffix("Tests")}With#{name.capitalize}SetTest", kind)
      end
    end
  end
end
