# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Options of WebSockets (RFC 6455).
    WEB_SOCKETS = [
      Option.new(name: :allowed_origins, unit: :list, argument: "ORIGINS", none: "same", default: [],
                 default_words: "same: the server's own",
                 example: 'allowed_origins "https://example.com", "https://admin.example.com"',
                 text: "origins whose pages may open a WebSocket; same: only that of the address they connect to; " \
                       "*: any; the others get 403",
                 details: "Browsers send cookies with a WebSocket's request whatever page opens it, so a foreign " \
                          "page could act in its visitor's name. Programs that are no browser send no Origin, and " \
                          "are not refused. It counts for WebSockets that Heddle serves " \
                          "([WebSockets](websockets.md)), not for those of an application that takes the " \
                          "connection over, as Action Cable does."),
      Option.limit(:websocket_message_limit, :bytes, 262_144, 1,
                   "size of a message from a WebSocket's client; a larger one closes the socket with 1009",
                   4_294_967_296),
      Option.limit(:websocket_fragment_limit, :count, 1_000, 1,
                   "number of frames that a message from a WebSocket's client may have; more close the socket " \
                   "with 1009", 4_294_967_295),
      Option.limit(:websocket_output_limit, :bytes, 1_048_576, 1,
                   "size of what may wait for a WebSocket's client that reads slowly; more closes the socket " \
                   "with 1008"),
      Option.limit(:websocket_ping, :seconds, 25, 0,
                   "after how long without a word from its client a WebSocket sends a ping; 0: never"),
      Option.limit(:websocket_timeout, :seconds, 20, 0.001,
                   "how long a WebSocket's client may take to answer a ping or a close frame; then it is cut off"),
      Option.limit(:websocket_deflate, :switch, false, nil,
                   "whether WebSockets compress messages with clients that offer permessage-deflate (RFC 7692); it " \
                   "takes zlib when Heddle is built, see websockets.md")
    ].freeze
  end
end
