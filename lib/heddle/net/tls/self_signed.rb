# frozen_string_literal: true

require "fileutils"

module Heddle
  module Net
    class TLS
      # A self-signed certificate for development, valid for localhost and loopback addresses. It is stored in the
      # user's state folder, so that a browser has to accept it only once. If that folder is not writable, the
      # certificate is kept only in memory.
      class SelfSigned
        # The files of the gem localhost in the user's state folder, and those that `mkcert localhost` makes in an
        # application's folder.
        GEM = %w[localhost.rb/localhost.crt localhost.rb/localhost.key].freeze
        MKCERT = "localhost{,+[0-9],+[0-9][0-9]}.pem"
        NAMES = %w[localhost *.localhost].freeze
        ADDRESSES = %w[127.0.0.1 ::1].freeze
        # Seconds. Browsers reject certificates that are valid for more than 398 days.
        LIFE = 397 * 86_400
        private_constant :GEM, :MKCERT, :NAMES, :ADDRESSES, :LIFE

        class << self
          # @param name [String, nil] another host name for the certificate, beside localhost
          # @return [KeyFiles, SelfSigned] if `name` is nil, localhost or an address: files of mkcert or of the gem
          #   localhost with an unexpired certificate, if there are any; otherwise a self-signed certificate
          def find(name)
            return new(name) unless name.nil? || name.match?(/\A(?:localhost|[\d.:]*)\z/)

            pairs = Dir[MKCERT].map { |path| [path, path.sub(/\.pem\z/, "-key.pem")] }
            pairs << GEM.map { |path| File.join(folder, path) } if folder
            pairs.map { |paths| KeyFiles.new(*paths) }.find { |files| good?(files) } || new(name)
          end

          # @return [String, nil] folder for the state of this user's programs; nil: the user has no home folder
          def folder
            ENV["XDG_STATE_HOME"]&.then { |path| path unless path.empty? } || File.expand_path("~/.local/state")
          rescue ArgumentError
            nil
          end

          private

          def good?(files)
            File.file?(files.certificate_path) && files.load.certificate.not_after > Time.now
          rescue Error
            false
          end
        end

        # @param name [String, nil] another host name, beside localhost
        def initialize(name = nil)
          @names = NAMES | [name].compact.grep_v(/\A[\d.:]*\z/)
        end

        # @return [KeyPair] the same one at each call
        def load = @load ||= kept || make

        # @return [nil] the same value at each call, because the certificate never changes
        def stamp = nil

        # @return [String]
        def to_s = "a self-signed certificate"

        private

        # Reads the stored certificate, or makes and stores one. The lock lets processes that start at the same time use
        # the same certificate.
        # @return [KeyPair, nil] nil: there is no folder, or it is not writable
        def kept
          folder = self.class.folder or return
          folder = File.join(folder, "heddle")
          FileUtils.mkdir_p(folder, mode: 0o700)
          path = File.join(folder, "#{(@names - NAMES).first || NAMES.first}.pem")
          File.open(path, File::RDWR | File::CREAT, 0o600) do |file|
            file.flock(File::LOCK_EX)
            read(file.read) || make.tap do |pair|
              file.rewind
              file.truncate(0)
              file.write(pair.certificate.to_pem, pair.key.private_to_pem)
            end
          end
        rescue SystemCallError
          nil
        end

        def read(text)
          certificate = OpenSSL::X509::Certificate.new(text)
          key = OpenSSL::PKey.read(text)
          usable = certificate.not_after > Time.now + 86_400 && certificate.check_private_key(key)
          KeyPair.new(certificate:, chain: [], key:) if usable
        rescue OpenSSL::OpenSSLError
          nil
        end

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
