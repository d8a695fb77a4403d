# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # Adds the calling fiber's trace context (W3C) to requests, if the program uses OpenTelemetry.
      #
      # @api private
      module Trace
        module_function

        def on? = defined?(::OpenTelemetry) && ::OpenTelemetry.respond_to?(:propagation)

        # @param fields [Hash]
        # @return [Hash] these fields and the fields of the current span, such as traceparent
        def add(fields)
          carrier = {}
          ::OpenTelemetry.propagation.inject(carrier)
          Fields.merge(fields, carrier)
        end
      end
    end
  end
end
