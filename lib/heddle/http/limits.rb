# frozen_string_literal: true

require "heddle/options/option"
require "heddle/options/connections"
require "heddle/options/requests"
require "heddle/options/bodies"
require "heddle/options/http2"
require "heddle/options/web_sockets"

module Heddle
  module HTTP
    # The values of all limits for requests of clients, in one frozen object.
    class Limits
      # The limits that are options; lib/heddle/options defines them, with their defaults.
      OPTIONS = Ractor.make_shareable(
        [Options::CONNECTIONS, Options::REQUESTS, Options::BODIES, Options::HTTP2, Options::WEB_SOCKETS]
          .flatten.select(&:limit)
      )
      # Limits that are not options. They have names here because the HTTP client uses other values for some of them.
      FIXED = {
        # Bytes of a request line. RFC 9112, section 3, asks for at least 8,000.
        request_line_limit: 16_384,
        # Field lines of a request, including trailers; Apache's default. `header_limit` limits their bytes.
        header_count: 100,
        # A body of more bytes is written to a file; most forms and JSON documents are smaller. There is an exception: a
        # body of up to four times as many bytes stays in memory while there is room. A process has at most 16 MiB for
        # such bodies, and for the large write buffers of bodies that go to files.
        body_buffer: 65_536,
        # Seconds for which a body may be slower than `body_rate`. A phone that changes its network may pause that long.
        body_grace: 10,
        # Maximum seconds between two reads of a body, regardless of its earlier rate; nginx's default.
        body_timeout: 60,
        # With `stream_bodies`, the application is called when a chunked body is complete or exceeds `body_buffer`, or
        # when the client pauses in it for this many seconds: the client may be waiting for the response. The time is
        # longer than a round trip.
        body_pause: 0.25,
        # Bytes of all chunk extensions of a body; common clients send no extensions.
        chunk_extension_limit: 4_096,
        # Bytes by which the framing of a chunked body may exceed its data; enough for 4,096 chunks of one byte.
        chunk_overhead_limit: 16_384,
        # Seconds for which the server keeps reading from a rejected client, so that the client gets the response
        # instead of a reset; a few round trips.
        linger_timeout: 2,
        # Maximum bytes to read from a rejected client; the largest size of a send buffer on Linux (tcp_wmem).
        linger_limit: 4_194_304,
        # Seconds within which a WebSocket client must respond to a ping or close frame.
        websocket_timeout: 20
      }.freeze

      attr_reader(*OPTIONS.map(&:name), *FIXED.keys)

      # @param values [Hash{Symbol => Object}] values that replace values of {FIXED} and defaults of {OPTIONS}
      # @raise [ArgumentError] for an unknown name, or for a value that the option does not allow
      def initialize(**values)
        defaults = OPTIONS.to_h { |limit| [limit.name, limit.default] }.merge(FIXED)
        unknown = values.keys - defaults.keys
        raise ArgumentError, "unknown limit #{unknown.join(", ")} (known: #{defaults.keys.join(", ")})" if unknown.any?

        checked = OPTIONS.select { |limit| values.key?(limit.name) }
                         .to_h { |limit| [limit.name, limit.parse(values[limit.name], limit.name)] }
        defaults.merge(values, checked).each { |name, value| instance_variable_set(:"@#{name}", value) }
        check_deflate
        freeze
      end

      private

      def check_deflate
        return if !websocket_deflate || WebSocket::DEFLATE

        raise ArgumentError, "websocket_deflate needs zlib, which was missing when Heddle was built: install its " \
                             "headers (Debian: zlib1g-dev), then run gem pristine heddle, or leave the option out"
      end
    end
  end
end
