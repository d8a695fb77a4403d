# frozen_string_literal: true

module Heddle
  module HTTP
    module H2
      # The head of a response as a client receives it over HTTP/2. All strings are binary.
      class ReceivedResponse
        # @return [Integer]
        attr_reader :status
        # @return [Array<String>] the fields in their order: name in lower case, value, name, value
        attr_reader :fields

        # @param ended [Boolean] whether nothing follows the head
        def initialize(status, fields, ended)
          @status = status
          @fields = fields
          @ended = ended
        end

        # @return [String] HTTP/2 has none
        def reason = ""

        # @return [Boolean] whether content may follow
        def body? = !@ended

        # @return [Boolean] whether the content ends with the connection
        def until_close? = false
      end
    end
  end
end
