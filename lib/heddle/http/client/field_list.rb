# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # The header fields of a request: a list for HTTP/2, and lines for HTTP/1.1, which are made only once for a list.
      #
      # @api private
      class FieldList
        # @return [Array<String>] name, value, name, value
        attr_reader :to_a

        # @param list [Array<String>] name, value, name, value, all of them checked
        def initialize(list)
          @to_a = list.freeze
        end

        # @return [String] as HTTP/1.1 has them
        def lines = @lines ||= Fields.lines(@to_a)

        # @yieldparam name [String]
        # @yieldparam value [String]
        def each(&) = @to_a.each_slice(2, &)
      end
    end
  end
end
