# frozen_string_literal: true

module Heddle
  module HTTP
    # One request and its response, with the same interface for each HTTP version. The {Engine} makes an exchange for
    # each request. Each HTTP version has a subclass.
    #
    # Each subclass defines `make_head`, `send_head`, `hold_head`, `release_head`, `withdraw_head`, `send_whole`,
    # `send_content`, `send_end`, `send_early_hints`, `send_continue`, `send_file` and `drain`; `call` and `detach`,
    # which take the connection over or raise; `interim?`, `hijack?` and `gone?`.
    #
    # The C extension defines further methods of this class, such as `write`, `reject` and `close`, and `received?`,
    # `expects?`, `end_expectation`, `buffered?`, `decode` and `fill` for the request's body. They call the operations
    # of the HTTP version (ext/heddle/http/exchange.h).
    class Exchange
      # @return [String, nil] the request ID that the server has assigned, if any
      attr_accessor :request_id

      # @return [RequestBody, nil] the request's body, if it has one
      def body
        return @body if defined?(@body)

        @body = body? ? RequestBody.new(self) : nil
      end

      # @return [Response] made on demand. For a Hash of headers and an Array of Strings, C sends the response without
      #   this object
      def response = @response ||= Response.new(self)

      # @return [Response, nil] the response, if {#response} was called earlier
      def response? = @response

      # @return [Boolean] whether the application has taken the connection over by env["rack.hijack"]
      def hijacked? = false

      # @return [Boolean] whether the application owns the connection, by env["rack.hijack"] or by `rack.hijack` in the
      #   response's headers
      def detached? = false

      # @return [Boolean] whether the response has begun: its head is made or sent. {Response#withdraw} can discard a
      #   head that is not sent yet
      def started? = status_sent != 0 || @response&.started? || false

      # @return [Integer, nil] the status of the response; nil: no response has begun
      def status
        sent = status_sent
        sent == 0 ? @response&.status : sent
      end

      # @return [Integer] number of content bytes sent
      def sent = @response ? @response.sent : content_sent

      # @return [Boolean] whether all content that the response's head announced was sent
      def complete? = status_sent != 0 || @response&.complete? || false
    end
  end
end
