# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # What the HTTP/1 connections of one loop share, and what a {Net::Sockets} is given as its protocol: connections
      # read heads and small bodies by themselves, and the block is called with an {Exchange}.
      class Engine
        # @return [Configuration]
        attr_reader :configuration
        # @return [ResponseWriter]
        attr_reader :writer

        # @param configuration [Configuration]
        # @param on_refusal [#to_proc, nil] called with the client's address, a status and a reason for what was
        #   answered with an error and never became a request. It runs in the loop and must not wait.
        # @param proxies [Net::Networks, nil] whose word of a client's address the log takes
        def initialize(configuration = Configuration.new, on_refusal: nil, proxies: nil)
          @configuration = configuration
          @writer = ResponseWriter.new
          set_up(configuration, on_refusal&.to_proc, proxies)
        end
      end
    end
  end
end
