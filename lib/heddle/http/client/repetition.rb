# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # Decides whether a request whose connection was lost is sent again, even if the user has not asked for retries
      # ({RequestedRetries}).
      #
      # A server that closes an idle connection ignores a request that arrives at the same time (RFC 9112, 9.3.1). That
      # is certain only if nothing of the request was sent. Over HTTP/2 the server has not processed a request that it
      # has refused (RFC 9113, 8.7). It may have processed one that was lost with its connection.
      #
      # @api private
      module Repetition
        # Raised when the connection was lost and the request may be sent again.
        class RepeatError < OwnError; end

        private

        # @param unprocessed [Boolean] whether the server has certainly not processed the request
        # @param why [String]
        # @param repeatable [Boolean] whether it may succeed over another connection
        # @return [RepeatError, Error] an {Error}'s class says whether the server may have processed the request
        def repeat_or_fail(unprocessed, why, repeatable)
          harmless = unprocessed || @request.idempotent?
          return RepeatError.new if harmless && repeatable && @may_retry && @request.replayable?

          subject = "#{@request.method} #{@origin}#{@request.target}"
          return ConnectionLostError.new("#{subject}: the connection was lost: #{why}") if harmless

          OutcomeUnknownError.new("#{subject}: the connection was lost; the server may or may not have processed it: " \
                                  "#{why}")
        end
      end
    end
  end
end
