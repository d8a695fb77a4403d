# frozen_string_literal: true

require "heddle/arguments"

module Heddle
  module HTTP
    class Client
      # Seconds for each phase of a request; nil: no limit.
      #
      # @api private
      TimeLimits = Data.define(:pool, :connect, :tls, :write, :first_byte, :read, :total) do
        # @param limits [Hash, Numeric, nil] seconds by phase; Net::HTTP's open_timeout, ssl_timeout, write_timeout and
        #   read_timeout are accepted, too; a number sets only `total`; nil removes the limit `total`
        # @raise [ArgumentError]
        def self.from(limits, defaults = Defaults::TIMEOUT)
          limits = { total: limits } if limits.nil? || limits.is_a?(Numeric)
          limits.is_a?(Hash) or Arguments.refuse("timeout:", limits, "seconds, a Hash of seconds by phase, or nil")
          limits = limits.transform_keys(self::NAMES_OF_NET_HTTP)
          if (first_byte = limits.delete(:read_timeout))
            limits = { first_byte: first_byte, read: first_byte, **limits }
          end
          unknown = limits.keys - members
          raise ArgumentError, "timeout: unknown phase #{unknown.join(", ")} (known: #{members.join(", ")})" if
            unknown.any?

          new(**defaults.to_h, **limits).each_checked
        end

        # @param seconds [Numeric, nil] nil: no limit
        # @param deadline [Float, nil] in seconds of CLOCK_MONOTONIC
        # @return [Numeric, nil] `seconds`, or the seconds until the deadline if that is less; nil: no limit
        def self.left(seconds, deadline)
          return seconds unless deadline

          left = [deadline - MonotonicClock.now, 0].max
          seconds ? [seconds, left].min : left
        end

        def each_checked
          to_h.each { |phase, seconds| Arguments.limit("timeout: #{phase}", seconds) }
          self
        end
      end

      TimeLimits::NAMES_OF_NET_HTTP = { open_timeout: :connect, ssl_timeout: :tls, write_timeout: :write }.freeze
    end
  end
end
