# frozen_string_literal: true

require_relative "../resolver"

module Heddle
  module Net
    module DNS
      # Asks name servers for records of any type, and keeps the answers.
      #
      #     client = Heddle::Net::DNS::Client.new("192.0.2.53", "[2001:db8::53]:5353")
      #     client.records("example.org", :MX).each { |record| puts record.data.exchange }
      #
      # Each question has a port of its own, and an id from the kernel's random numbers (RFC 5452). It goes over UDP
      # with EDNS and 1,232 bytes; without EDNS if a server does not support it; over TCP if the answer is truncated.
      # TCP connections are kept for a burst of questions. Tasks that ask one question at the same time share one query.
      #
      # A client belongs to one loop, or to one thread without a loop.
      class Client
        # Bytes of answers that are kept.
        CACHE_SIZE = 4 * 1_024 * 1_024
        # Aliases followed over several messages.
        MAX_ALIASES = 8
        WITH_PORT = /\A(?:\[(?<six>[^\]]+)\]|(?<four>[^:\[\]]+)):(?<port>\d{1,5})\z/
        CHECKING_DISABLED = Message::FLAGS[:checking_disabled]

        # @param servers [Array<String>] numeric addresses, with `:port` where it is not 53; none: as in resolv.conf
        # @param timeout [Numeric] seconds that a server has for one try
        # @param attempts [Integer] how often each server is tried at most
        # @param cache_size [Integer] bytes of answers that are kept, about; 0: none
        # @param min_ttl [Integer] seconds that an answer is kept at least, whatever its TTL
        # @param max_ttl [Integer] seconds that an answer is kept at most
        # @param options [Hash] `rotate:`, `use_vc:` (TCP only)
        # @param configuration [#value, nil] instead of servers: its #value is a {Resolver::Configuration}
        # @param clock [#call, nil] seconds of a monotonic clock
        # @raise [ArgumentError] when a server is not a numeric address
        def initialize(*servers, timeout: 5, attempts: 2, cache_size: CACHE_SIZE, min_ttl: 0, max_ttl: Cache::MAX_TTL,
                       configuration: nil, clock: nil, **options)
          @clock = clock || -> { MonotonicClock.now }
          nameservers = servers.map { |server| endpoint(server) } if servers.any?
          @configuration = configuration || Resolver::Configuration.source(Resolver::RESOLV_CONF, nameservers,
                                                                           { timeout:, attempts:, **options })
          @cache = Cache.new(cache_size, @clock, min_ttl:, max_ttl:)
          @flights = Resolver::SingleFlight.new
          @kept = Resolver::KeptConnections.new(@clock)
        end

        # @param name [String] a full name
        # @param type [Symbol] `:MX`, `:TXT` … or `:TYPE1000`
        # @return [Array<Record>] records of this type at the end of the name's aliases; empty when there are none. The
        #   TTLs are the remaining ones.
        # @raise [ArgumentError] for an invalid type or name
        # @raise [Resolver::ResolutionError] (a Socket::ResolutionError with EAI_AGAIN) when no server gave an answer
        def records(name, type)
          name = Question.of(name, type).name
          Codes.type_number(type)
          MAX_ALIASES.times do
            message = lookup(name, type)
            aliases = message.aliases(name)
            target = aliases.empty? ? name : aliases.last.data.name.downcase
            found = message.records(target, type)
            return found if found.any? || target == name || known_empty?(message)

            name = target
          end
          []
        rescue MalformedError => e
          raise ArgumentError, e.message
        end

        # The answer to one question as a server gave it, from the cache if it is there.
        #
        # @param name [String]
        # @param type [Symbol]
        # @param dnssec [Boolean] records of DNSSEC, too (the DO bit)
        # @param checking_disabled [Boolean] the CD bit
        # @return [Message] NOERROR or NXDOMAIN
        # @raise [Resolver::ResolutionError] when no server gave an answer
        def lookup(name, type, dnssec: false, checking_disabled: false)
          key = [name, type, dnssec, checking_disabled]
          answer = cached(key) || @flights.share(key) { ask(key) }
          answer.is_a?(Message) ? answer : raise(answer.exception(answer.message))
        end

        # Forgets every answer that is kept.
        def clear
          @cache.clear
        end

        # @return [Integer] connections of TCP that are kept now
        def connections = @kept.size

        private

        # @return [Array(String, Integer)]
        def endpoint(server)
          found = WITH_PORT.match(server) or return [server, nil]
          [found[:six] || found[:four], Integer(found[:port], 10)]
        end

        # Clears the cache first if the configuration has changed, because other name servers gave its answers.
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
