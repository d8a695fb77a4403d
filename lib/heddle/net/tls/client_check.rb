# frozen_string_literal: true

module Heddle
  module Net
    class TLS
      # Determines whether the clients of a listener must send a certificate, and which certificate authorities (CA) are
      # accepted. {Certificates} reads the authorities' file again when it changes.
      class ClientCheck
        MODES = {
          none: OpenSSL::SSL::VERIFY_NONE,
          optional: OpenSSL::SSL::VERIFY_PEER,
          required: OpenSSL::SSL::VERIFY_PEER | OpenSSL::SSL::VERIFY_FAIL_IF_NO_PEER_CERT
        }.freeze
        private_constant :MODES

        # @return [ClientCheck] for a listener that asks clients for no certificate
        def self.none = new(:none, nil)

        # @param mode [Symbol] `:none`; `:optional`: check a certificate if the client sends one; `:required`
        # @param path [String, nil] file with the authorities' certificates, in PEM
        def initialize(mode, path)
          @mode = mode
          @verify = MODES.fetch(mode)
          @path = path && File.expand_path(path)
        end

        # @return [Array<OpenSSL::X509::Certificate>] the certificates of the authorities
        # @raise [Error]
        def load
          return [] unless asks?

          OpenSSL::X509::Certificate.load(KeyFiles.read("file of CA certificates", @path))
        rescue OpenSSL::X509::CertificateError
          raise Error, "#{@path} contains no certificate: it must contain the certificates of the authorities that " \
                       "sign your clients' certificates, in PEM (\"-----BEGIN CERTIFICATE-----\" …)"
        end

        # @return [Object] a value that differs after the file has changed
        def stamp = asks? ? KeyFiles.stamp(@path) : nil

        # @param context [OpenSSL::SSL::SSLContext] a context on which `setup` was not called yet
        # @param authorities [Array<OpenSSL::X509::Certificate>] the result of {#load}
        # @param names [Array<String>] the host names of the context
        # @return [void]
        def apply(context, authorities, names)
          # A session that began under other rules, or for another name, must not be resumed.
          rules = [@mode, authorities.map(&:to_der), names]
          context.session_id_context = OpenSSL::Digest::SHA256.digest(Marshal.dump(rules))
          context.verify_mode = @verify
          return unless asks?

          context.client_ca = authorities
          context.cert_store = OpenSSL::X509::Store.new.tap do |store|
            authorities.uniq(&:to_der).each { |authority| store.add_cert(authority) }
          end
        end

        private

        def asks? = @mode != :none
      end
    end
  end
end
