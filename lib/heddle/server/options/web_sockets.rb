# frozen_string_literal: true

module Heddle
  class Server
    module Options
      # Options of WebSockets. Their limits (sizes, ping and pong) are in http/web_socket/limits.rb.
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
                            "connection over, as Action Cable does.")
      ].freeze
    end
  end
end
