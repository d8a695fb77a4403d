# frozen_string_literal: true

module Heddle
  module Rack
    # When a worker is replaced, hands its WebSockets off to another worker, if their handlers allow it. A handler's
    # `dump` returns its state as a String. `load`, a method of its class, makes a handler of that String. Topics go
    # with the socket, each with its position.
    class SocketHandoff
      include MonotonicClock

      # Seconds in which `dump` must return, because nothing else is handed off meanwhile.
      DUMP_LIMIT = 1
      # Seconds in which `load` must return. It may be the first code in its process that uses a database.
      LOAD_LIMIT = 5
      # Seconds for which a class's `load` is not called after a call that took too long: thousands of sockets may
      # follow.
      PAUSE = 10
      # A handler has some of these methods.
      CALLBACKS = %i[on_open on_message on_drained on_shutdown on_close on_reset on_publication on_wake].freeze
      # Bytes that a handler's state may have.
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
      # @return [Boolean] whether its handler allows it to go
      def movable?(client)
        handler = client.handler
        client.movable? && handler.respond_to?(:dump) && handler.class.respond_to?(:load) && !handler.class.name.nil? &&
          !@failed.key?(client)
      end

      # Must be called in the loop.
      # @param client [WebSocket::ServerSocket] a movable one
      # @param target [BasicSocket] see {Net::Sockets#accept_handoff}
      # @return [Symbol] :done, :full (the others have no room now), :busy, or :fixed (it can't go)
      def hand_off(client, target)
        received = client.received or return :busy
        state = dump(client) or return :fixed
        Heddle.without_preemption do
          # A message that came while the handler was asked may have changed its state.
          next :busy unless client.received == received

          result = client.hand_off(target, client.handler.class.name, state)
          @failed[client] = true if result == :fixed
          result
        end
      end

      # @param name [String, nil] of the handler's class; nil: the description of the socket can't be read
      # @param state [String, nil]
      # @return [Array] handler and callbacks; without a handler the socket is closed with 1012
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

      # Logs that an event stream is closed, because its description can't be read.
      # @return [void]
      def refuse_stream = @log.event(:handoff_version_unknown, connection: "an event stream")

      private

      def load_handler(name, state)
        type = Object.const_get(name)
        began = now
        handler = Heddle.timeout(LOAD_LIMIT) { type.load(state) }
        return handler if CALLBACKS.any? { |callback| handler.respond_to?(callback) }

        raise TypeError, "load must return a handler, but has returned an object without callbacks: #{handler.class}"
      rescue TimeoutError
        raise unless began && now - began >= LOAD_LIMIT # a shorter limit inside load

        @late[name] = now + PAUSE
        raise TimeoutError, "it took longer than #{LOAD_LIMIT} s; other sockets of this class are closed without a " \
                            "call of load for #{PAUSE} s"
      end

      # @return [String, nil] nil: it stays
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
