# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # Where a server listens, and which proxies it trusts to report clients' addresses. Included in {Configuration}.
      module Addresses
        # Matches an address that contains its own port, or needs no port.
        OWN_PORT = /\A(?:unix:|systemd)|:\d+(?:\?|\z)/
        private_constant :OWN_PORT

        # @return [Array<Bind>] the addresses to listen on
        # @raise [ConfigurationError]
        def binds
          trusted_networks # raises if one is wrong
          defaults = tls_defaults
          found = addresses.each_with_index.map { |address, index| parse_bind(address, index, defaults) }
          refuse_tls(found.index(&:tls)) if Modes.fetch(mode).rejects.key?(:tls) && found.any?(&:tls)
          found
        end

        # @return [Net::Networks] the networks of the trusted proxies
        # @raise [ConfigurationError]
        def trusted_networks
          Net::Networks.new(trusted_proxies)
        rescue ArgumentError => e
          raise ConfigurationError, "trusted_proxies (#{source(:trusted_proxies)}): #{e.message}"
        end

        # @return [Array<String>] the addresses with their ports, for display
        def addresses_with_ports
          addresses.map { |address| OWN_PORT.match?(address) ? address : address.sub(/(?=\?|\z)/, ":#{port}") }
        end

        # @return [Boolean] whether the option `bind` is set, and each of its addresses has its own port
        def own_ports? = bind.to_a.any? && bind.all? { |address| OWN_PORT.match?(address) }

        # @return [String, nil] a warning if the option `port` has no effect, because each address has its own port
        def port_warning
          return if source(:port).kind == :default || !own_ports?

          "port #{port} (#{source(:port)}) has no effect: each address of bind (#{source(:bind)}) has its own port"
        end

        private

        def addresses
          return bind unless bind.nil? || bind.empty?

          InheritedSocket.any? ? ["systemd"] : ["localhost"]
        end

        def parse_bind(address, index, defaults)
          Bind.parse(address, port, defaults)
        rescue ConfigurationError => e
          raise ConfigurationError, e.message.sub(/\A--bind/, bind_place(index))
        end

        # @return [String] the beginning of an error message: the place where the address was set
        def bind_place(index = -1)
          written = source(:bind)
          written.kind == :file ? "#{written.place_of(index)}: bind" : written.to_s
        end

        def tls_defaults
          TLSSettings.new(files: TLSSettings.pairs(tls_cert, tls_key),
                          development: environment == "development", http2: http2 != :off)
        end

        def refuse_tls(index)
          raise ConfigurationError, "#{bind_place(index)} with TLS does not work in mode #{mode}: " \
                                    "#{Modes.fetch(mode).rejects[:tls]}"
        end
      end
    end
  end
end
