# frozen_string_literal: true

module Heddle
  module Rack
    # Calls the handlers of WebSockets in a runner of the loop, and handles their errors.
    class SocketCallbacks
      # The state of a socket, once it has ended. `remote` is the client, `proxy` the trusted proxy in front of it, or
      # nil.
      Account = Data.define(:target, :remote, :proxy, :request_id, :seconds, :code, :received, :received_bytes, :sent,
                            :sent_bytes)

      # @param log [#event, #access?, #web_socket]
      # @param context [Concurrency::Context] of the loop
      def initialize(log, context)
        @log = log
        @context = context
        @leases = in_loop? && Ractor.current == Ractor.main
      end

      # @return [Boolean] whether {#ended} is to be called
      def logged? = @log.access?

      # Called when a socket has ended.
      # @param account [Array] its label (target, client, proxy and request id, joined by NUL), then the rest of
      #   {Account}
      # @return [void]
      def ended(account)
        label, *rest = account
        @log.web_socket(Account.new(*label.split("\0", -1).map { |part| part unless part.empty? }, *rest))
      end

      # @param handler [Object] what the request was upgraded with
      # @param callback [Symbol]
      # @param client [WebSocket::ServerSocket]
      # @param message [String, nil] or the topic of on_reset
      # @return [void]
      def call(handler, callback, client, message)
        failure = run(handler, callback, client, message)
        # A task that a callback has started ends with it, and so does a lease of a database connection.
        failure = @context.end_request_scope(failure) if @context.request_scopes?
        Databases.end_leases { |error| failure ||= error } if @leases && Databases.leases
        fail_with(handler, callback, client, failure) if failure
      end

      private

      # Do callbacks run in the loop's fibers?
      def in_loop? = true

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
        when ApplicationFailure
          name = handler.is_a?(Module) ? "#{handler}.#{callback}" : "#{handler.class}##{callback}"
          @log.event(:websocket_failed, callback: name, error: ErrorText.full(error))
        else raise error
        end
      end
    end
  end
end
