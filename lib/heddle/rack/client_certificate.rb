# frozen_string_literal: true

require "heddle/side_table"

module Heddle
  module Rack
    # Adds keys to the env of requests whose client was asked for a TLS certificate. The keys have the names of Apache's
    # mod_ssl; `puma.peercert` is as in Puma.
    module ClientCertificate
      ENTRIES = SideTable.new(:heddle_client_certificates)
      private_constant :ENTRIES

      class << self
        # @param env [Hash]
        # @param socket [OpenSSL::SSL::SSLSocket] the client's
        # @return [void]
        def add(env, socket)
          env.merge!(ENTRIES.fetch(socket) { entries_of(socket.peer_cert) })
        end

        private

        # The certificate is known to be valid, because otherwise OpenSSL would have rejected the handshake.
        def entries_of(certificate)
          return { "SSL_CLIENT_VERIFY" => "NONE" }.freeze unless certificate

          { "SSL_CLIENT_VERIFY" => "SUCCESS",
            "SSL_CLIENT_CERT" => certificate.to_pem.freeze,
            "SSL_CLIENT_S_DN" => name(certificate.subject), "SSL_CLIENT_I_DN" => name(certificate.issuer),
            "SSL_CLIENT_M_SERIAL" => certificate.serial.to_s(16).freeze,
            "puma.peercert" => certificate }.freeze
        end

        def name(name) = name.to_s(OpenSSL::X509::Name::RFC2253).freeze
      end
    end
  end
end
