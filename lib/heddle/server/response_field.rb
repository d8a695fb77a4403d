# frozen_string_literal: true

module Heddle
  class Server
    # Adds a field to what an application has returned.
    module ResponseField
      # @param answer [Object] the application's response
      # @param name [String] in lower case
      # @param value [String]
      # @return [Object] the response with this field, or as it is where the application has set the field itself
      def self.add(answer, name, value)
        return answer unless answer.is_a?(Array) && answer.size == 3

        status, headers, body = answer
        return answer if !headers.is_a?(Hash) || headers.any? { |one, _| one.to_s.casecmp?(name) }

        # The Hash may be the application's own, for all its responses.
        [status, headers.merge(name => value), body]
      end
    end
  end
end
