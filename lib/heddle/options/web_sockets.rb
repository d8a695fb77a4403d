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
                 details: "A browser sends the server's cookies with a WebSocket's request whichever page opens the " \
                          "WebSocket, so a page of another site could act in its visitor's name. Requests without an " \
                          "Origin, as other programs send them, are accepted. The option applies to WebSockets that " \
                          "Heddle serves ([WebSockets](websockets.md)), not to WebSockets over hijacked connections, " \
                          "such as those of Action Cable's own server."),
      Option.limit(:websocket_message_limit, :bytes, 262_144, 1,
                   text: "maximum size of a message from a WebSocket client; a larger message closes the WebSocket " \
                         "with code 1009",
                   reason: "Raise it when clients send larger messages", maximum: 4_294_967_296),
      Option.limit(:websocket_output_limit, :bytes, 1_048_576, 1,
                   text: "maximum size of pending output for a slow WebSocket client; beyond it Heddle closes the " \
                         "WebSocket with code 1008",
                   reason: "Raise it when the application sends messages of nearly this size"),
      Option.limit(:websocket_ping, :seconds, 25, 0,
                   text: "interval at which Heddle pings a silent WebSocket client; 0 for no pings",
                   reason: "Lower it when a proxy closes idle connections sooner; raise it to save phones' batteries"),
      Option.limit(:websocket_deflate, :switch, false, nil,
                   text: "compress messages for WebSocket clients that offer permessage-deflate (RFC 7692)",
                   reason: "Set it when bandwidth costs more than CPU",
                   details: "Works only if Heddle was built with zlib. See [Compression](websockets.md#compression).")
    ].freeze
  end
end
