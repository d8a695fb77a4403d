# frozen_string_literal: true

module Heddle
  module Net
    class TLS
      # Decides whether a listener's clients must send certificates, and which authorities may have signed them. The
      # file is read anew when it changes, as {Certificates} reads its own.
      class ClientCheck
        MODES = {
          none: OpenSSL::SSL::VERIFY_NONE,
          optional: OpenSSL::SSL::VERIFY_PEER,
          required: OpenSSL::SSL::VERIFY_PEER | OpenSSL::SSL::VERIFY_FAIL_IF_NO_PEER_CERT
        }.freeze
        private_constant :MODES

        # @return [ClientCheck] that asks clients for no certificate
        def self.none = new(:none, nil)

        # @param mode [Symbol] `:none`; `:optional`: a certificate is checked if the client sends one; `:required`
        # @param path [String, nil] certificates of the authorities, in PEM
        def initialize(mode, path)
          @mode = mode
          @verify = MODES.fetch(mode)
          @path = path && File.expand_path(path)
        end

        # @return [Array<OpenSSL::X509::Certificate>] the authorities
        # @raise [Error]
        def load
          return [] unless asks?

          OpenSSL::X509::Certificate.load(KeyFiles.read("file of authorities", @path))
        rescue OpenSSL::X509::CertificateError
          raise Error, "#{@path} holds no certificate: it must have the certificates of the authorities that " \
                       "sign your clients' certificates, in PEM, from \"-----BEGIN CERTIFICATE-----\" on"
        end

        # @return [Object] another value once the file has changed
        def stamp = asks? ? KeyFiles.stamp(@path) : nil

        # @param context [OpenSSL::SSL::SSLContext] that is not set up yet
        # @param authorities [Array<OpenSSL::X509::Certificate>] what {#load} has given
        # @param names [Array<String>] the host names that the context is for
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
