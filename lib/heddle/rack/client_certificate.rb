# frozen_string_literal: true

module Heddle
  module Rack
    # The env's keys for a client that was asked for a TLS certificate: under the names of Apache's mod_ssl, which
    # nginx has too, and under Puma's.
    module ClientCertificate
      class << self
        # @param env [Hash]
        # @param socket [OpenSSL::SSL::SSLSocket] of the client; remembers what was found out
        # @return [void]
        def add(env, socket)
          entries = socket.instance_variable_get(:@heddle_client) ||
                    socket.instance_variable_set(:@heddle_client, entries_of(socket.peer_cert))
          env.merge!(entries)
        end

        private

        # The certificate has been checked: a bad one ends the handshake.
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
