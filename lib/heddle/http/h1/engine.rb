# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # What the connections of one loop share: the limits, the parser and the writer.
      class Engine
        # @return [Configuration]
        attr_reader :configuration
        # @return [HeadParser]
        attr_reader :parser
        # @return [ResponseWriter]
        attr_reader :writer
        # @return [DateLine]
        attr_reader :date_line

        # @param configuration [Configuration]
        # @param on_refusal [#call, nil] called with the connection and the {Refusal} of what never became a request
        def initialize(configuration = Configuration.new, on_refusal: nil)
          @configuration = configuration
          @on_refusal = on_refusal
          @parser = HeadParser.new(configuration)
          @date_line = DateLine.new
          @writer = ResponseWriter.new(@date_line)
          @draining = false
        end

        # @param connection [Object] the connection underneath
        # @param refusal [Refusal]
        # @return [void]
        def refused(connection, refusal) = @on_refusal&.call(connection, refusal)

        # From now on every answer says that it is the connection's last.
        def drain = @draining = true

        # @return [Boolean]
        def draining? = @draining
      end
    end
  end
end
