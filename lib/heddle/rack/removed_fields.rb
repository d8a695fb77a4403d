# frozen_string_literal: true

require "heddle/events"

module Heddle
  module Rack
    # Reports fields of requests that don't reach the application. The extension calls each method once in a process,
    # because nothing else says why an application behaves as if its client had not sent them.
    module RemovedFields
      # @param address [String] the client's. If that is a balancer, the application takes https for http
      # @return [void]
      def self.forwarding(address) = Events.report(:forwarding_removed, address:)

      # @param target [String] of the request
      # @return [void]
      def self.underscore(target) = Events.report(:underscore_removed, target:)
    end
  end
end
