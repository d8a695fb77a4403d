# frozen_string_literal: true

require "heddle/native"

module Heddle
  # Requests and responses on the wire. Knows sockets only as objects that read and write,
  # and knows nothing of Rack.
  #
  # @api private
  module HTTP
    autoload :BadRequestError, "heddle/http/bad_request_error"
    autoload :Limits, "heddle/http/limits"
    autoload :RequestBody, "heddle/http/request_body"
    autoload :Response, "heddle/http/response"

    # Why a parser rejects a message. The parser returns this; it never raises it.
    #
    # @!attribute status [Integer] the status of the response
    # @!attribute reason [String] one sentence for a person: the mistake, and the correct form
    Rejection = Data.define(:status, :reason)

    # The head of a response as bytes, and how it frames the content that follows.
    #
    # @!attribute status [Integer] as sent
    # @!attribute bytes [String] lines of HTTP/1.1, or the fields that H2::Exchange#write_head takes
    # @!attribute framing [Symbol] how the content is framed: :none (there is none), :length, :chunked, :close
    #   (up to the end of the connection) or :raw (after an upgrade, the application uses the connection)
    # @!attribute length [Integer, nil] of the content in bytes, where it is known
    # @!attribute keep_alive [Boolean] whether the connection may serve another request afterwards
    # @!attribute precoded [Boolean] whether the application provides content that is chunked already
    ResponseHead = Struct.new(:status, :bytes, :framing, :length, :keep_alive, :precoded)

    # HTTP/1.1 and 1.0 (RFC 9110, RFC 9112).
    #
    # Parsers and writers do no I/O: a parser turns bytes into a head, a body's bytes or a {Rejection};
    # a writer turns a response into bytes. {Exchange} carries those bytes over a connection.
    module H1
      autoload :ReceivedResponse, "heddle/http/h1/received_response"
    end

    # HTTP/2 (RFC 9113).
    module H2
      autoload :ReceivedResponse, "heddle/http/h2/received_response"
    end
  end

  autoload :ClientGoneError, "heddle/http/client_gone_error"
end

# Not by autoload: the extension has defined these.
require "heddle/http/engine"
require "heddle/http/exchange"
require "heddle/http/h1/exchange"
require "heddle/http/h2/exchange"
