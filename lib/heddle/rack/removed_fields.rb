# frozen_string_literal: true

require "heddle/events"

module Heddle
  module Rack
    # Reports that fields of a request were removed before they reached the application. Without this event, users could
    # not find out why the application lacks them. The C extension calls each method at most once in a process.
    module RemovedFields
      # @param address [String] the client's address. The client may be a load balancer that is not a trusted proxy;
      #   then the application does not know that the request came over https
      # @return [void]
      def self.forwarding(address) = Events.report(:forwarding_removed, address:)

      # @param target [String] the request's target
      # @return [void]
      def self.underscore(target) = Events.report(:underscore_removed, target:)
    end
  end
end
