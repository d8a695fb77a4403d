# frozen_string_literal: true

module Heddle
  module Net
    class TLS
      # What an application is told of a client that was asked for a certificate: the names of mod_ssl, which nginx has
      # too, and Puma's.
      module Client
        # @param env [Hash]
        # @param socket [OpenSSL::SSL::SSLSocket]
        # @return [void]
        def tell_client(env, socket)
          told = socket.instance_variable_get(:@heddle_client) ||
                 socket.instance_variable_set(:@heddle_client, facts(socket.peer_cert))
          env.merge!(told)
        end

        private

        # The certificate has been checked: a bad one ends the handshake.
        def facts(certificate)
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
