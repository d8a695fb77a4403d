# frozen_string_literal: true

require "uri"

module Heddle
  module CLI
    class Demo
      # A parameter in the query says what the demo can't do. Answered with 400.
      class BadParameter < StandardError; end

      # The numbers in a request's query, each within its bounds, and the words.
      class Parameters
        # @param env [Hash] the Rack environment
        def initialize(env)
          @values = URI.decode_www_form(env["QUERY_STRING"].to_s).to_h
        rescue ArgumentError => e
          raise BadParameter, "The query can't be read: #{e.message}."
        end

        # @param name [String]
        # @param default [Float] in the parameter's own unit
        # @param within [Range]
        # @return [Float]
        # @raise [BadParameter]
        def float(name, default:, within:)
          number(name, default, within, Float(@values.fetch(name, default), exception: false))
        end

        # @return [Integer] see #float
        def integer(name, default:, within:)
          number(name, default, within, Integer(@values.fetch(name, default).to_s, 10, exception: false))
        end

        # @param name [String]
        # @param choices [Hash{String => Object}]
        # @return [Object] of the choice that is named
        # @raise [BadParameter]
        def choice(name, choices)
          choices.fetch(text(name)) do |value|
            raise BadParameter, "#{name} has to be one of #{choices.keys.join(", ")}; it was #{value.inspect}."
          end
        end

        # @return [String, nil] as it stands in the query
        def text(name) = @values[name]

        private

        def number(name, default, within, value)
          return value if value && within.cover?(value)

          raise BadParameter, "#{name} has to be a number from #{within.begin} to #{within.end}, " \
                              "such as #{name}=#{default}; it was #{@values[name].inspect}."
        end
      end
    end
  end
end
