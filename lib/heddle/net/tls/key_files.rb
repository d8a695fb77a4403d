# frozen_string_literal: true

module Heddle
  module Net
    class TLS
      # A certificate and its key in files, in PEM, as certificate authorities deliver them.
      class KeyFiles
        # @return [String]
        attr_reader :certificate_path
        # @return [String]
        attr_reader :key_path

        # @param path [String]
        # @return [Object] another value once the file has changed
        def self.stamp(path)
          stat = File.stat(path)
          [stat.ino, stat.size, stat.mtime]
        rescue SystemCallError
          nil
        end

        # @param what [String] what the file is, for the message
        # @param path [String]
        # @return [String]
        # @raise [Error]
        def self.read(what, path)
          File.binread(path)
        rescue Errno::ENOENT
          raise Error, "the #{what} #{path} does not exist"
        rescue Errno::EACCES
          raise Error, "the #{what} #{path} may not be read by this user"
        rescue SystemCallError => e
          raise Error, "the #{what} #{path} can't be read: #{e.message.sub(/ @ .*/, "")}"
        end

        # @param certificate_path [String] the certificate, followed by the intermediate certificates
        # @param key_path [String, nil] RSA, EC or Ed25519, without a pass phrase; nil: it is in the certificate's file
        def initialize(certificate_path, key_path = nil)
          @certificate_path = File.expand_path(certificate_path)
          @key_path = File.expand_path(key_path || certificate_path)
        end

        # @return [KeyPair]
        # @raise [Error]
        def load
          certificate, *chain = certificates
          key = read_key
          unless certificate.check_private_key(key)
            raise Error, "the key #{key_path} does not belong to the certificate #{certificate_path}: " \
                         "name the two files that were made together"
          end

          KeyPair.new(certificate:, chain:, key:)
        end

        # @return [Object] another value once a file has changed
        def stamp = [certificate_path, key_path].map { |path| self.class.stamp(path) }

        # @return [String] for a person
        def to_s = certificate_path

        private

        def certificates
          OpenSSL::X509::Certificate.load(read("certificate", certificate_path))
        rescue OpenSSL::X509::CertificateError
          raise Error, "#{certificate_path} holds no certificate: it must have one in PEM, " \
                       "from \"-----BEGIN CERTIFICATE-----\" on"
        end

        # With an empty pass phrase, so that OpenSSL asks for none at a terminal.
        def read_key
          text = read("key", key_path)
          OpenSSL::PKey.read(text, "")
        rescue OpenSSL::PKey::PKeyError
          if text.include?("ENCRYPTED")
            raise Error, "the key #{key_path} is encrypted: give one without a pass phrase " \
                         "(openssl pkey -in #{key_path} -out plain.key)"
          end

          raise Error, "#{key_path} holds no key: it must have one in PEM, such as " \
                       "\"-----BEGIN PRIVATE KEY-----\"#{" (name its file with key=)" if key_path == certificate_path}"
        end

        def read(what, path) = self.class.read(what, path)
      end
    end
  end
end
