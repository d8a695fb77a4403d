# frozen_string_literal: true

require "heddle/http/h2/limits"
require "heddle/http/web_socket/limits"

module Heddle
  module HTTP
    # The limits of what a client may send and how long it may take, in one frozen object.
    class Limits
      ALL = [
        Limit.new(:request_line_limit, :bytes, 16_384, 8_192,
                  "length of a request line; a longer one is answered with 414"),
        Limit.new(:header_limit, :bytes, 32_768, 1_024,
                  "size of all header lines of a request, trailers included; more is answered with 431"),
        Limit.new(:header_count, :count, 100, 1,
                  "number of header lines of a request, trailers included; more are answered with 431", 65_535),
        Limit.new(:body_limit, :bytes, 1_073_741_824, 0,
                  "size of a request's body; a larger one is answered with 413"),
        Limit.new(:body_buffer, :bytes, 65_536, 0,
                  "a request's body up to this size is kept in memory, a larger one in a file in body_folder. While " \
                  "all bodies have less than 16 MiB, up to four times this size, and 256 KiB at most, stay in memory"),
        Limit.new(:body_disk_limit, :bytes, 4_294_967_296, 0,
                  "size of all bodies that the server's processes together keep in files at once; beyond it the " \
                  "answer is 503, and 413 to a body that is larger by itself"),
        Limit.new(:body_pause, :seconds, 0.25, 0,
                  "how long a chunked body may pause, where stream_bodies counts, before the application is called " \
                  "with what there is"),
        Limit.new(:chunk_extension_limit, :bytes, 4_096, 0,
                  "size of all chunk extensions of a body; more is answered with 400"),
        Limit.new(:chunk_overhead_limit, :bytes, 16_384, 0,
                  "by how much the framing of a chunked body may outweigh its data; more is answered with 400"),
        Limit.new(:head_timeout, :seconds, 10, 0.001,
                  "time for a whole request head, from its first byte; then the answer is 408"),
        Limit.new(:body_rate, :rate, 240, 0,
                  "the least rate of a request's body, after body_grace; a slower one is answered with 408"),
        Limit.new(:body_grace, :seconds, 10, 0.001,
                  "how long a body may be slower than body_rate"),
        Limit.new(:idle_timeout, :seconds, 75, 0.001,
                  "how long a connection may wait without a request; then it is closed"),
        Limit.new(:write_timeout, :seconds, 30, 0.001,
                  "how long a client may take nothing of an answer; then the connection is closed"),
        Limit.new(:linger_timeout, :seconds, 2, 0,
                  "how long a refused client may go on sending, so that it reads the answer and sees no reset"),
        Limit.new(:linger_limit, :bytes, 4_194_304, 0,
                  "how much of what a refused client goes on sending is read and thrown away"),
        *WebSocket::LIMITS,
        Limit.new(:underscore_headers, :switch, false, nil,
                  "whether header names with an underscore are kept; a client can forge others' names with them"),
        *H2::LIMITS
      ].freeze

      NAMES = ALL.to_h { |limit| [limit.name, limit] }.freeze

      attr_reader(*NAMES.keys)

      # @param values [Hash{Symbol => Object}] what differs from the defaults, by the names of {ALL}
      # @raise [ArgumentError] for an unknown name or a value that does not fit
      def initialize(**values)
        unknown = values.keys - NAMES.keys
        raise ArgumentError, "there is no limit called #{unknown.join(", ")}" if unknown.any?

        ALL.each do |limit|
          value = values.fetch(limit.name, limit.default)
          instance_variable_set(:"@#{limit.name}", limit.check(value))
        end
        WebSocket.check_limits(self)
        freeze
      end
    end
  end
end
