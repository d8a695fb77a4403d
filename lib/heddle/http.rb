# frozen_string_literal: true

require "heddle/native"

module Heddle
  # Requests and responses as bytes. This layer uses sockets only through objects that read and write, and does not
  # depend on Rack.
  #
  # @api private
  module HTTP
    autoload :BadRequestError, "heddle/http/bad_request_error"
    autoload :Limits, "heddle/http/limits"
    autoload :RequestBody, "heddle/http/request_body"
    autoload :Response, "heddle/http/response"

    # Why a parser rejects a message. The parser returns this object; it does not raise it.
    #
    # @!attribute status [Integer] the status code of the response
    # @!attribute reason [String] one sentence for the client: the mistake, and the correct form
    Rejection = Data.define(:status, :reason)

    # The head of a response as bytes, and how the content after it is framed.
    #
    # @!attribute status [Integer] the status code
    # @!attribute bytes [String] the lines of an HTTP/1.1 head, or the fields in the form that H2::Exchange#write_head
    #   expects
    # @!attribute framing [Symbol] how the content is framed: :none (no content), :length, :chunked, :close (until the
    #   connection ends) or :raw (the application uses the connection after an upgrade)
    # @!attribute length [Integer, nil] the length of the content in bytes; nil if it is unknown
    # @!attribute keep_alive [Boolean] whether the connection may serve another request afterwards
    # @!attribute precoded [Boolean] whether the application has chunked the content itself
    ResponseHead = Struct.new(:status, :bytes, :framing, :length, :keep_alive, :precoded)

    # HTTP/1.1 and 1.0 (RFC 9110, RFC 9112).
    #
    # Parsers and writers do no I/O: a parser turns bytes into a head, a part of a body or a {Rejection}; a writer turns
    # a response into bytes. {Exchange} (a request and its response) reads and writes these bytes on a connection.
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

# These files are required, because an autoload does not work for constants that the extension has already defined.
require "heddle/http/engine"
require "heddle/http/exchange"
require "heddle/http/h1/exchange"
require "heddle/http/h2/exchange"
