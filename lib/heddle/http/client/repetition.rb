# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # Decides whether the client sends a request again after its connection was lost, or after an HTTP/2 server has
      # refused it. This also applies when the caller has not asked for retries ({RequestedRetries}).
      #
      # A server may close an idle connection just when a request arrives, and ignore the request (RFC 9112, 9.3.1). The
      # client can be sure that the server has ignored the request only if no byte of it was sent. Over HTTP/2, the
      # server has not processed a request that it has refused (RFC 9113, 8.7). It may have processed a request whose
      # connection was lost.
      #
      # @api private
      module Repetition
        # Raised when the client may send the request again over another connection.
        class RepeatError < OwnError; end

        private

        # @param unprocessed [Boolean] whether the server has certainly not processed the request
        # @param why [String] the reason, for the message
        # @param repeatable [Boolean] whether the request may succeed over another connection
        # @return [RepeatError, Error] the class of an {Error} shows whether the server may have processed the request
        def repeat_or_fail(unprocessed, why, repeatable)
          harmless = unprocessed || @request.idempotent?
          return RepeatError.new if harmless && repeatable && @may_retry && @request.replayable?

          subject = "#{@request.method} #{@origin}#{@request.target}"
          return ConnectionLostError.new("#{subject} got no response: #{why}") if harmless

          OutcomeUnknownError.new("#{subject} got no response, and the server may or may not have processed the " \
                                  "request: #{why}")
        end
      end
    end
  end
end
