# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # The defaults of {Client}'s options, and the limits of what a server may send.
      #
      # @api private
      module Defaults
        # Seconds for each phase of a request; nil: no limit.
        TIMEOUT = { pool: 5, connect: 5, tls: 5, write: 10, first_byte: 30, read: 30, total: nil }.freeze
        # Connections to one origin.
        MAX_CONNECTIONS = 20
        # Seconds after which an idle connection is closed.
        IDLE_TIMEOUT = 55
        # Redirects that are followed.
        REDIRECTS = 5
        # Header fields of every request.
        # shareable_constant_value: literal
        HEADERS = { "User-Agent" => "heddle/#{VERSION}", "Accept" => "*/*", "Accept-Encoding" => "gzip, deflate" }
        # shareable_constant_value: none

        # How often a request is sent again; client/requested_retries.rb says after which statuses, and when.
        RETRIES = 0
        # Seconds before an event stream connects again, until the server sets another pause (`retry`).
        EVENTS_PAUSE = 3

        # Bytes of a body in memory, decompressed.
        BODY_LIMIT = 67_108_864
        # Bytes of a line that {Response#each_line} gives.
        LINE_LIMIT = 16_777_216
        # Bytes and number of a response's header lines; the same values are in ext/heddle/http/h2/session_client.c.
        HEADER_LIMIT = 65_536
        HEADER_COUNT = 256
        # Maximum number of interim responses (1xx) before the final one.
        INTERIM_LIMIT = 32

        # Bytes of one event of a stream.
        EVENT_LIMIT = 16_777_216
      end
    end
  end
end
