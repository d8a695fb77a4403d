# frozen_string_literal: true

module Heddle
  # What a request and an answer mean on the wire. Knows sockets only as objects that read and write,
  # and knows nothing of Rack.
  module HTTP
    autoload :BadRequest, "heddle/http/bad_request"
    autoload :Configuration, "heddle/http/configuration"
    autoload :DateLine, "heddle/http/date_line"
    autoload :H1, "heddle/http/h1"
    autoload :Limit, "heddle/http/limit"
    autoload :Status, "heddle/http/status"
  end

  autoload :ClientGone, "heddle/http/client_gone"
end
