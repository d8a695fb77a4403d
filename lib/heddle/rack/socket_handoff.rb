# frozen_string_literal: true

module Heddle
  module Rack
    # WebSockets of a worker that is replaced go to another one, where their handler allows it: `dump` returns its state
    # as a String, and `load`, a method of its class, makes a handler of that. Topics go with the socket, each with its
    # position.
    class SocketHandoff
      include MonotonicClock

      # Seconds in which `dump` must return: nothing else is handed off meanwhile.
      DUMP_LIMIT = 1
      # The same for `load`, which may be the first in its process to ask a database.
      LOAD_LIMIT = 5
      # Seconds for which a class's `load` is not called after one that took longer: thousands of sockets may follow.
      PAUSE = 10
      # A handler has some of these methods.
      CALLBACKS = %i[on_open on_message on_drained on_shutdown on_close on_reset on_publication on_wake].freeze
      # Bytes that a handler's state may have.
      LIMIT = 16_384
      FORMS = %i[text binary json cable extended_cable handler].freeze
      POLICIES = %i[close coalesce drop].freeze
      private_constant :DUMP_LIMIT, :LOAD_LIMIT, :PAUSE, :CALLBACKS, :LIMIT, :FORMS, :POLICIES

      # @param callbacks [SocketCallbacks]
      # @param log [#alarm]
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

      # Hands a socket off. In the loop.
      # @param client [WebSocket::ServerSocket] a movable one
      # @param target [BasicSocket] see {Net::Sockets#accept_handoff}
      # @return [Symbol] :done, :full (the others have no room now), :busy, or :fixed (it can't go)
      def give(client, target)
        received = client.received or return :busy
        state = dump(client) or return :fixed
        Heddle.without_preemption do
          # A message that came while the handler was asked may have changed its state.
          next :busy unless client.received == received

          words = [client.handler.class.name, state, client.label, client.subscriptions, client.deflates?]
          client.hand_off(target, Marshal.dump(words)).tap { |result| @failed[client] = true if result == :fixed }
        end
      end

      # @param words [String]
      # @return [Array] handler, callbacks, label, topics, and whether it has negotiated permessage-deflate;
      #   without topics the socket is closed with 1012
      def load(words)
        name, state, label, topics, deflates = Marshal.load(words) # rubocop:disable Security/MarshalLoad -- of another worker
        return closed(label, deflates) if @late.key?(name) && now < @late[name]

        [load_handler(name, state), @callbacks, label, topics.map { |topic| subscription_of(*topic) }, deflates]
      rescue ApplicationFailure => e
        @log.alarm("a WebSocket is closed because #{name || "its handler"}.load failed: " \
                   "#{ErrorText.full(e)}")
        closed(label, deflates)
      end

      private

      def closed(label, deflates) = [nil, @callbacks, label, nil, deflates]

      def load_handler(name, state)
        type = Object.const_get(name)
        began = now
        handler = Heddle.timeout(LOAD_LIMIT) { type.load(state) }
        return handler if CALLBACKS.any? { |callback| handler.respond_to?(callback) }

        raise TypeError, "load must return a handler, but has returned an object without callbacks: #{handler.class}"
      rescue TimeoutError
        raise unless began && now - began >= LOAD_LIMIT # a limit of its own

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
        @log.alarm("a WebSocket stays, and is closed: #{client.handler.class}#dump must return a String of at most " \
                   "#{LIMIT} bytes, or nil, but has returned #{found}")
        nil
      rescue ApplicationFailure => e
        @failed[client] = true
        @log.alarm("a WebSocket stays, and is closed: #{client.handler.class}#dump failed: " \
                   "#{ErrorText.full(e)}")
        nil
      end

      def subscription_of(topic, since, form, policy, envelope)
        [topic, since, FORMS.fetch(form), POLICIES.fetch(policy), envelope && -envelope]
      end
    end
  end
end
