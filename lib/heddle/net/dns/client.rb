# frozen_string_literal: true

require_relative "../resolver"

module Heddle
  module Net
    module DNS
      # Asks name servers for records of any type, and caches the answers.
      #
      #     client = Heddle::Net::DNS::Client.new("192.0.2.53", "[2001:db8::53]:5353")
      #     client.records("example.org", :MX).each { |record| puts record.data.exchange }
      #
      # The client sends each query over UDP, from a new source port, with an id from the kernel's random numbers (RFC
      # 5452), with EDNS and a maximum response size of 1,232 bytes. The client omits EDNS if a server does not support
      # it, and uses TCP if the response is truncated. A TCP connection is used again for a query that follows within
      # 5 s. Tasks that ask the same question at the same time share one query.
      #
      # Only one loop, or one thread without a loop, may use a client.
      class Client
        # Maximum bytes of cached answers.
        CACHE_SIZE = 4 * 1_024 * 1_024
        # Maximum number of lookups to find the records of one name. Each lookup after the first follows an alias
        # (CNAME).
        MAX_ALIASES = 8
        WITH_PORT = /\A(?:\[(?<six>[^\]]+)\]|(?<four>[^:\[\]]+)):(?<port>\d{1,5})\z/
        CHECKING_DISABLED = Message::FLAGS[:checking_disabled]

        # @param servers [Array<String>] numeric addresses, each with `:port` unless the port is 53; without an address,
        #   the client takes the servers and their options from resolv.conf
        # @param cache_size [Integer] approximate maximum bytes of cached answers; 0: cache nothing
        # @param min_ttl [Integer] minimum seconds to cache an answer, even if its TTL is lower
        # @param max_ttl [Integer] maximum seconds to cache an answer
        # @param options [Hash] only with `servers`: `timeout:` (seconds to wait for a server's response, default 5),
        #   `attempts:` (maximum number for each server, default 2), `rotate:` (each lookup starts with a random
        #   server), `use_vc:` (TCP only)
        # @param configuration [#value, nil] replaces `servers` and `options`; #value returns a
        #   {Resolver::Configuration}
        # @param clock [#call, nil] returns seconds of a monotonic clock
        # @raise [ArgumentError] when a server is not a numeric address, and for options without servers
        def initialize(*servers, cache_size: CACHE_SIZE, min_ttl: 0, max_ttl: Cache::MAX_TTL, configuration: nil,
                       clock: nil, **options)
          raise ArgumentError, "#{options.keys.join(", ")}: allowed only together with name servers" if
            servers.empty? && options.any?

          @clock = clock || -> { MonotonicClock.now }
          nameservers = servers.map { |server| endpoint(server) } if servers.any?
          @configuration = configuration ||
                           Resolver::Configuration.source(Resolver::RESOLV_CONF, nameservers, options)
          @cache = Cache.new(cache_size, @clock, min_ttl:, max_ttl:)
          @flights = Resolver::SingleFlight.new
          @kept = Resolver::KeptConnections.new(@clock)
        end

        # @param name [String] a fully qualified name
        # @param type [Symbol] `:MX`, `:TXT` … or `:TYPE1000`
        # @return [Array<Record>] the records of this type, after following aliases; empty if there are none. Their TTLs
        #   are reduced by the time that they have been in the cache
        # @raise [ArgumentError] for an invalid type or name
        # @raise [Resolver::ResolutionError] (a Socket::ResolutionError with EAI_AGAIN) when every server has failed or
        #   not responded
        def records(name, type)
          name = normalize(name, type)
          MAX_ALIASES.times do
            message = lookup(name, type)
            aliases = type == :CNAME ? [] : message.aliases(name)
            target = aliases.empty? ? name : aliases.last.data.name.downcase
            found = message.records(target, type)
            return found if found.any? || target == name || known_empty?(message)

            name = target
          end
          []
        end

        # Returns the response to one question, from the cache or from a server. Does not follow aliases.
        #
        # @param name [String]
        # @param type [Symbol]
        # @param dnssec [Boolean] whether to request DNSSEC records, too (the DO bit)
        # @param checking_disabled [Boolean] whether to set the CD bit
        # @return [Message] a response with the RCODE NOERROR or NXDOMAIN
        # @raise [ArgumentError] for an invalid type or name
        # @raise [Resolver::ResolutionError] when every server has failed or not responded
        def lookup(name, type, dnssec: false, checking_disabled: false)
          key = [normalize(name, type), type, dnssec, checking_disabled]
          answer = cached(key) || @flights.share(key) { ask(key) }
          answer.is_a?(Message) ? answer : raise(answer.exception(answer.message))
        end

        # Removes all answers from the cache.
        def clear
          @cache.clear
        end

        # @return [Integer] number of open TCP connections that no query uses now
        def connections = @kept.size

        private

        # @return [String] the name as in a {Question}
        def normalize(name, type)
          Codes.type_number(type)
          Question.of(name, type).name
        rescue MalformedError => e
          raise ArgumentError, e.message
        end

        # @return [Array(String, Integer or nil)] address and port; nil: the default port
        def endpoint(server)
          found = WITH_PORT.match(server) or return [server, nil]
          [found[:six] || found[:four], Integer(found[:port], 10)]
        end

        # Clears the cache first if the configuration has changed, because the cached answers are from other name
        # servers.
        def cached(key)
          current = @configuration.value
          @cache.clear unless current.equal?(@known)
          @known = current
          @cache.fetch(key)
        end

        def ask(key)
          name, type, dnssec, checking_disabled = key
          question = Question.of(name, type)
          flags = Resolver::Query::RECURSION_DESIRED | (checking_disabled ? CHECKING_DISABLED : 0)
          configuration = @known
          reply = Resolver::NameServers.new(configuration, @kept).reply(question.name) do
            Resolver::Query.new(question, flags:, edns: EDNS.of(dnssec:))
          end
          keep(key, configuration, reply.message)
        rescue Resolver::ResolutionError => e
          keep(key, configuration, e)
        end

        def keep(key, configuration, answer)
          @cache.store(key, answer) if configuration.equal?(@known)
          answer
        end

        def known_empty?(message)
          message.rcode == :NXDOMAIN || message.authorities.any? { |record| record.type == :SOA }
        end
      end
    end
  end
end
