# frozen_string_literal: true

module Heddle
  module Rack
    # Responds to requests, and cancels a request when its client disconnects (option `cancel_on_disconnect`). The
    # blocking call in which the request waits raises {Cancelled}, and the request's tasks are cancelled, too.
    # {Heddle.shield} defers the cancellation.
    class CancellingHandler < Handler
      # The scope of a request and its tasks; it is cancelled when the client leaves.
      class ClientScope < Concurrency::ScopeFrame
        def to_s = "the request of a client that has left"

        private

        def raise_outcome
          super
          raise ClientGoneError, "the client left, so its request was cancelled" if @surfaced
        end
      end
      private_constant :ClientScope

      # @param methods [Symbol] which requests are cancelled: :all, or :safe for those with a safe method
      # @see Handler#initialize
      def initialize(app, env_builder, log, methods:, **)
        @all = methods == :all
        super(app, env_builder, log, **)
      end

      # @see Handler#call
      def call(exchange)
        exchange.cancel_on_disconnect(@context.open_request_scope(ClientScope)) if @all || safe?(exchange.method)
        super
      end

      private

      # A safe method does not ask for a change on the server (RFC 9110, section 9.2.1).
      def safe?(method)
        case method
        when "GET", "HEAD", "OPTIONS", "TRACE" then true
        else false
        end
      end
    end
  end
end
