# frozen_string_literal: true

require "openssl"

module Heddle
  module Net
    class TLS
      # A certificate for development: its own authority, in memory only, for this machine's own names.
      class SelfSigned
        NAMES = %w[localhost *.localhost].freeze
        ADDRESSES = %w[127.0.0.1 ::1].freeze
        # Browsers accept no longer ones.
        LIFE = 397 * 86_400
        private_constant :NAMES, :ADDRESSES, :LIFE

        # @param name [String, nil] a host name beside localhost
        def initialize(name = nil)
          @names = NAMES | [name].compact.grep_v(/\A[\d.:]*\z/)
        end

        # @return [KeyPair] always the same one
        def load = @load ||= make

        # @return [Object]
        def stamp = nil

        # @return [String]
        def to_s = "a certificate made just now"

        private

        def make
          key = OpenSSL::PKey::EC.generate("prime256v1")
          certificate = OpenSSL::X509::Certificate.new
          certificate.version = 2
          certificate.serial = OpenSSL::BN.rand(64)
          certificate.subject = certificate.issuer = OpenSSL::X509::Name.new([%w[O Heddle], ["CN", @names.first]])
          certificate.public_key = key
          certificate.not_before = Time.now - 3_600
          certificate.not_after = Time.now + LIFE
          extend_certificate(certificate)
          certificate.sign(key, "SHA256")
          KeyPair.new(certificate:, chain: [], key:)
        end

        def extend_certificate(certificate)
          factory = OpenSSL::X509::ExtensionFactory.new(certificate, certificate)
          names = @names.map { |name| "DNS:#{name}" } + ADDRESSES.map { |address| "IP:#{address}" }
          { "basicConstraints" => "CA:FALSE", "keyUsage" => "digitalSignature", "extendedKeyUsage" => "serverAuth",
            "subjectKeyIdentifier" => "hash", "subjectAltName" => names.join(",") }.each do |name, value|
            certificate.add_extension(factory.create_extension(name, value))
          end
        end
      end
    end
  end
end
