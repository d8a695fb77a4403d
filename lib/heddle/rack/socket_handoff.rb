# frozen_string_literal: true

module Heddle
  module Rack
    # Hands off WebSockets to other workers when a worker is replaced, if their handlers support it. A handler's `dump`
    # returns its state as a String. In the other worker, the class method `load` creates a handler from that String.
    # The socket's topics are handed off with it, each with its position.
    class SocketHandoff
      include MonotonicClock

      # Maximum number of seconds that `dump` may take. No other socket is handed off meanwhile.
      DUMP_LIMIT = 1
      # Maximum number of seconds that `load` may take. It is longer than DUMP_LIMIT, because `load` may be the first
      # call in its process that uses a database.
      LOAD_LIMIT = 5
      # After a call of `load` that took too long, that class's `load` is not called for this many seconds. Otherwise
      # thousands of sockets could each wait for LOAD_LIMIT.
      PAUSE = 10
      # A handler must have at least one of these methods.
      CALLBACKS = %i[on_open on_message on_drained on_shutdown on_close on_reset on_publication on_wake].freeze
      # Maximum number of bytes of a handler's state.
      LIMIT = 16_384
      private_constant :DUMP_LIMIT, :LOAD_LIMIT, :PAUSE, :CALLBACKS, :LIMIT

      # @param callbacks [SocketCallbacks]
      # @param log [#event]
      def initialize(callbacks, log)
        @callbacks = callbacks
        @log = log
        @failed = {}.compare_by_identity
        @late = {}
      end

      # @param client [WebSocket::ServerSocket]
      # @return [Boolean] whether the socket can be handed off, and its handler supports it
      def movable?(client)
        handler = client.handler
        client.movable? && handler.respond_to?(:dump) && handler.class.respond_to?(:load) && !handler.class.name.nil? &&
          !@failed.key?(client)
      end

      # Must be called in the loop.
      # @param client [WebSocket::ServerSocket] a socket for which {#movable?} is true
      # @param target [BasicSocket] the socket over which other workers receive connections
      # @return [Symbol] :done; :full: the other workers can receive no socket now; :busy: the socket is in use now;
      #   :fixed: it can't be handed off
      def hand_off(client, target)
        received = client.received or return :busy
        state = dump(client) or return :fixed
        Heddle.without_preemption do
          # A message that arrived during `dump` may have changed the handler's state.
          next :busy unless client.received == received

          result = client.hand_off(target, client.handler.class.name, state)
          @failed[client] = true if result == :fixed
          result
        end
      end

      # @param name [String, nil] the name of the handler's class; nil: the data of the socket has an unknown format
      # @param state [String, nil] what `dump` has returned
      # @return [Array] the handler and its {SocketCallbacks}; if the handler is nil, the socket is closed with 1012
      def load(name, state)
        unless name
          @log.event(:handoff_version_unknown, connection: "a WebSocket")
          return [nil, @callbacks]
        end

        [(load_handler(name, state) unless @late.key?(name) && now < @late[name]), @callbacks]
      rescue ApplicationFailure => e
        @log.event(:websocket_failed, callback: "#{name}.load", error: ErrorText.full(e))
        [nil, @callbacks]
      end

      # Logs that an event stream is closed, because its data has an unknown format.
      # @return [void]
      def refuse_stream = @log.event(:handoff_version_unknown, connection: "an event stream")

      private

      def load_handler(name, state)
        type = Object.const_get(name)
        began = now
        handler = Heddle.timeout(LOAD_LIMIT) { type.load(state) }
        return handler if CALLBACKS.any? { |callback| handler.respond_to?(callback) }

        raise TypeError, "load must return a handler, but has returned a #{handler.class}, which has no callbacks"
      rescue TimeoutError
        raise unless began && now - began >= LOAD_LIMIT # a shorter limit inside load has expired

        @late[name] = now + PAUSE
        raise TimeoutError, "it took longer than #{LOAD_LIMIT} s; for #{PAUSE} s, other sockets of this class are " \
                            "closed without a call of load"
      end

      # @return [String, nil] the handler's state; nil: the socket is not handed off
      def dump(client)
        state = Heddle.timeout(DUMP_LIMIT) { client.handler.dump }
        return state if state.is_a?(String) && state.bytesize <= LIMIT

        @failed[client] = true
        return if state.nil?

        found = state.is_a?(String) ? "#{state.bytesize} bytes" : state.class
        report_unmovable(client, "must return a String of at most #{LIMIT} bytes, or nil, but has returned #{found}")
        nil
      rescue ApplicationFailure => e
        @failed[client] = true
        report_unmovable(client, "failed: #{ErrorText.full(e)}")
        nil
      end

      def report_unmovable(client, reason)
        @log.event(:websocket_not_moved, callback: "#{client.handler.class}#dump", reason:)
      end
    end
  end
end
