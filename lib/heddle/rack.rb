# frozen_string_literal: true

require "heddle/http"

module Heddle
  # A request becomes an env, an answer becomes bytes (the Rack specification, 3.2). The gem `rack` is not needed
  # here: the specification is about plain Ruby objects.
  #
  # @api private
  module Rack
    autoload :CancellingHandler, "heddle/rack/cancelling_handler"
    autoload :EarlyHints, "heddle/rack/early_hints"
    autoload :Handler, "heddle/rack/handler"
    autoload :Input, "heddle/rack/input"
    autoload :BodyProxy, "heddle/rack/body_proxy"
    autoload :ExchangeProxy, "heddle/rack/exchange_proxy"
    autoload :ResponseProxy, "heddle/rack/response_proxy"
    autoload :NoInput, "heddle/rack/no_input"
    autoload :Responder, "heddle/rack/responder"
    autoload :SocketCallbacks, "heddle/rack/socket_callbacks"
    autoload :SocketHandoff, "heddle/rack/socket_handoff"
    autoload :StreamedInput, "heddle/rack/streamed_input"
    autoload :ThreadHandler, "heddle/rack/thread_handler"
    autoload :ThreadResponder, "heddle/rack/thread_responder"
    autoload :ThreadSocketCallbacks, "heddle/rack/thread_socket_callbacks"
    autoload :ThreadStream, "heddle/rack/thread_stream"
    autoload :Upgrade, "heddle/rack/upgrade"
  end
end

# Not by autoload: a Ractor of Ruby 3.3 can load nothing.
require "heddle/web_socket"
# Not by autoload: a TLS client may come when there is no descriptor left to load code with.
require "heddle/rack/client_certificate"
# Not by autoload: the extension has defined the class.
require "heddle/rack/stream"
