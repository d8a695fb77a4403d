# frozen_string_literal: true

require "heddle/autoloads"
require "heddle/monotonic_clock"
require "heddle/native"
require "heddle/net/connector"
require "heddle/net/dns"
require "heddle/net/dns/cache"
require "socket"

module Heddle
  module Net
    # Turns a host name into addresses without blocking the loop: only the calling fiber waits. Without a scheduler it
    # waits like any blocking Ruby code.
    #
    # The order is libc's: numeric addresses as they are, then the sources of `/etc/nsswitch.conf`, usually the hosts
    # file and then DNS with the search list and the options of `resolv.conf` (`ndots`, `timeout`, `attempts`,
    # `rotate`, `use-vc`, `no-aaaa`). All three files are read again when they change. A and AAAA records are asked
    # for at once; answers are kept for as long as their TTL says (RFC 1035), absent names for as long as the zone's
    # SOA says (RFC 2308). Fibers that ask for one name at the same time share one query.
    #
    # In a thread, libc looks up the names that only another source of nsswitch.conf can know (mdns, resolve, ldap …),
    # and all names on macOS, whose resolv.conf is incomplete.
    #
    # A resolver belongs to one scheduler. It has no global state and can be made in any Ractor.
    #
    # @example
    #   Heddle::Net::Resolver.new.addresses("localhost") # => ["::1", "127.0.0.1"]
    class Resolver
      Autoloads.add(self, "heddle/net/resolver")

      HOSTS = "/etc/hosts"
      RESOLV_CONF = "/etc/resolv.conf"
      NSSWITCH = "/etc/nsswitch.conf"

      # Names kept in the cache; the least recently used one is dropped first.
      CACHE_SIZE = 1_000

      LOOPBACK = ["127.0.0.1", "::1"].freeze
      private_constant :LOOPBACK

      # @param hosts [String] path of the hosts file
      # @param resolv_conf [String] path of the resolver's configuration; not read when `nameservers` are given
      # @param nsswitch [String, nil] path of the list of sources; nil: the hosts file, then DNS
      # @param nameservers [Array<Array(String, Integer)>, nil] numeric addresses and ports to ask; then neither
      #   `resolv_conf` nor `nsswitch` is read
      # @param options [Hash] with `nameservers` only: `search:` (Array of domains), `ndots:`, `timeout:` (seconds for
      #   one try), `attempts:`, `rotate:`, `use_vc:`, `no_aaaa:`
      # @param cache_size [Integer] names to keep
      # @param clock [#call] seconds of a monotonic clock
      # @param reachable [#call] whether this machine has a route to an address (String)
      # @raise [ArgumentError] when a name server is not a numeric address
      def initialize(hosts: HOSTS, resolv_conf: RESOLV_CONF, nsswitch: NSSWITCH, nameservers: nil,
                     cache_size: CACHE_SIZE, clock: nil, reachable: nil, **options)
        if !nameservers && options.any?
          raise ArgumentError, "#{options.keys.join(", ")} can only be given together with nameservers"
        end

        @clock = clock || -> { MonotonicClock.now }
        @hosts = WatchedFile.new(hosts) { |text| Hosts.parse(text) }
        @configuration = Configuration.source(resolv_conf, nameservers, options)
        @sources = source_list(nsswitch, nameservers)
        @system = SystemResolver.new
        @order = AddressOrder.new(reachable)
        @cache = TTLCache.new(cache_size, @clock)
        @flights = SingleFlight.new
        @kept = KeptConnections.new(@clock)
      end

      # The addresses of a host, in the order in which to try them.
      #
      # @param host [String] a name or a numeric address; with a trailing dot, the search list is not used
      # @return [Array<String>] numeric addresses (frozen); empty when the name does not exist or has none
      # @raise [ResolutionError] (a Socket::ResolutionError with EAI_AGAIN) when no name server gave an answer
      def addresses(host)
        host = host.to_str
        literal = Literal.parse(host)
        return literal if literal

        name = Name.parse(host)
        name ? Account.wait_for(Account::DNS) { find(name) } : [].freeze
      end

      # The records of a name, by the name servers and the search list of `resolv.conf`. The hosts file is not read.
      #
      # @param name [String] with a trailing dot, the search list is not used
      # @param type [Symbol] `:MX`, `:TXT`, `:SRV` … or `:TYPE1000`
      # @return [Array<DNS::Record>] those at the end of the name's aliases, with what is left of their TTL; empty when
      #   there are none
      # @raise [ArgumentError] for an invalid type
      # @raise [ResolutionError] when no name server gave an answer
      def records(name, type)
        DNS::Codes.type_number(type)
        parsed = Name.parse(name.to_str)
        return [].freeze if parsed.nil? || parsed.reserved?

        parsed.candidates(@configuration.value).each do |candidate|
          found = Account.wait_for(Account::DNS) { client.records(candidate, type) }
          return found unless found.empty?
        end
        [].freeze
      end

      # The answer to one question as a name server gave it. {DNS::Query#forward} calls it.
      #
      # @param (see DNS::Client#lookup)
      # @return (see DNS::Client#lookup)
      # @raise (see DNS::Client#lookup)
      def lookup(name, type, dnssec: false, checking_disabled: false)
        Account.wait_for(Account::DNS) { client.lookup(name, type, dnssec:, checking_disabled:) }
      end

      # Forgets every answer that is kept.
      def clear
        @cache.clear
        @client&.clear
      end

      private

      def client
        @client ||= DNS::Client.new(configuration: @configuration, clock: @clock)
      end

      def find(name)
        @sources.value.plan(name.to_s).each do |source|
          # Only the hosts file may say anything about names that RFC 6761 reserves.
          next if source != :files && name.reserved?

          found = look_in(source, name)
          return found unless found.empty?
        end
        name.localhost? ? @order.sort(LOOPBACK) : [].freeze
      end

      def look_in(source, name)
        case source
        when :files then @order.sort(@hosts.value[name.to_s])
        when :dns then look_up(name)
        when :system then @flights.share(name.to_s) { @system.addresses(name.to_s) }
        end
      end

      # Walks the search list. A server's failure for one candidate does not hide a later one. But when a server has
      # not responded, the walk ends, because each candidate would wait for that server again.
      def look_up(name)
        configuration = current_configuration
        failure = nil
        name.candidates(configuration).each do |candidate|
          found = resolve(candidate, configuration)
          return found unless found.empty?
        rescue ResolutionError => e
          raise if e.silent?

          failure ||= e
        end
        raise failure if failure

        [].freeze
      end

      def resolve(candidate, configuration)
        @cache.fetch(candidate) || @flights.share(candidate) do
          answer = NameServers.new(configuration, @kept).addresses(candidate)
          found = @order.sort(answer.addresses)
          @cache.store(candidate, found, answer.ttl) if configuration.equal?(@known)
          found
        end
      end

      # Clears the cache if the configuration has changed, because other name servers gave its answers.
      def current_configuration
        current = @configuration.value
        @cache.clear unless current.equal?(@known)
        @known = current
      end

      def source_list(path, nameservers)
        return Fixed.new(NameSources.libc_only) if !nameservers && RUBY_PLATFORM.include?("darwin")
        return Fixed.new(NameSources.usual) if nameservers || !path

        WatchedFile.new(path) { |text| NameSources.parse(text) }
      end

      # Stands in for a WatchedFile when no file is read.
      # @api private
      Fixed = Struct.new(:value)
    end
  end
end

Heddle::Autoloads.load("heddle/net/resolver")
# Loaded now and not by autoload, because a lookup in a Ractor of Ruby 3.3 can't load files.
%i[AddressText Codes Data EDNS Message MessageReader MessageWriter Name Question Record].each do |name|
  Heddle::Net::DNS.const_get(name)
end
