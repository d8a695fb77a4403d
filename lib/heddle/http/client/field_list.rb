# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # The header fields of a request, as a list for HTTP/2 and as lines for HTTP/1.1. The lines are made once and
      # kept.
      #
      # @api private
      class FieldList
        # @return [Array<String>] names and values, alternating
        attr_reader :to_a

        # @param list [Array<String>] names and values, alternating; already checked
        def initialize(list)
          @to_a = list.freeze
        end

        # @return [String] the field lines of HTTP/1.1
        def lines = @lines ||= Fields.lines(@to_a)

        # @yieldparam name [String]
        # @yieldparam value [String]
        def each(&) = @to_a.each_slice(2, &)
      end
    end
  end
end
