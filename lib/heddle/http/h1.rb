# frozen_string_literal: true

module Heddle
  module HTTP
    # HTTP/1.1 and 1.0 (RFC 9110, RFC 9112).
    #
    # Parsers and writers do no I/O: a parser turns bytes into a head, a body's bytes or a {Refusal};
    # a writer turns an answer into bytes. {Engine} and {Exchange}, {RequestBody} and {Response} carry
    # those bytes over a connection, and are all that knows of one.
    module H1
      autoload :ReceivedResponse, "heddle/http/h1/received_response"
      autoload :Refusal, "heddle/http/h1/refusal"
      autoload :RequestBody, "heddle/http/h1/request_body"
      autoload :RequestHead, "heddle/http/h1/request_head"
      autoload :Response, "heddle/http/h1/response"
      autoload :ResponseHead, "heddle/http/h1/response_head"
    end
  end
end

# Not by autoload: the extension has defined these classes.
require "heddle/http/h1/engine"
require "heddle/http/h1/exchange"
