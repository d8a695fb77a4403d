# frozen_string_literal: true

require "uri"

module Heddle
  module CLI
    class InitCommand
      # Translates a listening address from Puma's syntax to the syntax of Heddle's option `bind`.
      class PumaAddress
        # The host that replaces an empty one. Puma passes an empty host to the system's resolver, and listens on every
        # IPv4 address.
        EVERY_HOST = "0.0.0.0"
        private_constant :EVERY_HOST

        # @param host [String]
        # @return [String] the host; an IPv6 address in brackets
        def self.host(host)
          return EVERY_HOST if host.empty?

          host.include?(":") && !host.start_with?("[") ? "[#{host}]" : host
        end

        # @param remarks [Array<String>] the list that receives a remark about each difference
        def initialize(remarks)
          @remarks = remarks
        end

        # @param url [String] the argument of Puma's `bind`
        # @return [String]
        # @raise [PumaTranslation::SkippedError]
        def of_url(url)
          uri = url.match(%r{\A(tcp|unix|ssl)://([^?]*)(?:\?(.*))?\z}) or reject("only tcp, unix and ssl addresses " \
                                                                                 "can be translated")
          parameters = URI.decode_www_form(uri[3].to_s).to_h
          case uri[1]
          when "tcp" then tcp(with_host(uri[2]), parameters)
          when "unix" then unix(uri[2], parameters)
          else tls(with_host(uri[2]), parameters)
          end
        end

        # @param host [String]
        # @param port [Integer, String]
        # @param options [Hash] the options of Puma's `ssl_bind`
        # @return [String]
        # @raise [PumaTranslation::SkippedError]
        def of_tls(host, port, options)
          reject("Heddle reads certificates from files only") if options.key?(:cert_pem) || options.key?(:key_pem)

          tls("#{PumaAddress.host(host)}:#{port}", options.to_h { |name, value| [name.to_s, value] })
        end

        private

        # Removes what Puma ignores (a path, and a colon without a port), and replaces an empty host.
        def with_host(address) = address.sub(%r{:?(?:/.*)?\z}m, "").sub(/\A(?=:\d+\z|\z)/, EVERY_HOST)

        def tcp(address, parameters)
          drop(parameters, "backlog" => "net.core.somaxconn limits it", "low_latency" => "Heddle always does this")
          address
        end

        def unix(path, parameters)
          reject("Heddle does not listen on sockets without a file") if path.start_with?("@")

          mode, umask = %w[mode umask].map { |name| parameters.delete(name) }
          drop(parameters, "backlog" => "net.core.somaxconn limits it")
          umask = Integer(umask || 0, exception: false) or reject("its umask is not a number")
          # Every user may connect to Puma's socket by default.
          mode = mode ? mode.to_i(8) : 0o777 & ~umask
          "unix:#{InitCommand.relative(path)}?mode=#{format("%03o", mode)}"
        end

        def tls(address, parameters)
          kept = parameters.slice("cert", "key").map { |name, path| "#{name}=#{file(path)}" }
          @remarks << "In development Heddle makes a certificate; elsewhere set cert and key." if kept.empty?
          kept.concat(client_verification(parameters))
          drop(parameters.except("cert", "key", "ca", "verify_mode"), {})
          ["tls://#{address}", *(kept.join("&") unless kept.empty?)].join("?")
        end

        def client_verification(parameters)
          verify = { "peer" => "optional", "force_peer" => "required" }[parameters["verify_mode"].to_s]
          return [] unless verify

          reject("verify_mode needs ca, the authorities of client certificates") unless parameters["ca"]
          ["verify=#{verify}", "ca=#{file(parameters["ca"])}"]
        end

        def file(path) = InitCommand.relative(path.to_s).gsub(/[%&+#;,?]/) { |sign| format("%%%02X", sign.ord) }

        def drop(parameters, why)
          parameters.each_key { |name| @remarks << "#{name} is left out#{": #{why[name]}" if why[name]}" }
        end

        def reject(why) = raise(PumaTranslation::SkippedError, why)
      end
    end
  end
end
