# frozen_string_literal: true

require "heddle/autoloads"
require "heddle/error"

module Heddle
  module Net
    # A DNS server, a DNS client, and DNS messages.
    #
    #     Heddle::Net::DNS.serve("127.0.0.1:5353") do |query|
    #       query.answer("192.0.2.1") if query.type == :A
    #     end
    #
    # @api private except what sig/ declares
    module DNS
      Autoloads.add(self, "heddle/net/dns")

      # Raised by {Message.parse}, {Message.query} and {Message#encode}, when a message, name or record violates the
      # rules of DNS. {Server} responds to a malformed query with FORMERR.
      class MalformedError < OwnError; end

      class << self
        # Serves DNS queries over UDP and TCP until the program ends. Starts a loop if the thread has none.
        #
        # @param addresses [Array<String>] `address:port` to listen on
        # @param options [Hash] see {Server#initialize}
        # @yieldparam query [Query]
        # @return [nil]
        def serve(*addresses, **options, &)
          server = Server.new(*addresses, **options, &)
          Heddle.run { server.run }
          nil
        end

        # Asks the name servers in resolv.conf for the records of a name. Uses neither the search list nor the hosts
        # file; {Resolver#records} uses the search list.
        #
        # @param (see Client#records)
        # @return (see Client#records)
        # @raise (see Client#records)
        def records(name, type) = Client.new.records(name, type)
      end
    end
  end
end
