# frozen_string_literal: true

require "heddle/options/connections"
require "heddle/options/requests"
require "heddle/options/bodies"
require "heddle/options/http2"
require "heddle/options/web_sockets"

module Heddle
  module HTTP
    # The values of all limits of clients' requests, in one frozen object. lib/heddle/options defines the limits, with
    # their defaults.
    class Limits
      ALL = Ractor.make_shareable(
        [Options::CONNECTIONS, Options::REQUESTS, Options::BODIES, Options::HTTP2, Options::WEB_SOCKETS]
          .flatten.select(&:limit)
      )
      NAMES = ALL.to_h { |limit| [limit.name, limit] }.freeze

      attr_reader(*NAMES.keys)

      # @param values [Hash{Symbol => Object}] what differs from the defaults, by the names of {ALL}
      # @raise [ArgumentError] for an unknown name or a value that does not fit
      def initialize(**values)
        unknown = values.keys - NAMES.keys
        raise ArgumentError, "there is no limit called #{unknown.join(", ")}" if unknown.any?

        ALL.each do |limit|
          value = values.fetch(limit.name, limit.default)
          check(limit, value)
          instance_variable_set(:"@#{limit.name}", value)
        end
        check_deflate
        freeze
      end

      private

      def check(limit, value)
        return check_switch(limit, value) if limit.unit == :switch

        fits = limit.unit == :seconds ? value.is_a?(Numeric) : value.is_a?(Integer)
        raise ArgumentError, "#{limit.name} must be a number of #{limit.unit}, but is #{value.inspect}" unless fits
        return if limit.range.cover?(value)

        bound = value < limit.range.begin ? "at least #{limit.range.begin}" : "at most #{limit.range.end}"
        unit = " #{limit.unit}" unless limit.unit == :count
        raise ArgumentError, "#{limit.name} must be #{bound}#{unit}, but is #{value}"
      end

      def check_switch(limit, value)
        return if [true, false].include?(value)

        raise ArgumentError, "#{limit.name} must be true or false, but is #{value.inspect}"
      end

      def check_deflate
        return if !websocket_deflate || WebSocket::DEFLATE

        raise ArgumentError, "websocket_deflate needs zlib, which was missing when Heddle was built: install its " \
                             "headers (Debian: zlib1g-dev), then run gem pristine heddle, or leave the option out"
      end
    end
  end
end
