# frozen_string_literal: true

require "action_cable"

module Heddle
  module Cable
    # An Action Cable server whose connections are Heddle's WebSockets. Without a loop, for example in thread mode or
    # under another server, it behaves like Action Cable's own server.
    class Server < ::ActionCable::Server::Base
      NOT_FOUND = [404, { "content-type" => "text/plain; charset=utf-8" }, ["Page not found"]].freeze
      private_constant :NOT_FOUND

      def initialize(...)
        super
        @heartbeats = {}.compare_by_identity
        @pid = Process.pid
      end

      # @param env [Hash]
      # @return [Array] the Rack response
      def call(env)
        return super if env["PATH_INFO"] == config.health_check_path || !Fiber.current_scheduler.is_a?(Scheduler)
        return not_found unless env["rack.upgrade?"] == :websocket && allow_request_origin?(env)

        protocol = choose_protocol(env)
        headers = protocol ? { "sec-websocket-protocol" => protocol } : {}
        env["heddle.origin_checked"] = true # by allow_request_origin?
        WebSocket.upgrade(env, Socket.new(self, env, protocol), headers)
      end

      # The executor that runs the blocks of adapters and timers.
      # @return [Executor]
      def executor = @executor || @mutex.synchronize { @executor ||= Executor.new }

      # @return [Worker] the object that runs the application's code for connections
      def worker = @worker ||= Worker.new

      # Does Heddle's adapter deliver broadcasts, so that C code can send them to the sockets?
      def native_streams?
        return @native_streams unless @native_streams.nil?

        adapter = pubsub # Action Cable loads only the class of the configured adapter
        @native_streams = ::ActionCable::SubscriptionAdapter.const_defined?(:Heddle, false) &&
                          adapter.is_a?(::ActionCable::SubscriptionAdapter::Heddle)
      end

      # Registers a socket. Called in the socket's loop.
      # @param socket [Socket] an open socket
      # @return [void]
      def add_socket(socket)
        forget_parent unless @pid == Process.pid
        (@heartbeats[Fiber.current_scheduler] ||= Heartbeat.new).add(socket)
      end

      # Unregisters a socket. Called in the socket's loop.
      # @param socket [Socket] a socket that has ended
      # @return [void]
      def remove_socket(socket) = @heartbeats[Fiber.current_scheduler]&.delete(socket)

      # Does nothing in a loop, because the first socket starts the {Heartbeat} there.
      def setup_heartbeat_timer
        super unless Fiber.current_scheduler.is_a?(Scheduler)
      end

      # Disconnects all clients, which then reconnect.
      # @return [void]
      def restart
        open_sockets.each(&:end_for_restart)
        @native_streams = nil
        super
      end

      private

      # The open sockets of all loops.
      def open_sockets = @heartbeats.values.flat_map(&:sockets)

      # Called in a forked process, which must not use the sockets and loops of its parent. The parent may be a worker
      # that has already served.
      def forget_parent
        @pid = Process.pid
        [@heartbeats, connections_map].each(&:clear)
      end

      def not_found = NOT_FOUND.map(&:dup)

      # The first of the client's protocols that the server supports, or nil.
      def choose_protocol(env)
        offered = env["HTTP_SEC_WEBSOCKET_PROTOCOL"].to_s.split(",").map(&:strip)
        known = ::ActionCable::INTERNAL[:protocols]
        known |= [EXTENDED_PROTOCOL] if native_streams?
        offered.find { |name| known.include?(name) }
      end
    end
  end
end
