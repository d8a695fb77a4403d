# frozen_string_literal: true

module Heddle
  module Net
    class TLS
      # A certificate and its key in PEM files.
      class KeyFiles
        # @return [String]
        attr_reader :certificate_path
        # @return [String]
        attr_reader :key_path

        # @param path [String]
        # @return [Object, nil] a value that differs after the file has changed; nil: the file can't be examined
        def self.stamp(path)
          stat = File.stat(path)
          [stat.ino, stat.size, stat.mtime]
        rescue SystemCallError
          nil
        end

        # @param what [String] the kind of file, for error messages
        # @param path [String]
        # @return [String]
        # @raise [Error]
        def self.read(what, path)
          File.binread(path)
        rescue Errno::ENOENT
          raise Error, "the #{what} #{path} does not exist"
        rescue Errno::EACCES
          raise Error, "this user has no permission to read the #{what} #{path}"
        rescue SystemCallError => e
          raise Error, "the #{what} #{path} can't be read: #{ErrorText.reason(e)}"
        end

        # @param certificate_path [String] the certificate, followed by the intermediate certificates
        # @param key_path [String, nil] an RSA, EC or Ed25519 key without a passphrase; nil: the key is in the
        #   certificate's file
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
                         "configure two files that belong together"
          end

          KeyPair.new(certificate:, chain:, key:)
        end

        # @return [Object] a value that differs after one of the files has changed
        def stamp = [certificate_path, key_path].map { |path| self.class.stamp(path) }

        # @return [String] the certificate's path, for messages
        def to_s = certificate_path

        private

        def certificates
          OpenSSL::X509::Certificate.load(read("certificate", certificate_path))
        rescue OpenSSL::X509::CertificateError
          raise Error, "#{certificate_path} contains no certificate: it must contain one in PEM " \
                       "(\"-----BEGIN CERTIFICATE-----\" …)"
        end

        # The empty passphrase keeps OpenSSL from asking for one at the terminal.
        def read_key
          text = read("key", key_path)
          OpenSSL::PKey.read(text, "")
        rescue OpenSSL::PKey::PKeyError
          if text.include?("ENCRYPTED")
            raise Error, "the key #{key_path} is encrypted: configure a key without a passphrase " \
                         "(openssl pkey -in #{key_path} -out plain.key)"
          end

          hint = "; if the key is in another file, name it with --tls-key, or with key= in the address"
          raise Error, "#{key_path} contains no key: it must contain one in PEM (\"-----BEGIN PRIVATE KEY-----\" …)" \
                       "#{hint if key_path == certificate_path}"
        end

        def read(what, path) = self.class.read(what, path)
      end
    end
  end
end
