# frozen_string_literal: true

require_relative "dns/codes"

module Heddle
  module Net
    # DNS: messages, a server, a client.
    #
    #     Heddle::Net::DNS.serve("127.0.0.1:5353") do |query|
    #       query.answer("192.0.2.1") if query.type == :A
    #     end
    #
    # @api private but for what sig/ shows
    module DNS
      autoload :AddressText, "heddle/net/dns/address_text"
      autoload :Cache, "heddle/net/dns/cache"
      autoload :Client, "heddle/net/dns/client"
      autoload :Data, "heddle/net/dns/data"
      autoload :EDNS, "heddle/net/dns/edns"
      autoload :MalformedError, "heddle/net/dns/malformed_error"
      autoload :Message, "heddle/net/dns/message"
      autoload :MessageReader, "heddle/net/dns/message_reader"
      autoload :MessageWriter, "heddle/net/dns/message_writer"
      autoload :Name, "heddle/net/dns/name"
      autoload :Query, "heddle/net/dns/query"
      autoload :Question, "heddle/net/dns/question"
      autoload :RateLimit, "heddle/net/dns/rate_limit"
      autoload :Record, "heddle/net/dns/record"
      autoload :Server, "heddle/net/dns/server"

      class << self
        # Answers DNS queries over UDP and TCP until the program ends. Starts a loop if there is none.
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

        # Records of a name, from the name servers of resolv.conf. The search list and the hosts file are not looked at;
        # {Resolver#records} does the former.
        #
        # @param (see Client#records)
        # @return (see Client#records)
        # @raise (see Client#records)
        def records(name, type) = Client.new.records(name, type)
      end
    end
  end
end
