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
    # Resolves host names without blocking the loop: only the calling fiber waits. Without a scheduler, the thread
    # waits.
    #
    # The resolver follows libc. Numeric addresses need no lookup. For names, it uses the sources in
    # `/etc/nsswitch.conf`: usually the hosts file, then DNS with the search list and options of `resolv.conf` (`ndots`,
    # `timeout`, `attempts`, `rotate`, `use-vc`, `no-aaaa`). All three files are read again when they change.
    #
    # A and AAAA records are requested at the same time. Answers are cached for their TTL (RFC 1035). The zone's SOA
    # record determines for how long the absence of a name is cached (RFC 2308). Fibers that look up the same name at
    # the same time share one query.
    #
    # libc does the lookup in a thread in three cases: the name may be in a source that only libc can read (mdns,
    # resolve, ldap …), the source `files` or `dns` has an action such as `[NOTFOUND=return]`, or the system is macOS,
    # whose resolv.conf is incomplete.
    #
    # Only one scheduler may use a resolver. Resolvers have no global state, so any Ractor can make one.
    #
    # @example
    #   Heddle::Net::Resolver.new.addresses("localhost") # => ["::1", "127.0.0.1"]
    class Resolver
      Autoloads.add(self, "heddle/net/resolver")

      HOSTS = "/etc/hosts"
      RESOLV_CONF = "/etc/resolv.conf"
      NSSWITCH = "/etc/nsswitch.conf"

      # Maximum number of names in the cache; the least recently used name is dropped first.
      CACHE_SIZE = 1_000

      LOOPBACK = ["127.0.0.1", "::1"].freeze
      private_constant :LOOPBACK

      # @param hosts [String] path of the hosts file
      # @param resolv_conf [String] path of the resolver's configuration; not read when `nameservers` are given
      # @param nsswitch [String, nil] path of the list of sources; nil: the hosts file, then DNS
      # @param nameservers [Array<Array(String, Integer)>, nil] numeric addresses and ports of name servers; they
      #   replace `resolv_conf` and `nsswitch`
      # @param options [Hash] only with `nameservers`: `search:` (Array of domains), `ndots:`, `timeout:` (seconds for
      #   one attempt), `attempts:`, `rotate:`, `use_vc:`, `no_aaaa:`
      # @param cache_size [Integer] maximum number of names in the cache
      # @param clock [#call] returns seconds of a monotonic clock
      # @param reachable [#call] takes an address (String) and returns whether this machine has a route to it
      # @raise [ArgumentError] when a name server is not a numeric address
      def initialize(hosts: HOSTS, resolv_conf: RESOLV_CONF, nsswitch: NSSWITCH, nameservers: nil,
                     cache_size: CACHE_SIZE, clock: nil, reachable: nil, **options)
        raise ArgumentError, "#{options.keys.join(", ")}: allowed only together with `nameservers`" if
          !nameservers && options.any?

        @clock = Arguments.callable("clock:", clock) || -> { MonotonicClock.now }
        @hosts = WatchedFile.new(hosts) { |text| Hosts.parse(text) }
        @configuration = Configuration.source(resolv_conf, nameservers, options)
        @sources = source_list(nsswitch, nameservers)
        @system = SystemResolver.new
        @order = AddressOrder.new(Arguments.callable("reachable:", reachable))
        @cache = TTLCache.new(Arguments.count("cache_size:", cache_size, 0), @clock)
        @flights = SingleFlight.new
        @kept = KeptConnections.new(@clock)
      end

      # Returns the addresses of a host, in the order in which a client should try them.
      #
      # @param host [String] a name or a numeric address; with a trailing dot, the search list is not used
      # @return [Array<String>] numeric addresses (frozen); empty if the name does not exist or has no address
      # @raise [ResolutionError] (a Socket::ResolutionError with EAI_AGAIN) when every name server has failed or not
      #   responded
      def addresses(host)
        host = Arguments.string("the host", host)
        literal = Literal.parse(host)
        return literal if literal

        name = Name.parse(host)
        name ? Account.wait_for(Account::DNS) { find(name) } : [].freeze
      end

      # Returns the records of a name. Uses the configured name servers and search list, but not the hosts file.
      #
      # @param name [String] with a trailing dot, the search list is not used
      # @param type [Symbol] `:MX`, `:TXT`, `:SRV` … or `:TYPE1000`
      # @return [Array<DNS::Record>] the records of this type, after following aliases; empty if there are none. Their
      #   TTLs are reduced by the time that they have been in the cache
      # @raise [ArgumentError] for an invalid type
      # @raise [ResolutionError] when every name server has failed or not responded
      def records(name, type)
        DNS::Codes.type_number(type)
        parsed = Name.parse(Arguments.string("the name", name))
        return [].freeze if parsed.nil? || parsed.reserved?

        search(parsed, @configuration.value) do |candidate|
          Account.wait_for(Account::DNS) { client.records(candidate, type) }
        end
      end

      # Returns a name server's response to one question. {DNS::Query#forward} calls this method.
      #
      # @param (see DNS::Client#lookup)
      # @return (see DNS::Client#lookup)
      # @raise (see DNS::Client#lookup)
      def lookup(name, type, dnssec: false, checking_disabled: false)
        Account.wait_for(Account::DNS) { client.lookup(name, type, dnssec:, checking_disabled:) }
      end

      # Removes all answers from the caches.
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
          # Reserved names are looked up in the hosts file only, see {Name#reserved?}.
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

      def look_up(name)
        configuration = current_configuration
        search(name, configuration) { |candidate| resolve(candidate, configuration) }
      end

      # Yields each candidate of the search list until the block finds something, even if the servers failed for an
      # earlier candidate. Stops when a server has not responded at all, because each further candidate would wait for
      # that server again.
      def search(name, configuration)
        failure = nil
        name.candidates(configuration).each do |candidate|
          found = yield candidate
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

      # Clears the cache if the configuration has changed, because the cached answers are from other name servers.
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

      # Replaces a WatchedFile when no file is read.
      # @api private
      Fixed = Struct.new(:value)
    end
  end
end

Heddle::Autoloads.load("heddle/net/resolver")
# Loaded now rather than by autoload, because a lookup in a Ractor of Ruby 3.3 can't load files.
%i[AddressText Codes Data EDNS Message MessageReader MessageWriter Name Question Record].each do |name|
  Heddle::Net::DNS.const_get(name)
end
