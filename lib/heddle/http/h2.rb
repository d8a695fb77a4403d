# frozen_string_literal: true

module Heddle
  module HTTP
    # HTTP/2 (RFC 9113).
    module H2
      autoload :ReceivedResponse, "heddle/http/h2/received_response"
    end
  end
end

# Not by autoload: the extension has defined this class.
require "heddle/http/h2/exchange"
