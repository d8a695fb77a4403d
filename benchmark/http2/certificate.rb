# frozen_string_literal: true

require "openssl"

module Bench
  module HTTP2
    # The key and the certificate of the servers that take them from files: P-256, for a day.
    module Certificate
      DAY = 86_400 # seconds

      module_function

      # @param folder [String]
      # @return [Array(String, String)] the paths of certificate and key
      def write(folder)
        key = OpenSSL::PKey::EC.generate("prime256v1")
        { "certificate.pem" => make(key).to_pem, "key.pem" => key.private_to_pem }.map do |name, text|
          File.join(folder, name).tap { |path| File.write(path, text) }
        end
      end

      def make(key)
        OpenSSL::X509::Certificate.new.tap do |certificate|
          certificate.version = 2
          certificate.serial = 1
          certificate.subject = certificate.issuer = OpenSSL::X509::Name.new([%w[CN localhost]])
          certificate.public_key = key
          certificate.not_before = Time.now - DAY
          certificate.not_after = Time.now + DAY
          certificate.add_extension(OpenSSL::X509::ExtensionFactory.new.create_extension("subjectAltName",
                                                                                         "DNS:localhost,IP:127.0.0.1"))
          certificate.sign(key, "SHA256")
        end
      end
      private_class_method :make
    end
  end
end
