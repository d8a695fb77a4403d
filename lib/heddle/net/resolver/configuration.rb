# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # The name servers and options of the resolver, as in resolv.conf(5). Frozen.
      #
      # @api private
      class Configuration
        PORT = 53
        # Maximum number of servers, as in libc.
        MAX_SERVERS = 3
        MAX_NDOTS = 15
        MAX_TIMEOUT = 30
        MAX_ATTEMPTS = 5

        # name of an option => its keyword, and the maximum value as in libc
        NUMBERS = {
          "ndots" => [:ndots, MAX_NDOTS].freeze,
          "timeout" => [:timeout, MAX_TIMEOUT].freeze,
          "attempts" => [:attempts, MAX_ATTEMPTS].freeze
        }.freeze
        FLAGS = { "rotate" => :rotate, "use-vc" => :use_vc, "no-aaaa" => :no_aaaa }.freeze

        # @param path [String] path of a resolv.conf, which is read again when it changes
        # @param nameservers [Array<Array(String, Integer)>, nil] replace the file, together with the options; nil: the
        #   file is used, and the options are ignored
        # @return [#value] an object whose `value` is the current Configuration
        def self.source(path, nameservers, options)
          return WatchedFile.new(path) { |text| parse(text, path) } unless nameservers

          Fixed.new(new(nameservers:, **options))
        end

        # Reads a resolv.conf. The environment's LOCALDOMAIN and RES_OPTIONS override the file, as in libc.
        # @param text [String]
        # @param origin [String] the file's path, for error messages
        # @param environment [#[]]
        # @return [Configuration]
        def self.parse(text, origin = "resolv.conf", environment = ENV)
          settings = { nameservers: [], search: nil, origin: origin }
          text.each_line { |line| read_line(line, settings) }
          read_options(environment["RES_OPTIONS"].to_s.split, settings)
          local = environment["LOCALDOMAIN"].to_s.split
          settings[:search] = local unless local.empty?
          settings[:search] ||= own_domain
          settings[:nameservers] << ["127.0.0.1", PORT] if settings[:nameservers].empty?
          new(**settings)
        end

        def self.read_line(line, settings)
          return if line.start_with?("#", ";")

          keyword, *words = line.split
          case keyword
          when "nameserver" then read_server(words.first, settings[:nameservers])
          when "search" then settings[:search] = words
          when "domain" then settings[:search] = words.first(1)
          when "options" then read_options(words, settings)
          end
        end

        # As in libc, a server that is not an IP address is skipped: resolving its name would need a server.
        def self.read_server(address, servers)
          servers << [address, PORT] if address && servers.size < MAX_SERVERS && !Array(Literal.parse(address)).empty?
        end

        def self.read_options(words, settings)
          words.each do |word|
            name, number = word.split(":", 2)
            if FLAGS.key?(name)
              settings[FLAGS[name]] = true
            elsif NUMBERS.key?(name) && number&.match?(/\A\d+\z/)
              key, most = NUMBERS[name]
              settings[key] = number.to_i.clamp(key == :ndots ? 0 : 1, most)
            end
          end
        end

        def self.own_domain
          Socket.gethostname.split(".", 2).drop(1)
        end
        private_class_method :read_line, :read_server, :read_options, :own_domain

        attr_reader :servers, :search, :ndots, :timeout, :attempts, :origin

        # @param nameservers [Array<Array(String, Integer)>] numeric addresses and ports
        # @param search [Array<String>] domains
        # @param ndots [Integer] a name with at least this many dots is tried unchanged before the search list
        # @param timeout [Numeric] seconds to wait for the response of a server
        # @param attempts [Integer] maximum number of attempts for each server
        # @param rotate [Boolean] whether each lookup starts with a random server
        # @param use_vc [Boolean] whether to use only TCP
        # @param no_aaaa [Boolean] whether to request only IPv4 addresses
        # @param origin [String] where the servers are configured, for error messages
        def initialize(nameservers:, search: [], ndots: 1, timeout: 5, attempts: 2, rotate: false, use_vc: false,
                       no_aaaa: false, origin: "nameservers:")
          @servers = Array(nameservers).map { |address, port| server(address, port || PORT) }.freeze
          @search = search.map { |domain| domain.b.downcase.chomp(".").freeze }.reject(&:empty?).freeze
          @ndots = ndots
          @timeout = Arguments.interval(timeout, "timeout:")
          @attempts = Arguments.count("attempts:", attempts, 1)
          @rotate = rotate
          @use_vc = use_vc
          @no_aaaa = no_aaaa
          @origin = origin
          freeze
        end

        def rotate? = @rotate
        def use_vc? = @use_vc

        # @return [Array<Symbol>] record types to ask for
        def types = @no_aaaa ? %i[A] : %i[A AAAA]

        private

        def server(address, port)
          raise ArgumentError, "the port of name server #{address} must be 1 to 65535, not #{port}" \
            unless port.to_i.between?(1, 65_535)

          Addrinfo.getaddrinfo(address, port, nil, :DGRAM, nil, Socket::AI_NUMERICHOST).first
        rescue SocketError
          raise ArgumentError, "name server #{address.inspect} is not an IP address, such as 192.0.2.1 or 2001:db8::1"
        end
      end
    end
  end
end
