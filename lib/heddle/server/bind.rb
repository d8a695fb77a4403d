# frozen_string_literal: true

module Heddle
  class Server
    # Parses the addresses of the option `bind`: `tcp://host:port`, `tls://host:port`, `unix:path` or `systemd:name`.
    # Parameters may follow, after a question mark.
    module Bind
      SCHEME = %r{\A(tcp|http|tls|ssl|https|unix|systemd)(?::(?://)?|\z)}
      ALIASES = { nil => "tcp", "http" => "tcp", "ssl" => "tls", "https" => "tls" }.freeze
      HOST_AND_PORT = /\A(\[[^\]]+\]|[^:\[\]]*)(?::(\d+))?\z/
      # The parameters that each kind of address can have.
      PARAMETERS = {
        "tcp" => %w[proxy_protocol reuse_port v6only],
        "tls" => %w[proxy_protocol reuse_port v6only cert key min verify ca],
        "unix" => %w[proxy_protocol mode owner],
        "systemd" => %w[proxy_protocol tls cert key min verify ca]
      }.freeze
      # Maximum number of connections that the kernel queues until the server accepts them. Linux limits it to
      # net.core.somaxconn.
      BACKLOG = 65_535
      private_constant :SCHEME, :ALIASES, :HOST_AND_PORT, :PARAMETERS

      class << self
        # @param address [String]
        # @param port [Integer] the port to use if the address contains none
        # @param defaults [TLSSettings] each of these settings applies unless the address has a parameter for it
        # @return [TCPBind, UnixBind, SystemdBind]
        # @raise [ConfigurationError]
        def parse(address, port, defaults = TLSSettings.new)
          scheme, rest, parameters = split(address)
          shared = { proxied: switch(address, parameters, "proxy_protocol") }
          case scheme
          when "unix"
            UnixBind.new(rest, mode(address, parameters), owner: parameters["owner"]&.first, **shared)
          when "systemd"
            tls = tls(address, parameters, defaults) if switch(address, parameters, "tls") || parameters.key?("cert")
            SystemdBind.new(rest.empty? ? nil : rest, tls:, **shared)
          else
            tls = tls(address, parameters, defaults) if scheme == "tls"
            tcp(address, rest, parameters, port, tls:, **shared)
          end
        end

        private

        # @return [Array] the kind, the text between the kind and the question mark, and the parameters
        def split(address)
          scheme = address[SCHEME, 1]
          rest, query = (scheme ? address.sub(SCHEME, "") : address).split("?", 2)
          scheme = ALIASES.fetch(scheme, scheme)
          reject(address) if rest.to_s.empty? && scheme != "systemd"
          parameters = parameters_of(address, query.to_s)
          unknown = parameters.keys - PARAMETERS.fetch(scheme)
          unless unknown.empty?
            raise ConfigurationError, "--bind #{address}: unknown parameter #{unknown.first.inspect} for a #{scheme} " \
                                      "address (known: #{PARAMETERS.fetch(scheme).join(", ")})"
          end

          [scheme, rest.to_s, parameters]
        end

        def parameters_of(address, query)
          return {} if query.empty?

          require "uri" # loaded only here, because most addresses have no parameters
          URI.decode_www_form(query).group_by(&:first).transform_values { |pairs| pairs.map(&:last) }
        rescue ArgumentError
          raise ConfigurationError, "--bind #{address}: the parameters after the ? can't be read. Write them as in a " \
                                    "URL: name=value&name=value"
        end

        def reject(address)
          raise ConfigurationError, "--bind must be host:port, [::1]:port, :port (every IPv4 address), " \
                                    "tls://host:port, unix:path or systemd, but is #{address.inspect}"
        end

        def tcp(address, rest, parameters, port, **shared)
          match = HOST_AND_PORT.match(rest) or reject(address)
          port = match[2].to_i if match[2]
          raise ConfigurationError, "--bind #{address}: the port must be at most 65535" if port > 65_535

          host = match[1].empty? ? "0.0.0.0" : match[1].delete("[]")
          TCPBind.new(host, port, reuse_port: switch(address, parameters, "reuse_port"),
                                  v6only: switch(address, parameters, "v6only") { nil }, **shared)
        end

        def mode(address, parameters)
          text = parameters["mode"]&.first or return
          return text.to_i(8) if text.match?(/\A[0-7]{3,4}\z/)

          raise ConfigurationError, "--bind #{address}: mode must be permissions such as 660, but is #{text.inspect}"
        end

        def switch(address, parameters, name)
          text = parameters[name]&.first
          return block_given? ? yield : false unless text

          case text
          when "on", "true", "yes", "1" then true
          when "off", "false", "no", "0" then false
          else raise ConfigurationError, "--bind #{address}: #{name} must be on or off, but is #{text.inspect}"
          end
        end

        def tls(address, parameters, defaults)
          settings = defaults.with(**tls_settings(parameters)).check_verification
          if parameters.key?("ca") && settings.verify == :none
            raise ConfigurationError, "ca needs verify=optional or verify=required, but verify is none"
          end

          certificates, keys = parameters.values_at("cert", "key")
          raise ConfigurationError, "key= needs cert= in the same address" if keys && !certificates

          certificates ? settings.with_files(certificates, keys || []) : settings
        rescue ConfigurationError => e
          raise ConfigurationError, "--bind #{address}: #{e.message}"
        end

        def tls_settings(parameters)
          { minimum: parameters["min"]&.first, verify: parameters["verify"]&.first&.to_sym,
            ca: parameters["ca"]&.first }.compact
        end
      end
    end
  end
end
