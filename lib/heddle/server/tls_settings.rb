# frozen_string_literal: true

module Heddle
  class Server
    # The TLS settings of a bind (an address to listen on). {#problem} and {#acceptor} read the files, {.new} does not.
    #
    # @!attribute files [Array<Array<String, nil>>] pairs of the paths of a certificate and its key; empty: a
    #   self-signed certificate, if `development` allows it
    # @!attribute minimum [String] the lowest accepted version of TLS, "1.2" or "1.3"
    # @!attribute verify [Symbol] whether clients must send a certificate: :none, :optional or :required
    # @!attribute ca [String, nil] the path of the CA certificates that verify the clients' certificates
    # @!attribute development [Boolean] whether a self-signed certificate may be used
    # @!attribute http2 [Boolean] whether the server offers HTTP/2 to clients
    TLSSettings = Data.define(:files, :minimum, :verify, :ca, :development, :http2) do
      # @param certificates [Array<String>]
      # @param keys [Array<String>] one for each certificate; empty if each certificate's file also contains its key
      # @return [Array<Array<String, nil>>]
      # @raise [ConfigurationError]
      def self.pairs(certificates, keys)
        if certificates.empty? && keys.any?
          raise ConfigurationError, "the TLS key #{keys.first} has no certificate: give one with --tls-cert"
        end
        return certificates.zip(keys) if keys.empty? || keys.size == certificates.size

        raise ConfigurationError, "there are #{certificates.size} certificates and #{keys.size} keys: give one key " \
                                  "for each certificate, in the same order"
      end

      def initialize(files: [], minimum: "1.2", verify: :none, ca: nil, development: false, http2: true)
        unless %w[1.2 1.3].include?(minimum)
          raise ConfigurationError, "the minimum TLS version must be 1.2 or 1.3, but is #{minimum.inspect}"
        end
        unless %i[none optional required].include?(verify)
          raise ConfigurationError, "verify must be none, optional or required, but is #{verify.to_s.inspect}"
        end

        super
      end

      # @return [TLSSettings] a copy with other files
      # @raise [ConfigurationError]
      def with_files(certificates, keys) = with(files: self.class.pairs(certificates, keys))

      # Called after an address's parameters have replaced the defaults.
      #
      # @return [self]
      # @raise [ConfigurationError] if `verify` is set but no file of CA certificates is
      def check_verification
        return self if verify == :none || ca

        raise ConfigurationError, "verify needs a file of CA certificates: name it with ca= in the address"
      end

      # Reads the files to check them.
      # @return [String, nil] what is wrong with the files; nil: no mistake was found
      def problem
        check_files
        certificates(nil, nil)
        nil
      rescue BootError, Net::TLS::Error => e
        e.message
      end

      # @param name [String] the host name for a self-signed certificate
      # @param report [#call, nil] called with the name and the fields of each event
      # @return [Net::TLS]
      # @raise [BootError]
      def acceptor(name, report)
        check_files
        found = certificates(name, report)
        check(found, report) if report
        failure = report && ->(error) { report.call(:tls_handshake_failed, error: "#{error.class}: #{error.message}") }
        Net::TLS.new(found, on_failure: failure)
      rescue Net::TLS::Error => e
        raise BootError, e.message
      end

      private

      def check_files
        require "heddle/net/tls"
        return if files.any? || development

        raise BootError, "a tls bind needs a certificate: give one with --tls-cert and --tls-key, " \
                         "or as tls://host:port?cert=site.pem&key=site.key. In development, Heddle makes one."
      rescue LoadError => e
        raise BootError, "a tls bind needs Ruby's openssl, which can't be loaded: #{e.message}"
      end

      def certificates(name, report)
        sources = files.map { |certificate, key| Net::TLS::KeyFiles.new(certificate, key) }
        sources = [Net::TLS::SelfSigned.find(name)] if sources.empty?
        clients = Net::TLS::ClientCheck.new(verify, ca)
        protocols = http2 ? Net::TLS::Certificates::PROTOCOLS : Net::TLS::Certificates::PROTOCOLS - ["h2"]
        Net::TLS::Certificates.new(sources, minimum:, protocols:, clients:, on_event: report)
      end

      def check(found, report)
        report.call(:certificate_self_signed) if found.sources.first.is_a?(Net::TLS::SelfSigned)
        found.report_expiry
      end
    end
  end
end
