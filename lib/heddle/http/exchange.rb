# frozen_string_literal: true

module Heddle
  module HTTP
    # A request and its response, as the code that responds sees them, whatever version of HTTP carries them. The
    # {Engine} makes one for each request; each version has a subclass.
    #
    # Its subclasses have the methods that depend on the version: `make_head`, `send_head`, `hold_head`, `release_head`,
    # `withdraw_head`, `send_whole`, `send_content`, `send_end`, `send_early_hints` and `send_continue`; `refuse`,
    # `close`, `drain` and `send_file`; `received?`, `expects?`, `end_expectation`, `buffered?`, `decode` and `fill` for
    # the request's body; `interim?` and `hijack?`.
    class Exchange
      # @return [String, nil] the request ID that the server has assigned, if any
      attr_accessor :request_id

      # @return [RequestBody, nil] the request's body, if it has one
      def body
        return @body if defined?(@body)

        @body = body? ? RequestBody.new(self) : nil
      end

      # @return [Response] the response; made only if it is more than a Hash of headers and an Array of Strings
      def response = @response ||= Response.new(self)

      # @return [Response, nil] the response, if {#response} was called before
      def response? = @response

      # @return [Boolean] whether the application has taken the connection over
      def hijacked? = false

      # @return [Boolean] whether the connection is the application's, with the response's head sent or without
      def detached? = false

      # @return [Boolean] whether a response has begun: then the status can't change
      def started? = status_sent != 0 || @response&.started? || false

      # @return [Integer, nil] the status that was sent; nil when there was none
      def status
        sent = status_sent
        sent == 0 ? @response&.status : sent
      end

      # @return [Integer] bytes of content that were sent
      def sent = @response ? @response.sent : content_sent

      # @return [Boolean] whether the client gets the response that the head has announced
      def complete? = status_sent != 0 || @response&.complete? || false
    end
  end
end
