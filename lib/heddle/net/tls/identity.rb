# frozen_string_literal: true

require "ipaddr"
require "openssl"

module Heddle
  module Net
    class TLS
      # Checks that a certificate is valid for the requested host (RFC 9525). If the host is a name, the certificate
      # must contain it as a dNSName; if it is an address, as an iPAddress. The subject (CN) does not count.
      module Identity
        # ASN.1 tags of GeneralName (RFC 5280, 4.2.1.6).
        NAME = 2
        ADDRESS = 7
        private_constant :NAME, :ADDRESS

        # @param certificate [OpenSSL::X509::Certificate, nil]
        # @param host [String] a host name, or an address without brackets
        # @return [void]
        # @raise [OpenSSL::SSL::SSLError]
        def self.check(certificate, host)
          raise OpenSSL::SSL::SSLError, "the server has sent no certificate" unless certificate
          return if matches?(certificate, host)

          raise OpenSSL::SSL::SSLError, "hostname \"#{host}\" does not match the server certificate"
        end

        # @return [Boolean]
        def self.matches?(certificate, host)
          address = address_of(host)
          alternatives(certificate).any? do |tag, value|
            address ? tag == ADDRESS && value == address : tag == NAME && name?(host, value)
          end
        end

        # A wildcard stands for the whole first label (RFC 9525, 6.3).
        def self.name?(host, name)
          name.casecmp?(host) || (name.start_with?("*.") && host.sub(/\A[^.]+/, "*").casecmp?(name))
        end

        # @return [String, nil] the address in bytes; nil: the host is a name
        def self.address_of(host)
          IPAddr.new(host).hton
        rescue IPAddr::Error
          nil
        end

        # @return [Array<Array(Integer, String)>] tag and value of each subjectAltName
        def self.alternatives(certificate)
          extension = certificate.extensions.find { |one| one.oid == "subjectAltName" } or return []
          OpenSSL::ASN1.decode(extension.value_der).value.map { |name| [name.tag, name.value] }
        end

        private_class_method :matches?, :name?, :address_of, :alternatives
      end
    end
  end
end
