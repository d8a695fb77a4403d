# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # The defaults of {Client}'s options, and the limits for responses.
      #
      # @api private
      module Defaults
        # Seconds for each phase of a request; nil: no limit.
        TIMEOUT = { pool: 5, connect: 5, tls: 5, write: 10, first_byte: 30, read: 30, total: nil }.freeze
        # Maximum number of connections to one origin.
        MAX_CONNECTIONS = 20
        # Seconds after which an idle connection is closed.
        IDLE_TIMEOUT = 55
        # Maximum number of redirects to follow.
        REDIRECTS = 5
        # Header fields of every request that does not set them itself.
        # shareable_constant_value: literal
        HEADERS = { "User-Agent" => "heddle/#{VERSION}", "Accept" => "*/*", "Accept-Encoding" => "gzip, deflate" }
        # shareable_constant_value: none

        # How often a request is sent again after a temporary failure; see {RequestedRetries}.
        RETRIES = 0
        # Seconds before an event stream reconnects, until the server sets another pause (`retry`).
        EVENTS_PAUSE = 3

        # Maximum size in bytes of a decompressed body in memory.
        BODY_LIMIT = 67_108_864
        # Maximum size in bytes of a line of {Response#each_line}.
        LINE_LIMIT = 16_777_216
        # Maximum bytes and number of a response's header lines. Keep equal to the limits in
        # ext/heddle/http/h2/session_client.c.
        HEADER_LIMIT = 65_536
        HEADER_COUNT = 256
        # Maximum number of interim responses (1xx) before the final one.
        INTERIM_LIMIT = 32

        # Maximum size in bytes of one event of an event stream.
        EVENT_LIMIT = 16_777_216
      end
    end
  end
end
