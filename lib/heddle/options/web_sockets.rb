# frozen_string_literal: true

module Heddle
  module Options
    # Options of WebSockets (RFC 6455).
    WEB_SOCKETS = [
      Option.new(name: :allowed_origins, unit: :list, argument: "ORIGINS", none: "same", default: [],
                 default_words: "same",
                 example: 'allowed_origins "https://example.com", "https://admin.example.com"',
                 text: "origins whose pages may open a WebSocket: same (the server's own), * (any) or a list; others " \
                       "get 403",
                 reason: "Set it when pages of other sites connect",
                 details: "Browsers send cookies with a WebSocket's request whatever page opens it, so a foreign " \
                          "page could act in its visitor's name. Other programs send no Origin and are accepted. The " \
                          "option applies to WebSockets that Heddle serves ([WebSockets](websockets.md)), not to " \
                          "WebSockets over hijacked connections, such as Action Cable's own."),
      Option.limit(:websocket_message_limit, :bytes, 262_144, 1,
                   text: "maximum size of a message from a WebSocket client; a larger message closes the socket with " \
                         "1009",
                   reason: "Raise it when clients send larger messages", maximum: 4_294_967_296),
      Option.limit(:websocket_output_limit, :bytes, 1_048_576, 1,
                   text: "maximum size of pending output for a slow WebSocket client; beyond it the socket is closed " \
                         "with 1008",
                   reason: "Raise it when the application sends messages of about this size"),
      Option.limit(:websocket_ping, :seconds, 25, 0,
                   text: "interval of pings to a silent WebSocket client; 0 for no pings",
                   reason: "Lower it when a proxy closes idle connections sooner; raise it to save phones' batteries"),
      Option.limit(:websocket_deflate, :switch, false, nil,
                   text: "compress messages for WebSocket clients that offer permessage-deflate (RFC 7692)",
                   reason: "Set it when bandwidth costs more than CPU",
                   details: "Needs zlib when Heddle is built; see [Compression](websockets.md#compression).")
    ].freeze
  end
end
