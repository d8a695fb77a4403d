# frozen_string_literal: true

module Heddle
  module Rack
    # Calls the handlers of WebSockets, and handles their errors. Runs in a runner, a pooled fiber of the loop.
    class SocketCallbacks
      # What is logged about a WebSocket that has ended. `remote` is the client's address. `proxy` is the address of the
      # trusted proxy in front of the server, or nil. `seconds` is how long the WebSocket was open. `code` is the close
      # code. `received` and `sent` count messages.
      Account = Data.define(:target, :remote, :proxy, :request_id, :seconds, :code, :received, :received_bytes, :sent,
                            :sent_bytes)

      # @param log [#event, #access?, #web_socket]
      # @param context [Concurrency::Context] the loop's
      def initialize(log, context)
        @log = log
        @context = context
        @leases = in_loop? && Ractor.current == Ractor.main
      end

      # @return [Boolean] whether {#ended} must be called
      def logged? = @log.access?

      # Logs a WebSocket that has ended.
      # @param account [Array] the target, client, proxy and request ID in one String, separated by zero bytes; then the
      #   other values of {Account}
      # @return [void]
      def ended(account)
        label, *rest = account
        @log.web_socket(Account.new(*label.split("\0", -1).map { |part| part unless part.empty? }, *rest))
      end

      # @param handler [Object] the object that the application has set as `rack.upgrade`
      # @param callback [Symbol]
      # @param client [WebSocket::ServerSocket]
      # @param message [String, Array(String, String), nil] the second argument of the callback: a message, the topic of
      #   on_reset, or the topic and the message of on_publication; nil: the callback has no second argument
      # @return [void]
      def call(handler, callback, client, message)
        failure = run(handler, callback, client, message)
        # When a callback ends, its tasks are ended, and its database connections are returned to their pools.
        failure = @context.end_request_scope(failure) if @context.request_scopes?
        Databases.end_leases { |error| failure ||= error } if @leases && Databases.leases
        fail_with(handler, callback, client, failure) if failure
      end

      # Logs why a socket from another process can't continue here. The caller closes it with 1012.
      # @param handler [Object]
      # @param error [Exception]
      # @return [void]
      def resume_failed(handler, error) = log_failure(handler, :on_resume, error)

      private

      # Returns whether callbacks run in the loop's fibers.
      def in_loop? = true

      # @return [Exception, nil] the exception that the callback has raised
      def run(handler, callback, client, message)
        message ? handler.public_send(callback, client, message) : handler.public_send(callback, client)
        nil
      rescue Exception => e
        e
      end

      def fail_with(handler, callback, client, error)
        client.close(1011, "the server failed; see its log")
        case error
        when ApplicationFailure then log_failure(handler, callback, error)
        else raise error
        end
      end

      def log_failure(handler, callback, error)
        name = handler.is_a?(Module) ? "#{handler}.#{callback}" : "#{handler.class}##{callback}"
        @log.event(:websocket_failed, callback: name, error: ErrorText.full(error))
      end
    end
  end
end
