# frozen_string_literal: true

require "test_helper"
require "socket"
require "tmpdir"
require "support/scheduled"
require "heddle/autoloads"
require "heddle/http"
require "heddle/net/sockets"
require "timeout"
require_relative "http_client"

# Now, or the first requests would wait for them.
Heddle::Autoloads.load_constants(Heddle::HTTP, Heddle::HTTP::H1)

module Heddle
  module TestHelpers
    # What tests of the server's sockets need: an HTTP server in the loop that the test's own fiber is a client of.
    module SocketsCase
      include Scheduled

      # A server's sockets and how to connect to them.
      Server = Struct.new(:sockets, :listener, :scheduler) do
        # @return [BasicSocket] with the methods of an HTTPClient
        def connect
          path = listener.local_address.unix? && listener.local_address.unix_path
          (path ? UNIXSocket.new(path) : TCPSocket.new(listener.local_address.ip_address, port)).extend(HTTPClient)
        end

        def port = listener.local_address.ip_port
      end

      # How events are heard of; nil in a test that runs with the default alone.
      def set = nil

      # Seconds that no test takes. A busy machine must not end its connections.
      PATIENT = { head_timeout: 600, idle_timeout: 600, write_timeout: 600 }.freeze

      # @param limits [Hash] of the HTTP configuration
      def engine(stream_bodies: false, **limits)
        HTTP::Engine.new(HTTP::Limits.new(**PATIENT, **limits), stream_bodies:)
      end

      # @param handler [#call] called with each exchange
      def sockets_with(scheduler, handler, service: engine, **)
        Net::Sockets.new(scheduler, set:, service:, **, &handler)
      end

      # Runs the block in a loop with a server.
      # @param handler [#call] called with each exchange
      def serve(handler, listener: nil, **)
        scheduled do |scheduler|
          listener ||= TCPServer.new("127.0.0.1", 0)
          sockets = sockets_with(scheduler, handler, **)
          sockets.listen(listener)
          yield Server.new(sockets, listener, scheduler)
        ensure
          sockets&.close
          listener&.close
        end
      end

      # Responds with the request's body, or else with its path.
      def echo = ->(exchange) { reply(exchange, body_of(exchange) || said(exchange)) }

      # @return [String, nil] the request's whole body
      def body_of(exchange)
        body = exchange.body or return
        bytes = "".b
        while (piece = body.read)
          bytes << piece
        end
        bytes
      end

      # What the client has asked with HTTPClient#ask.
      def said(exchange) = exchange.target.delete_prefix("/")

      # Responds with a text.
      def reply(exchange, text)
        response = exchange.response
        response.start(200, {}, length: text.bytesize)
        response.write_all([text], text.bytesize)
        response.finish
      end

      # The client's address, and the address and port that it has connected to, as the env has them.
      def addresses_of(exchange)
        env = Rack.env(Rack::EnvBuilder.new($stderr, nil), exchange, [])
        env.values_at("REMOTE_ADDR", "SERVER_NAME", "SERVER_PORT")
      end

      # Closes so that the peer gets a reset.
      def reset(socket)
        socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
        socket.close
      end

      # A handler that gives its exchanges to the test, and keeps them open until the test is done with them.
      def handing_over(to)
        lambda do |exchange|
          to << exchange
          until_true { exchange.closed? }
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
