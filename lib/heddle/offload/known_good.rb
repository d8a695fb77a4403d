# frozen_string_literal: true

module Heddle
  module Offload
    # A native library whose calls may run on any thread: its source was read for that, and a trial has shown it.
    #
    # @!attribute file [String] the beginning of the native library's file name
    # @!attribute gem [String] what brings it
    # @!attribute tried [String] the versions that were tried
    # @!attribute needs [Array<String>] beginnings of the names of the libraries that it was tried with, besides the
    #   system's and Ruby's; where it needs others it is not known good
    # @!attribute trial [String] the test that shows it
    #
    # @api private
    KnownGood = Data.define(:file, :gem, :tried, :needs, :trial) do
      # @return [String] as the extension takes it
      def to_s = [file, *needs].join(" ")
    end

    # The shipped list. Each entry has a trial in this repository; the versions are those that it ran with.
    #
    # @api private
    KNOWN_GOOD = [
      KnownGood.new(file: "pg_ext.", gem: "pg", tried: "1.7.0 with the libpq that it brings", needs: %w[libpq],
                    trial: "test/trials/databases_test.rb"),
      KnownGood.new(file: "mysql2.", gem: "mysql2", tried: "0.5.7 with libmariadb 3.3", needs: %w[libmariadb],
                    trial: "test/trials/databases_test.rb"),
      KnownGood.new(file: "bcrypt_ext.", gem: "bcrypt", tried: "3.1.22", needs: [],
                    trial: "test/trials/computing_test.rb"),
      KnownGood.new(file: "openssl.", gem: "openssl", tried: "3.2.0, 3.3.3 and 4.0.2 with OpenSSL 3.5",
                    needs: %w[libssl.so.3 libcrypto.so.3], trial: "test/trials/computing_test.rb"),
      KnownGood.new(file: "zlib.", gem: "zlib", tried: "3.1.1 and 3.2.3 with zlib 1.2.13", needs: %w[libz.so.1],
                    trial: "test/trials/computing_test.rb"),
      KnownGood.new(file: "socket.", gem: "Ruby's socket", tried: "Ruby 3.3 and 3.4", needs: [],
                    trial: "test/offload/libraries_test.rb")
    ].freeze
  end
end
