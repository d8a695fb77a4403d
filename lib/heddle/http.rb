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
    autoload :Rejection, "heddle/http/rejection"
    autoload :RequestBody, "heddle/http/request_body"
    autoload :Response, "heddle/http/response"
    autoload :ResponseHead, "heddle/http/response_head"
  end

  autoload :ClientGoneError, "heddle/http/client_gone_error"
end

# Not by autoload: the extension has defined these.
require "heddle/http/engine"
require "heddle/http/exchange"
require "heddle/http/h1"
require "heddle/http/h2"
