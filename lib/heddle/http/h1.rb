# frozen_string_literal: true

module Heddle
  module HTTP
    # HTTP/1.1 and 1.0 (RFC 9110, RFC 9112).
    #
    # Parsers and writers do no I/O: a parser turns bytes into a head, a body's bytes or a {Rejection};
    # a writer turns an answer into bytes. {Exchange} carries those bytes over a connection.
    module H1
      autoload :ReceivedResponse, "heddle/http/h1/received_response"
    end
  end
end

# Not by autoload: the extension has defined this class.
require "heddle/http/h1/exchange"
