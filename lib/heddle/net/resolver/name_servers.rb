# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Asks the configured name servers, one after the other, until one of them answers.
      #
      # @api private
      class NameServers
        # Maximum number of additional queries to follow aliases (CNAME).
        MAX_ALIASES = 8
        # Maximum TTL in seconds if the answer for one of the two record types is missing.
        PARTIAL_TTL = 30

        # @param configuration [Configuration]
        # @param kept [KeptConnections]
        def initialize(configuration, kept)
          @configuration = configuration
          @kept = kept
        end

        # @param name [String] a fully qualified name
        # @return [FoundAddresses] addresses of all types together
        # @raise [ResolutionError] when every server has failed or not responded
        def addresses(name)
          types = @configuration.types
          answers = types.zip(ask(name, types).values_at(*types)).to_h.compact
          answers = answers.to_h { |type, answer| [type, follow(answer, type)] }
          combine(answers, types.size)
        end

        # Asks one question until a server answers it.
        #
        # @param name [String] the name, for the error message
        # @yieldreturn [Query] the question, with a new id for each attempt
        # @return [Reply] the first complete reply without an error
        # @raise [ResolutionError] when every server has failed or not responded
        def reply(name)
          ask_servers(name, -> { [yield] }) do |exchange|
            exchange.replies.each_value.find { |reply| !reply.failed? && !reply.truncated? }
          end
        end

        private

        # Accepts a result without one of the types in two cases. Either the name does not exist, which applies to all
        # types. Or there are addresses of the other type, so that another attempt is not worth the wait.
        def ask(name, types)
          answers = {}
          ask_servers(name, -> { Query.each_type(name, types - answers.keys) }) do |exchange|
            exchange.replies.each { |query, reply| answers[query.question.type] = reply.answer if reply.answer }
            answers if enough?(answers, types)
          end
        end

        # Some servers and firewalls drop queries with EDNS. So the next attempt with a server that did not respond
        # omits EDNS.
        def ask_servers(name, queries)
          troubles = {}
          silent = []
          servers = @configuration.servers
          servers = servers.rotate(rand(servers.size)) if @configuration.rotate?
          (servers * @configuration.attempts).each do |server|
            plain = silent.include?(server)
            exchange = exchange(server, queries.call.map { |one| plain && one.edns_optional? ? one.without_edns : one })
            found = yield(exchange) and return found

            silent << server if exchange.silent?
            troubles[server] = exchange.trouble
          end
          raise ResolutionError.new(failure(name, troubles), silent: silent.any?)
        end

        def exchange(server, queries)
          Exchange.new(server, queries, timeout: @configuration.timeout, use_vc: @configuration.use_vc?,
                                        kept: @kept).run
        end

        def enough?(answers, types)
          answers.size == types.size || answers.each_value.any? { |answer| answer.absent || answer.addresses.any? }
        end

        def follow(answer, type)
          MAX_ALIASES.times { answer = ask(answer.target, [type]).fetch(type).through(answer) if answer.target }
          answer.target ? FoundAddresses.new : answer
        end

        def combine(answers, wanted)
          absent = answers.values.find(&:absent)
          return absent if absent && answers.each_value.all? { |answer| answer.addresses.empty? }

          found, empty = answers.values.partition { |answer| answer.addresses.any? }
          # An answer without addresses and without an SOA record must not be cached (its TTL is 0). The addresses of
          # the other type are cached nevertheless.
          ttls = found.map(&:ttl) + empty.map(&:ttl).reject { |ttl| ttl.zero? && found.any? }
          ttls << PARTIAL_TTL if answers.size < wanted && found.any?
          FoundAddresses.new(addresses: found.flat_map(&:addresses).uniq.freeze, ttl: ttls.min || 0)
        end

        def failure(name, troubles)
          tried = troubles.map { |server, trouble| "#{server.ip_address} port #{server.ip_port}: #{trouble}" }
          "getaddrinfo: no name server could resolve #{name.inspect} (#{tried.join("; ")}; " \
            "#{@configuration.attempts} attempts each); check the name servers in #{@configuration.origin}"
        end
      end
    end
  end
end
