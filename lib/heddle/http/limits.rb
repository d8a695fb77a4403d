# frozen_string_literal: true

require "heddle/options/option"
require "heddle/options/connections"
require "heddle/options/requests"
require "heddle/options/bodies"
require "heddle/options/http2"
require "heddle/options/web_sockets"

module Heddle
  module HTTP
    # The values of all limits of clients' requests, in one frozen object.
    class Limits
      # The limits that are options; lib/heddle/options defines them, with their defaults.
      OPTIONS = Ractor.make_shareable(
        [Options::CONNECTIONS, Options::REQUESTS, Options::BODIES, Options::HTTP2, Options::WEB_SOCKETS]
          .flatten.select(&:limit)
      )
      # The other limits of the server. The HTTP client needs other values of some.
      FIXED = {
        # Bytes of a request line. RFC 9112, section 3, asks for at least 8,000.
        request_line_limit: 16_384,
        # Field lines of a request, trailers included, as Apache allows by default. `header_limit` limits their bytes.
        header_count: 100,
        # Bytes of a body that are kept in memory: most forms and JSON documents are smaller. Larger ones go to a file,
        # except that bodies of up to four times this size stay in memory while they have less than 16 MiB together.
        body_buffer: 65_536,
        # Seconds for which a body may be slower than `body_rate`: a phone that changes its network pauses for as long.
        body_grace: 10,
        # Seconds for which a client may send nothing of a body, however fast it was before: nginx's default.
        body_timeout: 60,
        # Seconds that a chunked body may pause, with `stream_bodies`, before the application is called with what has
        # arrived: longer than a round trip.
        body_pause: 0.25,
        # Bytes of all chunk extensions of a body; common clients send no extensions.
        chunk_extension_limit: 4_096,
        # Bytes by which the framing of a chunked body may exceed its data: 2,700 chunks of a byte.
        chunk_overhead_limit: 16_384,
        # Seconds for which a rejected client is read, so that it gets the response instead of a reset: a few round
        # trips.
        linger_timeout: 2,
        # Bytes that are still read from a rejected client: the size of a client's send buffer on Linux (tcp_wmem).
        linger_limit: 4_194_304,
        # Seconds in which a WebSocket's client has to answer a ping or a close frame.
        websocket_timeout: 20
      }.freeze

      attr_reader(*OPTIONS.map(&:name), *FIXED.keys)

      # @param values [Hash{Symbol => Object}] what differs from {FIXED} and from the defaults of {OPTIONS}
      # @raise [ArgumentError] for an unknown name, or a value that an option can't have
      def initialize(**values)
        defaults = OPTIONS.to_h { |limit| [limit.name, limit.default] }.merge(FIXED)
        unknown = values.keys - defaults.keys
        raise ArgumentError, "there is no limit called #{unknown.join(", ")}" if unknown.any?

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
