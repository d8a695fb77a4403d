# frozen_string_literal: true

module Heddle
  module Net
    class TLS
      # A certificate with its intermediate certificates and its key.
      #
      # @!attribute certificate [OpenSSL::X509::Certificate]
      # @!attribute chain [Array<OpenSSL::X509::Certificate>] the intermediate certificates
      # @!attribute key [OpenSSL::PKey::PKey]
      KeyPair = Data.define(:certificate, :chain, :key) do
        # @return [Array<String>] the certificate's host names, in lower case; the * in `*.example.com` stands for one
        #   label
        def names
          extension = certificate.extensions.find { |one| one.oid == "subjectAltName" }
          found = extension ? extension.value.scan(/DNS:([^,\s]+)/).flatten : common_names
          found.map(&:downcase)
        end

        # @param within [Numeric] seconds from now
        # @return [Time, nil] when the certificate expires or has expired; nil: it expires later than `within`
        def expiry(within)
          certificate.not_after.utc if certificate.not_after - Time.now <= within
        end

        private

        # Used only if the certificate has no subjectAltName. Clients that follow RFC 9525 ignore these names.
        def common_names = certificate.subject.to_a.filter_map { |name, value| value if name == "CN" }
      end
    end
  end
end
