# frozen_string_literal: true

require "action_cable"

module Heddle
  module Cable
    # Action Cable's server, whose connections are WebSockets of Heddle. Without a loop, such as in mode thread or under
    # another server, it behaves as Action Cable's own server.
    class Server < ::ActionCable::Server::Base
      NOT_FOUND = [404, { "content-type" => "text/plain; charset=utf-8" }, ["Page not found"]].freeze
      private_constant :NOT_FOUND

      def initialize(...)
        super
        @heartbeats = {}.compare_by_identity
        @thread_calls = {}.compare_by_identity
        @pid = Process.pid
      end

      # @param env [Hash]
      # @return [Array]
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

      # @return [Worker] runs the application's code for a connection
      def worker = @worker ||= Worker.new

      # Do streams go directly from the fan-out to the sockets?
      def native_streams?
        return @native_streams unless @native_streams.nil?

        adapter = pubsub # loads only its class
        @native_streams = ::ActionCable::SubscriptionAdapter.const_defined?(:Heddle, false) &&
                          adapter.is_a?(::ActionCable::SubscriptionAdapter::Heddle)
      end

      # Called in the socket's loop.
      # @param socket [Socket] an open socket
      # @return [ThreadCalls] of the loop
      def add_socket(socket)
        forget_parent unless @pid == Process.pid
        loop = Fiber.current_scheduler
        (@heartbeats[loop] ||= Heartbeat.new).add(socket)
        @thread_calls[loop] ||= ThreadCalls.new
      end

      # Called in the socket's loop.
      # @param socket [Socket] a socket that has ended
      # @return [void]
      def remove_socket(socket) = @heartbeats[Fiber.current_scheduler]&.delete(socket)

      # The heartbeat of sockets starts with the first one.
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

      # The sockets that are open now.
      def open_sockets = @heartbeats.values.flat_map(&:sockets)

      # Called in a forked process: a worker that has served may fork others, which must not use its loop and sockets.
      def forget_parent
        @pid = Process.pid
        [@heartbeats, @thread_calls, connections_map].each(&:clear)
      end

      def not_found = NOT_FOUND.map(&:dup)

      # The first known protocol that the client offers.
      def choose_protocol(env)
        offered = env["HTTP_SEC_WEBSOCKET_PROTOCOL"].to_s.split(",").map(&:strip)
        known = ::ActionCable::INTERNAL[:protocols]
        known |= [EXTENDED_PROTOCOL] if native_streams?
        offered.find { |name| known.include?(name) }
      end
    end
  end
end
