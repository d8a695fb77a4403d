# frozen_string_literal: true

module Heddle
  module Rack
    # Calls the handlers of WebSockets, and contains what they do wrong. In a runner of the loop.
    class SocketCallbacks
      # @param log [#alarm]
      # @param context [Concurrency::Context] of the loop
      def initialize(log, context)
        @log = log
        @context = context
      end

      # @param handler [Object] what the request was upgraded with
      # @param callback [Symbol]
      # @param client [HTTP::WebSocket::Client]
      # @param message [String, nil] or the topic of on_reset
      # @return [void]
      def call(handler, callback, client, message)
        failure = run(handler, callback, client, message)
        # A task that a callback has started ends with it.
        failure = @context.leave(failure) if @context.hosting?
        fail_with(handler, callback, client, failure) if failure
      end

      private

      # @return [Exception, nil] what it has raised
      def run(handler, callback, client, message)
        message ? handler.public_send(callback, client, message) : handler.public_send(callback, client)
        nil
      rescue Exception => e
        e
      end

      def fail_with(handler, callback, client, error)
        client.close(1011, "the server failed; its log says why")
        case error
        when StandardError, ScriptError, NoMemoryError, SystemStackError
          name = handler.is_a?(Module) ? "#{handler}.#{callback}" : "#{handler.class}##{callback}"
          @log.alarm("a WebSocket is closed because #{name} failed: #{error.full_message(highlight: false)}")
        else raise error
        end
      end
    end
  end
end
