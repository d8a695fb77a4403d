# frozen_string_literal: true

require "time"

module Heddle
  module HTTP
    class Client
      # Answers that ask for the same request at another time.
      module RetryAfter
        # A server that is overloaded, or a proxy that has none.
        STATUSES = [429, 502, 503, 504].freeze

        module_function

        # @param field [String, nil] Retry-After: a number or a date (RFC 9110, 10.2.3)
        # @return [Numeric] seconds from now on; 0 where the field says nothing
        def seconds(field)
          return 0 unless field
          return field.to_i if field.match?(/\A\d{1,9}\z/)

          [Time.httpdate(field) - Time.now, 0].max
        rescue ArgumentError
          0
        end
      end
    end
  end
end
